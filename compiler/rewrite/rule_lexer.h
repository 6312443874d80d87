// Splits a rule line into tokens.
#ifndef FUSION_COMPILER_REWRITE_RULE_LEXER_H_
#define FUSION_COMPILER_REWRITE_RULE_LEXER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion::rewrite {

struct Token {
  enum class Kind : uint8_t { kName, kNumber, kString, kPunctuation, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;
  double number = 0;
};

// A name may contain hyphens between letters (`mul-zero`). Punctuation is one character or one of -> != <= .
absl::StatusOr<std::vector<Token>> Tokenize(std::string_view line);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_RULE_LEXER_H_
