// A value that grows: a loop carries it, and each iteration appends its result to those before.
#ifndef FUSION_COMPILER_ONNX_STRUCTURAL_APPENDED_H_
#define FUSION_COMPILER_ONNX_STRUCTURAL_APPENDED_H_

#include <optional>

#include "compiler/ecg/graph.h"

namespace fusion::onnx_import {

struct Appended {
  int axis = 0;
  ecg::ValueId piece = ecg::kNone;
};

// Returns the axis and `piece` if `whole` is all of `start` followed by `piece` along that axis, as the lowering of its
// producer shows; otherwise nullopt. All are taken at their bounds.
std::optional<Appended> AppendedTo(const ecg::Graph& graph, ecg::ValueId start, ecg::ValueId whole);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_STRUCTURAL_APPENDED_H_
