// Compile: an ONNX model in, a bundle out. The whole compiler behind one call; the passes and their order are in
// compiler/pipeline/compile.cc. Thread-safe; several compilations may run at once.
#ifndef FUSION_COMPILER_PIPELINE_COMPILE_H_
#define FUSION_COMPILER_PIPELINE_COMPILE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/toolchain.h"
#include "compiler/cost/device_model.h"
#include "compiler/cost/latency_oracle.h"
#include "runtime/base/tensor.h"
#include "runtime/bundle/weights_account.h"

namespace fusion {

namespace ecg {
class Graph;
}

struct CompileOptions {
  std::string target = "cpu";         // device kind
  std::string planner = "dnnfusion";  // or "none": every operator its own kernel
  // MathModes() of modes.h. "strict": only exact rewrites, no Winograd; "relaxed": also rewrites that hold of real
  // numbers alone.
  std::string math = "fast";
  std::string precision = "fp32";        // or "fp16": values of f32 are stored as f16, see precision_pass.h
  std::string size = "any";              // or "small": weights take at most about the bytes of the model's
  std::set<std::string> disabled_rules;  // ids of rewrite rules
  // "rewrite", "layout", "winograd", "beyond-table", "elide-copies", "batch-launches": left out.
  std::set<std::string> disabled_passes;
  std::map<std::string, int64_t> dims;  // --dim batch=1: binds a symbolic dimension
  // --dim seq=32,128: a bundle with a specialisation for each combination; see specialisations.h.
  std::map<std::string, std::vector<int64_t>> specialised_dims;
  std::set<std::string> bounded_dims;  // of `dims`: inputs may have less (Compile sets it for padded programs)
  std::map<std::string, std::vector<int64_t>> shapes;  // --shape input=1x3x224x224: replaces an input's shape
  std::string tune = "quick";                          // tune::ParseBudget: trials of schedules on workers
  int threads = 1;                                     // what measurements assume; a bundle runs with any number
};

// The model's files. `external` maps the relative path written in the model to a readable file; a location that is
// absent is an INVALID_ARGUMENT that names it. The compiler opens no other path.
struct ModelFiles {
  std::string model_path;
  std::string model_name;  // for messages and the manifest
  std::map<std::string, std::string> external;
  std::map<std::string, Tensor> constant_inputs;  // graph inputs whose value is known now; they are no inputs any more
  const ecg::Graph* graph = nullptr;              // an imported graph: then no file is read; outlives the compilation
};

struct StageSeconds {
  std::string stage;  // import, simplify, rewrite, plan, layout, lower, build, pack, write
  double seconds = 0;
};

struct SpecialisationAccount {
  std::string name;  // "seq=32"; "seq≤32": takes less, padded
  int64_t kernels = 0;
  std::string exact_only;  // why there is none that pads for these extents
};

// A rewrite rule that fired. What it saved: operations, bytes read and written, operators; any may be negative.
struct RewriteAccount {
  std::string specialisation;  // empty where there is one program
  std::string rule, where;     // the rule's id; the node that it replaced
  double flops_saved = 0, bytes_saved = 0;
  int64_t nodes_saved = 0;
};

// Everything the user is told about a compilation; also written into the bundle's plan.json.
struct CompileAccount {
  int64_t nodes_model = 0;  // operators in the file, Constant nodes not counted
  int64_t nodes_simplified = 0;
  int64_t nodes_rewritten = 0;
  int64_t kernels = 0;                                            // launches
  int64_t kernels_distinct = 0;                                   // built texts: identical blocks are built once
  int64_t green = 0, yellow_fused = 0, yellow_kept = 0, red = 0;  // fusion decisions by colour
  int64_t questions = 0, from_database = 0, measured = 0, from_model = 0;
  int64_t intermediate_bytes_before = 0, intermediate_bytes_after = 0;
  int64_t arena_bytes = 0, weight_bytes = 0;
  WeightsAccount weights;  // what `weight_bytes` is beside the model's
  double flops = 0;
  int64_t trials = 0;  // of the questions: schedules that tuning tried
  int64_t tuned = 0;   // launches that run a schedule which tuning found
  std::vector<StageSeconds> stages;
  std::string exact_only;                              // as in SpecialisationAccount
  std::string plan_json;                               // every decision with its reason
  std::vector<RewriteAccount> rewrites;                // in the order of their application
  std::vector<SpecialisationAccount> specialisations;  // if there are several; the rest: sum_accounts.h
};

struct ProgressEvent {
  std::string stage;            // as in StageSeconds, plus "profiling"
  int64_t done = 0, total = 0;  // total 0: unknown
  std::string message;          // words for people
};

struct CompileContext {
  const DeviceModel* device = nullptr;
  LatencyOracle* oracle = nullptr;
  Toolchain* toolchain = nullptr;
  std::function<void(const ProgressEvent&)> progress;  // may be empty; called on the compiling thread
  std::function<bool()> cancelled;                     // may be empty; polled between steps
};

// Writes the bundle to `bundle_path` (atomically: a temporary file beside it, then rename; nothing stays on failure).
// Errors: INVALID_ARGUMENT for a bad model, UNIMPLEMENTED listing every unsupported operator, CANCELLED,
// RESOURCE_EXHAUSTED for a full disk, INTERNAL for ours.
absl::StatusOr<CompileAccount> Compile(const ModelFiles& files, const CompileOptions& options,
                                       const CompileContext& context, const std::string& bundle_path);

// The same for many models at once: their kernels share compiler calls and texts. Results parallel to `jobs`; one job's
// failure is its own. For test suites and fleets of small models.
struct CompileJob {
  ModelFiles files;
  CompileOptions options;
  std::string bundle_path;
};
std::vector<absl::StatusOr<CompileAccount>> CompileMany(const std::vector<CompileJob>& jobs,
                                                        const CompileContext& context);

// Import to plan, without building: what `fusionctl plan` prints. `text` is for people, one line per kernel.
struct PlanReport {
  CompileAccount account;
  std::string text;
};
absl::StatusOr<PlanReport> PlanOnly(const ModelFiles& files, const CompileOptions& options,
                                    const CompileContext& context);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_COMPILE_H_
