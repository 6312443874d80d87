#include "compiler/plan/planners/graph_turbo/lowering/variants.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"

namespace fusion::graph_turbo {
namespace {

struct Variant {
  BufferScope results = BufferScope::kLocal;
  bool spill_to_global = true, instances = false, across_layers = false;
};

// Parallel to VariantNames().
constexpr Variant kVariants[] = {{BufferScope::kDdr, true, false, false},    {BufferScope::kLocal, false, false, false},
                                 {BufferScope::kGlobal, true, false, false}, {BufferScope::kLocal, true, false, false},
                                 {BufferScope::kLocal, true, true, false},   {BufferScope::kLocal, true, true, true}};

absl::StatusOr<Variant> Find(const std::string& name) {
  const std::vector<std::string>& names = VariantNames();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no variant '", name, "'; there are ", absl::StrJoin(names, ", ")));
  }
  return kVariants[found - names.begin()];
}

}  // namespace

const std::vector<std::string>& VariantNames() {
  static const auto* const kNames =
      new std::vector<std::string>{"tvm_like", "astitch_like", "llb", "l1", "instances", "graph_turbo"};
  return *kNames;
}

absl::StatusOr<std::vector<Step>> StepsOfVariant(const OpGraph& graph, const std::string& variant,
                                                 const Cluster& cluster) {
  ASSIGN_OR_RETURN(const Variant found, Find(variant));
  return found.instances && !graph.ops.empty() ? SequenceOf(graph, MakeDepthFirstPlan(graph, cluster))
                                               : WholeLayers(graph);
}

absl::StatusOr<bool> HasInstances(const std::string& variant) {
  ASSIGN_OR_RETURN(const Variant found, Find(variant));
  return found.instances;
}

absl::StatusOr<bool> EqualButForSteps(const std::string& variant, const std::string& other) {
  ASSIGN_OR_RETURN(const Variant a, Find(variant));
  ASSIGN_OR_RETURN(const Variant b, Find(other));
  return a.results == b.results && a.spill_to_global == b.spill_to_global && a.across_layers == b.across_layers;
}

absl::StatusOr<LoweredProgram> LowerSteps(const OpGraph& graph, const std::vector<Step>& steps,
                                          const std::string& variant, const dsa::Machine& machine, DType dtype,
                                          bool instructions) {
  ASSIGN_OR_RETURN(const Variant found, Find(variant));
  return LowerToProgram(graph, steps, machine,
                        {dtype, found.results, found.spill_to_global, found.across_layers, instructions});
}

absl::StatusOr<LoweredProgram> LowerVariant(const OpGraph& graph, const std::string& variant, const Cluster& cluster,
                                            const dsa::Machine& machine, DType dtype) {
  ASSIGN_OR_RETURN(const std::vector<Step> steps, StepsOfVariant(graph, variant, cluster));
  return LowerSteps(graph, steps, variant, machine, dtype);
}

}  // namespace fusion::graph_turbo
