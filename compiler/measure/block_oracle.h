// Answers the planners' questions about candidate blocks by scheduling them: can this be one kernel, and how long does
// it take? Answers are remembered by the set of nodes, so a planner may repeat a question freely.
#ifndef FUSION_COMPILER_MEASURE_BLOCK_ORACLE_H_
#define FUSION_COMPILER_MEASURE_BLOCK_ORACLE_H_

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/kernels/block_kernel.h"
#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"
#include "compiler/api/model_files.h"
#include "compiler/plan/plan.h"
#include "compiler/tune/budget.h"

namespace fusion {

// Serves one compilation; not thread-safe. `context` must outlive it.
class GraphBlockOracle : public BlockOracle, private MeasurementBundler {
 public:
  GraphBlockOracle(const CompileContext& context, int threads, bool minimal_filtering = true)
      : context_(context), threads_(threads), minimal_filtering_(minimal_filtering) {}

  // From here on, measuring what planners ask takes at most about this many seconds. Answers that are not known by
  // then, and that would not be measured in time, are estimated. Tune spends no more than the rest. `clock` returns
  // seconds; empty: the system's clock.
  void LimitMeasuring(double seconds, std::function<double()> clock = {});

  // Call it before the first question. Both must outlive the oracle's use.
  void Start(const ecg::Graph* graph, const ValueLayouts* layouts);

  absl::Status CanSchedule(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) override;
  absl::StatusOr<FusionAnswers> Compare(const ecg::Graph& graph, const std::vector<FusionQuestion>& questions,
                                        const std::vector<FusionQuestion>& maybe) override;
  double EstimateNs(const ecg::Graph& graph, const std::vector<ecg::NodeId>& nodes) override;
  absl::StatusOr<bool> Knows(const ecg::Graph& graph, const FusionQuestion& question) override;
  int Devices() const override { return context_.oracle->Devices(); }

  absl::StatusOr<BlockKernel> Kernel(const std::vector<ecg::NodeId>& nodes);
  using KernelOr = absl::StatusOr<std::shared_ptr<const BlockKernel>>;
  KernelOr Get(const std::vector<ecg::NodeId>& nodes);

  // Tries schedules for the kernels of `blocks` (compiler/tune) and makes Kernel() return the fastest. Returns how many
  // blocks got another kernel.
  absl::StatusOr<int64_t> Tune(const std::vector<std::vector<ecg::NodeId>>& blocks, const tune::Budget& budget);

  int64_t questions() const { return questions_; }
  int64_t answered(LatencySource source) const { return answered_[static_cast<int>(source)]; }
  // Counts answers with the model's estimate: nobody could measure, or measuring failed.
  int64_t estimated() const { return answered(LatencySource::kModel) + answered(LatencySource::kFailed); }

 private:
  class TuningBench;
  struct Question {
    KernelSequence kernels;
    std::string description;
    std::string group = {}, workload = {}, structure = {}, choices = {};  // as in LatencyQuestion
  };
  // Returns answers parallel to `questions`. Equal kernels are asked about once, but again in each group.
  absl::StatusOr<std::vector<LatencyAnswer>> Ask(const std::vector<Question>& questions);
  absl::StatusOr<BlockKernel> Schedule(const std::vector<ecg::NodeId>& nodes, const Choices& choices) const;
  // The part that blocks of one structure share, made for the first of them.
  struct Prototype {
    std::shared_ptr<const BlockKernel> kernel;
    std::vector<ecg::ValueId> values;
    double estimate_ns = 0;
  };
  // A fusion block of the graph, with its own `values` in place of the prototype's.
  struct Block {
    absl::StatusOr<std::shared_ptr<const Prototype>> prototype;
    std::vector<ecg::ValueId> values;
    std::shared_ptr<const BlockKernel> kernel;  // with this block's arguments; made on demand
  };
  Block& Find(std::vector<ecg::NodeId> nodes);
  Block Make(const std::vector<ecg::NodeId>& nodes);
  std::string QuestionKey(const KernelSequence& kernels) const;
  // The two sides of a question, which form a group of their own.
  absl::StatusOr<std::vector<Question>> Sides(const FusionQuestion& question);
  absl::StatusOr<std::vector<LatencyAnswer>> Measure(const std::vector<LatencyQuestion>& questions);
  // Decides, while time is short, which questions are answered by the database or a measurement instead of an estimate:
  // groups that are known, and as many others as fit into the time. Parallel to `questions`.
  absl::StatusOr<std::vector<bool>> InTime(const std::vector<LatencyQuestion>& questions);
  double left_s() const { return limit_s_ - spent_s_; }
  // The keys with which Ask remembers answers. The same kernels in another comparison set are another question.
  // Parallel to `asked`.
  std::vector<std::string> KeysInCompany(const std::vector<Question>& asked) const;
  absl::StatusOr<std::vector<std::string>> MakeBundles(absl::Span<const std::string> keys) override;

  const CompileContext& context_;
  DeviceModel typical_;  // for questions, which must be the same whenever a device registers
  const int threads_;
  const bool minimal_filtering_;
  const ecg::Graph* graph_ = nullptr;
  const ValueLayouts* layouts_ = nullptr;
  std::map<std::vector<ecg::NodeId>, Block> blocks_;
  std::unordered_map<std::string, std::shared_ptr<const Prototype>> prototypes_;  // by signature
  std::map<std::string, KernelSequence> by_key_;
  std::map<std::string, LatencyAnswer> answers_;
  std::map<std::string, bool> knows_;  // the first answer stands, because the rounds of one plan must agree
  std::function<double()> clock_;
  double limit_s_ = std::numeric_limits<double>::infinity(), spent_s_ = 0;  // for measuring
  double question_s_ = 0;  // the time that each of the last questions took; 0: not known
  bool tuning_ = false;    // while Tune runs, whose rounds keep to the limit themselves
  int64_t questions_ = 0;
  int64_t answered_[4] = {0, 0, 0, 0};
};

}  // namespace fusion

#endif  // FUSION_COMPILER_MEASURE_BLOCK_ORACLE_H_
