#include <cstring>
#include <utility>

#include "compiler/ecg/interpret.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/pack_box.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/modes.h"

namespace fusion::conformance {
namespace {

// The outputs of the model, cut to their extents.
Outputs WithoutWhatIsNotThere(const ecg::Graph& graph, Outputs all) {
  std::vector<Shape> shapes;
  for (const Tensor& tensor : all) shapes.push_back(tensor.shape());
  for (const ecg::OutputExtent& e : graph.output_extents()) shapes[e.output][e.dim] = all[e.extent].GetInt(0);
  Outputs outputs;
  for (size_t i = 0; i < all.size() && !graph.output_names()[i].empty(); ++i) {
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

absl::StatusOr<Outputs> InterpretModel(const ecg::Graph& graph, const std::vector<Tensor>& inputs) {
  ASSIGN_OR_RETURN(Outputs all, ecg::Interpret(graph, inputs));
  return WithoutWhatIsNotThere(graph, std::move(all));
}

ModeFunction InterpretEach(ecg::Graph (*prepare)(const ecg::Graph&)) {
  return [prepare](const std::vector<TestCase>& cases, const ModeOptions&) {
    std::vector<absl::StatusOr<Outputs>> results;
    for (const TestCase& test : cases) {
      auto imported = ImportCase(test);
      if (!imported.ok()) {
        results.push_back(imported.status());
      } else {
        results.push_back(
            InterpretModel(prepare == nullptr ? imported->graph : prepare(imported->graph), imported->inputs));
      }
    }
    return results;
  };
}

}  // namespace

std::vector<Mode> InterpreterModes() {
  return {{"interpreter", InterpretEach(nullptr)}, {"simplified", InterpretEach(simplify::Simplify)}};
}

}  // namespace fusion::conformance
