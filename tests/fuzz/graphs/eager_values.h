// Runs models operator by operator: the reference for what import makes of control flow, extents, sequences and
// optionals.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_EAGER_VALUES_H_
#define FUSION_TESTS_FUZZ_GRAPHS_EAGER_VALUES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "onnx/onnx_pb.h"
#include "tests/fuzz/graphs/model_run.h"

namespace fusion::fuzz {

struct EagerValues {
  TensorsByName tensors;
  std::map<std::string, std::vector<Tensor>> sequences;
  std::map<std::string, std::vector<Tensor>> optionals;  // one element or none

  // Adds what a node has computed.
  void Take(EagerValues results);
};

// Returns the operators that take or return a sequence or an optional.
std::vector<std::string> ListOperators();

// Returns the outputs of `node`. Operators on lists are implemented here from ONNX's specification, because import
// would otherwise be compared with itself; all others go through RunNode.
absl::StatusOr<EagerValues> RunOne(const onnx::NodeProto& node, const EagerValues& values);

// Returns all values of the main graph, for the data that its inputs' names determine (values.h).
absl::StatusOr<EagerValues> RunAll(const onnx::ModelProto& model);

// Returns the model's outputs, which are tensors, computed by RunAll.
absl::StatusOr<std::vector<Tensor>> RunEagerly(const onnx::ModelProto& model);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_EAGER_VALUES_H_
