// ScanModel: reads the few facts about an ONNX file that the client needs from the protobuf wire form, without building
// the message: its memory is that of the names it returns, and the pages of a mapped file that hold weights are never
// read. The server validates the model.
#ifndef FUSION_CLIENT_API_MODEL_SCAN_H_
#define FUSION_CLIENT_API_MODEL_SCAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

struct ExternalTensor {
  std::string tensor;    // its name
  std::string location;  // as written in the model: a path relative to the model's folder
};

struct ModelScan {
  int64_t nodes = 0;  // in the main graph, without Constant nodes
  int64_t opset = 0;  // of the default domain
  std::vector<ExternalTensor> external;
};

// Fails with INVALID_ARGUMENT for bytes that are no ModelProto, are cut off, hold no graph, nest deeper than protobuf
// allows, or are more than the 2 GiB of a protobuf message.
absl::StatusOr<ModelScan> ScanModel(absl::string_view bytes);

}  // namespace fusion

#endif  // FUSION_CLIENT_API_MODEL_SCAN_H_
