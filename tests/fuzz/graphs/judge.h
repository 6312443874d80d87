// What a graph's outputs must be, and how far rounding may take them from that.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_
#define FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// The interpreter's outputs, and those of runs in Monte Carlo arithmetic (te/interpreter.h): an element on which such
// runs do not agree is as uncertain as they are apart.
struct Expectation {
  std::vector<Tensor> outputs;
  std::vector<std::vector<Tensor>> perturbed;
  // No value on the way is NaN, infinite, or so large or small that another order of operations may leave the type's
  // range. Rewrites other than the exact ones promise their results only then.
  bool tame = false;
};
absl::StatusOr<Expectation> Expect(const ecg::Graph& graph, const std::vector<Tensor>& inputs, int runs);

struct Coverage {
  int64_t exact = 0, rounded = 0;  // elements compared: bit for bit, or within a tolerance
  int64_t uncertain = 0;           // elements that rounding decides; not compared
};

// Types, shapes, NaN, infinities and all elements that no perturbation changes must be equal; others may differ by a
// small multiple of the perturbations' spread. The first difference as FAILED_PRECONDITION.
absl::Status Agree(const Expectation& expected, const std::vector<Tensor>& actual, Coverage* coverage);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_
