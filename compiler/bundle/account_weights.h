// AccountWeights explains why the weights of a bundle have another size than the model's.
#ifndef FUSION_COMPILER_BUNDLE_ACCOUNT_WEIGHTS_H_
#define FUSION_COMPILER_BUNDLE_ACCOUNT_WEIGHTS_H_

#include <cstdint>
#include <vector>

#include "runtime/bundle/weights_account.h"

namespace fusion {

// A constant as the bundle holds it.
struct HeldWeight {
  const void* source = nullptr;   // memory of the graph's constant; null: a kernel's own table
  int64_t source_bytes = 0;       // size of that constant
  int64_t covered_bytes = 0;      // the part of it that this weight stands for: a kernel may read only a part
  int64_t transformed_bytes = 0;  // the covered part once transformed; the same if there is no transform
  int64_t bytes = 0;              // in the bundle, with padding
};

// Fills `bundle_bytes` and `causes` of `account`, whose `model_bytes` are known. `data_bytes` is the size of the
// bundle's whole weights entry.
void AccountWeights(const std::vector<HeldWeight>& weights, int64_t data_bytes, WeightsAccount* account);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_ACCOUNT_WEIGHTS_H_
