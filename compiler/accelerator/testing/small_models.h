// Small graphs and a machine of small memories, for tests.
#ifndef FUSION_COMPILER_ACCELERATOR_TESTING_SMALL_MODELS_H_
#define FUSION_COMPILER_ACCELERATOR_TESTING_SMALL_MODELS_H_

#include <string>
#include <vector>

#include "compiler/ecg/graph.h"
#include "runtime/base/check.h"
#include "runtime/base/random_inputs.h"
#include "runtime/devices/dsa_sim/machine.h"
#include "runtime/devices/dsa_sim/stored_machines.h"

namespace fusion::accelerator {

// Two convolutions with a halo between them, and a weight that both ends read.
inline constexpr char kConvolutions[] = R"(graph g(%x: f32[2, 3, 12, 12]) {
  %w1: f32[8, 3, 3, 3] = const #3d0000003d000000
  %b: f32[1, 8, 1, 1] = const #3e0000003f000000
  %w2: f32[8, 8, 3, 3] = const #3d0000003f000000
  %a: f32[2, 8, 12, 12] = Conv(%x, %w1) {pads = ints[1, 1, 1, 1]}
  %s: f32[2, 8, 12, 12] = Add(%a, %b)
  %r: f32[2, 8, 12, 12] = Relu(%s)
  %c: f32[2, 8, 12, 12] = Conv(%r, %w2) {pads = ints[1, 1, 1, 1]}
  %y: f32[2, 8, 12, 12] = Add(%c, %b)
  return %y
})";

// A lookup, a product and a softmax.
inline constexpr char kLookup[] = R"(graph g(%ids: i64[6]) {
  %table: f32[10, 16] = const #3d0000003e000000
  %w: f32[16, 12] = const #3e0000003d000000
  %e: f32[6, 16] = Gather(%table, %ids) {axis = 0}
  %m: f32[6, 12] = MatMul(%e, %w)
  %y: f32[6, 12] = Softmax(%m) {axis = -1}
  return %y, %ids as "the ids"
})";

// Outputs that are constants or inputs: nothing is computed.
inline constexpr char kNothingToCompute[] = R"(graph g(%x: f32[2, 3]) {
  %c: i64[3] = const {5, -6, 7}
  %e: f32[0, 2] = const {}
  return %c, %x as "the input", %e
})";

// Sums over an axis of no extent, and a result without elements.
inline constexpr char kWithoutElements[] = R"(graph g(%x: f32[3, 0, 4], %z: f32[3, 4]) {
  %axis: i64[1] = const {1}
  %s: f32[3, 4] = ReduceSum(%x, %axis) {keepdims = 0}
  %y: f32[3, 4] = Add(%s, %z)
  %r: f32[3, 0, 4] = Relu(%x)
  %c: f32[3, 5, 4] = const #3e0000003d000000
  %j: f32[3, 5, 4] = Concat(%r, %c) {axis = 1}
  %k: f32[3, 5, 4] = Relu(%j)
  return %y, %r, %k
})";

inline ecg::Graph GraphOf(const std::string& text) {
  auto graph = ecg::Parse(text);
  FUSION_CHECK(graph.ok(), "the text of a test is no graph");
  return *std::move(graph);
}

// STCP920 with LBs of 8 KB and a GB of 64 KB, so that small models are cut.
inline dsa::Machine SmallStcp920() {
  dsa::Machine machine = *dsa::StoredMachine("stcp920");
  machine.groups[0].local_bytes = {8192, 8192, 8192, "test"};
  machine.global_bytes = {65536, 65536, 65536, "test"};
  return machine;
}

inline std::vector<Tensor> InputsOf(const ecg::Graph& graph) {
  std::vector<Tensor> inputs;
  for (const ecg::ValueId id : graph.inputs()) {
    const ecg::ValueType& type = graph.value(id).type;
    inputs.push_back(RandomTensor(type.dtype, type.shape, DeriveSeed(3, inputs.size()), 5));
  }
  return inputs;
}

}  // namespace fusion::accelerator

#endif  // FUSION_COMPILER_ACCELERATOR_TESTING_SMALL_MODELS_H_
