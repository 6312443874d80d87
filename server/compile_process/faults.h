// Faults that a compilation commits on purpose, for tests of the server and of the confinement.
#ifndef FUSION_SERVER_COMPILE_PROCESS_FAULTS_H_
#define FUSION_SERVER_COMPILE_PROCESS_FAULTS_H_

#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// At the beginning of a stage of a model's compilation. The kinds: "abort", "exit", "memory" (one huge block), "leak"
// (many blocks) and "loop" end it or use all there is; "connect=PATH" (a Unix socket), "read=PATH", "write=PATH",
// "fork", "program" and "kill" (its parent) do nothing where they are refused, and else end it with "HARM DONE".
struct Fault {
  std::string model, stage, kind;
};

// MODEL:STAGE:KIND. INVALID_ARGUMENT for other text.
absl::StatusOr<Fault> ParseFault(const std::string& text);

void Commit(const std::string& kind);

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_FAULTS_H_
