#include "compiler/rewrite/rule_lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace fusion::rewrite {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Each token as its kind's letter and its text: "n:Add".
std::vector<std::string> Tokens(const std::string& line) {
  const auto tokens = Tokenize(line);
  EXPECT_TRUE(tokens.ok()) << tokens.status();
  std::vector<std::string> texts;
  for (const Token& token : tokens.value_or(std::vector<Token>())) {
    texts.push_back(absl::StrCat(std::string(1, "n#sp."[static_cast<int>(token.kind)]), ":", token.text));
  }
  return texts;
}

TEST(Tokenize, ARule) {
  EXPECT_THAT(Tokens("mul-zero: Mul(?x, 0) -> Zeros(?x) if x.rank <= 2"),
              ElementsAre("n:mul-zero", "p::", "n:Mul", "p:(", "p:?", "n:x", "p:,", "#:0", "p:)", "p:->", "n:Zeros",
                          "p:(", "p:?", "n:x", "p:)", "n:if", "n:x", "p:.", "n:rank", "p:<=", "#:2", ".:"));
}

TEST(Tokenize, Numbers) {
  for (const auto& [text, number] : std::vector<std::pair<std::string, double>>{
           {"0", 0}, {"-3", -3}, {"0.25", 0.25}, {"1e-3", 1e-3}, {"2e+5", 2e5}, {"-1.5e2", -150}}) {
    const auto tokens = Tokenize(text);
    ASSERT_TRUE(tokens.ok()) << text << tokens.status();
    ASSERT_EQ(tokens->size(), 2u) << text;
    EXPECT_EQ((*tokens)[0].number, number);
  }
  for (const char* text : {"1.2.3", "1e", "2e+"}) {
    EXPECT_EQ(Tokenize(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Tokenize, AHyphenIsPartOfANameBetweenLettersOnly) {
  EXPECT_THAT(Tokens("a-b"), ElementsAre("n:a-b", ".:"));
  EXPECT_THAT(Tokens("a - b"), ElementsAre("n:a", "p:-", "n:b", ".:"));
  EXPECT_THAT(Tokens("a->b"), ElementsAre("n:a", "p:->", "n:b", ".:"));
}

TEST(Tokenize, Strings) {
  EXPECT_THAT(Tokens("\"a -> b\" \"\""), ElementsAre("s:a -> b", "s:", ".:"));
  EXPECT_THAT(std::string(Tokenize("x \"open").status().message()), HasSubstr("a string is not closed"));
}

TEST(Tokenize, EveryByteEnds) {
  EXPECT_THAT(Tokens(""), ElementsAre(".:"));
  std::string all;
  for (int c = 1; c < 256; ++c) {
    if (c != '"') all += std::string(1, static_cast<char>(c)) + " ";
  }
  EXPECT_TRUE(Tokenize(all).ok()) << Tokenize(all).status();
}

}  // namespace
}  // namespace fusion::rewrite
