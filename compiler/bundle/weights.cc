#include "compiler/bundle/weights.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compiler/movement/constant_transform.h"
#include "compiler/movement/pack_constant.h"

namespace fusion {

HeldWeight Held(const Weights::Weight& weight) {
  HeldWeight held;
  held.bytes = weight.size_bytes;
  if (weight.table) return held;
  held.source = weight.source.data();
  const int64_t element = DTypeBytes(weight.source.dtype());
  held.source_bytes = held.covered_bytes = held.transformed_bytes = weight.source.size_bytes();
  if (weight.pack == nullptr) return held;
  if (weight.pack->transform.by_dimension.empty()) {
    // A packing that repeats elements covers at most all of them.
    const movement::ConstantPacker packer(*weight.pack, weight.source.num_elements());
    held.covered_bytes = held.transformed_bytes = std::min(packer.held() * element, held.source_bytes);
  } else {
    const movement::TransformBlocks blocks = movement::BlocksOf(weight.pack->transform, weight.source.shape());
    held.transformed_bytes = NumElements(blocks.shape) * element;
  }
  return held;
}

std::string BytesIdentity(const Tensor& tensor) {
  return absl::StrCat("bytes:", reinterpret_cast<uintptr_t>(tensor.data()), " ", DTypeName(tensor.dtype()),
                      ShapeToString(tensor.shape()));
}

// Axis numbers differ between kernels, so the text names axes by position.
std::string PackingText(const movement::Pack& pack) {
  static const char* const kSigns[] = {"<", ">=", "==", "!="};
  std::string text;
  std::map<int, int> position;
  for (size_t i = 0; i < pack.axes.size(); ++i) {
    position[pack.axes[i].id] = static_cast<int>(i);
    absl::StrAppend(&text, "|", pack.axes[i].extent);
  }
  auto name = [&](int axis) { return absl::StrCat("a", position[axis]); };
  absl::StrAppend(&text, "|", te::ToString(pack.address, name));
  for (const auto& [dimension, matrix] : pack.transform.by_dimension) {
    absl::StrAppend(&text, "|through ", ShapeToString(matrix.shape()), " on ", dimension);
  }
  for (const te::Comparison& c : pack.pred) {
    absl::StrAppend(&text, "|", te::ToString(c.lhs, name), kSigns[static_cast<int>(c.cmp)], te::ToString(c.rhs, name));
  }
  return text;
}

}  // namespace fusion
