#include "tests/fuzz/graphs/other_indices.h"

#include "compiler/te/scalar/scalar.h"

namespace fusion::fuzz {
namespace {

bool IsOp(const te::Scalar& s, te::Op op) { return s->kind == te::ScalarKind::kOp && s->op == op; }
bool IsImmediate(const te::Scalar& s) { return s->kind == te::ScalarKind::kImm; }

// Is it an index x as WrappedIndices makes it: max(min(x, extent - 1), 0)?
bool IsNearest(const te::Program& program, const te::Te& te) {
  if (!te.IsMap() || te.outputs.size() != 1) return false;
  const te::TensorInfo& info = program.tensors[static_cast<size_t>(te.outputs[0])];
  if (info.name != "indices" || info.dtype != DType::kI64) return false;
  const te::Scalar& nearest = te.body[0];
  return IsOp(nearest, te::Op::kMax) && IsImmediate(nearest->args[1]) && nearest->args[1]->ivalue == 0 &&
         IsOp(nearest->args[0], te::Op::kMin) && IsImmediate(nearest->args[0]->args[1]);
}

}  // namespace

std::optional<te::Program> WithOtherIndices(const te::Program& program) {
  std::optional<te::Program> other;
  for (size_t t = 0; t < program.tes.size(); ++t) {
    if (!IsNearest(program, program.tes[t])) continue;
    if (!other) other = program;
    te::Scalar& body = other->tes[t].body[0];
    const te::Scalar index = body->args[0]->args[0];
    body = te::Select(te::Call(te::Op::kEq, {body, index}), index, te::ImmInt(DType::kI64, 0));
  }
  return other;
}

}  // namespace fusion::fuzz
