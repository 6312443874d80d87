// The weights of a bundle: its constants, with each combination of bytes and packing once.
#ifndef FUSION_COMPILER_BUNDLE_WEIGHTS_H_
#define FUSION_COMPILER_BUNDLE_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/bundle/account_weights.h"
#include "compiler/movement/kernel.h"
#include "runtime/base/dtype.h"
#include "runtime/base/tensor.h"

namespace fusion {

struct Weights {
  struct Weight {
    Tensor source;
    const movement::Pack* pack;  // null: as it is
    DType dtype;
    Shape shape;  // in the bundle
    int64_t size_bytes;
    bool table = false;  // a lowering or a schedule made it
  };
  // Returns the index in `list`.
  size_t Add(const std::string& identity, Weight weight) {
    auto [it, fresh] = known.emplace(identity, list.size());
    if (fresh) list.push_back(std::move(weight));
    return it->second;
  }
  std::vector<Weight> list;
  std::map<std::string, size_t> known;
};

// Returns the weight as the bundle's account counts it.
HeldWeight Held(const Weights::Weight& weight);

// Returns a text that is equal for tensors in the same memory (see ConstantPool), whatever their shape.
std::string BytesIdentity(const Tensor& tensor);

// Returns a text that is equal for packings that make the same bytes of a constant, also where they cut its axes
// differently.
std::string PackingText(const movement::Pack& pack);
// Does the packing of a constant of so many elements make the constant's own bytes?
bool KeepsOrder(const movement::Pack& pack, int64_t source_elements);

}  // namespace fusion

#endif  // FUSION_COMPILER_BUNDLE_WEIGHTS_H_
