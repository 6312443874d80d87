#include "compiler/pipeline/bundle_parts.h"

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/generator_version.h"

namespace fusion {

Manifest BundleHead(const ModelFiles& files, const CompileOptions& options, const DeviceModel& device) {
  Manifest head;
  head.generator = absl::StrCat("fusion " FUSION_VERSION " (generator ", kGeneratorVersion, ")");
  head.target = device.kind;
  head.isa = device.isa;
  head.march = device.march;
  head.model_name = files.model_name;
  head.options = {{"planner", options.planner}, {"math", options.math}, {"target", options.target}};
  if (options.precision != "fp32") head.options["precision"] = options.precision;
  if (options.size != "any") head.options["size"] = options.size;
  if (!options.disabled_rules.empty()) head.options["disabled_rules"] = absl::StrJoin(options.disabled_rules, ",");
  return head;
}

BundleProgram ProgramOf(const Planned& planned, const std::vector<PlannedLaunch>& launches, const LoopPlan& loops,
                        std::vector<KernelTexts::Place>::const_iterator place) {
  BundleProgram program;
  program.graph = &planned.graph;
  program.layouts = &planned.layouts;
  program.launches = &launches;
  program.inside = &planned.elided.values;
  program.loops = &loops;
  program.places.assign(place, place + static_cast<std::ptrdiff_t>(launches.size()));
  return program;
}

void Specialise(const std::map<std::string, int64_t>& dims, const Planned& planned, BundleProgram* program) {
  program->dims = dims;
  program->input_symbols = planned.input_symbols;
  program->input_extents = planned.input_extents;
}

}  // namespace fusion
