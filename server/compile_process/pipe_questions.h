// The compiler's oracles and toolchain in the process that compiles: each question goes over the pipe, and fusiond
// answers it (compile_process.h). The process ends when fusiond is gone, because nobody wants its result any more.
#ifndef FUSION_SERVER_COMPILE_PROCESS_PIPE_QUESTIONS_H_
#define FUSION_SERVER_COMPILE_PROCESS_PIPE_QUESTIONS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/toolchain.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/cost/plan_oracle.h"
#include "proto/compile_process.pb.h"
#include "server/compile_process/message_pipe.h"

namespace fusion {

inline constexpr int kExitServerGone = 85;

// Sends a message, or ends this process.
void SendOrExit(MessagePipe& pipe, const v1::FromCompiler& message);
// Receives a message, or ends this process.
v1::ToCompiler ReceiveOrExit(MessagePipe& pipe);

class PipeOracle : public LatencyOracle {
 public:
  explicit PipeOracle(MessagePipe* pipe) : pipe_(pipe) {}
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler& bundler) override;
  absl::StatusOr<bool> Knows(const std::string& key) override;
  absl::StatusOr<ModelError> Error() override;
  int Devices() const override;
  absl::StatusOr<std::vector<KnownTrial>> Trials(const std::string& workload) override;
  absl::StatusOr<std::vector<std::string>> NeighbourChoices(const std::string& structure, const std::string& workload,
                                                            int limit) override;

 private:
  MessagePipe* const pipe_;
};

class PipePlans : public PlanOracle {
 public:
  explicit PipePlans(MessagePipe* pipe) : pipe_(pipe) {}
  absl::StatusOr<PlanAnswers> Compare(const PlanQuestion& reference, absl::Span<const PlanQuestion> plans,
                                      PlanBundler& bundler) override;

 private:
  MessagePipe* const pipe_;
};

class PipeToolchain : public Toolchain {
 public:
  explicit PipeToolchain(MessagePipe* pipe) : pipe_(pipe) {}
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override;

 private:
  MessagePipe* const pipe_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_PIPE_QUESTIONS_H_
