// StageClock: the stages of a compilation, as users see them: progress, seconds, and the point where a cancelled job
// ends.
#ifndef FUSION_COMPILER_PIPELINE_STAGE_CLOCK_H_
#define FUSION_COMPILER_PIPELINE_STAGE_CLOCK_H_

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"

namespace fusion {

// Both arguments must outlive the clock.
class StageClock {
 public:
  // `label` names the specialisation and stands before every message.
  StageClock(const CompileContext& context, CompileAccount* account, const std::string& label = "")
      : context_(context), account_(account), label_(label.empty() ? "" : label + ": ") {}

  // Ends the running stage and begins another. Fails with CANCELLED where the job was cancelled.
  absl::Status Begin(const std::string& stage, const std::string& message) {
    End();
    if (context_.cancelled && context_.cancelled()) return absl::CancelledError("the job was cancelled");
    stage_ = stage;
    start_ = std::chrono::steady_clock::now();
    Report(0, 0, message);
    return absl::OkStatus();
  }
  void Report(int64_t done, int64_t total, const std::string& message) {
    if (context_.progress) context_.progress({stage_, done, total, label_ + message});
  }
  void End() {
    if (stage_.empty()) return;
    std::vector<StageSeconds>& stages = account_->stages;
    const auto same =
        std::find_if(stages.begin(), stages.end(), [&](const StageSeconds& one) { return one.stage == stage_; });
    (same == stages.end() ? stages.emplace_back(StageSeconds{stage_, 0}) : *same).seconds += SecondsSince(start_);
    stage_.clear();
  }
  const std::string& stage() const { return stage_; }  // empty: none runs

  static double SecondsSince(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  const CompileContext& context_;
  CompileAccount* account_;
  const std::string label_;
  std::string stage_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_STAGE_CLOCK_H_
