// Operands that must fit one another so closely that proposals by chance never do: quantised products, boxes and
// scores, the parameters of a recurrence. An operator without an entry is drawn by its roles alone.
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
  std::string suffix = "";      // not empty: an input whose name says what its elements are (values.h)
  std::optional<Tensor> value;  // a constant
  bool absent = false;
};

struct Fitting {
  std::vector<FittingSpec> operands;
  ecg::Attributes attrs;
};

// Nothing for an operator without an entry.
std::optional<Fitting> FittingOperands(const std::string& op, Drawing* draw);

// The operators with an entry whose results are as long as the data say, for models.
const std::vector<std::string>& DataDependentOps();

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_FITTING_H_
