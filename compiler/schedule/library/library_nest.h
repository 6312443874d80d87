// The common part of all kinds of library calls: the nests that a library may compute, and the phase that calls it.
#ifndef FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_NEST_H_
#define FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_NEST_H_

#include "compiler/movement/kernel.h"
#include "compiler/schedule/nest/nest.h"
#include "runtime/bundle/library_call.h"

namespace fusion {

// Is the nest a single f32 sum of products of two operands, all of whose elements are computed and stored?
bool IsPlainSumOfProducts(const Nest& nest);

// An unconditional load; null for anything else.
const te::ScalarNode* PlainLoad(const te::Scalar& s);

// A phase of one step, which makes the call and keeps the nest's loops and addresses.
movement::Phase PhaseOf(const Nest& nest, const LibraryCall& call);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_LIBRARY_LIBRARY_NEST_H_
