#include "compiler/onnx/extents.h"

#include <algorithm>
#include <utility>

namespace fusion::onnx_import {

ecg::ValueId Extents::Of(ecg::ValueId value, int dim) const {
  auto it = extents_.find(value);
  return it == extents_.end() ? ecg::kNone : it->second[dim];
}

std::vector<ecg::ValueId> Extents::Of(ecg::ValueId value) const {
  auto it = extents_.find(value);
  if (it != extents_.end()) return it->second;
  return std::vector<ecg::ValueId>(graph_->value(value).type.shape.size(), ecg::kNone);
}

void Extents::Set(ecg::ValueId value, std::vector<ecg::ValueId> extents) {
  const Shape& shape = graph_->value(value).type.shape;
  for (size_t d = 0; d < extents.size(); ++d) {
    ecg::ValueId& extent = extents[d];
    if (extent == ecg::kNone) continue;
    te::Known known = KnownOf(extent).value_or(te::KnownTensor(1))[0];
    if (known.linear && known.constant == 0 && known.terms.size() == 1 && known.terms.begin()->second == 1) {
      extent = known.terms.begin()->first;
      known = KnownOf(extent).value_or(te::KnownTensor(1))[0];
    } else if (known.linear) {
      extent = same_number_.emplace(std::make_pair(known.constant, known.terms), extent).first->second;
      known = KnownOf(extent).value_or(te::KnownTensor(1))[0];
    }
    known.lo = std::max(known.lo, 0.0);
    known.hi = std::min(known.hi, static_cast<double>(shape[d]));
    known.linear = true;
    known.constant = 0;
    known.terms = {{extent, 1}};
    known_[extent] = {known};
  }
  if (std::any_of(extents.begin(), extents.end(), [](ecg::ValueId extent) { return extent != ecg::kNone; })) {
    extents_[value] = std::move(extents);
  }
}

std::optional<te::KnownTensor> Extents::KnownOf(ecg::ValueId value) const {
  const std::optional<Tensor>& constant = graph_->value(value).constant;
  if (constant) return te::KnowTensor(*constant);
  auto it = known_.find(value);
  return it == known_.end() ? std::nullopt : std::optional<te::KnownTensor>(it->second);
}

void Extents::AddToOutput(ecg::ValueId value, int output, ecg::Graph* graph) const {
  auto it = extents_.find(value);
  if (it == extents_.end()) return;
  for (size_t d = 0; d < it->second.size(); ++d) {
    if (it->second[d] != ecg::kNone) graph->AddOutputExtent(output, static_cast<int>(d), it->second[d]);
  }
}

}  // namespace fusion::onnx_import
