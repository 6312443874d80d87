// One case of ONNX's backend test data: a folder with model.onnx and test_data_set_0/{input,output}_N.pb.
#ifndef FUSION_TESTS_CONFORMANCE_TEST_CASE_H_
#define FUSION_TESTS_CONFORMANCE_TEST_CASE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/import.h"
#include "runtime/base/tensor.h"

namespace fusion::conformance {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

struct TestCase {
  std::string name;  // the folder's
  std::string model_path;
  std::vector<NamedTensor> inputs;      // in the order of the graph's inputs; a sequence's elements one after another
  std::vector<NamedTensor> expected;    // in the order of the graph's outputs, the same
  std::map<std::string, int64_t> dims;  // lengths of sequences, presence of optionals (compiler/onnx/bind_inputs.h)
};

// Why the case is outside what the project sets out to run, empty where it is not: its default-domain opset is above
// `max_opset`, or it needs an operator or element type that is refused.
std::string WhyIneligible(const std::string& folder, int64_t max_opset);

// UNIMPLEMENTED when an input or output is a map.
absl::StatusOr<TestCase> ReadTestCase(const std::string& folder);

// The import request of a case: shapes from its inputs. Node tests feed as inputs what a compiler must know (Reshape's
// shape, axes, pads): each attempt, from 0, makes more inputs constants: none; integers of rank 0 and 1; all of rank 0
// and 1 but the first.
inline constexpr int kImportAttempts = 4;
onnx_import::ImportRequest RequestFor(const TestCase& test, int attempt);

// ImportOnnx with the first attempt that is not UNIMPLEMENTED.
struct ImportedCase {
  ecg::Graph graph;
  std::vector<Tensor> inputs;  // parallel to graph.inputs()
};
absl::StatusOr<ImportedCase> ImportCase(const TestCase& test);

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_TEST_CASE_H_
