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
  std::string name;  // name of the folder
  std::string model_path;
  std::vector<NamedTensor> inputs;      // in the order of the graph's inputs; a sequence's elements one after another
  std::vector<NamedTensor> expected;    // in the order of the graph's outputs, likewise
  std::map<std::string, int64_t> dims;  // lengths of sequences, presence of optionals (compiler/onnx/bind_inputs.h)
};

// Returns why the project does not support the case by intention, or "": the opset of its default domain is above
// `max_opset`, or it needs an operator or element type that import refuses.
std::string WhyIneligible(const std::string& folder, int64_t max_opset);

// Fails with UNIMPLEMENTED if an input or output is a map.
absl::StatusOr<TestCase> ReadTestCase(const std::string& folder);

// Returns the import request of a case; shapes come from its inputs. Node tests pass as inputs values that a compiler
// must know (Reshape's shape, axes, pads). So each attempt, counted from 0, makes more inputs constants: none; integers
// of rank 0 and 1; all inputs of rank 0 and 1 except the first.
inline constexpr int kImportAttempts = 4;
onnx_import::ImportRequest RequestFor(const TestCase& test, int attempt);

// The result of ImportOnnx for the first attempt that is not UNIMPLEMENTED.
struct ImportedCase {
  ecg::Graph graph;
  std::vector<Tensor> inputs;  // parallel to graph.inputs()
};
absl::StatusOr<ImportedCase> ImportCase(const TestCase& test);

}  // namespace fusion::conformance

#endif  // FUSION_TESTS_CONFORMANCE_TEST_CASE_H_
