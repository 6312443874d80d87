#include "compiler/movement/task_loop.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "compiler/movement/ring_places.h"
#include "runtime/base/status_macros.h"

namespace fusion::movement {
namespace {

// Iterations of a loop times its steps, and rows of a ring's tensor, that are followed one by one.
constexpr int64_t kMostTurns = int64_t{1} << 20;

absl::Status Refused(const Step& step, const std::string& why) {
  return absl::InternalError(absl::StrCat("movement: step '", step.label, "' ", why));
}

// The buffers that a step touches, in its shared-memory copies, too.
struct Buffers {
  std::set<int> read, written;
  std::set<int> own;       // written by the step's copies
  std::set<int> in_index;  // read inside an address or a condition
};

Buffers BuffersOf(const Step& step) {
  Buffers result;
  const auto add = [&](const Step& one) {
    std::map<int, int> reached, loaded, stored;
    VisitBuffers(one, [&](int buffer) { ++reached[buffer]; });
    const auto count = [&](const te::ScalarNode& node) {
      if (node.kind == te::ScalarKind::kLoad) ++loaded[node.tensor];
    };
    for (const te::Scalar& s : one.body) te::Visit(s, count);
    for (const te::Scalar& s : one.then) te::Visit(s, count);
    if (one.reduction) {
      for (const te::Scalar& s : one.reduction->init) te::Visit(s, count);
    }
    for (const Store& store : one.stores) ++stored[store.buffer];
    for (const auto& [buffer, times] : reached) {
      if (times > stored[buffer]) result.read.insert(buffer);
      if (times > stored[buffer] + loaded[buffer]) result.in_index.insert(buffer);
      if (stored[buffer] > 0) result.written.insert(buffer);
    }
  };
  for (const Step& shared_copy : SharedCopiesOf(step)) add(shared_copy);
  result.own = result.written;
  add(step);
  return result;
}

// The rows that a ring holds, by place, and those that it ever held.
struct Held {
  explicit Held(const Ring& ring) : by_place(ring.rows, -1), ever(ring.of, false) {}
  std::vector<int64_t> by_place;
  std::vector<bool> ever;
};

class LoopChecker {
 public:
  LoopChecker(const Kernel& kernel, const Phase& phase, const TaskLoop& loop)
      : kernel_(kernel),
        phase_(phase),
        loop_(loop),
        steps_(absl::MakeConstSpan(phase.steps).subspan(loop.first, loop.count)) {}

  absl::Status Check() {
    if (loop_.iterations < 1 || loop_.iterations > kMostTurns / loop_.count) {
      return absl::InternalError(
          absl::StrCat("movement: a task loop has ", loop_.iterations, " iterations of ", loop_.count, " steps"));
    }
    for (const Step& step : steps_) RETURN_IF_ERROR(CheckTurn(step));
    for (const Step& step : steps_) RETURN_IF_ERROR(CheckRows(step));
    RETURN_IF_ERROR(CheckBuffers());
    for (const Step& step : steps_) RETURN_IF_ERROR(CheckRingPlaces(kernel_, step));
    return FollowIterations();
  }

 private:
  absl::Status CheckTurn(const Step& step) const {
    if (!step.turn) return Refused(step, "is in a task loop and has no turn");
    if (step.Is<RoutineCall>() || step.Is<LibraryCall>()) return Refused(step, "calls a routine in a task loop");
    const Turn& turn = *step.turn;
    if (turn.first < 0 || turn.axis.extent < 1 || turn.axis.extent > loop_.iterations - turn.first) {
      return Refused(
          step, absl::StrCat("has ", turn.axis.extent, " turns from iteration ", turn.first, " of ", loop_.iterations));
    }
    const auto same = [&](const te::Axis& axis) { return axis.id == turn.axis.id; };
    const bool bound =
        std::any_of(phase_.grid.begin(), phase_.grid.end(), same) ||
        std::any_of(step.loops.begin(), step.loops.end(), [&](const Loop& loop) { return same(loop.axis); }) ||
        (step.reduction && std::any_of(step.reduction->axes.begin(), step.reduction->axes.end(), same));
    if (bound) return Refused(step, absl::StrCat("numbers its turns by axis i", turn.axis.id, ", which a loop binds"));
    for (const Step& shared_copy : SharedCopiesOf(step)) {
      if (shared_copy.turn) return Refused(step, "has a copy with a turn of its own");
    }
    return absl::OkStatus();
  }

  // Checks that the step names rows of rings that it touches, by its turn.
  absl::Status CheckRows(const Step& step) const {
    const Buffers touched = BuffersOf(step);
    const auto check = [&](const std::vector<RingRows>& all, const std::set<int>& buffers, const char* verb) {
      for (const RingRows& rows : all) {
        const bool known = rows.buffer >= 0 && rows.buffer < static_cast<int>(kernel_.buffers.size()) &&
                           kernel_.buffers[rows.buffer].ring && buffers.count(rows.buffer) > 0;
        if (!known)
          return Refused(step, absl::StrCat("says that it ", verb, " rows of b", rows.buffer,
                                            ", which is no ring that it ", verb));
        std::vector<te::Axis> axes;
        te::CollectAxes(rows.first, &axes);
        const bool of_turn = !rows.first.HasLoad() && std::all_of(axes.begin(), axes.end(), [&](const te::Axis& axis) {
          return axis.id == step.turn->axis.id;
        });
        // A window may be taller than the tensor.
        if (!of_turn || rows.rows < 1 || rows.rows > kMostTurns) {
          return Refused(step, absl::StrCat("names the rows of b", rows.buffer, " that it ", verb,
                                            " by an index of more than its turn, or a number of them that is none"));
        }
      }
      return absl::OkStatus();
    };
    RETURN_IF_ERROR(check(step.turn->reads, touched.read, "reads"));
    return check(step.turn->writes, touched.written, "writes");
  }

  absl::Status CheckBuffers() const {
    std::map<int, const Step*> writer;  // the last so far
    std::set<int> written;              // by any step of the loop
    for (const Step& step : steps_) {
      for (const int b : BuffersOf(step).written) written.insert(b);
    }
    for (const Step& step : steps_) {
      const Buffers touched = BuffersOf(step);
      for (const int b : touched.read) {
        if (written.count(b) == 0 || touched.own.count(b) > 0) continue;
        if (touched.written.count(b) > 0) return Refused(step, absl::StrCat("reads b", b, " and writes it"));
        if (kernel_.buffers[b].ring && touched.in_index.count(b) > 0) {
          return Refused(step, absl::StrCat("reads ring b", b, " inside an address or a condition"));
        }
        if (kernel_.buffers[b].ring) continue;
        if (IsArgument(kernel_.buffers[b])) {
          return Refused(step, absl::StrCat("reads argument b", b, ", which another step of its task loop writes"));
        }
        const auto by = writer.find(b);
        const bool always =
            by != writer.end() && by->second->turn->first <= step.turn->first &&
            step.turn->first + step.turn->axis.extent <= by->second->turn->first + by->second->turn->axis.extent;
        if (!always) {
          return Refused(step, absl::StrCat("reads b", b, " in an iteration that has not written it before"));
        }
      }
      for (const int b : touched.written) writer[b] = &step;
    }
    for (int s = 0; s < static_cast<int>(phase_.steps.size()); ++s) {
      if (TaskLoopOf(phase_, s) == &loop_) continue;
      const Buffers outside = BuffersOf(phase_.steps[s]);
      for (const int b : written) {
        if (IsArgument(kernel_.buffers[b]) || outside.read.count(b) + outside.written.count(b) == 0) continue;
        return Refused(phase_.steps[s], absl::StrCat("uses b", b, ", which lives in a task loop"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status FollowIterations() {
    std::map<int, Held> held;
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      if (kernel_.buffers[b].ring) held.emplace(static_cast<int>(b), Held(*kernel_.buffers[b].ring));
    }
    for (int64_t iteration = 0; iteration < loop_.iterations; ++iteration) {
      for (const Step& step : steps_) {
        const Turn& turn = *step.turn;
        const int64_t number = iteration - turn.first;
        if (number < 0 || number >= turn.axis.extent) continue;
        for (const RingRows& rows : turn.reads) {
          RETURN_IF_ERROR(CheckPresent(step, rows, number, iteration, held.at(rows.buffer)));
        }
        for (const RingRows& rows : turn.writes) {
          Held& ring = held.at(rows.buffer);
          const RowRange range = RowsInTurn(rows, turn, number, *kernel_.buffers[rows.buffer].ring);
          for (int64_t row = range.first; row < range.last; ++row) {
            ring.by_place[row % static_cast<int64_t>(ring.by_place.size())] = row;
            ring.ever[row] = true;
          }
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckPresent(const Step& step, const RingRows& rows, int64_t number, int64_t iteration,
                            const Held& held) const {
    const RowRange range = RowsInTurn(rows, *step.turn, number, *kernel_.buffers[rows.buffer].ring);
    for (int64_t row = range.first; row < range.last; ++row) {
      const int64_t there = held.by_place[row % static_cast<int64_t>(held.by_place.size())];
      if (there == row) continue;
      return Refused(step, absl::StrCat("reads row ", row, " of ring b", rows.buffer, " in iteration ", iteration,
                                        held.ever[row] ? absl::StrCat(", which row ", there, " has replaced")
                                                       : ", which is not there yet"));
    }
    return absl::OkStatus();
  }

  const Kernel& kernel_;
  const Phase& phase_;
  const TaskLoop& loop_;
  const absl::Span<const Step> steps_;
};

}  // namespace

absl::Status CheckRings(const Kernel& kernel) {
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const Buffer& buffer = kernel.buffers[b];
    if (!buffer.ring) continue;
    const Ring& ring = *buffer.ring;
    const bool whole = ring.rows >= 1 && ring.rows <= ring.of && ring.of <= kMostTurns && ring.pitch >= 1 &&
                       ring.pitch <= buffer.elements / ring.rows;
    if (whole && buffer.scope == Scope::kBlock) continue;
    return absl::InternalError(absl::StrCat("movement: buffer b", b, " of scope '", ScopeName(buffer.scope), "' and ",
                                            buffer.elements, " elements is no ring of ", ring.rows, " of ", ring.of,
                                            " rows by ", ring.pitch));
  }
  return absl::OkStatus();
}

absl::Status CheckTaskLoops(const Kernel& kernel, const Phase& phase) {
  const int steps = static_cast<int>(phase.steps.size());
  int end = 0;
  for (const TaskLoop& loop : phase.task_loops) {
    if (loop.first < end || loop.count < 1 || loop.first > steps || loop.count > steps - loop.first) {
      return absl::InternalError("movement: a task loop has no steps of its own");
    }
    end = loop.first + loop.count;
  }
  for (int s = 0; s < steps; ++s) {
    const Step& step = phase.steps[s];
    if (TaskLoopOf(phase, s) != nullptr) {
      if (RowNestOf(phase, s) != nullptr) return Refused(step, "is in a row nest inside a task loop");
      continue;
    }
    if (step.turn) return Refused(step, "has a turn outside of a task loop");
    const Buffers touched = BuffersOf(step);
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const int buffer = static_cast<int>(b);
      if (kernel.buffers[b].ring && touched.read.count(buffer) + touched.written.count(buffer) > 0) {
        return Refused(step, absl::StrCat("uses ring b", b, " outside of a task loop"));
      }
    }
  }
  for (const TaskLoop& loop : phase.task_loops) RETURN_IF_ERROR(LoopChecker(kernel, phase, loop).Check());
  return absl::OkStatus();
}

}  // namespace fusion::movement
