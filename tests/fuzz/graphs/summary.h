// Counts what a run of many cases has compared, and what it has not.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_SUMMARY_H_
#define FUSION_TESTS_FUZZ_GRAPHS_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "tests/fuzz/graphs/judge.h"

namespace fusion::fuzz {

// Returns the message with `#` in place of what differs from graph to graph: numbers, shapes and quoted names.
std::string Reason(const std::string& message);

class Summary {
 public:
  void Passed(const Coverage& coverage);
  void Failed() { ++failed_; }
  void Refused(const absl::Status& why);
  // Counts operators that the generator proposed and import refused; their graphs continue without them.
  void LeftOut(const std::map<std::string, int>& reasons);

  // Counts graphs that a mode with a form ran as one kernel, by mode, and those of which it has none, by mode and reason.
  void OneKernel(const std::map<std::string, int>& made, const std::map<std::string, int>& not_made);

  // Counts graphs that a target does not compute, by mode and reason. `judged`: another mode has computed the graph,
  // which is counted by its result then.
  void RefusedByTarget(const std::map<std::string, int>& reasons, bool judged);

  int64_t failed() const { return failed_; }
  int64_t graphs() const { return compared_ + partly_ + not_compared_ + failed_ + RefusedGraphs() + on_no_target_; }
  // Returns lines for people. The first line can stand alone: graphs compared, partly compared, refused, failed;
  // and, where there are some, graphs that no mode computes because targets refuse them.
  std::string Text() const;
  // Returns why the run shows too little, or "".
  std::string Shortcoming() const;

 private:
  int64_t RefusedGraphs() const;

  int64_t compared_ = 0, partly_ = 0, not_compared_ = 0, failed_ = 0, on_no_target_ = 0;
  Coverage elements_;
  std::map<std::string, int64_t> refused_, left_out_, one_kernel_, not_one_kernel_, refused_by_target_;
};

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_SUMMARY_H_
