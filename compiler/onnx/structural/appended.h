// A value that grows: what a loop carries when each iteration joins its result to those before.
#ifndef FUSION_COMPILER_ONNX_STRUCTURAL_APPENDED_H_
#define FUSION_COMPILER_ONNX_STRUCTURAL_APPENDED_H_

#include <optional>

#include "compiler/ecg/graph.h"

namespace fusion::onnx_import {

struct Appended {
  int axis = 0;
  ecg::ValueId piece = ecg::kNone;
};

// `whole` is all of `start` and then `piece` along an axis, as the lowering of what produces it says; nothing where it
// is anything else. At the bounds.
std::optional<Appended> AppendedTo(const ecg::Graph& graph, ecg::ValueId start, ecg::ValueId whole);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_STRUCTURAL_APPENDED_H_
