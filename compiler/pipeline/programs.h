// The programs of a bundle under construction, up to their kernels.
#ifndef FUSION_COMPILER_PIPELINE_PROGRAMS_H_
#define FUSION_COMPILER_PIPELINE_PROGRAMS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/pipeline/compilation.h"

namespace fusion {

// One program of a bundle under construction.
struct PreparedProgram {
  std::map<std::string, int64_t> dims;
  Prepared model;

  std::string Name() const;
};

using PreparedPrograms = std::vector<std::unique_ptr<PreparedProgram>>;  // of one bundle

// Returns the options with these dimensions bound: those of one specialisation.
CompileOptions Bound(const CompileOptions& options, const std::map<std::string, int64_t>& dims);

// A program of a bundle, and the graph that it is of.
struct NamedGraph {
  std::string name;
  const ecg::Graph* graph = nullptr;
};

// Checks that the specialisations of a bundle differ in the shapes of their inputs, which tell them apart at run time,
// and have as many inputs and outputs. INVALID_ARGUMENT names two that do not.
absl::Status CheckDistinct(const std::vector<NamedGraph>& programs);

// From import to plan. `compilation` has no launches.
absl::Status MakePlan(Compilation* compilation);

// Prepares every program of the model's bundle. An error of one of several begins with its name.
absl::StatusOr<PreparedPrograms> PreparePrograms(const ModelFiles& files, const CompileOptions& options,
                                                 const CompileContext& context);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_PROGRAMS_H_
