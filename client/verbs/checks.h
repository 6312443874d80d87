// Prints the findings of workers that ran a finished bundle as a whole, for people and for scripts.
#ifndef FUSION_CLIENT_VERBS_CHECKS_H_
#define FUSION_CLIENT_VERBS_CHECKS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "client/cli/exit_codes.h"
#include "client/cli/progress.h"
#include "proto/checks.pb.h"

namespace fusion {

// One sentence each, without a verb in front: "1.92 ms, unfused and untuned 3.01 ms: 1.57× as fast …".
std::string MeasurementInWords(const v1::ModelMeasurement& measured);
std::string VerificationInWords(const v1::ModelVerification& verified);

// Prints the lines "measured" and "verified" for the checks that were asked for.
void PrintChecks(const v1::Checks& checks, Progress& progress);

// Adds "measured" and "verified" to a report for scripts; a check that was not asked for is null.
void AddChecks(const v1::Checks& checks, nlohmann::ordered_json* report);

// Returns kExitVerificationFailed if the bundle computes wrong numbers, or if running it crashed; then says so on
// stderr, whatever the mode of the progress. Otherwise returns kExitOk: what a worker could not compare is told by
// PrintChecks.
ExitCode JudgeChecks(const v1::Checks& checks);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_CHECKS_H_
