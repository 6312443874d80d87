// Converts between the compiler's types and the messages of proto/compile_process.proto. Nothing is lost on the way.
#ifndef FUSION_SERVER_COMPILE_PROCESS_PROCESS_MESSAGES_H_
#define FUSION_SERVER_COMPILE_PROCESS_PROCESS_MESSAGES_H_

#include "absl/status/status.h"
#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"
#include "proto/compile_process.pb.h"

namespace fusion {

v1::StatusProto ToMessage(const absl::Status& status);
absl::Status FromMessage(const v1::StatusProto& message);

v1::CompileOptionsMessage ToMessage(const CompileOptions& options);
CompileOptions FromMessage(const v1::CompileOptionsMessage& message);

v1::CompileAccountMessage ToMessage(const CompileAccount& account);
CompileAccount FromMessage(const v1::CompileAccountMessage& message);

v1::ProgressMessage ToMessage(const ProgressEvent& event);
ProgressEvent FromMessage(const v1::ProgressMessage& message);

v1::LatencyQuestionMessage ToMessage(const LatencyQuestion& question);
LatencyQuestion FromMessage(const v1::LatencyQuestionMessage& message);

v1::ModelErrorMessage ToMessage(const ModelError& error);
ModelError FromMessage(const v1::ModelErrorMessage& message);

v1::PlanQuestionMessage ToMessage(const PlanQuestion& question);
PlanQuestion FromMessage(const v1::PlanQuestionMessage& message);

v1::PlansCompared ToMessage(const PlanAnswers& answers);
PlanAnswers FromMessage(const v1::PlansCompared& message);

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_PROCESS_MESSAGES_H_
