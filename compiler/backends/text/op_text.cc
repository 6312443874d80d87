#include "compiler/backends/text/op_text.h"

#include <cmath>
#include <cstddef>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "compiler/backends/text/element_text.h"
#include "compiler/backends/text/vector_text.h"
#include "compiler/movement/vector_form.h"
#include "compiler/te/scalar/op_table.h"

namespace fusion::text {
namespace {

using te::Op;
using te::ScalarKind;
using Texts = std::vector<std::string>;

// In each text, $0, $1 and $2 are the operands. In texts of single elements, $3 is the C type of the result, $4 the
// suffix of helpers for the operands' type ("f32"), and $5 a one of a float operand's type.
struct OpText {
  Op op;
  const char* floats;         // on single elements; null: the operation is not defined on floats
  const char* integers;       // and bool
  const char* float_vectors;  // null: there is no vector form
  const char* int_vectors;    // and masks
  // Text on vectors of floats where the operands allow a shorter one; "" where they do not.
  std::string (*shorter)(const te::ScalarNode& s, const Texts& a) = nullptr;
};

// These avoid the language's `?:`, which some languages lack for vectors.
constexpr char kLarger[] = "vsel($0 > $1, $0, $1)", kSmaller[] = "vsel($0 < $1, $0, $1)";

// With a number as the first operand, one instruction keeps the other operand's NaN.
std::string BesideImmediate(const char* text, const te::ScalarNode& s, const Texts& a) {
  const auto number = [&](int i) { return s.args[i]->kind == ScalarKind::kImm && !std::isnan(s.args[i]->fvalue); };
  if (number(0)) return absl::Substitute(text, a[0], a[1]);
  return number(1) ? absl::Substitute(text, a[1], a[0]) : "";
}
std::string MaxOfImmediate(const te::ScalarNode& s, const Texts& a) { return BesideImmediate(kLarger, s, a); }
std::string MinOfImmediate(const te::ScalarNode& s, const Texts& a) { return BesideImmediate(kSmaller, s, a); }

std::string SmallPower(const te::ScalarNode& s, const Texts& a) {
  if (s.args[1]->kind != ScalarKind::kImm) return "";
  const double exponent = s.args[1]->fvalue;
  return exponent == 2   ? absl::StrCat(a[0], " * ", a[0])
         : exponent == 3 ? absl::StrCat(a[0], " * ", a[0], " * ", a[0])
                         : "";
}

bool IsCall(const te::Scalar& x, Op op) { return x->kind == ScalarKind::kOp && x->op == op; }

// The exponential of what lies inside one end of the floats needs no test of that end.
std::string ExpInside(const te::ScalarNode& s, const Texts& a) {
  constexpr double kLargest = 88, kSmallest = -86;
  const te::Scalar& x = s.args[0];
  const auto any_operand = [&](const auto& holds) {
    return absl::c_any_of(x->args, [&](const te::Scalar& arg) {
      return arg->kind == ScalarKind::kImm && holds(arg->fvalue);
    });
  };
  const bool at_most = (IsCall(x, Op::kMin) && any_operand([](double value) { return value <= kLargest; })) ||
                       (IsCall(x, Op::kNeg) && IsCall(x->args[0], Op::kAbs));
  if (at_most) return absl::StrCat("vexp_no_overflow(", a[0], ")");
  const bool at_least = IsCall(x, Op::kMax) && any_operand([](double value) { return value >= kSmallest; });
  return at_least ? absl::StrCat("vexp_no_underflow(", a[0], ")") : "";
}

// Signed overflow wraps: an integer operation that may overflow uses the widest unsigned type, and the result is cut to
// its own type. In the order of Op.
constexpr OpText kTexts[] = {
    {Op::kAdd, "($3)($0 + $1)", "($3)((u64)$0 + (u64)$1)", "$0 + $1", "iadd($0, $1)"},
    {Op::kSub, "($3)($0 - $1)", "($3)((u64)$0 - (u64)$1)", "$0 - $1", "isub($0, $1)"},
    {Op::kMul, "($3)($0 * $1)", "($3)((u64)$0 * (u64)$1)", "$0 * $1", "imul($0, $1)"},
    {Op::kDiv, "($3)($0 / $1)", "idiv_$4($0, $1)", "$0 / $1", nullptr},
    {Op::kMod, "mod_$4($0, $1)", "mod_$4($0, $1)", "vmod($0, $1)", nullptr},
    {Op::kFMod, "fmod_$4($0, $1)", "irem_$4($0, $1)", "vfmod($0, $1)", nullptr},
    {Op::kMin, "smin_$4($0, $1)", "smin_$4($0, $1)", "vmin($0, $1)", kSmaller, MinOfImmediate},
    {Op::kMax, "smax_$4($0, $1)", "smax_$4($0, $1)", "vmax($0, $1)", kLarger, MaxOfImmediate},
    {Op::kPow, "pow_$4($0, $1)", "ipow_$4($0, $1)", "vpow($0, $1)", nullptr, SmallPower},
    {Op::kNeg, "-$0", "($3)(0 - (u64)$0)", "-$0", "isub(bi(0), $0)"},
    {Op::kAbs, "sabs_$4($0)", "sabs_$4($0)", "vabs($0)", "vsel($0 < bi(0), isub(bi(0), $0), $0)"},
    {Op::kSign, "ssign_$4($0)", "ssign_$4($0)", "vsign($0)", nullptr},
    {Op::kFloor, "floor_$4($0)", "$0", "vfloor($0)", nullptr},
    {Op::kCeil, "ceil_$4($0)", "$0", "vceil($0)", nullptr},
    {Op::kRound, "round_$4($0)", "$0", "vround($0)", nullptr},
    {Op::kSqrt, "sqrt_$4($0)", nullptr, "vsqrt($0)", nullptr},
    {Op::kRsqrt, "$5 / sqrt_$4($0)", nullptr, "vrsqrt($0)", nullptr},
    {Op::kExp, "exp_$4($0)", nullptr, "vexp($0)", nullptr, ExpInside},
    {Op::kLog, "log_$4($0)", nullptr, "vlog($0)", nullptr},
    {Op::kErf, "erf_$4($0)", nullptr, "verf($0)", nullptr},
    {Op::kSin, "sin_$4($0)", nullptr, "vsin($0)", nullptr},
    {Op::kCos, "cos_$4($0)", nullptr, "vcos($0)", nullptr},
    {Op::kTan, "tan_$4($0)", nullptr, "vtan($0)", nullptr},
    {Op::kAsin, "asin_$4($0)", nullptr, "vasin($0)", nullptr},
    {Op::kAcos, "acos_$4($0)", nullptr, "vacos($0)", nullptr},
    {Op::kAtan, "atan_$4($0)", nullptr, "vatan($0)", nullptr},
    {Op::kSinh, "sinh_$4($0)", nullptr, "vsinh($0)", nullptr},
    {Op::kCosh, "cosh_$4($0)", nullptr, "vcosh($0)", nullptr},
    {Op::kTanh, "tanh_$4($0)", nullptr, "vtanh($0)", nullptr},
    {Op::kAsinh, "asinh_$4($0)", nullptr, "vasinh($0)", nullptr},
    {Op::kAcosh, "acosh_$4($0)", nullptr, "vacosh($0)", nullptr},
    {Op::kAtanh, "atanh_$4($0)", nullptr, "vatanh($0)", nullptr},
    {Op::kIsNan, "($0 != $0)", nullptr, "$0 != $0", nullptr},
    {Op::kIsInf, "(sabs_$4($0) == inf_$4)", nullptr, "vabs($0) == bc(inf_f32)", nullptr},
    {Op::kEq, "($3)($0 == $1)", "($3)($0 == $1)", "$0 == $1", "$0 == $1"},
    {Op::kNe, "($3)($0 != $1)", "($3)($0 != $1)", "$0 != $1", "$0 != $1"},
    {Op::kLt, "($3)($0 < $1)", "($3)($0 < $1)", "$0 < $1", "$0 < $1"},
    {Op::kLe, "($3)($0 <= $1)", "($3)($0 <= $1)", "$0 <= $1", "$0 <= $1"},
    {Op::kGt, "($3)($0 > $1)", "($3)($0 > $1)", "$0 > $1", "$0 > $1"},
    {Op::kGe, "($3)($0 >= $1)", "($3)($0 >= $1)", "$0 >= $1", "$0 >= $1"},
    {Op::kAnd, nullptr, "($3)($0 & $1)", nullptr, "$0 & $1"},
    {Op::kOr, nullptr, "($3)($0 | $1)", nullptr, "$0 | $1"},
    {Op::kXor, nullptr, "($3)($0 ^ $1)", nullptr, "$0 ^ $1"},
    {Op::kNot, nullptr, "!$0", nullptr, "~$0"},
    {Op::kBitAnd, nullptr, "($3)($0 & $1)", nullptr, "$0 & $1"},
    {Op::kBitOr, nullptr, "($3)($0 | $1)", nullptr, "$0 | $1"},
    {Op::kBitXor, nullptr, "($3)($0 ^ $1)", nullptr, "$0 ^ $1"},
    {Op::kBitNot, nullptr, "($3)~$0", nullptr, "~$0"},
    {Op::kShl, nullptr, "shl_$4($0, $1)", nullptr, nullptr},
    {Op::kShr, nullptr, "shr_$4($0, $1)", nullptr, nullptr},
    // The first operand, a condition, chooses the column.
    {Op::kSelect, nullptr, "($0 ? $1 : $2)", nullptr, "vsel($0, $1, $2)"},
};

// Returns whether every operation has the texts that its row of te::op_table demands, and no vector form without one.
constexpr bool Complete() {
  if (std::size(kTexts) != std::size(te::op_table::kRows)) return false;
  for (size_t i = 0; i < std::size(kTexts); ++i) {
    const OpText& text = kTexts[i];
    const te::OpRow& row = te::op_table::kRows[i];
    if (text.op != row.op) return false;
    if (row.op == Op::kSelect) continue;
    const bool on_vectors = (row.lanes & te::kFloatLanes) != 0;
    if ((text.floats != nullptr) != row.value.floats.Defined()) return false;
    if ((text.integers != nullptr) != row.value.signed_ints.Defined()) return false;
    if ((text.float_vectors != nullptr) != on_vectors || (text.shorter != nullptr && !on_vectors)) return false;
    if ((text.int_vectors != nullptr) != ((row.lanes & (te::kIntLanes | te::kMaskLanes)) != 0)) return false;
  }
  return true;
}
static_assert(Complete(), "each operation has a text for all that its row says it computes on");

const OpText& TextOf(Op op) { return kTexts[static_cast<size_t>(op)]; }

std::string Filled(const char* text, const Texts& a, const char* type = "", const std::string& suffix = "",
                   const char* one = "") {
  if (text == nullptr) return "";
  const std::string none;
  return absl::Substitute(text, a[0], a.size() > 1 ? a[1] : none, a.size() > 2 ? a[2] : none, type, suffix, one);
}

}  // namespace

std::string ScalarOpText(const te::ScalarNode& s, const std::vector<std::string>& args) {
  const DType in = s.args[0]->dtype;
  const OpText& text = TextOf(s.op);
  const char* const one = in == DType::kF64 ? "1.0" : "1.f";
  return Filled(IsFloat(in) ? text.floats : text.integers, args, CType(s.dtype), TypeSuffix(in), one);
}

std::string VectorOpText(const te::ScalarNode& s, const std::vector<std::string>& args) {
  const bool on_floats = movement::LaneKindOf(s.args[0]->dtype) == movement::LaneKind::kFloat;
  const OpText& row = TextOf(s.op);
  std::string text = on_floats && row.shorter != nullptr ? row.shorter(s, args) : "";
  if (text.empty()) text = Filled(on_floats ? row.float_vectors : row.int_vectors, args);
  return s.op == Op::kSelect || text.empty() ? text : Narrowed(s.dtype, text);
}

}  // namespace fusion::text
