#include "compiler/measure/latency_answers.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/movement/cost.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"

namespace fusion {

bool LatencyAnswers::Remembers(const std::vector<KernelQuestion>& questions) const {
  const std::vector<std::string> keys = KeysInGroups(questions, *context_.device, threads_);
  return std::all_of(keys.begin(), keys.end(), [&](const std::string& key) { return answers_.count(key) != 0; });
}

absl::StatusOr<bool> LatencyAnswers::Knows(const std::vector<KernelQuestion>& questions) {
  for (const std::string& key : KeysInGroups(questions, *context_.device, threads_)) {
    auto it = knows_.find(key);
    if (it == knows_.end()) {
      ASSIGN_OR_RETURN(const bool knows, context_.oracle->Knows(key));
      it = knows_.emplace(key, knows).first;
    }
    if (!it->second) return false;
  }
  return true;
}

void LatencyAnswers::LimitMeasuring(double seconds, std::function<double()> clock) {
  limit_s_ = seconds;
  spent_s_ = 0;
  clock_ = clock ? std::move(clock) : [] { return static_cast<double>(SteadyNanos()) * 1e-9; };
}

absl::StatusOr<std::vector<bool>> LatencyAnswers::InTime(const std::vector<LatencyQuestion>& questions) {
  std::vector<bool> asked(questions.size(), true);
  if (std::isinf(limit_s_) || !limits_) return asked;
  std::map<std::string, std::vector<size_t>> groups;
  std::vector<std::string> order;
  for (size_t q = 0; q < questions.size(); ++q) {
    const std::string& name = questions[q].group.empty() ? questions[q].key : questions[q].group;
    std::vector<size_t>& group = groups[name];
    if (group.empty()) order.push_back(name);
    group.push_back(q);
  }
  double left_s = this->left_s();
  for (const std::string& name : order) {
    const std::vector<size_t>& group = groups[name];
    bool known = true;
    for (const size_t q : group) {
      ASSIGN_OR_RETURN(const bool one, context_.oracle->Knows(questions[q].key));
      known = known && one;
    }
    if (known) continue;
    const double takes_s = question_s_ * static_cast<double>(group.size());
    const bool fits = left_s > 0 && takes_s <= left_s;
    if (fits) left_s -= takes_s;
    for (const size_t q : group) asked[q] = fits;
  }
  return asked;
}

absl::StatusOr<std::vector<LatencyAnswer>> LatencyAnswers::Measure(const std::vector<LatencyQuestion>& questions) {
  ASSIGN_OR_RETURN(const std::vector<bool> in_time, InTime(questions));
  std::vector<LatencyQuestion> asked;
  for (size_t q = 0; q < questions.size(); ++q) {
    if (in_time[q]) asked.push_back(questions[q]);
  }
  std::vector<LatencyAnswer> measured;
  if (!asked.empty()) {
    const double begin = clock_ ? clock_() : 0;
    ASSIGN_OR_RETURN(measured, context_.oracle->Latency(asked, bundles_));
    const double seconds = clock_ ? clock_() - begin : 0;
    spent_s_ += seconds;
    const auto fresh = std::count_if(measured.begin(), measured.end(), [](const LatencyAnswer& answer) {
      return answer.source != LatencySource::kDatabase;
    });
    if (fresh > 0) question_s_ = seconds / static_cast<double>(fresh);
  }
  std::vector<LatencyAnswer> answers;
  auto next = measured.begin();
  for (size_t q = 0; q < questions.size(); ++q) {
    answers.push_back(in_time[q] ? *next++ : LatencyAnswer{questions[q].model_latency_ns, LatencySource::kModel});
  }
  return answers;
}

LatencyQuestion LatencyAnswers::Estimated(const std::string& key, const KernelQuestion& question) const {
  double model_ns = 0, typical_ns = 0;
  for (const auto& kernel : question.kernels) {
    model_ns += movement::EstimateCost(kernel->kernel, *context_.device, threads_).latency_ns;
    typical_ns += movement::EstimateCost(kernel->kernel, *typical_, threads_).latency_ns;
  }
  return {key,
          question.description,
          model_ns,
          typical_ns,
          question.group,
          question.workload,
          question.structure,
          question.choices};
}

absl::StatusOr<std::vector<LatencyAnswer>> LatencyAnswers::Ask(const std::vector<KernelQuestion>& asked) {
  const std::vector<std::string> keys = KeysInGroups(asked, *context_.device, threads_);
  std::vector<LatencyQuestion> questions;
  std::set<std::string> open;
  for (size_t k = 0; k < asked.size(); ++k) {
    if (answers_.count(keys[k]) || !open.insert(keys[k]).second) continue;
    bundles_.Add(keys[k], asked[k].kernels);
    questions.push_back(Estimated(keys[k], asked[k]));
  }
  if (!questions.empty()) {
    questions_ += static_cast<int64_t>(questions.size());
    if (context_.progress) {
      context_.progress(
          {"profiling", 0, static_cast<int64_t>(questions.size()), absl::StrCat(questions.size(), " questions")});
    }
    ASSIGN_OR_RETURN(const std::vector<LatencyAnswer> answers, Measure(questions));
    for (size_t q = 0; q < questions.size(); ++q) {
      answers_[questions[q].key] = answers[q];
      ++answered_[static_cast<int>(answers[q].source)];
    }
  }
  std::vector<LatencyAnswer> result;
  for (const std::string& key : keys) result.push_back(answers_.at(key));
  return result;
}

}  // namespace fusion
