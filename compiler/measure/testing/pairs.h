// Helpers of this folder's tests: an oracle that counts its questions, and a graph of pairs of operators.
#ifndef FUSION_COMPILER_MEASURE_TESTING_PAIRS_H_
#define FUSION_COMPILER_MEASURE_TESTING_PAIRS_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/cost/latency_oracle.h"
#include "compiler/pipeline/testing/run_fusion_block.h"

namespace fusion::testing {

class CountingOracle : public LatencyOracle {
 public:
  explicit CountingOracle(int devices) : devices_(devices) {}
  absl::StatusOr<std::vector<LatencyAnswer>> Latency(absl::Span<const LatencyQuestion> questions,
                                                     MeasurementBundler&) override {
    batches.push_back(questions.size());
    if (measuring) measuring(questions.size());
    return std::vector<LatencyAnswer>(questions.size(), LatencyAnswer{1000, LatencySource::kMeasured});
  }
  absl::StatusOr<bool> Knows(const std::string&) override { return known; }
  int Devices() const override { return devices_; }
  std::vector<size_t> batches;
  std::function<void(size_t)> measuring;  // gets the number of questions that are asked at once
  bool known = false;

 private:
  const int devices_;
};

// Makes twenty pairs of operators, each of another shape, and the first pair once more. Pair p has the nodes 2p and
// 2p + 1.
inline GraphMaker TwentyPairs() {
  GraphMaker maker;
  for (int i = 1; i <= 21; ++i) {
    maker.Out(maker.Op("Relu", {maker.Op("Exp", {maker.In({8, i == 21 ? 16 : 16 * i})})}));
  }
  return maker;
}

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_MEASURE_TESTING_PAIRS_H_
