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
    te::ValueRange range = RangesOf(extent).value_or(te::TensorRanges(1))[0];
    if (range.linear && range.constant == 0 && range.terms.size() == 1 && range.terms.begin()->second == 1) {
      extent = range.terms.begin()->first;
      range = RangesOf(extent).value_or(te::TensorRanges(1))[0];
    } else if (range.linear) {
      extent = same_number_.emplace(std::make_pair(range.constant, range.terms), extent).first->second;
      range = RangesOf(extent).value_or(te::TensorRanges(1))[0];
    }
    range.lo = std::max(range.lo, 0.0);
    range.hi = std::min(range.hi, static_cast<double>(shape[d]));
    range.linear = true;
    range.constant = 0;
    range.terms = {{extent, 1}};
    ranges_[extent] = {range};
  }
  if (std::any_of(extents.begin(), extents.end(), [](ecg::ValueId extent) { return extent != ecg::kNone; })) {
    extents_[value] = std::move(extents);
  }
}

std::optional<te::TensorRanges> Extents::RangesOf(ecg::ValueId value) const {
  const std::optional<Tensor>& constant = graph_->value(value).constant;
  if (constant) return te::RangesOfConstant(*constant);
  auto it = ranges_.find(value);
  return it == ranges_.end() ? std::nullopt : std::optional<te::TensorRanges>(it->second);
}

void Extents::AddToOutput(ecg::ValueId value, int output, ecg::Graph* graph) const {
  auto it = extents_.find(value);
  if (it == extents_.end()) return;
  for (size_t d = 0; d < it->second.size(); ++d) {
    if (it->second[d] != ecg::kNone) graph->AddOutputExtent(output, static_cast<int>(d), it->second[d]);
  }
}

}  // namespace fusion::onnx_import
