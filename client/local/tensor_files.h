// Tensors on disk: NumPy's .npy, and ONNX's TensorProto in .pb files (as ONNX's own test data has them).
#ifndef FUSION_CLIENT_LOCAL_TENSOR_FILES_H_
#define FUSION_CLIENT_LOCAL_TENSOR_FILES_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// By the ending of `path`. INVALID_ARGUMENT naming the file for damaged ones, NOT_FOUND for none.
absl::StatusOr<Tensor> ReadTensorFile(const std::string& path);

// The tensors that `texts`, "NAME=FILE" each, give to some of `bindings`. A bare FILE is taken where there is one
// binding. A usage error that begins with `flag` names a text that fits none.
absl::StatusOr<std::map<std::string, Tensor>> ReadNamedTensors(const std::vector<Binding>& bindings,
                                                               const std::vector<std::string>& texts,
                                                               const std::string& flag);

struct InputFlags {
  std::vector<std::string> files;      // "NAME=FILE"
  int64_t seed = -1;                   // fills inputs that no file names; -1: refuse instead
  int64_t int_max = 1;                 // random integers are drawn from [0, int_max]: they are often indices or masks
  std::vector<std::string> dims = {};  // "seq=32": of a bundle's specialisations, for inputs that no file gives
};
// One tensor per input of the manifest: ReadNamedTensors, and random ones for the others. The shapes of files and
// `flags.dims` name a specialisation; without any it is the first. INVALID_ARGUMENT or a usage error naming an unknown
// or missing input, or one of another type or shape.
absl::StatusOr<std::vector<Tensor>> AssembleInputs(const Manifest& manifest, const InputFlags& flags);

// A tensor's name as the name of a file: letters, digits, '.', '_' and '-'; never empty, hidden or a path.
std::string FileNameOf(const std::string& tensor_name);

}  // namespace fusion

#endif  // FUSION_CLIENT_LOCAL_TENSOR_FILES_H_
