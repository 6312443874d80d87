#include "compiler/schedule/library/library_nest.h"

#include <utility>

#include "compiler/schedule/vector/vectorize.h"

namespace fusion {

using te::Scalar;
using te::ScalarKind;

bool IsPlainSumOfProducts(const Nest& nest) {
  return nest.reduction && nest.reduction->kind == te::ReductionKind::kSum && nest.reduction->acc == DType::kF32 &&
         nest.reduction->pred.empty() && nest.stores.size() == 1 && nest.body[0]->kind == ScalarKind::kOp &&
         nest.body[0]->op == te::Op::kMul && nest.limits.empty() && nest.padding.empty() && nest.mask_limit < 0;
}

const te::ScalarNode* PlainLoad(const Scalar& s) {
  return s->kind == ScalarKind::kLoad && s->pad == nullptr ? s.get() : nullptr;
}

movement::Phase PhaseOf(const Nest& nest, const LibraryCall& call) {
  movement::Step step = PlainStep(nest);
  step.strategy = call;
  movement::Phase phase;
  phase.steps.push_back(std::move(step));
  return phase;
}

}  // namespace fusion
