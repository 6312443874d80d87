// The choices of a schedule that only a measurement settles. The scheduler asks wherever it has such a choice, and the
// questions that it asked are the kernel's search space (compiler/tune). So a new choice is one call, and a search
// finds it by itself. (The schedule as the trace of its decisions: Shao et al., Tensor Program Optimization with
// Probabilistic Programs, 2022.)
#ifndef FUSION_COMPILER_SCHEDULE_CHOICES_H_
#define FUSION_COMPILER_SCHEDULE_CHOICES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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

// The alternatives of a choice, by their labels: what they are rather than their number, which changes its meaning when
// an alternative is added ("6x4" rows and vectors).
using Alternatives = std::vector<std::string>;

// A choice that the scheduler asked about.
struct ChoicePoint {
  std::string name;
  int count = 1;  // alternatives, at least 2
  int taken = 0;
  ChoiceKind kind = ChoiceKind::kModelled;
  Alternatives labels;       // `count` of them
  std::vector<int> origins;  // of the stage that it is about (te::Te::origins); empty: the whole kernel
};

// An alternative that must be taken (compiler/plan/fusion_block.h, Directive).
struct DirectiveRequest {
  int origin = -1;  // of the stage; -1: any, or the whole kernel
  std::string choice, alternative;
  std::string stage = {};  // for people: "MatMul %y"; empty with origin -1
};

// Answers the scheduler's questions and remembers them. To forget the questions of an attempt that failed, put back a
// copy of the log taken before it.
class ChoiceLog {
 public:
  explicit ChoiceLog(Choices wanted = {}, std::vector<DirectiveRequest> directives = {})
      : wanted_(std::move(wanted)), directives_(std::move(directives)), met_directives_(directives_.size(), 0) {}

  // The questions that follow are about a stage of these origins; of none: about the whole kernel.
  void Enter(std::vector<int> origins) { origins_ = std::move(origins); }

  // Returns which alternative to take: the one that a directive names, else the wanted one. The second question of the
  // same name is about "name.1", and so on. A wanted alternative that does not exist is answered with 0, because
  // choices of one kernel may be tried on another. A directive's decision is not in `met`, since a search has no say in
  // it.
  int Pick(absl::string_view name, const Alternatives& alternatives, ChoiceKind kind = ChoiceKind::kModelled);
  // Alternatives without labels of their own: "0", "1", …
  int Pick(absl::string_view name, int count, ChoiceKind kind = ChoiceKind::kModelled);
  // Labels are made for each of the alternatives.
  template <typename Each, typename Label>
  int Pick(absl::string_view name, const std::vector<Each>& alternatives, const Label& label,
           ChoiceKind kind = ChoiceKind::kModelled) {
    Alternatives labels;
    for (const Each& one : alternatives) labels.push_back(label(one));
    return Pick(name, labels, kind);
  }

  const std::vector<ChoicePoint>& met() const { return met_; }

  // OK where every directive of a stage's choices, or of the whole kernel's ("form", "library"), was met exactly once.
  // FAILED_PRECONDITION names the first that was not, and why.
  absl::Status CheckStageDirectives() const { return CheckDirectives(/*of_kernel=*/false); }
  absl::Status CheckKernelDirectives() const { return CheckDirectives(/*of_kernel=*/true); }

 private:
  absl::Status CheckDirectives(bool of_kernel) const;
  // The number of the alternative that a directive names, or -1.
  int Directed(absl::string_view name, const Alternatives& alternatives);

  Choices wanted_;
  std::vector<DirectiveRequest> directives_;
  std::vector<int> met_directives_;         // parallel: how often
  std::map<size_t, Alternatives> lacking_;  // by directive: what there was instead
  std::vector<int> origins_;
  std::vector<ChoicePoint> met_;
  std::map<std::string, int, std::less<>> asked_;
};

// Labels of numbers.
inline std::string NumberLabel(int64_t number) { return std::to_string(number); }

// "'tile' of MatMul %y to be '6x4'".
std::string InWords(const DirectiveRequest& directive);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_CHOICES_H_
