// Compile turns an ONNX model into a bundle: the whole compiler behind one call. compiler/pipeline/compile.cc has the
// passes and their order. Thread-safe; several compilations may run at once.
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
  std::string planner = "dnnfusion";  // a name of PlannerNames(); "none": every operator its own kernel
  // One of MathModes() (modes.h). "strict": only exact rewrites, no Winograd; "relaxed": also rewrites that hold only
  // for real numbers.
  std::string math = "fast";
  std::string precision = "fp32";  // one of Precisions() (modes.h); "fp16" stores f32 values as f16 (precision_pass.h)
  std::string size = "any";        // or "small": weights take at most about as many bytes as in the model
  std::set<std::string> disabled_rules;  // ids of rewrite rules
  // Passes to leave out: "rewrite", "layout", "winograd", "beyond-table", "elide-copies", "batch-launches".
  std::set<std::string> disabled_passes;
  std::map<std::string, int64_t> dims;  // --dim batch=1: binds a symbolic dimension
  // --dim seq=32,128: the bundle has a specialisation for each combination; see specialisations.h.
  std::map<std::string, std::vector<int64_t>> specialised_dims;
  std::set<std::string> bounded_dims;  // names in `dims`: inputs may be smaller (Compile sets it for padded programs)
  std::map<std::string, std::vector<int64_t>> shapes;  // --shape input=1x3x224x224: replaces an input's shape
  std::string tune = "quick";                          // see tune::ParseBudget: how long workers try schedules
  int threads = 1;  // the number that measurements assume; a bundle runs with any number
};

// The model's files. `external` maps a relative path written in the model to a readable file; a location missing there
// is an INVALID_ARGUMENT that names it. The compiler opens no other path.
struct ModelFiles {
  std::string model_path;
  std::string model_name;  // for messages and the manifest
  std::map<std::string, std::string> external;
  std::map<std::string, Tensor> constant_inputs;  // values of graph inputs that are known now; these stop being inputs
  const ecg::Graph* graph = nullptr;              // an imported graph, instead of files; must outlive the compilation
};

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

// Everything the user is told about a compilation. `plan_json` becomes the bundle's plan.json.
struct CompileAccount {
  int64_t nodes_model = 0;  // operators in the file, Constant nodes not counted
  int64_t nodes_simplified = 0;
  int64_t nodes_rewritten = 0;
  int64_t kernels = 0;           // launches
  int64_t kernels_distinct = 0;  // texts that are built; identical fusion blocks are built once
  int64_t green = 0, yellow_fused = 0, yellow_kept = 0, red = 0;  // fusion decisions by colour
  int64_t questions = 0, from_database = 0, measured = 0, from_model = 0;
  int64_t intermediate_bytes_before = 0, intermediate_bytes_after = 0;
  int64_t arena_bytes = 0, weight_bytes = 0;
  WeightsAccount weights;  // how `weight_bytes` compares with the model's weights
  double flops = 0;
  int64_t trials = 0;  // part of `questions`: schedules that tuning tried
  int64_t tuned = 0;   // launches whose schedule tuning found
  std::vector<StageSeconds> stages;
  std::string exact_only;                              // see SpecialisationAccount
  std::string plan_json;                               // every decision and its reason
  std::vector<RewriteAccount> rewrites;                // in the order in which they fired
  std::vector<SpecialisationAccount> specialisations;  // if there are several; sum_accounts.h says how the rest adds up
};

struct ProgressEvent {
  std::string stage;            // as in StageSeconds, or "profiling"
  int64_t done = 0, total = 0;  // total 0: unknown
  std::string message;          // for people
};

struct CompileContext {
  const DeviceModel* device = nullptr;
  LatencyOracle* oracle = nullptr;
  Toolchain* toolchain = nullptr;
  std::function<void(const ProgressEvent&)> progress;  // may be empty; called on the compiling thread
  std::function<bool()> cancelled;                     // may be empty; polled between steps
};

// Writes the bundle to `bundle_path` atomically: writes a temporary file beside it, then renames that. Nothing stays on
// failure. Fails with INVALID_ARGUMENT for a bad model, UNIMPLEMENTED listing every unsupported operator, CANCELLED,
// RESOURCE_EXHAUSTED for a full disk, or INTERNAL for a fault of the compiler.
absl::StatusOr<CompileAccount> Compile(const ModelFiles& files, const CompileOptions& options,
                                       const CompileContext& context, const std::string& bundle_path);

// Compiles many models at once, so that their kernels share compiler calls and texts. Results are parallel to `jobs`;
// the failure of one job does not affect the others. For test suites and fleets of small models.
struct CompileJob {
  ModelFiles files;
  CompileOptions options;
  std::string bundle_path;
};
std::vector<absl::StatusOr<CompileAccount>> CompileMany(const std::vector<CompileJob>& jobs,
                                                        const CompileContext& context);

// From import to plan, without building: what `fusionctl plan` prints. `text` is for people, one line per kernel.
struct PlanReport {
  CompileAccount account;
  std::string text;
};
absl::StatusOr<PlanReport> PlanOnly(const ModelFiles& files, const CompileOptions& options,
                                    const CompileContext& context);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_COMPILE_H_
