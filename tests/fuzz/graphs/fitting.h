// Draws operands that must fit one another more closely than independent draws ever do: quantised products, boxes and
// scores, the parameters of a recurrence. The operands of an operator without an entry are drawn from their roles only.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_FITTING_H_
#define FUSION_TESTS_FUZZ_GRAPHS_FITTING_H_

#include <optional>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"
#include "tests/fuzz/graphs/drawing.h"

namespace fusion::fuzz {

struct FittingSpec {
  ecg::ValueType type;
  std::string suffix = "";      // if not empty: an input whose name tells what its elements are (values.h)
  std::optional<Tensor> value;  // a constant
  bool absent = false;
};

struct Fitting {
  std::vector<FittingSpec> operands;
  ecg::Attributes attrs;
};

// Returns nothing for an operator without an entry.
std::optional<Fitting> FittingOperands(const std::string& op, Drawing* draw);

// Returns the operators with an entry whose results' lengths depend on data; only models draw them.
const std::vector<std::string>& DataDependentOps();

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_FITTING_H_
