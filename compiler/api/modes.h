// The words of --math, --precision and --size, in one place for the compiler, the server and the tools.
#ifndef FUSION_COMPILER_API_MODES_H_
#define FUSION_COMPILER_API_MODES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/rewrite/rule.h"

namespace fusion {

const std::vector<std::string>& MathModes();   // the default first
const std::vector<std::string>& Precisions();  // the default first
const std::vector<std::string>& SizeModes();   // the default first

// Fails with INVALID_ARGUMENT for any other word, naming the valid ones.
absl::StatusOr<rewrite::MathLevel> MathLevelOf(const std::string& math);
absl::Status CheckPrecision(const std::string& precision);
absl::Status CheckSize(const std::string& size);

}  // namespace fusion

#endif  // FUSION_COMPILER_API_MODES_H_
