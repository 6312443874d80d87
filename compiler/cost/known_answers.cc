#include "compiler/cost/known_answers.h"

#include <set>

#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<std::vector<LatencyAnswer>> KnownAnswers::Latency(absl::Span<const LatencyQuestion> questions,
                                                                 MeasurementBundler& bundler) {
  std::vector<bool> answered;
  std::set<std::string> open;  // groups of which something is not known
  for (const LatencyQuestion& question : questions) {
    ASSIGN_OR_RETURN(const bool knows, known_.Knows(question.key));
    answered.push_back(knows);
    if (!knows && !question.group.empty()) open.insert(question.group);
  }
  std::vector<LatencyQuestion> asked;
  for (size_t q = 0; q < questions.size(); ++q) {
    answered[q] = answered[q] && open.count(questions[q].group) == 0;
    if (answered[q]) asked.push_back(questions[q]);
  }
  std::vector<LatencyAnswer> known;
  if (!asked.empty()) {
    ASSIGN_OR_RETURN(known, known_.Latency(asked, bundler));
  }
  std::vector<LatencyAnswer> answers;
  auto next = known.begin();
  for (size_t q = 0; q < questions.size(); ++q) {
    answers.push_back(answered[q] ? *next++ : LatencyAnswer{questions[q].model_latency_ns, LatencySource::kModel});
  }
  return answers;
}

absl::StatusOr<std::vector<std::string>> KnownAnswers::NeighbourChoices(const std::string&, const std::string&, int) {
  return std::vector<std::string>();
}

}  // namespace fusion
