#include "compiler/rewrite/rule_lexer.h"

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace fusion::rewrite {
namespace {

bool IsNameChar(char c) { return absl::ascii_isalnum(c) || c == '_'; }

}  // namespace

absl::StatusOr<std::vector<Token>> Tokenize(std::string_view line) {
  std::vector<Token> tokens;
  size_t i = 0;
  const auto at = [&](size_t k) { return k < line.size() ? line[k] : '\0'; };
  while (i < line.size()) {
    const char c = line[i];
    const size_t begin = i;
    if (absl::ascii_isspace(c)) {
      ++i;
      continue;
    }
    if (absl::ascii_isdigit(c) || (c == '-' && absl::ascii_isdigit(at(i + 1)))) {
      ++i;
      while (absl::ascii_isdigit(at(i)) || at(i) == '.' || at(i) == 'e' ||
             ((at(i) == '-' || at(i) == '+') && at(i - 1) == 'e')) {
        ++i;
      }
      Token token{Token::Kind::kNumber, std::string(line.substr(begin, i - begin))};
      if (!absl::SimpleAtod(token.text, &token.number)) {
        return absl::InvalidArgumentError(absl::StrCat("'", token.text, "' is not a number"));
      }
      tokens.push_back(token);
    } else if (IsNameChar(c)) {
      while (IsNameChar(at(i)) || (at(i) == '-' && absl::ascii_isalnum(at(i + 1)))) ++i;
      tokens.push_back({Token::Kind::kName, std::string(line.substr(begin, i - begin))});
    } else if (c == '"') {
      const size_t end = line.find('"', i + 1);
      if (end == std::string_view::npos) return absl::InvalidArgumentError("a string is not closed");
      tokens.push_back({Token::Kind::kString, std::string(line.substr(i + 1, end - i - 1))});
      i = end + 1;
    } else {
      const std::string_view two = line.substr(i, 2);
      const size_t length = two == "->" || two == "!=" || two == "<=" ? 2 : 1;
      tokens.push_back({Token::Kind::kPunctuation, std::string(line.substr(i, length))});
      i += length;
    }
  }
  tokens.push_back({});
  return tokens;
}

}  // namespace fusion::rewrite
