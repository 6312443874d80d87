// The options of a compilation: target, planner, math, extents, passes to leave out.
#ifndef FUSION_COMPILER_API_COMPILE_OPTIONS_H_
#define FUSION_COMPILER_API_COMPILE_OPTIONS_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace fusion {

struct CompileOptions {
  std::string target = "cpu";         // device kind
  std::string planner = "dnnfusion";  // a name of PlannerNames(); "none": every operator its own kernel
  // One of MathModes() (modes.h). "strict": only exact rewrites, no Winograd; "relaxed": also rewrites that hold only
  // for real numbers.
  std::string math = "fast";
  std::string precision = "fp32";  // one of Precisions() (modes.h); "fp16" stores f32 values as f16 (precision_pass.h)
  std::string size = "any";        // or "small": weights take at most about as many bytes as in the model
  std::set<std::string> disabled_rules;  // ids of rewrite rules
  // Passes to leave out: names of PassesToDisable() (compiler/pipeline/passes.h).
  std::set<std::string> disabled_passes;
  std::map<std::string, int64_t> dims;  // --dim batch=1: binds a symbolic dimension
  // --dim seq=32,128: the bundle has a specialisation for each combination; see specialisations.h.
  std::map<std::string, std::vector<int64_t>> specialised_dims;
  std::set<std::string> bounded_dims;  // names in `dims`: inputs may be smaller (Compile sets it for padded programs)
  std::map<std::string, std::vector<int64_t>> shapes;  // --shape input=1x3x224x224: replaces an input's shape
  std::string tune = "quick";                          // see tune::ParseBudget: how long workers try schedules
  int threads = 1;  // the number that measurements assume; a bundle runs with any number
  bool group_all_launches = false;  // for tests: all launches that may run at the same time do, whether that gains or not
};

}  // namespace fusion

#endif  // FUSION_COMPILER_API_COMPILE_OPTIONS_H_
