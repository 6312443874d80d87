#include "tests/conformance/cut_to_extents.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ecg/run_checks.h"
#include "runtime/base/pack_box.h"
#include "runtime/base/run_check.h"
#include "runtime/base/status_macros.h"

namespace fusion::conformance {

absl::StatusOr<std::vector<Tensor>> CutToExtents(const ecg::Graph& graph, const std::vector<Tensor>& all) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : all) shapes.push_back(tensor.shape());
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string& name = graph.output_names()[i];
    if (!ecg::IsRunCheck(name)) continue;
    const auto* values = static_cast<const int64_t*>(all[i].data());
    RETURN_IF_ERROR(
        RunCheckResult(ecg::RunCheckMessage(name), absl::MakeConstSpan(values, NumElements(all[i].shape()))));
  }
  for (const ecg::OutputExtent& e : graph.output_extents()) {
    const int64_t extent = all[e.extent].GetInt(0);
    if (extent < 0 || extent > shapes[e.output][e.dim]) {
      return absl::OutOfRangeError(absl::StrCat("output ", e.output, ": dimension ", e.dim, " has the extent ", extent,
                                                ", its bound is ", shapes[e.output][e.dim]));
    }
    shapes[e.output][e.dim] = extent;
  }
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < all.size() && ecg::IsModelOutput(graph, i); ++i) {
    if (shapes[i] == all[i].shape()) {
      outputs.push_back(all[i]);
      continue;
    }
    Tensor whole(all[i].dtype(), all[i].shape());
    std::memcpy(whole.mutable_data(), all[i].data(), static_cast<size_t>(whole.size_bytes()));
    PackBox(whole.mutable_data(), DTypeBytes(whole.dtype()), whole.shape(), shapes[i]);
    Tensor part(whole.dtype(), shapes[i]);
    if (part.size_bytes() > 0) std::memcpy(part.mutable_data(), whole.data(), static_cast<size_t>(part.size_bytes()));
    outputs.push_back(std::move(part));
  }
  return outputs;
}

}  // namespace fusion::conformance
