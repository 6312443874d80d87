// What a run of many cases has compared, and what not.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_SUMMARY_H_
#define FUSION_TESTS_FUZZ_GRAPHS_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "tests/fuzz/graphs/judge.h"

namespace fusion::fuzz {

// A message without what differs from graph to graph: numbers, shapes and quoted names are `#`.
std::string Reason(const std::string& message);

class Summary {
 public:
  void Passed(const Coverage& coverage);
  void Failed() { ++failed_; }
  void Refused(const absl::Status& why);
  // An operator that the generator proposed and import refused; the graph goes on without it.
  void LeftOut(const std::map<std::string, int>& reasons);

  int64_t failed() const { return failed_; }
  int64_t graphs() const { return compared_ + partly_ + not_compared_ + failed_ + RefusedGraphs(); }
  // Lines for people. The first one stands alone: graphs compared, partly compared, refused, failed.
  std::string Text() const;
  // Why the run proves too little, or "".
  std::string Shortcoming() const;

 private:
  int64_t RefusedGraphs() const;

  int64_t compared_ = 0, partly_ = 0, not_compared_ = 0, failed_ = 0;
  Coverage elements_;
  std::map<std::string, int64_t> refused_, left_out_;
};

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_SUMMARY_H_
