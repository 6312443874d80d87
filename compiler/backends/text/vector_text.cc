#include "compiler/backends/text/vector_text.h"

#include "absl/strings/str_cat.h"
#include "compiler/backends/text/element_text.h"
#include "compiler/movement/vector_form.h"

namespace fusion::text {

using movement::LaneKind;
using movement::LaneKindOf;

const char* VectorType(DType dtype) { return LaneKindOf(dtype) == LaneKind::kFloat ? "vf" : "vi"; }

std::string VectorZero(DType dtype) { return LaneKindOf(dtype) == LaneKind::kFloat ? "bc(0.f)" : "bi(0)"; }

std::string BroadcastText(DType dtype, const std::string& scalar) {
  switch (LaneKindOf(dtype)) {
    case LaneKind::kFloat:
      return absl::StrCat("bc(", scalar, ")");
    case LaneKind::kMask:
      return absl::StrCat("bi(", scalar, " ? -1 : 0)");
    default:
      return absl::StrCat("bi((int)", scalar, ")");
  }
}

std::string Narrowed(DType dtype, const std::string& x) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
      return absl::StrCat("wrap_", DTypeName(dtype), "(", x, ")");
    case DType::kF16:
    case DType::kBF16:
      return absl::StrCat("round_", DTypeName(dtype), "(", x, ")");
    case DType::kU4:
    case DType::kU2:
      return absl::StrCat("(", x, ") & bi(", (1 << DTypeBits(dtype)) - 1, ")");
    case DType::kI4:
    case DType::kI2: {
      const int sign = 1 << (DTypeBits(dtype) - 1);
      return absl::StrCat("isub(((", x, ") & bi(", 2 * sign - 1, ")) ^ bi(", sign, "), bi(", sign, "))");
    }
    default:
      return x;
  }
}

std::string LaneText(DType dtype, const std::string& vector, const std::string& lane) {
  return absl::StrCat("lane_", VectorType(dtype), "(", vector, ", ", lane, ")");
}

std::string VectorLoadText(DType dtype, const std::string& place) {
  return absl::StrCat("ld_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "(", place, ")");
}

std::string PartLoadText(DType dtype, const std::string& place, const std::string& count) {
  return absl::StrCat("ld_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "_part(", place, ", ", count, ")");
}

std::string PartStoreText(DType dtype, const std::string& place, const std::string& value, const std::string& count) {
  return absl::StrCat("st_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "_part(", place, ", ", value, ", ",
                      count, ");");
}

std::string VectorStoreText(DType dtype, const std::string& place, const std::string& value) {
  return absl::StrCat("st_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "(", place, ", ", value, ");");
}

std::string VectorCastText(const te::ScalarNode& cast, const std::string& x) {
  const DType from = cast.args[0]->dtype, to = cast.dtype;
  if (from == to) return absl::StrCat("vrounded(", x, ")");
  switch (LaneKindOf(to)) {
    case LaneKind::kFloat: {
      const std::string real = LaneKindOf(from) == LaneKind::kFloat ? x
                               : LaneKindOf(from) == LaneKind::kInt ? absl::StrCat("vi2f(", x, ")")
                                                                    : absl::StrCat("vsel(", x, ", bc(1.f), bc(0.f))");
      return Narrowed(to, real);
    }
    case LaneKind::kInt: {
      if (LaneKindOf(from) == LaneKind::kMask) return absl::StrCat(x, " & 1");
      const bool same_values = to == DType::kI32 || (from == DType::kI8 && to == DType::kI16) ||
                               (from == DType::kU8 && (to == DType::kI16 || to == DType::kU16));
      const char* const from_float = !movement::FitsI32(*cast.args[0])     ? "vf2i_any("
                                     : !same_values && DTypeBits(to) <= 16 ? "vf2i_low("
                                                                           : "vf2i(";
      const std::string whole = LaneKindOf(from) != LaneKind::kFloat ? x : absl::StrCat(from_float, x, ")");
      return same_values ? whole : Narrowed(to, whole);
    }
    default:
      return LaneKindOf(from) == LaneKind::kFloat ? absl::StrCat(x, " != bc(0.f)") : absl::StrCat(x, " != bi(0)");
  }
}

std::string ReductionIdentity(te::ReductionKind kind, DType dtype) {
  te::ScalarNode imm;
  imm.dtype = dtype;
  switch (kind) {
    case te::ReductionKind::kSum:
      break;
    case te::ReductionKind::kProd:
      imm.fvalue = 1, imm.ivalue = 1;
      break;
    case te::ReductionKind::kMax:
    case te::ReductionKind::kMin: {
      const bool max = kind == te::ReductionKind::kMax;
      imm.fvalue = max ? -__builtin_inf() : __builtin_inf();
      const int bits = DTypeBits(dtype);
      if (dtype == DType::kBool) {
        imm.ivalue = max ? 0 : 1;
      } else if (IsSigned(dtype)) {
        imm.ivalue = max ? INT64_MIN >> (64 - bits) : INT64_MAX >> (64 - bits);
      } else {
        imm.ivalue = max ? 0 : static_cast<int64_t>(UINT64_MAX >> (64 - bits));
      }
      break;
    }
    case te::ReductionKind::kGeneral:
      break;
  }
  return ImmText(imm);
}

std::string VectorCombine(const te::Reduction& reduction, const std::string& acc, const std::string& x) {
  const bool is_float = IsFloat(reduction.acc);
  switch (reduction.kind) {
    case te::ReductionKind::kSum:
      return is_float ? absl::StrCat(acc, " += ", x, ";") : absl::StrCat(acc, " = iadd(", acc, ", ", x, ");");
    case te::ReductionKind::kProd:
      return is_float ? absl::StrCat(acc, " *= ", x, ";") : absl::StrCat(acc, " = imul(", acc, ", ", x, ");");
    case te::ReductionKind::kMax:
      return absl::StrCat(acc, is_float ? " = amax_f32(" : " = amax_i32(", acc, ", ", x, ");");
    default:
      return absl::StrCat(acc, is_float ? " = amin_f32(" : " = amin_i32(", acc, ", ", x, ");");
  }
}

}  // namespace fusion::text
