#include "compiler/te/scalar/scalar_op.h"

#include <cstddef>
#include <iterator>

namespace fusion::te {
namespace {

// In the order of Op. A cost is the cycles of a vectorised polynomial or division relative to one vector FMA.
constexpr OpInfo kOps[] = {
    {"add", 2, 1, true},    {"sub", 2, 1, false},    {"mul", 2, 1, true},     {"div", 2, 8, false},
    {"mod", 2, 12, false},  {"fmod", 2, 12, false},  {"min", 2, 1, true},     {"max", 2, 1, true},
    {"pow", 2, 40, false},  {"neg", 1, 1, false},    {"abs", 1, 1, false},    {"sign", 1, 2, false},
    {"floor", 1, 1, false}, {"ceil", 1, 1, false},   {"round", 1, 1, false},  {"sqrt", 1, 8, false},
    {"rsqrt", 1, 9, false}, {"exp", 1, 11, false},   {"log", 1, 14, false},   {"erf", 1, 14, false},
    {"sin", 1, 16, false},  {"cos", 1, 16, false},   {"tan", 1, 26, false},   {"asin", 1, 22, false},
    {"acos", 1, 22, false}, {"atan", 1, 22, false},  {"sinh", 1, 20, false},  {"cosh", 1, 20, false},
    {"tanh", 1, 14, false}, {"asinh", 1, 28, false}, {"acosh", 1, 28, false}, {"atanh", 1, 28, false},
    {"isnan", 1, 1, false}, {"isinf", 1, 1, false},  {"eq", 2, 1, true},      {"ne", 2, 1, true},
    {"lt", 2, 1, false},    {"le", 2, 1, false},     {"gt", 2, 1, false},     {"ge", 2, 1, false},
    {"and", 2, 1, true},    {"or", 2, 1, true},      {"xor", 2, 1, true},     {"not", 1, 1, false},
    {"bitand", 2, 1, true}, {"bitor", 2, 1, true},   {"bitxor", 2, 1, true},  {"bitnot", 1, 1, false},
    {"shl", 2, 1, false},   {"shr", 2, 1, false},    {"select", 3, 1, false},
};
static_assert(std::size(kOps) == static_cast<size_t>(Op::kSelect) + 1);

}  // namespace

const OpInfo& GetOpInfo(Op op) { return kOps[static_cast<size_t>(op)]; }

}  // namespace fusion::te
