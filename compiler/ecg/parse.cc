#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "compiler/ecg/graph.h"
#include "compiler/ecg/text.h"
#include "runtime/base/status_macros.h"

namespace fusion::ecg {
namespace {

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  absl::StatusOr<Graph> Run() {
    RETURN_IF_ERROR(Expect("graph"));
    ASSIGN_OR_RETURN(graph_.name, Identifier());
    RETURN_IF_ERROR(Expect("("));
    while (!Accept(")")) {
      ASSIGN_OR_RETURN(auto typed, TypedValue());
      RETURN_IF_ERROR(Define(typed.first, graph_.AddInput(typed.first, typed.second)));
      if (!Peek(")")) RETURN_IF_ERROR(Expect(","));
    }
    RETURN_IF_ERROR(Expect("{"));
    while (!Accept("return")) RETURN_IF_ERROR(Statement());
    std::vector<std::pair<OutputExtent, ValueId>> extents;
    while (!Accept("}")) {
      ASSIGN_OR_RETURN(auto value, Use());
      std::string name = value.second;
      if (Accept("[")) {
        for (int dim = 0; !Accept("]"); ++dim) {
          if (!Accept("_")) {
            ASSIGN_OR_RETURN(const auto extent, Use());
            extents.push_back({{static_cast<int>(graph_.outputs().size()), dim}, extent.first});
          }
          if (!Peek("]")) RETURN_IF_ERROR(Expect(","));
        }
      }
      if (Accept("as")) {
        ASSIGN_OR_RETURN(name, String());
      }
      graph_.AddOutput(value.first, name);
      if (!Peek("}")) RETURN_IF_ERROR(Expect(","));
    }
    Skip();
    if (at_ != text_.size()) return Error("expected the end");
    for (const auto& [extent, value] : extents) graph_.AddOutputExtent(extent.output, extent.dim, value);
    return std::move(graph_);
  }

 private:
  absl::Status Error(const std::string& what) const {
    const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n');
    const size_t end = text_.find('\n', at_);
    const std::string near = text_.substr(at_, std::min<size_t>(end == std::string::npos ? end : end - at_, 40));
    return absl::InvalidArgumentError(absl::StrCat("line ", line, ": ", what, " near `", near, "`"));
  }

  void Skip() {
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == ';') {  // a comment, up to the end of the line
        while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
      } else if (!absl::ascii_isspace(text_[at_])) {
        return;
      }
    }
  }

  bool Peek(const std::string& token) {
    Skip();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    const bool word = IsIdentifierChar(token.back());
    const size_t end = at_ + token.size();
    return !(word && end < text_.size() && IsIdentifierChar(text_[end]));
  }

  bool Accept(const std::string& token) {
    if (!Peek(token)) return false;
    at_ += token.size();
    return true;
  }

  absl::Status Expect(const std::string& token) {
    return Accept(token) ? absl::OkStatus() : Error(absl::StrCat("expected `", token, "`"));
  }

  absl::StatusOr<std::string> Identifier() {
    Skip();
    size_t end = at_;
    while (end < text_.size() && IsIdentifierChar(text_[end])) ++end;
    if (end == at_) return Error("expected a name");
    std::string name = text_.substr(at_, end - at_);
    at_ = end;
    return name;
  }

  absl::StatusOr<std::string> String() {
    Skip();
    if (at_ >= text_.size() || text_[at_] != '"') return Error("expected a string");
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size()) return Error("unterminated string");
    std::string result;
    if (!absl::CUnescape(text_.substr(at_ + 1, end - at_ - 1), &result)) return Error("bad escape");
    at_ = end + 1;
    return result;
  }

  absl::StatusOr<std::string> NumberText() {
    Skip();
    size_t end = at_;
    while (end < text_.size() && (absl::ascii_isalnum(text_[end]) || std::strchr("+-.", text_[end]) != nullptr)) ++end;
    if (end == at_) return Error("expected a number");
    std::string number = text_.substr(at_, end - at_);
    at_ = end;
    return number;
  }

  absl::StatusOr<int64_t> Int() {
    ASSIGN_OR_RETURN(const std::string text, NumberText());
    int64_t value = 0;
    if (!absl::SimpleAtoi(text, &value)) return Error(absl::StrCat("`", text, "` is no integer;"));
    return value;
  }

  absl::StatusOr<double> Float() {
    ASSIGN_OR_RETURN(const std::string text, NumberText());
    double value = 0;
    if (!absl::SimpleAtod(text, &value)) return Error(absl::StrCat("`", text, "` is no number;"));
    return value;
  }

  template <typename T>
  absl::StatusOr<std::vector<T>> List(const std::string& close, absl::StatusOr<T> (Parser::*element)()) {
    std::vector<T> result;
    while (!Accept(close)) {
      ASSIGN_OR_RETURN(T value, (this->*element)());
      result.push_back(std::move(value));
      if (!Peek(close)) RETURN_IF_ERROR(Expect(","));
    }
    return result;
  }

  absl::StatusOr<ValueType> Type() {
    ASSIGN_OR_RETURN(const std::string name, Identifier());
    const std::optional<DType> dtype = ParseDType(name);
    if (!dtype.has_value()) return Error(absl::StrCat("`", name, "` is no element type;"));
    RETURN_IF_ERROR(Expect("["));
    ASSIGN_OR_RETURN(Shape shape, List<int64_t>("]", &Parser::Int));
    RETURN_IF_ERROR(CheckedSizeBytes(shape, *dtype).status());
    return ValueType{*dtype, std::move(shape)};
  }

  absl::StatusOr<Tensor> TensorOf(const ValueType& type) {
    const int64_t count = NumElements(type.shape);
    if (Accept("#")) {
      ASSIGN_OR_RETURN(const std::string hex, Identifier());
      uint64_t filling = 0;
      if (hex.size() != 16 || !absl::SimpleHexAtoi(hex, &filling)) return Error("expected 16 hex digits");
      if (NumElements(type.shape) > kMaxParsedElements) return Error("constant too large for a text");
      Tensor tensor(type.dtype, type.shape);
      auto* bytes = static_cast<char*>(tensor.mutable_data());
      for (int64_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<char>(filling >> (8 * (i % 8)));
      return tensor;
    }
    RETURN_IF_ERROR(Expect("{"));
    if (IsFloat(type.dtype)) {
      ASSIGN_OR_RETURN(const std::vector<double> values, List<double>("}", &Parser::Float));
      if (static_cast<int64_t>(values.size()) != count) return Error(absl::StrCat("expected ", count, " elements"));
      return Tensor::From(type.dtype, type.shape, values);
    }
    ASSIGN_OR_RETURN(const std::vector<int64_t> values, List<int64_t>("}", &Parser::Int));
    if (static_cast<int64_t>(values.size()) != count) return Error(absl::StrCat("expected ", count, " elements"));
    return Tensor::From(type.dtype, type.shape, values);
  }

  absl::StatusOr<Attribute> AttributeValue() {
    Skip();
    if (Peek("\"")) return String();
    if (Accept("ints")) {
      RETURN_IF_ERROR(Expect("["));
      return List<int64_t>("]", &Parser::Int);
    }
    if (Accept("floats")) {
      RETURN_IF_ERROR(Expect("["));
      return List<double>("]", &Parser::Float);
    }
    if (Accept("strings")) {
      RETURN_IF_ERROR(Expect("["));
      return List<std::string>("]", &Parser::String);
    }
    const size_t start = at_;
    ASSIGN_OR_RETURN(const std::string text, NumberText());
    if (ParseDType(text).has_value()) {
      at_ = start;
      ASSIGN_OR_RETURN(const ValueType type, Type());
      return TensorOf(type);
    }
    at_ = start;
    if (text.find_first_of(".en") == std::string::npos) return Int();
    return Float();
  }

  absl::StatusOr<std::pair<std::string, ValueType>> TypedValue() {
    RETURN_IF_ERROR(Expect("%"));
    ASSIGN_OR_RETURN(std::string name, Identifier());
    RETURN_IF_ERROR(Expect(":"));
    ASSIGN_OR_RETURN(ValueType type, Type());
    return std::make_pair(std::move(name), std::move(type));
  }

  absl::StatusOr<std::pair<ValueId, std::string>> Use() {
    RETURN_IF_ERROR(Expect("%"));
    ASSIGN_OR_RETURN(std::string name, Identifier());
    auto it = ids_.find(name);
    if (it == ids_.end()) return Error(absl::StrCat("%", name, " is not defined before"));
    return std::make_pair(it->second, std::move(name));
  }

  absl::Status Define(const std::string& name, ValueId id) {
    return ids_.emplace(name, id).second ? absl::OkStatus() : Error(absl::StrCat("%", name, " is defined twice"));
  }

  absl::Status Statement() {
    std::vector<std::string> names;
    std::vector<ValueType> types;
    do {
      ASSIGN_OR_RETURN(auto typed, TypedValue());
      names.push_back(std::move(typed.first));
      types.push_back(std::move(typed.second));
    } while (Accept(","));
    RETURN_IF_ERROR(Expect("="));
    ASSIGN_OR_RETURN(const std::string op, Identifier());
    if (op == "const" || op == "opaque") {
      ASSIGN_OR_RETURN(Tensor tensor, TensorOf(types[0]));
      return Define(names[0], op == "const" ? graph_.AddConstant(names[0], std::move(tensor))
                                            : graph_.AddOpaqueConstant(names[0], std::move(tensor)));
    }
    RETURN_IF_ERROR(Expect("("));
    std::vector<ValueId> inputs;
    while (!Accept(")")) {
      if (Accept("_")) {
        inputs.push_back(kNone);
      } else {
        ASSIGN_OR_RETURN(const auto used, Use());
        inputs.push_back(used.first);
      }
      if (!Peek(")")) RETURN_IF_ERROR(Expect(","));
    }
    Attributes attrs;
    if (Accept("{")) {
      while (!Accept("}")) {
        ASSIGN_OR_RETURN(const std::string name, Identifier());
        RETURN_IF_ERROR(Expect("="));
        ASSIGN_OR_RETURN(Attribute value, AttributeValue());
        attrs.Set(name, std::move(value));
        if (!Peek("}")) RETURN_IF_ERROR(Expect(","));
      }
    }
    const NodeId id = graph_.AddNode(op, "", std::move(inputs), std::move(attrs), std::move(types), names);
    for (size_t i = 0; i < names.size(); ++i) RETURN_IF_ERROR(Define(names[i], graph_.node(id).outputs[i]));
    return absl::OkStatus();
  }

  static constexpr int64_t kMaxParsedElements = int64_t{1} << 28;
  const std::string& text_;
  size_t at_ = 0;
  Graph graph_;
  std::map<std::string, ValueId> ids_;
};

}  // namespace

absl::StatusOr<Graph> Parse(const std::string& text) { return Parser(text).Run(); }

}  // namespace fusion::ecg
