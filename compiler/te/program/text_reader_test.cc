#include "compiler/te/program/text_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace fusion::te {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Axes i0 and i1, and no loads.
class Reader : public TextReader {
 public:
  using TextReader::Accept;
  using TextReader::AcceptWord;
  using TextReader::AtEnd;
  using TextReader::Expect;
  using TextReader::failed;
  using TextReader::Id;
  using TextReader::Int;
  using TextReader::Ints;
  using TextReader::kMaxDepth;
  using TextReader::ParseIndex;
  using TextReader::ParseIndices;
  using TextReader::ParsePred;
  using TextReader::status;
  using TextReader::TextReader;
  using TextReader::Type;
  using TextReader::Word;

 private:
  const Axis* FindAxis(int id) const override { return id == 0 ? &i_ : id == 1 ? &j_ : nullptr; }
  Index ParseIndexLoad() override {
    Fail("no loads here");
    return 0;
  }
  const Axis i_{0, 100}, j_{1, 30};
};

TEST(TextReader, TokensSkipTheSpaceInFront) {
  const std::string text = "  abs ( -12,\n3 ) f16 i7 ends ending";
  Reader reader(text);
  EXPECT_EQ(reader.Word(), "abs");
  EXPECT_THAT(reader.Ints("(", ")"), ElementsAre(-12, 3));
  EXPECT_EQ(reader.Type(), DType::kF16);
  EXPECT_EQ(reader.Id("i"), 7);
  EXPECT_FALSE(reader.AcceptWord("end")) << "a word is taken whole";
  EXPECT_TRUE(reader.AcceptWord("ends"));
  EXPECT_FALSE(reader.AtEnd());
  EXPECT_TRUE(reader.Accept("ending"));
  EXPECT_TRUE(reader.AtEnd());
  EXPECT_TRUE(reader.status().ok()) << reader.status();
}

TEST(TextReader, EmptyLists) {
  const std::string text = "() []";
  Reader reader(text);
  EXPECT_THAT(reader.Ints("(", ")"), IsEmpty());
  EXPECT_THAT(reader.ParseIndices(), IsEmpty());
  EXPECT_TRUE(reader.status().ok());
}

TEST(TextReader, IndicesPrintTheSameAgain) {
  for (const char* text : {"0", "7", "i0", "2*i0 + i1 + 3", "i0//4", "5*i1 + i0%4", "(i0 + i1)//3", "(2*i0 + i1)%7",
                           "3*(i0 + 2*i1)//5%4 + 1"}) {
    const std::string written = text;
    Reader reader(written);
    EXPECT_EQ(ToString(reader.ParseIndex()), written);
    EXPECT_TRUE(reader.AtEnd()) << written;
    EXPECT_TRUE(reader.status().ok()) << reader.status();
  }
}

TEST(TextReader, Predicates) {
  const std::string text = "i0 < 5 and i1 >= i0 and i0 == 3 and i1 != 2";
  Reader reader(text);
  const Pred pred = reader.ParsePred();
  ASSERT_TRUE(reader.status().ok()) << reader.status();
  ASSERT_EQ(pred.size(), 4u);
  EXPECT_EQ(pred[0].cmp, Cmp::kLt);
  EXPECT_EQ(pred[1].cmp, Cmp::kGe);
  EXPECT_EQ(pred[2].cmp, Cmp::kEq);
  EXPECT_EQ(pred[3].cmp, Cmp::kNe);
  const std::string always = "true";
  EXPECT_TRUE(Reader(always).ParsePred().empty());
}

TEST(TextReader, TheFirstErrorNamesItsLineAndStays) {
  const std::string text = "a\nb\n?c";
  Reader reader(text);
  reader.Word();
  reader.Word();
  reader.Expect("c");
  EXPECT_EQ(reader.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(reader.status().message(), "line 3: expected 'c', found '?c'");
  reader.Expect("d");
  EXPECT_EQ(reader.status().message(), "line 3: expected 'c', found '?c'");
  EXPECT_FALSE(reader.Accept("?")) << "nothing is accepted after an error";
  EXPECT_EQ(reader.Int(), 0);
}

TEST(TextReader, WhatIsWrongIsNamed) {
  const auto error = [](const std::string& text, auto read) {
    Reader reader(text);
    read(reader);
    return std::string(reader.status().message());
  };
  const auto index = [](Reader& reader) { reader.ParseIndex(); };
  EXPECT_THAT(error("i2", index), HasSubstr("axis i2 is not defined here"));
  EXPECT_THAT(error("i0//0", index), HasSubstr("expected a positive divisor"));
  EXPECT_THAT(error("i0%-3", index), HasSubstr("expected a positive divisor"));
  EXPECT_THAT(error("(i0", index), HasSubstr("expected ')'"));
  EXPECT_THAT(error("i1048577", index), HasSubstr("expected a number below 2^20"));
  EXPECT_THAT(error("99999999999999999999", index), HasSubstr("expected an integer"));
  EXPECT_THAT(error("f17", [](Reader& reader) { reader.Type(); }), HasSubstr("'f17' is not an element type"));
  EXPECT_THAT(error("i0 > 3", [](Reader& reader) { reader.ParsePred(); }), HasSubstr("expected '!='"));
}

TEST(TextReader, NestingEndsBeforeTheStackDoes) {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += '(';
  Reader reader(text);
  reader.ParseIndex();
  EXPECT_THAT(std::string(reader.status().message()), HasSubstr("nested too deeply"));
}

}  // namespace
}  // namespace fusion::te
