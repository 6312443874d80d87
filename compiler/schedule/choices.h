// The choices of a schedule that only a measurement settles. The scheduler asks wherever it meets one; what it met is
// the kernel's search space (compiler/tune). So a new choice is one call, and a search finds it by itself. (The
// schedule as the trace of its decisions: Shao et al., Tensor Program Optimization with Probabilistic Programs, 2022.)
#ifndef FUSION_COMPILER_SCHEDULE_CHOICES_H_
#define FUSION_COMPILER_SCHEDULE_CHOICES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// By name: which alternative, from 0. An absent name is 0, the scheduler's own choice.
using Choices = std::map<std::string, int, std::less<>>;

// "stream=1 tile=3"; zeros are left out; "" is the scheduler's own schedule.
std::string PrintChoices(const Choices& choices);
// INVALID_ARGUMENT when the text is no such list.
absl::StatusOr<Choices> ParseChoices(absl::string_view text);

enum class ChoiceKind : uint8_t {
  kModelled,    // the cost model tells alternatives apart, if not well
  kUnmodelled,  // it knows nothing of them: a search tries each first
  kSharing,     // how work is shared out: a measurement on one thread says nothing of them
};

// A choice that a scheduler met.
struct ChoicePoint {
  std::string name;
  int count = 1;  // alternatives, at least 2
  int taken = 0;
  ChoiceKind kind = ChoiceKind::kModelled;
};

// Answers the scheduler's questions and remembers them. A copy taken before an attempt that fails, put back, forgets
// it.
class ChoiceLog {
 public:
  explicit ChoiceLog(Choices wanted = {}) : wanted_(std::move(wanted)) {}

  // Which of `count` alternatives? The second question of the same name is about "name.1", and so on. What does not
  // exist is answered with 0: choices of one kernel may be tried on another.
  int Pick(absl::string_view name, int count, ChoiceKind kind = ChoiceKind::kModelled);

  const std::vector<ChoicePoint>& met() const { return met_; }

 private:
  Choices wanted_;
  std::vector<ChoicePoint> met_;
  std::map<std::string, int, std::less<>> asked_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_CHOICES_H_
