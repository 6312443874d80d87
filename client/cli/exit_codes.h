// Exit codes of fusionctl. Scripts rely on them, so they stay the same.
#ifndef FUSION_CLIENT_CLI_EXIT_CODES_H_
#define FUSION_CLIENT_CLI_EXIT_CODES_H_

#include <string>

#include "absl/status/status.h"

namespace fusion {

enum ExitCode {
  kExitOk = 0,
  kExitFailed = 1,        // the compilation failed, or any error on our side
  kExitUsage = 2,         // also: no such file, no such job
  kExitInvalidModel = 3,  // also: a bundle or input that is damaged or unfit
  kExitAuth = 4,
  kExitUnavailable = 5,
  kExitTimeout = 6,
  kExitNoWorker = 7,
  kExitQuota = 8,
  kExitVerificationFailed = 9,  // also: verify could not compare something; submit's bundle is wrong or crashes
  kExitInterrupted = 130,
};

// Returns the error for a wrong command line that is found after parsing.
absl::Status UsageError(const std::string& message);

// The exit code for a status from the server or about the model.
ExitCode ExitCodeOf(const absl::Status& status);

// Prints "fusionctl: MESSAGE" to stderr and returns the exit code. FailLocal is for files of this machine: there a
// failed precondition (a bundle for another processor) does not mean a missing worker, and a full disk is no quota.
int Fail(const absl::Status& status);
int FailLocal(const absl::Status& status);

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_EXIT_CODES_H_
