// The table of passes: everything that the compiler does to a model between its file and its kernels, in order. The
// compiler, `fusion-compile --disable-pass` and `ecg-opt` all read it; there is no other list.
// docs/decisions/0030-one-table-of-passes.md says how it came about.
#ifndef FUSION_COMPILER_PIPELINE_PASSES_H_
#define FUSION_COMPILER_PIPELINE_PASSES_H_

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace fusion {

struct Compilation;

// Which part of the pipeline runs a row.
enum class PassPart : uint8_t {
  kGraph,    // from the model to the graph that is planned
  kPlan,     // from that graph to launches
  kKernels,  // from launches to kernels
  kBundle,   // over the kernels of all programs of a bundle
  kWithin,   // within another row: the parts of simplify, and of a planner
  kBlock,    // over one fusion block, each time that one is tried: compiler/schedule/fusion_block_passes.h
};

// The verifier that checks the result of a pass, at once.
enum class Verifier : uint8_t {
  kGraph,     // ecg::Verify
  kLayouts,   // VerifyLayouts (verify.h)
  kPlan,      // CheckPlan (compiler/plan/plan.h)
  kElided,    // VerifyElided (verify.h)
  kLaunches,  // VerifyLaunches (verify.h)
  kTe,        // te::Verify
  kMovement,  // movement::Verify
  kEnclosing  // the row within which it runs
};
const char* VerifierName(Verifier verifier);  // "graph"

struct Pass {
  const char* name = "";   // for --disable-pass, ecg-opt and errors
  const char* stage = "";  // the stage of StageSeconds that it belongs to
  PassPart part = PassPart::kGraph;
  // Null for kBlock, for kBundle, which has `run_bundle`, and where the row within which it runs calls it.
  absl::Status (*run)(Compilation* compilation) = nullptr;
  Verifier verifier = Verifier::kGraph;
  bool can_disable = false;
  const char* why = "";  // it stands where it stands
  // Null: always. Otherwise, does this compilation need the pass?
  bool (*applies)(const Compilation& compilation) = nullptr;
  // For kBundle: all programs of a bundle.
  absl::Status (*run_bundle)(absl::Span<Compilation> programs) = nullptr;
};

// All rows, in the order in which they run.
absl::Span<const Pass> Passes();

// Returns nullptr where there is none.
const Pass* FindPass(const std::string& name);
// The names of the passes that can be disabled, in the order of the table.
std::vector<std::string> PassesToDisable();
// Fails with INVALID_ARGUMENT where a name is none of the table, or that of a pass that cannot be disabled.
absl::Status CheckDisabled(const std::set<std::string>& names);
// For people: a line for each row.
std::string PrintPasses();

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PASSES_H_
