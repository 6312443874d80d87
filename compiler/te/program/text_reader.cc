#include "compiler/te/program/text_reader.h"

#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::te {
namespace {

constexpr int kMaxId = 1 << 20;

bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

void TextReader::Fail(const std::string& message) {
  if (failed_) return;
  failed_ = true;
  int line = 1;
  for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
  error_ = absl::StrCat("line ", line, ": ", message, ", found '", text_.substr(at_, 12), "'");
}

absl::Status TextReader::status() const { return failed_ ? absl::InvalidArgumentError(error_) : absl::OkStatus(); }

void TextReader::Space() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
}

bool TextReader::AtEnd() {
  Space();
  return at_ == text_.size();
}

bool TextReader::Looking(const char* token) {
  Space();
  return !failed_ && text_.compare(at_, std::char_traits<char>::length(token), token) == 0;
}

bool TextReader::Accept(const char* token) {
  if (!Looking(token)) return false;
  at_ += std::char_traits<char>::length(token);
  return true;
}

void TextReader::Expect(const char* token) {
  if (!Accept(token)) Fail(absl::StrCat("expected '", token, "'"));
}

bool TextReader::AcceptWord(const char* word) {
  if (!Looking(word)) return false;
  const size_t end = at_ + std::char_traits<char>::length(word);
  if (end < text_.size() && IsWord(text_[end])) return false;
  at_ = end;
  return true;
}

std::string TextReader::Word() {
  Space();
  const size_t begin = at_;
  while (!failed_ && at_ < text_.size() && IsWord(text_[at_])) ++at_;
  if (begin == at_) Fail("expected a name");
  return text_.substr(begin, at_ - begin);
}

int64_t TextReader::Int() {
  Space();
  int64_t value = 0;
  const std::from_chars_result r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (failed_ || r.ec != std::errc()) {
    Fail("expected an integer");
    return 0;
  }
  at_ = r.ptr - text_.data();
  return value;
}

int TextReader::Id(const char* prefix) {
  Expect(prefix);
  const int64_t id = Int();
  if (id < 0 || id > kMaxId) Fail("expected a number below 2^20");
  return failed_ ? 0 : static_cast<int>(id);
}

std::vector<int64_t> TextReader::Ints(const char* open, const char* close) {
  std::vector<int64_t> ints;
  Expect(open);
  if (!Looking(close)) {
    do ints.push_back(Int());
    while (Accept(","));
  }
  Expect(close);
  return ints;
}

DType TextReader::Type() {
  const std::string name = Word();
  const std::optional<DType> dtype = ParseDType(name);
  if (!dtype) Fail(absl::StrCat("'", name, "' is not an element type"));
  return dtype.value_or(DType::kF32);
}

std::vector<Index> TextReader::ParseIndices() {
  std::vector<Index> indices;
  Expect("[");
  if (Accept("]")) return indices;
  do indices.push_back(ParseIndex());
  while (Accept(","));
  Expect("]");
  return indices;
}

Index TextReader::ParseIndex() {
  if (depth_ >= kMaxDepth) Fail("index nested too deeply");
  if (failed_) return 0;
  ++depth_;
  Index sum = 0;
  int64_t sign = Accept("-") ? -1 : 1;
  while (!failed_) {
    sum = sum + ParseFactor() * sign;
    if (Accept("+")) {
      sign = 1;
    } else if (Accept("-")) {
      sign = -1;
    } else {
      break;
    }
  }
  --depth_;
  return failed_ ? Index(0) : sum;
}

Index TextReader::ParseFactor() {
  Space();
  if (std::isdigit(static_cast<unsigned char>(Next()))) {
    const int64_t value = Int();
    return Accept("*") ? ParseAtom() * value : Index(value);
  }
  return ParseAtom();
}

Index TextReader::ParseAtom() {
  Index atom = 0;
  if (Accept("(")) {
    atom = ParseIndex();
    Expect(")");
  } else if (Looking("%")) {
    atom = ParseIndexLoad();
  } else {
    const int id = Id("i");
    const Axis* axis = FindAxis(id);
    if (axis == nullptr) Fail(absl::StrCat("axis i", id, " is not defined here"));
    if (failed_) return 0;
    atom = *axis;
  }
  while (!failed_) {
    const bool division = Accept("//");
    if (!division && !Accept("%")) break;
    const int64_t divisor = Int();
    if (divisor <= 0) Fail("expected a positive divisor");
    if (failed_) return 0;
    atom = division ? FloorDiv(atom, divisor) : Mod(atom, divisor);
  }
  return failed_ ? Index(0) : atom;
}

Pred TextReader::ParsePred() {
  Pred pred;
  if (AcceptWord("true")) return pred;
  do {
    Comparison c;
    c.lhs = ParseIndex();
    c.cmp = Accept("<") ? Cmp::kLt : Accept(">=") ? Cmp::kGe : Accept("==") ? Cmp::kEq : (Expect("!="), Cmp::kNe);
    c.rhs = ParseIndex();
    pred.push_back(std::move(c));
  } while (!failed_ && AcceptWord("and"));
  return pred;
}

}  // namespace fusion::te
