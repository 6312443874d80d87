// The kernel file of an OpenCL bundle: OpenCL C text and, where it was built on a device, that driver's binary of it.
#ifndef FUSION_RUNTIME_DEVICES_OPENCL_PROGRAM_FILE_H_
#define FUSION_RUNTIME_DEVICES_OPENCL_PROGRAM_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion::opencl {

// "fusion-opencl 1\n", device, "\n", driver, "\n", bytes of the text, " ", bytes of the binary, "\n", text, binary.
// Device and driver are what the binary is for; empty without one.
struct ProgramFile {
  std::string device, driver;
  absl::string_view source;
  absl::string_view binary;  // may be empty
};

std::string WriteProgramFile(const ProgramFile& file);
// Views into `bytes`. INVALID_ARGUMENT for anything else.
absl::StatusOr<ProgramFile> ReadProgramFile(absl::string_view bytes);

}  // namespace fusion::opencl

#endif  // FUSION_RUNTIME_DEVICES_OPENCL_PROGRAM_FILE_H_
