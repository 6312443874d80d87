// The values that a graph's outputs must have, and how far rounding may move them.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_
#define FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/ecg/graph.h"
#include "compiler/schedule/rewrite/minimal_filtering.h"

namespace fusion::fuzz {

// The one guarantee of "strict" that "fast" does not give: subnormal numbers may count as zero.
enum class Subnormal : uint8_t { kKept, kMayBeZero };

// The interpreter's outputs, cut to their extents, and those of runs in Monte Carlo arithmetic
// (te/interpreter/interpreter.h). An element on which these runs differ is as uncertain as their difference.
struct Expectation {
  std::vector<Tensor> outputs;
  std::vector<std::vector<Tensor>> perturbed;
  // The outputs in a machine's arithmetic: `kept` with subnormal numbers, `flushed` with zero in their place, within
  // operators and between them. Both are empty if they are equal.
  std::vector<Tensor> kept, flushed;
  // How far rounding may move each element of the outputs once rules have rewritten the graph: a rule may add rounding
  // to what was exact. Empty until WidenByRewriting. In f64, whatever the outputs' types are; zero where they are no
  // floats, NaN where rounding (or the range of f32, AllowForRange) decides whether they are numbers, infinities or
  // NaN.
  std::vector<Tensor> widened;
  // Rounding (or zero in place of a subnormal number) decides an index or an extent, and in some run it is out of
  // range: nothing can be compared.
  bool undecided = false, undecided_if_zero = false;
  bool Undecided(Subnormal subnormal) const {
    return undecided || (subnormal == Subnormal::kMayBeZero && undecided_if_zero);
  }
};
absl::StatusOr<Expectation> Expect(const ecg::Graph& graph, const std::vector<Tensor>& inputs, int runs);

// Measures `widened` by runs of the graph that rules have made of the expectation's graph, `source`. Constants that
// `source` has not are results of rules, and move by their rounding. The spread is taken around what the rewritten graph
// computes, not around the expectation, so it says nothing for a rule that computes something else. It is bounded by a
// few units of the output's largest element, so a rule that cancels digits is found, too; but where the source's own
// inputs and constants, moved by a unit in the last place, move its result further, as far as that.
absl::Status WidenByRewriting(const ecg::Graph& source, const ecg::Graph& rewritten, const std::vector<Tensor>& inputs,
                              int runs, Expectation* expectation);

// Says of elements that they are numbers, infinities or NaN only by the range of f32 where floats of a slightly larger
// range (wide_range.h) give another kind: rules may decide it either way. Fails where that cannot be computed.
absl::Status AllowForRange(const ecg::Graph& source, const std::vector<Tensor>& inputs, Expectation* expectation);

// Adds runs in which the graph's windows are computed by minimal filtering (schedule/rewrite/minimal_filtering.h), with
// tiles of 2 and of 4 results: its rounding is relative to the largest value of a tile, and an infinity or NaN of the
// input reaches the whole tile, as compiler/rewrite/README.md says. `rewritten`: what rules have made of the
// expectation's graph. FAILED_PRECONDITION if no window qualifies, or if filtering moves a finite result of a window by
// more than a few units of that window's largest result: then filtering itself is wrong. Whatever reads the window's
// results may enlarge or hide the difference. `filter`: another pass, so that a wrong one can be tried.
using FilterPass = std::function<std::optional<FilteredProgram>(const te::Program& program, int64_t outputs)>;
absl::Status AddFilteredRuns(const ecg::Graph& rewritten, const std::vector<Tensor>& inputs, int runs,
                             Expectation* expectation, const FilterPass& filter = FilterMinimally);

// Numbers of elements, by how they were compared.
struct Coverage {
  int64_t exact = 0;      // finite, bit for bit
  int64_t rounded = 0;    // finite, within a tolerance
  int64_t loose = 0;      // finite, within a tolerance that is larger than the element
  int64_t special = 0;    // NaN with NaN, an infinity with the same infinity
  int64_t uncertain = 0;  // not compared, because rounding decides
  int64_t compared() const { return exact + rounded + loose + special; }
  Coverage& operator+=(const Coverage& other);
};

// Judges a run that ended with an error. Where rounding (or zero in place of subnormal numbers) decides whether there
// is a result at all, the run may refuse an extent or an index, and may read different values past an extent from run
// to run (ABORTED): the result is OK, and the outputs count as not compared. Otherwise the result is the error. A
// compiler that refuses the graph (FAILED_PRECONDITION) is never excused.
absl::Status AgreeOnError(const Expectation& expected, const absl::Status& error, Subnormal subnormal,
                          Coverage* coverage);

// Types, shapes, NaN, infinities, and all elements that no perturbation changes must be equal. Other elements may
// differ by a small multiple of the perturbations' spread. Fails with FAILED_PRECONDITION and describes the first
// difference.
absl::Status Agree(const Expectation& expected, const std::vector<Tensor>& actual, Subnormal subnormal,
                   Coverage* coverage);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_JUDGE_H_
