#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/access_history.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/order.h"
#include "runtime/devices/dsa_sim/slice.h"

namespace fusion::dsa {
namespace {

using State = AccessStates::State;

// States that nothing has any more are forgotten when there are this many.
constexpr size_t kMostStates = 4 << 20;

// The inputs that nothing else touches: no instruction writes them and no other buffer has bytes of theirs, so that
// each read of them is allowed. Weights are such.
std::vector<bool> ConstantInputs(const Program& program) {
  std::vector<bool> constant(program.buffers.size(), false);
  std::vector<int> in_ddr;
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
    if (program.buffers[b].memory.level != Level::kDdr) continue;
    constant[b] = program.buffers[b].input && !program.buffers[b].output;
    in_ddr.push_back(b);
  }
  std::sort(in_ddr.begin(), in_ddr.end(),
            [&](int a, int b) { return program.buffers[a].offset_bytes < program.buffers[b].offset_bytes; });
  int reaching = -1;  // the buffer that ends last, of those before
  for (const int b : in_ddr) {
    const Buffer& buffer = program.buffers[b];
    const int64_t reached =
        reaching < 0 ? 0 : program.buffers[reaching].offset_bytes + program.buffers[reaching].size_bytes();
    if (buffer.offset_bytes < reached) constant[b] = constant[reaching] = false;
    if (buffer.offset_bytes + buffer.size_bytes() > reached) reaching = b;
  }
  for (const Instruction& instruction : program.instructions) {
    if (instruction.kind == Kind::kSync) continue;
    constant[instruction.to.buffer] = false;
    for (const Slice& slice : instruction.also) constant[slice.buffer] = false;
  }
  return constant;
}

class AccessCheck {
 public:
  AccessCheck(const Machine& machine, const Program& program)
      : program_(program), before_(machine, program), constant_(ConstantInputs(program)) {
    MakeHistories();
  }

  absl::Status Run() {
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (!buffer.input || constant_[b]) continue;
      histories_[history_of_[b]].Update(buffer.offset_bytes, buffer.offset_bytes + buffer.size_bytes(),
                                        [](State, int64_t) { return int64_t{AccessStates::kInput}; });
    }
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (instruction.kind == Kind::kSync) continue;
      for (const Slice& slice : instruction.from) RETURN_IF_ERROR(Read(slice, i));
      if (instruction.accumulate) RETURN_IF_ERROR(Read(instruction.to, i));
      written_ = -1;
      RETURN_IF_ERROR(Write(instruction.to, i));
      for (const Slice& slice : instruction.also) RETURN_IF_ERROR(Write(slice, i));
      if (states_.size() > most_states_) ForgetStates();
    }
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      if (!buffer.output) continue;
      const int64_t end = buffer.offset_bytes + buffer.size_bytes();
      const int64_t missing = histories_[history_of_[b]].FirstUnwritten(buffer.offset_bytes, end);
      if (missing == end) continue;
      return absl::FailedPreconditionError(
          absl::StrCat("element ", Element(buffer, missing), " of the output ", buffer.name, " is never written"));
    }
    return absl::OkStatus();
  }

 private:
  void MakeHistories() {
    struct Extent {
      size_t history = 0;
      int64_t bytes = 0, unit_bytes = 8;
    };
    std::map<std::tuple<int, int, int>, Extent> extents;
    history_of_.resize(program_.buffers.size());
    for (size_t b = 0; b < program_.buffers.size(); ++b) {
      const Buffer& buffer = program_.buffers[b];
      const auto [at, fresh] = extents.try_emplace(
          {static_cast<int>(buffer.memory.level), buffer.memory.place.cluster, buffer.memory.place.core});
      Extent& extent = at->second;
      if (fresh) extent.history = extents.size() - 1;
      history_of_[b] = extent.history;
      if (!constant_[b]) extent.bytes = std::max(extent.bytes, buffer.offset_bytes + buffer.size_bytes());
      extent.unit_bytes = std::min<int64_t>(extent.unit_bytes, DTypeBytes(buffer.dtype));
    }
    std::vector<Extent> by_number(extents.size());
    for (const auto& [memory, extent] : extents) by_number[extent.history] = extent;
    for (const Extent& extent : by_number) histories_.emplace_back(extent.bytes, extent.unit_bytes);
  }

  static int64_t Element(const Buffer& buffer, int64_t byte) {
    return (byte - buffer.offset_bytes) / DTypeBytes(buffer.dtype);
  }
  std::string Name(int i) const { return absl::StrCat("instruction ", i, " (", PrintInstruction(program_, i), ")"); }

  absl::Status Race(const Buffer& buffer, int64_t byte, int earlier, const char* did, int later,
                    const char* does) const {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(later), " ", does, " element ", Element(buffer, byte), " of ", buffer.name, ", which ",
                     Name(earlier), " ", did, ", and nothing makes it wait for that; add it to 'after', or a sync"));
  }

  // Has the writer of `state` completed before instruction `i` starts, or is it this instruction?
  bool WrittenBefore(State state, int i) const {
    const int writer = states_.writer(state);
    return writer == AccessStates::kInputWriter || writer == i || before_(writer, i);
  }

  template <typename Next>
  absl::Status Visit(const Slice& slice, const Next& next) {
    const Buffer& buffer = program_.buffers[slice.buffer];
    AccessHistory& history = histories_[history_of_[slice.buffer]];
    absl::Status status;
    VisitRuns(ByteRunsOf(program_, slice), [&](int64_t begin, int64_t end) {
      return history.Update(begin, end, [&](State state, int64_t byte) { return next(buffer, state, byte, &status); });
    });
    return status;
  }

  absl::Status Read(const Slice& slice, int i) {
    if (constant_[slice.buffer]) return absl::OkStatus();
    return Visit(slice, [&](const Buffer& buffer, State state, int64_t byte, absl::Status* status) -> int64_t {
      if (const int64_t known = states_.Note(i, state); known >= 0) return known;
      if (state == AccessStates::kUnwritten) {
        *status = absl::FailedPreconditionError(absl::StrCat(Name(i), " reads element ", Element(buffer, byte), " of ",
                                                             buffer.name, ", which was never written"));
        return -1;
      }
      if (!WrittenBefore(state, i)) {
        *status = Race(buffer, byte, states_.writer(state), "writes", i, "reads");
        return -1;
      }
      // Readers that have completed are of no more interest: whoever waits for this one waits for them.
      readers_.clear();
      for (const int reader : states_.readers(state)) {
        if (reader != i && !before_(reader, i)) readers_.push_back(reader);
      }
      readers_.push_back(i);
      const State changed = states_.Add(states_.writer(state), readers_);
      states_.SetNote(i, state, changed);
      states_.SetNote(i, changed, changed);
      return changed;
    });
  }

  absl::Status Write(const Slice& slice, int i) {
    State checked = AccessStates::kUnwritten;  // the last state that may be written
    return Visit(slice, [&](const Buffer& buffer, State state, int64_t byte, absl::Status* status) -> int64_t {
      if (state != AccessStates::kUnwritten && state != checked) {
        if (!WrittenBefore(state, i)) {
          *status = Race(buffer, byte, states_.writer(state), "writes", i, "writes");
          return -1;
        }
        for (const int reader : states_.readers(state)) {
          if (reader == i || before_(reader, i)) continue;
          *status = Race(buffer, byte, reader, "reads", i, "writes");
          return -1;
        }
        checked = state;
      }
      if (written_ < 0) written_ = states_.Add(i, {});
      return written_;
    });
  }

  void ForgetStates() {
    std::vector<bool> marked(states_.size(), false);
    for (const AccessHistory& history : histories_) history.Mark(&marked);
    const std::vector<State> numbers = states_.Keep(marked);
    for (AccessHistory& history : histories_) history.Renumber(numbers);
    most_states_ = std::max(kMostStates, 2 * states_.size());
  }

  const Program& program_;
  HappensBefore before_;
  const std::vector<bool> constant_;  // by buffer
  std::vector<size_t> history_of_;    // by buffer
  std::vector<AccessHistory> histories_;
  AccessStates states_;
  size_t most_states_ = kMostStates;
  int64_t written_ = -1;  // the state of what the instruction at hand has written; -1: there is none yet
  std::vector<int> readers_;
};

}  // namespace

absl::Status CheckAccesses(const Machine& machine, const Program& program) {
  return AccessCheck(machine, program).Run();
}

}  // namespace fusion::dsa
