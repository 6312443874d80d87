// The parts that a finished bundle and a bundle that compares plans have in common.
#ifndef FUSION_COMPILER_PIPELINE_BUNDLE_PARTS_H_
#define FUSION_COMPILER_PIPELINE_BUNDLE_PARTS_H_

#include <vector>

#include "compiler/bundle/emit.h"
#include "compiler/pipeline/compilation.h"
#include "runtime/bundle/manifest.h"

namespace fusion {

// The manifest's facts about the compilation, without any program.
Manifest BundleHead(const ModelFiles& files, const CompileOptions& options, const DeviceModel& device);

// The launches of a planned program, and the loops among them, as WriteBundle takes them. `place` is the text of the
// first launch; the others follow. The other arguments must outlive the result.
BundleProgram ProgramOf(const Planned& planned, const std::vector<PlannedLaunch>& launches, const LoopPlan& loops,
                        std::vector<KernelTexts::Place>::const_iterator place);

// Adds what tells a specialisation from the others.
void Specialise(const std::map<std::string, int64_t>& dims, const Planned& planned, BundleProgram* program);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_BUNDLE_PARTS_H_
