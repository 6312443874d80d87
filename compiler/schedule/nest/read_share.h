// How much of a tensor one expression reads. Together with the points of its domain that says how often a map would be
// computed if it were substituted there.
#ifndef FUSION_COMPILER_SCHEDULE_NEST_READ_SHARE_H_
#define FUSION_COMPILER_SCHEDULE_NEST_READ_SHARE_H_

#include "compiler/te/program/program.h"

namespace fusion {

// Elements of the tensor that one point of the te reads, at most: loads at equal indices count once, and an `if` takes
// one of its branches. At least 1.
double ReadsPerPoint(const te::Te& te, te::TensorId tensor);

// The share of a te's points at which it reads a tensor. It is 1 except for loads in a branch over a range of an axis
// (a part of a Concat), and 1 for an expression that is too large to walk.
double ReadShare(const te::Te& te, te::TensorId tensor);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_NEST_READ_SHARE_H_
