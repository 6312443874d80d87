#include "compiler/backends/text/element_text.h"

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/base/narrow_float.h"

namespace fusion::text {

using te::Index;

const char* CType(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kBool:
      return "bool";
    case DType::kI4:
    case DType::kI2:
      return "i8";
    case DType::kU4:
    case DType::kU2:
      return "u8";
    default:
      return IsFloat(dtype) ? "float" : DTypeName(dtype);
  }
}

const char* StorageType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return "u16";
    case DType::kBool:
      return "u8";
    default:
      return IsByteFloat(dtype) ? "u8" : CType(dtype);
  }
}

std::string TypeSuffix(DType dtype) {
  return IsNarrowFloat(dtype) ? "f32" : IsFloat(dtype) ? DTypeName(dtype) : CType(dtype);
}

std::string TypedName(const std::string& name, DType dtype) { return absl::StrCat(name, "_", TypeSuffix(dtype)); }

std::string PointerType(const movement::Buffer& buffer, bool read_only) {
  return absl::StrCat(buffer.scope == Scope::kBlock ? "SCRATCH " : "GLOBAL ", read_only ? "const " : "",
                      StorageType(buffer.dtype), "*");
}

std::string LoadText(const movement::Buffer& buffer, const std::string& place) {
  switch (buffer.dtype) {
    case DType::kF16:
      return absl::StrCat("h2f(", place, ")");
    case DType::kBF16:
      return absl::StrCat("bf2f(", place, ")");
    case DType::kBool:
      return absl::StrCat("(", place, " != 0)");
    default:
      return IsByteFloat(buffer.dtype) ? absl::StrCat("from_", DTypeName(buffer.dtype), "(", place, ")") : place;
  }
}

std::string StoreText(const movement::Buffer& buffer, const std::string& place, const std::string& value) {
  switch (buffer.dtype) {
    case DType::kF16:
      return absl::StrCat(place, " = f2h(", value, ");");
    case DType::kBF16:
      return absl::StrCat(place, " = f2bf(", value, ");");
    default:
      if (IsByteFloat(buffer.dtype)) return absl::StrCat(place, " = to_", DTypeName(buffer.dtype), "(", value, ");");
      return absl::StrCat(place, " = (", StorageType(buffer.dtype), ")(", value, ");");
  }
}

std::string KeptBits(DType dtype, const std::string& x) {
  const int bits = DTypeBits(dtype);
  if (!IsSigned(dtype)) return absl::StrCat("(u8)((", x, ") & ", (1 << bits) - 1, ")");
  return absl::StrCat("(i8)((((", x, ") & ", (1 << bits) - 1, ") ^ ", 1 << (bits - 1), ") - ", 1 << (bits - 1), ")");
}

std::string ImmText(const te::ScalarNode& imm) {
  if (!IsFloat(imm.dtype)) {
    if (imm.dtype == DType::kBool) return imm.ivalue != 0 ? "true" : "false";
    return absl::StrFormat("(%s)%dUL", CType(imm.dtype), static_cast<uint64_t>(imm.ivalue));
  }
  const bool f64 = imm.dtype == DType::kF64;
  if (std::isnan(imm.fvalue)) return f64 ? "nan_f64" : "nan_f32";
  if (std::isinf(imm.fvalue)) {
    return absl::StrCat("(", imm.fvalue < 0 ? "-" : "", f64 ? "inf_f64)" : "inf_f32)");
  }
  if (f64) return absl::StrFormat("%a", imm.fvalue);
  const double rounded = static_cast<double>(static_cast<float>(imm.fvalue));
  if (std::isinf(rounded)) return rounded < 0 ? "(-inf_f32)" : "inf_f32";
  const std::string text = absl::StrFormat("%af", rounded);
  return std::signbit(rounded) ? absl::StrCat("(", text, ")") : text;
}

std::string IndexText(const Index& index, const AxisName& name, const movement::Kernel& kernel) {
  std::string text;
  for (const Index::Part& part : index.parts()) {
    std::string term;
    switch (part.term.kind) {
      case te::TermKind::kAxis:
        term = name(part.term.axis.id);
        break;
      case te::TermKind::kFloorDiv:
      case te::TermKind::kMod: {
        const std::string inner = IndexText(*part.term.inner, name, kernel);
        const bool division = part.term.kind == te::TermKind::kFloorDiv;
        if (part.term.inner->Range().lo >= 0) {
          term = absl::StrCat("((", inner, ")", division ? "/" : "%", part.term.divisor, ")");
        } else {
          term = absl::StrCat(division ? "fdiv(" : "fmodi(", inner, ", ", part.term.divisor, ")");
        }
        break;
      }
      case te::TermKind::kLoad:
        term = absl::StrCat("(i64)b", part.term.tensor, "[", IndexText(part.term.indices[0], name, kernel), "]");
        break;
    }
    if (!text.empty()) text += " + ";
    if (part.coefficient == 1) {
      text += term;
    } else {
      absl::StrAppend(&text, part.coefficient, "L*", term);
    }
  }
  if (text.empty()) return absl::StrCat(index.constant(), "L");
  if (index.constant() != 0) absl::StrAppend(&text, " + ", index.constant(), "L");
  return text;
}

std::string PredText(const te::Pred& pred, const AxisName& name, const movement::Kernel& kernel) {
  static const char* const kText[] = {"<", ">=", "==", "!="};
  if (pred.empty()) return "true";
  std::vector<std::string> parts;
  for (const te::Comparison& c : pred) {
    parts.push_back(absl::StrCat("(", IndexText(c.lhs, name, kernel), ") ", kText[static_cast<int>(c.cmp)], " (",
                                 IndexText(c.rhs, name, kernel), ")"));
  }
  return absl::StrJoin(parts, " && ");
}

}  // namespace fusion::text
