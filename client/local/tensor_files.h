// Reads tensors from disk: NumPy's .npy, and ONNX's TensorProto in .pb files (as in ONNX's own test data).
#ifndef FUSION_CLIENT_LOCAL_TENSOR_FILES_H_
#define FUSION_CLIENT_LOCAL_TENSOR_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// Reads the format that the ending of `path` names. Fails with INVALID_ARGUMENT naming a damaged file, with NOT_FOUND
// if there is none.
absl::StatusOr<Tensor> ReadTensorFile(const std::string& path);

// Returns the tensors that `texts`, "NAME=FILE" each, give to some of `bindings`. A bare FILE is accepted if there is
// one binding. If a text fits no binding, fails with a usage error that begins with `flag` and names the text.
absl::StatusOr<std::map<std::string, Tensor>> ReadNamedTensors(const std::vector<Binding>& bindings,
                                                               const std::vector<std::string>& texts,
                                                               const std::string& flag);

struct InputFlags {
  std::vector<std::string> files;      // "NAME=FILE"
  int64_t seed = -1;                   // fills inputs that no file names; -1: missing files are an error
  int64_t int_max = 1;                 // random integers are from [0, int_max]: they are often indices or masks
  std::vector<std::string> dims = {};  // "seq=32": selects a specialisation, for inputs without a file
};
// Returns one tensor per input of the manifest: those of ReadNamedTensors, and random ones for the rest. The shapes of
// files and `flags.dims` select a specialisation; without any it is the first. Fails with INVALID_ARGUMENT or a usage
// error naming an input that is unknown, missing, or of another type or shape.
absl::StatusOr<std::vector<Tensor>> AssembleInputs(const Manifest& manifest, const InputFlags& flags);

// Turns a tensor's name into a file name of letters, digits, '.', '_' and '-', which is never empty, hidden or a path.
std::string FileNameOf(const std::string& tensor_name);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_TENSOR_FILES_H_
