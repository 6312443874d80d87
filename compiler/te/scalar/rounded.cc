#include "compiler/te/scalar/rounded.h"

#include <utility>

#include "runtime/base/check.h"

namespace fusion::te {

Scalar Rounded(Scalar x) {
  FUSION_CHECK(IsFloat(x->dtype), "only floats are rounded");
  if (x->kind == ScalarKind::kCast && x->dtype == x->args[0]->dtype) return x;
  auto node = NewNode(ScalarKind::kCast, x->dtype);
  node->args = {std::move(x)};
  return node;
}

Scalar CastOf(const ScalarNode& cast, Scalar x) {
  return cast.dtype == cast.args[0]->dtype ? Rounded(std::move(x)) : Cast(cast.dtype, std::move(x));
}

Scalar WithOperands(const Scalar& s, std::vector<Scalar> args) {
  if (args == s->args) return s;
  switch (s->kind) {
    case ScalarKind::kOp:
      return Call(s->op, std::move(args));
    case ScalarKind::kCast:
      return CastOf(*s, args[0]);
    case ScalarKind::kIf:
      return If(s->pred, args[0], args[1]);
    default:
      return s;
  }
}

}  // namespace fusion::te
