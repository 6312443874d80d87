// The table of scalar operations: all that the compiler knows about an operation, in one row. A new operation is a
// value of Op (scalar_op.h), its row here, and its text for kernels (compiler/backends/text/op_text.cc), which the
// compiler demands. Only the units that apply a column include this header.
#ifndef FUSION_COMPILER_TE_SCALAR_OP_TABLE_H_
#define FUSION_COMPILER_TE_SCALAR_OP_TABLE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "compiler/te/scalar/neutral.h"
#include "compiler/te/scalar/op_values.h"
#include "compiler/te/scalar/scalar_node.h"
#include "compiler/te/scalar/scalar_op.h"
#include "compiler/te/scalar/value_range.h"

namespace fusion::te {

// The operands have one type, of this kind. (select has a condition in front of them.)
enum class Types : uint8_t { kAny, kNumbers, kFloats, kIntegers, kBools };

// The lanes on which an operation has a vector form; see compiler/movement/vector_form.h for what they hold.
enum Lanes : uint8_t { kNoLanes = 0, kFloatLanes = 1, kIntLanes = 2, kMaskLanes = 4 };
constexpr Lanes operator|(Lanes a, Lanes b) { return static_cast<Lanes>(static_cast<int>(a) | static_cast<int>(b)); }

struct OpRow {
  Op op;
  OpInfo info;  // name, arity, cost in cycles of a vectorised polynomial or division relative to one vector FMA, and
                // whether it commutes
  Types types;
  Lanes lanes = kNoLanes;
  OpValue value = {};  // what it computes; absent for select. An operation that gives bool has a test or a compare here
  bool folds = false;  // immediates fold. Functions of a mathematics library never do, because theirs may differ
  Scalar (*neutral)(const std::vector<Scalar>& args) = nullptr;  // the operand that equals the call, or null
  ValueRange (*range)(const ranges::Operands& x) = nullptr;      // null: nothing is known
  bool wraps = false;                                            // of integers: the result may leave the type
  int units = 0;  // of floats: how far a result may be from the exact one, in units in the last place
};

inline constexpr int kLibrary = 4;  // the units of elementary functions

namespace op_table {

using ranges::Operands;

// In the order of Op.
// A field a line would make the table ten times as long.
// clang-format off
inline constexpr OpRow kRows[] = {
    {.op = Op::kAdd, .info = {"add", 2, 1, true}, .types = Types::kNumbers, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a, auto b) { return values::Add(a, b); }), .folds = true, .neutral = neutral::OfSum,
     .range = [](const Operands& x) { return ranges::Sum(x.a, x.b, 1); }, .wraps = true, .units = 1},
    {.op = Op::kSub, .info = {"sub", 2, 1, false}, .types = Types::kNumbers, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a, auto b) { return values::Sub(a, b); }), .folds = true,
     .neutral = neutral::OfDifference, .range = [](const Operands& x) { return ranges::Sum(x.a, x.b, -1); },
     .wraps = true, .units = 1},
    {.op = Op::kMul, .info = {"mul", 2, 1, true}, .types = Types::kNumbers, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a, auto b) { return values::Mul(a, b); }), .folds = true,
     .neutral = neutral::OfProduct, .range = [](const Operands& x) { return ranges::Product(x.a, x.b, x.equal); },
     .wraps = true, .units = 1},
    {.op = Op::kDiv, .info = {"div", 2, 8, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::FloatsAndIntegers([](double a, double b) { return a / b; },
                                        [](auto a, auto b) { return values::Quotient(a, b); }),
     .folds = true, .neutral = neutral::OfQuotient, .range = ranges::OfQuotient, .wraps = true, .units = 1},
    {.op = Op::kMod, .info = {"mod", 2, 12, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::Numbers([](auto a, auto b) { return values::Modulo(a, b); }), .range = ranges::OfRemainder,
     .units = 1},
    {.op = Op::kFMod, .info = {"fmod", 2, 12, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::FloatsAndIntegers([](double a, double b) { return std::fmod(a, b); },
                                        [](auto a, auto b) { return values::Remainder(a, b); }),
     .range = ranges::OfRemainder},
    {.op = Op::kMin, .info = {"min", 2, 1, true}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes,
     .value = values::FloatsAndIntegers([](double a, double b) { return values::Min(a, b); },
                                        [](auto a, auto b) { return a < b ? a : b; }),
     .folds = true, .range = ranges::OfMin},
    {.op = Op::kMax, .info = {"max", 2, 1, true}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes,
     .value = values::FloatsAndIntegers([](double a, double b) { return values::Max(a, b); },
                                        [](auto a, auto b) { return b < a ? a : b; }),
     .folds = true, .range = ranges::OfMax},
    {.op = Op::kPow, .info = {"pow", 2, 40, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::FloatsAndIntegers([](double a, double b) { return std::pow(a, b); },
                                        [](auto a, auto b) { return values::Power(a, b); }),
     .range = ranges::OfPower, .wraps = true, .units = kLibrary},

    {.op = Op::kNeg, .info = {"neg", 1, 1, false}, .types = Types::kNumbers, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a) { return values::Neg(a); }), .folds = true, .range = ranges::OfNegation,
     .wraps = true},
    {.op = Op::kAbs, .info = {"abs", 1, 1, false}, .types = Types::kNumbers, .lanes = kFloatLanes | kIntLanes,
     .value = values::FloatsAndIntegers([](double a) { return std::fabs(a); },
                                        [](auto a) { return a < 0 ? values::Neg(a) : a; }),
     .folds = true, .range = ranges::OfMagnitude, .wraps = true},
    {.op = Op::kSign, .info = {"sign", 1, 2, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::FloatsAndIntegers([](double a) { return values::Sign(a); },
                                        [](auto a) { return static_cast<decltype(a)>((a > 0) - (a < 0)); }),
     .range = ranges::OfSign},
    // Integers are whole already.
    {.op = Op::kFloor, .info = {"floor", 1, 1, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::FloatsAndIntegers([](double a) { return std::floor(a); }, [](auto a) { return a; }), .folds = true,
     .range = [](const Operands& x) { return ranges::OfRounding(x, std::floor); }},
    {.op = Op::kCeil, .info = {"ceil", 1, 1, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::FloatsAndIntegers([](double a) { return std::ceil(a); }, [](auto a) { return a; }), .folds = true,
     .range = [](const Operands& x) { return ranges::OfRounding(x, std::ceil); }},
    {.op = Op::kRound, .info = {"round", 1, 1, false}, .types = Types::kNumbers, .lanes = kFloatLanes,
     .value = values::FloatsAndIntegers([](double a) { return std::nearbyint(a); }, [](auto a) { return a; }),
     .range = [](const Operands& x) { return ranges::OfRounding(x, std::nearbyint); }},

    {.op = Op::kSqrt, .info = {"sqrt", 1, 8, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::sqrt(a); }), .folds = true, .range = ranges::OfRoot, .units = 1},
    {.op = Op::kRsqrt, .info = {"rsqrt", 1, 9, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return 1 / std::sqrt(a); }), .range = ranges::OfInverseRoot,
     .units = kLibrary},
    {.op = Op::kExp, .info = {"exp", 1, 11, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::exp(a); }), .range = ranges::OfExponential, .units = kLibrary},
    {.op = Op::kLog, .info = {"log", 1, 14, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::log(a); }), .range = ranges::OfLogarithm, .units = kLibrary},
    {.op = Op::kErf, .info = {"erf", 1, 14, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::erf(a); }),
     .range = [](const Operands& x) { return ranges::OfApproximation(x, std::erf); }, .units = kLibrary},
    {.op = Op::kSin, .info = {"sin", 1, 16, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::sin(a); }), .range = ranges::OfWave, .units = kLibrary},
    {.op = Op::kCos, .info = {"cos", 1, 16, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::cos(a); }), .range = ranges::OfWave, .units = kLibrary},
    {.op = Op::kTan, .info = {"tan", 1, 26, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::tan(a); }), .units = kLibrary},
    {.op = Op::kAsin, .info = {"asin", 1, 22, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::asin(a); }), .units = kLibrary},
    {.op = Op::kAcos, .info = {"acos", 1, 22, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::acos(a); }), .units = kLibrary},
    {.op = Op::kAtan, .info = {"atan", 1, 22, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::atan(a); }),
     .range = [](const Operands& x) { return ranges::OfApproximation(x, std::atan); }, .units = kLibrary},
    {.op = Op::kSinh, .info = {"sinh", 1, 20, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::sinh(a); }), .units = kLibrary},
    {.op = Op::kCosh, .info = {"cosh", 1, 20, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::cosh(a); }), .units = kLibrary},
    {.op = Op::kTanh, .info = {"tanh", 1, 14, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::tanh(a); }),
     .range = [](const Operands& x) { return ranges::OfApproximation(x, std::tanh); }, .units = kLibrary},
    {.op = Op::kAsinh, .info = {"asinh", 1, 28, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::asinh(a); }), .units = kLibrary},
    {.op = Op::kAcosh, .info = {"acosh", 1, 28, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::acosh(a); }), .units = kLibrary},
    {.op = Op::kAtanh, .info = {"atanh", 1, 28, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::atanh(a); }), .units = kLibrary},

    {.op = Op::kIsNan, .info = {"isnan", 1, 1, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::isnan(a); }), .folds = true},
    {.op = Op::kIsInf, .info = {"isinf", 1, 1, false}, .types = Types::kFloats, .lanes = kFloatLanes,
     .value = values::Floats([](double a) { return std::isinf(a); }), .folds = true},
    {.op = Op::kEq, .info = {"eq", 2, 1, true}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes | kMaskLanes,
     .value = values::Numbers([](auto a, auto b) { return a == b; }), .folds = true,
     .range = [](const Operands& x) { return ranges::Truth(ranges::Equal(x.a, x.b, x.integer)); }},
    {.op = Op::kNe, .info = {"ne", 2, 1, true}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes | kMaskLanes,
     .value = values::Numbers([](auto a, auto b) { return a != b; }), .folds = true,
     .range = [](const Operands& x) { return ranges::Truth(ranges::Not(ranges::Equal(x.a, x.b, x.integer))); }},
    {.op = Op::kLt, .info = {"lt", 2, 1, false}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a, auto b) { return a < b; }), .folds = true,
     .range = [](const Operands& x) { return ranges::Truth(ranges::Less(x.a, x.b, x.integer)); }},
    {.op = Op::kLe, .info = {"le", 2, 1, false}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a, auto b) { return a <= b; }), .folds = true,
     .range = [](const Operands& x) { return ranges::Truth(ranges::Not(ranges::Less(x.b, x.a, x.integer))); }},
    {.op = Op::kGt, .info = {"gt", 2, 1, false}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a, auto b) { return a > b; }), .folds = true,
     .range = [](const Operands& x) { return ranges::Truth(ranges::Less(x.b, x.a, x.integer)); }},
    {.op = Op::kGe, .info = {"ge", 2, 1, false}, .types = Types::kAny, .lanes = kFloatLanes | kIntLanes,
     .value = values::Numbers([](auto a, auto b) { return a >= b; }), .folds = true,
     .range = [](const Operands& x) { return ranges::Truth(ranges::Not(ranges::Less(x.a, x.b, x.integer))); }},

    {.op = Op::kAnd, .info = {"and", 2, 1, true}, .types = Types::kBools, .lanes = kMaskLanes,
     .value = values::Integers([](auto a, auto b) { return a & b; }), .folds = true, .neutral = neutral::OfAnd,
     .range = ranges::OfAnd},
    {.op = Op::kOr, .info = {"or", 2, 1, true}, .types = Types::kBools, .lanes = kMaskLanes,
     .value = values::Integers([](auto a, auto b) { return a | b; }), .folds = true, .neutral = neutral::OfOr,
     .range = ranges::OfOr},
    {.op = Op::kXor, .info = {"xor", 2, 1, true}, .types = Types::kBools, .lanes = kMaskLanes,
     .value = values::Integers([](auto a, auto b) { return a ^ b; }), .folds = true},
    {.op = Op::kNot, .info = {"not", 1, 1, false}, .types = Types::kBools, .lanes = kMaskLanes,
     .value = values::Integers([](auto a) { return static_cast<decltype(a)>(a == 0); }), .folds = true,
     .neutral = neutral::OfNot, .range = ranges::OfNot},
    {.op = Op::kBitAnd, .info = {"bitand", 2, 1, true}, .types = Types::kIntegers, .lanes = kIntLanes,
     .value = values::Integers([](auto a, auto b) { return a & b; }), .folds = true},
    {.op = Op::kBitOr, .info = {"bitor", 2, 1, true}, .types = Types::kIntegers, .lanes = kIntLanes,
     .value = values::Integers([](auto a, auto b) { return a | b; }), .folds = true},
    {.op = Op::kBitXor, .info = {"bitxor", 2, 1, true}, .types = Types::kIntegers, .lanes = kIntLanes,
     .value = values::Integers([](auto a, auto b) { return a ^ b; }), .folds = true},
    {.op = Op::kBitNot, .info = {"bitnot", 1, 1, false}, .types = Types::kIntegers, .lanes = kIntLanes,
     .value = values::Integers([](auto a) { return ~a; }), .folds = true, .wraps = true},
    {.op = Op::kShl, .info = {"shl", 2, 1, false}, .types = Types::kIntegers,
     .value = values::Integers([](auto a, auto b, int64_t bits) {
       const bool inside = static_cast<uint64_t>(b) < static_cast<uint64_t>(bits);
       return inside ? static_cast<decltype(a)>(static_cast<uint64_t>(a) << b) : 0;
     }),
     .wraps = true},
    {.op = Op::kShr, .info = {"shr", 2, 1, false}, .types = Types::kIntegers,
     .value = values::Integers([](auto a, auto b, int64_t bits) {
       return static_cast<uint64_t>(b) < static_cast<uint64_t>(bits) ? a >> b : 0;
     })},
    // Has a vector form on whatever its results are.
    {.op = Op::kSelect, .info = {"select", 3, 1, false}, .types = Types::kAny,
     .lanes = kFloatLanes | kIntLanes | kMaskLanes, .neutral = neutral::OfSelect},
};
// clang-format on

constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kRows); ++i) {
    if (kRows[i].op != static_cast<Op>(i)) return false;
  }
  return std::size(kRows) == static_cast<size_t>(Op::kSelect) + 1;
}
static_assert(InOrder(), "each operation has one row, in the order of Op");

}  // namespace op_table

constexpr const OpRow& RowOf(Op op) { return op_table::kRows[static_cast<size_t>(op)]; }

constexpr bool YieldsBool(const OpRow& row) {
  return row.types == Types::kBools || row.value.floats.test != nullptr || row.value.floats.compare != nullptr;
}

inline bool IsDefinedOn(const OpRow& row, DType dtype) {
  switch (row.types) {
    case Types::kAny:
      return true;
    case Types::kNumbers:
      return dtype != DType::kBool;
    case Types::kFloats:
      return IsFloat(dtype);
    case Types::kIntegers:
      return IsInteger(dtype);
    case Types::kBools:
      return dtype == DType::kBool;
  }
  return false;
}

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_SCALAR_OP_TABLE_H_
