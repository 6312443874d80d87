// The account that a compilation gives of itself, for people and for plan.json.
#ifndef FUSION_COMPILER_API_COMPILE_ACCOUNT_H_
#define FUSION_COMPILER_API_COMPILE_ACCOUNT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/bundle/weights_account.h"

namespace fusion {

struct StageSeconds {
  std::string stage;  // import, simplify, rewrite, plan, layout, lower, build, pack, write
  double seconds = 0;
};

struct SpecialisationAccount {
  std::string name;  // "seq=32"; "seq≤32": takes less, with padding
  int64_t kernels = 0;
  std::string exact_only;  // why no padded program serves smaller extents
};

// A rewrite rule that fired, with what it saved: operations, bytes read and written, operators. Each may be negative.
struct RewriteAccount {
  std::string specialisation;  // empty where there is one program
  std::string rule, where;     // the rule's id; the node that it replaced
  double flops_saved = 0, bytes_saved = 0;
  int64_t nodes_saved = 0;
};

// One of several plans of a program, of which the fastest is in the bundle (compiler/pipeline/plan_candidates.h).
struct PlanAlternative {
  std::string specialisation;  // empty where there is one program
  std::string plan;            // "offline", "by estimates", "by measurements": plan_candidates.h; of `auto` a planner
  int64_t kernels = 0;
  double estimate_ns = 0;  // as in CompileAccount
  // The median is of warm runs of the whole program; 0: not measured. The ratio is to the first plan, with which it ran
  // in turns: the median of the rounds, and that median's 95% confidence interval.
  double median_ns = 0, ratio = 0, ratio_low = 0, ratio_high = 0;
  int64_t rounds = 0;
  bool chosen = false;
  std::string reason;  // of `auto`, for people: why the plan was chosen, how it was made, or why there is none
};

// Everything the user is told about a compilation. `plan_json` becomes the bundle's plan.json.
struct CompileAccount {
  int64_t nodes_model = 0;  // operators in the file, Constant nodes not counted
  int64_t nodes_simplified = 0;
  int64_t nodes_rewritten = 0;
  int64_t kernels = 0;           // launches
  int64_t kernels_distinct = 0;  // texts that are built; identical fusion blocks are built once
  // Decisions about edges of the graph: fused or kept apart, by a rule of the planner or by latencies.
  int64_t fused_by_rule = 0, fused_by_latency = 0, kept_by_latency = 0, kept_by_rule = 0;
  int64_t questions = 0, from_database = 0, measured = 0, from_model = 0;
  int64_t intermediate_bytes_before = 0, intermediate_bytes_after = 0;
  int64_t arena_bytes = 0, weight_bytes = 0;
  WeightsAccount weights;  // how `weight_bytes` compares with the model's weights
  // Constants that kernels pack in several ways, because schedules that agree would cost too much time; and the
  // estimated time that agreeing on the others costs. A bundle of several programs has the sums of all.
  int64_t packed_apart = 0;
  double sharing_ns = 0;
  double flops = 0;
  double estimate_ns = 0;  // of one run among many, by the cost model; of several programs the first's
  int64_t trials = 0;      // part of `questions`: schedules that tuning tried
  int64_t tuned = 0;       // launches whose schedule tuning found
  std::vector<StageSeconds> stages;
  std::vector<StageSeconds> passes;                    // the seconds of each pass, which are part of its stage's
  std::string exact_only;                              // see SpecialisationAccount
  std::string plan_json;                               // every decision and its reason
  std::vector<RewriteAccount> rewrites;                // in the order in which they fired
  std::vector<PlanAlternative> alternatives;           // of each program that had several
  std::string not_compared;                            // why they were not measured
  std::vector<SpecialisationAccount> specialisations;  // if there are several; sum_accounts.h says how the rest adds up
};

}  // namespace fusion

#endif  // FUSION_COMPILER_API_COMPILE_ACCOUNT_H_
