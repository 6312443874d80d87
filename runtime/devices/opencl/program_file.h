// The kernel file of an OpenCL bundle: OpenCL C text and, if the text was built on a device, that driver's binary.
#ifndef FUSION_RUNTIME_DEVICES_OPENCL_PROGRAM_FILE_H_
#define FUSION_RUNTIME_DEVICES_OPENCL_PROGRAM_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion::opencl {

// The layout is "fusion-opencl 1\n", device, "\n", driver, "\n", size of the text in bytes, " ", size of the binary in
// bytes, "\n", text, binary. Device and driver name what the binary was built for; they are empty without a binary.
struct ProgramFile {
  std::string device, driver;
  absl::string_view source;
  absl::string_view binary;  // may be empty
};

std::string WriteProgramFile(const ProgramFile& file);
// Returns views into `bytes`. Fails with INVALID_ARGUMENT if `bytes` has another layout.
absl::StatusOr<ProgramFile> ReadProgramFile(absl::string_view bytes);

}  // namespace fusion::opencl

#endif  // FUSION_RUNTIME_DEVICES_OPENCL_PROGRAM_FILE_H_
