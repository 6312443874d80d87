// The passes over one fusion block: rows of the compiler's table of passes (compiler/pipeline/passes.h) that run each
// time a fusion block is tried, and so stand below the planners. docs/decisions/0030-one-table-of-passes.md says why.
#ifndef FUSION_COMPILER_SCHEDULE_FUSION_BLOCK_PASSES_H_
#define FUSION_COMPILER_SCHEDULE_FUSION_BLOCK_PASSES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/cost/device_model.h"
#include "compiler/layout/layout.h"
#include "compiler/movement/kernel.h"
#include "compiler/schedule/choices.h"
#include "compiler/schedule/rewrite/minimal_filtering.h"
#include "compiler/schedule/rewrite/split_reductions.h"
#include "compiler/te/program/program.h"

namespace fusion {

// In the order of the table.
enum class FusionBlockPass : uint8_t {
  kLower,
  kFormStages,
  kBareProduct,
  kSplitPrefixes,
  kKBlocking,
  kWinograd,
  kSplitK,
  kSeparateWindows,
  kCopyWindows,
  kSplitReductions,
  kSchedule
};

// A constant filter that a pass has replaced by its transform.
struct TransformedFilter {
  te::TensorId filter = -1;  // the transformed `source`
  te::TensorId source = -1;
  movement::ConstantTransform transform;
  PlainSums plain;
};

// A fusion block as tensor expressions, between two passes.
struct FusionBlockForm {
  te::Program program;
  std::map<te::TensorId, Layout> layouts;  // an absent one is plain
  std::optional<TransformedFilter> filtered;
  std::set<te::TensorId> partials = {};  // results of chunks of reductions, which an earlier phase makes
  int64_t chunks = 1;                    // of these reductions
};

// The surroundings that a pass may look at besides the form.
struct FusionBlockPassContext {
  const DeviceModel* device = nullptr;
  ChoiceLog* choices = nullptr;
  std::set<te::TensorId> kept;   // form-stages: tensors that the plan wants to exist
  int64_t filter_outputs = 0;    // winograd: the results of one tile
  int product = -1;              // bare-product: the stage that a library computes
  bool rounded_product = false;  // bare-product: its result is stored in the type of the tensor that it replaces
  CutTest is_cut;                // split-reductions: where barriers stand; null: behind every tensor of a reduction
  int64_t chunks = 1;            // split-reductions: of a reduction, at least
  int64_t least_chunk = 1;       // split-reductions: the fewest terms of a chunk
};

struct FusionBlockPassRow {
  FusionBlockPass pass;
  const char* name;
  // Returns nullopt where the pass has nothing to do. Null where a pass starts from or ends in another form (lower,
  // schedule): its owner calls it and then verifies.
  absl::StatusOr<std::optional<FusionBlockForm>> (*run)(const FusionBlockForm& form,
                                                        const FusionBlockPassContext& context);
  bool can_disable;
  const char* why;  // it stands where it stands
};

absl::Span<const FusionBlockPassRow> FusionBlockPasses();

// Runs a pass and verifies what it returns. Returns nullopt where the pass is disabled or has nothing to do. Fails with
// INTERNAL, naming the pass, where the result is no program; an error of the pass itself stays as it is, because it is
// a reason why the fusion block cannot be a kernel.
absl::StatusOr<std::optional<FusionBlockForm>> RunFusionBlockPass(FusionBlockPass pass, const FusionBlockForm& form,
                                                                  const FusionBlockPassContext& context,
                                                                  const std::set<std::string>& disabled);

// The runner for a row that is not in the table. For tests.
absl::StatusOr<std::optional<FusionBlockForm>> RunFusionBlockPass(const FusionBlockPassRow& row,
                                                                  const FusionBlockForm& form,
                                                                  const FusionBlockPassContext& context,
                                                                  const std::set<std::string>& disabled);

// Verifies the tensor expressions that `pass` has made. INTERNAL, naming the pass.
absl::Status VerifyAfter(FusionBlockPass pass, const te::Program& program);
// Verifies the movement graph that the schedule has made. INTERNAL, naming the pass.
absl::Status VerifySchedule(const movement::Kernel& kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_FUSION_BLOCK_PASSES_H_
