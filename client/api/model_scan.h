// ScanModel: the few facts about an ONNX file that the client needs, read off the protobuf wire form without building
// the message: weights are skipped, not touched. Judging the model is the server's business.
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
  std::string location;  // as written: a path relative to the model's folder
};

struct ModelScan {
  int64_t nodes = 0;  // of the main graph, Constant nodes not counted
  int64_t opset = 0;  // of the default domain
  std::vector<ExternalTensor> external;
};

// INVALID_ARGUMENT for bytes that are no ModelProto, are cut off, hold no graph, or nest deeper than protobuf allows.
absl::StatusOr<ModelScan> ScanModel(absl::string_view bytes);

}  // namespace fusion

#endif  // FUSION_CLIENT_API_MODEL_SCAN_H_
