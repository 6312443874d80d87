// What a graph's outputs must be, and how far rounding may take them from that.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_
#define FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"

namespace fusion::fuzz {

// What "fast" promises less than "strict": subnormal numbers may count as zero.
enum class Subnormal : uint8_t { kKept, kMayBeZero };

// The interpreter's outputs, cut to their extents, and those of runs in Monte Carlo arithmetic (te/interpreter.h): an
// element on which such runs do not agree is as uncertain as they are apart.
struct Expectation {
  std::vector<Tensor> outputs;
  std::vector<std::vector<Tensor>> perturbed;
  // As a machine computes them, subnormal numbers kept, and counted as zero within operators and between them: what
  // differs follows from subnormal numbers. Empty where nothing does.
  std::vector<Tensor> kept, flushed;
  // Rounding, or zero in place of subnormal numbers, decides an index or an extent that some run cannot have: nothing
  // can be compared.
  bool undecided = false, undecided_if_zero = false;
  bool Undecided(Subnormal subnormal) const {
    return undecided || (subnormal == Subnormal::kMayBeZero && undecided_if_zero);
  }
};
absl::StatusOr<Expectation> Expect(const ecg::Graph& graph, const std::vector<Tensor>& inputs, int runs);

// Elements, by how they were compared.
struct Coverage {
  int64_t exact = 0;      // finite, bit for bit
  int64_t rounded = 0;    // finite, within a tolerance
  int64_t loose = 0;      // finite, within a tolerance that is larger than the element
  int64_t special = 0;    // NaN with NaN, an infinity with the same infinity
  int64_t uncertain = 0;  // not compared: rounding decides
  int64_t compared() const { return exact + rounded + loose + special; }
};

// A run that gave an error in place of outputs. OK, and counted as not compared, where rounding (or zero in place of
// subnormal numbers) decides whether there is a result at all: the run may have refused an extent or an index, and what
// it reads past an extent may differ from run to run. Otherwise the error.
absl::Status AgreeOnError(const Expectation& expected, const absl::Status& error, Subnormal subnormal,
                          Coverage* coverage);

// Types, shapes, NaN, infinities and all elements that no perturbation changes must be equal; others may differ by a
// small multiple of the perturbations' spread. The first difference as FAILED_PRECONDITION.
absl::Status Agree(const Expectation& expected, const std::vector<Tensor>& actual, Subnormal subnormal,
                   Coverage* coverage);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_
