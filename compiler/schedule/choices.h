// The choices of a schedule that only a measurement settles. The scheduler asks wherever it has such a choice, and the
// questions that it asked are the kernel's search space (compiler/tune). So a new choice is one call, and a search
// finds it by itself. (The schedule as the trace of its decisions: Shao et al., Tensor Program Optimization with
// Probabilistic Programs, 2022.)
#ifndef FUSION_COMPILER_SCHEDULE_CHOICES_H_
#define FUSION_COMPILER_SCHEDULE_CHOICES_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace fusion {

// The number of the alternative taken, from 0, by the choice's name. An absent name means 0, the scheduler's own
// choice.
using Choices = std::map<std::string, int, std::less<>>;

// "stream=1 tile=3"; zeros are left out; "" is the scheduler's own schedule.
std::string PrintChoices(const Choices& choices);
// INVALID_ARGUMENT when the text is no such list.
absl::StatusOr<Choices> ParseChoices(absl::string_view text);

enum class ChoiceKind : uint8_t {
  kModelled,    // the cost model tells the alternatives apart, if not well
  kUnmodelled,  // the cost model cannot tell them apart: a search tries each of them first
  kSharing,     // how work is shared among threads: a measurement on one thread says nothing about it
};

// A choice that the scheduler asked about.
struct ChoicePoint {
  std::string name;
  int count = 1;  // alternatives, at least 2
  int taken = 0;
  ChoiceKind kind = ChoiceKind::kModelled;
};

// Answers the scheduler's questions and remembers them. To forget the questions of an attempt that failed, put back a
// copy of the log taken before it.
class ChoiceLog {
 public:
  explicit ChoiceLog(Choices wanted = {}) : wanted_(std::move(wanted)) {}

  // Returns which of `count` alternatives to take. The second question of the same name is about "name.1", and so on. A
  // wanted alternative that does not exist is answered with 0, because choices of one kernel may be tried on another.
  int Pick(absl::string_view name, int count, ChoiceKind kind = ChoiceKind::kModelled);

  const std::vector<ChoicePoint>& met() const { return met_; }

 private:
  Choices wanted_;
  std::vector<ChoicePoint> met_;
  std::map<std::string, int, std::less<>> asked_;
};

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_CHOICES_H_
