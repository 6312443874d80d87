#include "compiler/schedule/stitch/join_rows.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/movement/row_nest.h"
#include "compiler/movement/work_groups.h"

namespace fusion {
namespace {

using movement::Buffer;
using movement::Kernel;
using movement::Loop;
using movement::Phase;
using movement::RowNest;
using movement::Step;
using te::Index;

int64_t DivideUp(int64_t x, int64_t by) { return (x + by - 1) / by; }

// Gives the step the row axes of `rows`, its first loops. A map whose lanes are rows computes one row at a time.
Step WithRows(Step step, const std::vector<Loop>& rows) {
  std::map<int, Index> renamed;
  for (size_t l = 0; l < rows.size(); ++l) {
    if (auto* map = step.As<movement::VectorMap>(); map != nullptr && map->axis == step.loops[l].axis.id) {
      step.strategy = movement::ScalarLoops();
    }
    renamed.emplace(step.loops[l].axis.id, Index(rows[l].axis));
  }
  movement::SubstituteAxes(&step, [&](const te::Axis& axis) -> const Index* {
    const auto it = renamed.find(axis.id);
    return it == renamed.end() ? nullptr : &it->second;
  });
  std::copy(rows.begin(), rows.end(), step.loops.begin());
  return step;
}

bool HasRows(const Step& step, const std::vector<Loop>& rows) {
  return step.loops.size() >= rows.size() &&
         std::equal(rows.begin(), rows.end(), step.loops.begin(), [](const Loop& a, const Loop& b) {
           return a.axis.extent == b.axis.extent && a.limit == b.limit;
         });
}

bool LanesAreRows(const Step& step, size_t rows) {
  const auto* map = step.As<movement::VectorMap>();
  return map != nullptr && step.loops.size() == rows;
}

class RowJoiner {
 public:
  RowJoiner(const Kernel& kernel, const Phase& phase, const RegisterRequests& requests, const DeviceModel& device)
      : kernel_(kernel), requests_(requests), device_(device), teams_(device.WorkItemsAreLanes()) {
    result_.phase = phase;
    result_.buffers = kernel.buffers;
  }

  JoinedRows Join() {
    const int steps = static_cast<int>(result_.phase.steps.size());
    for (int s = 0; s < steps;) {
      const std::optional<RowNest> nest = NestFrom(s);
      if (!nest) {
        ++s;
        continue;
      }
      s = nest->first + nest->count;
      Take(*nest);
    }
    Explain();
    return std::move(result_);
  }

 private:
  // May the step run row by row, whatever it shares with others?
  absl::Status CheckAlone(int s) const {
    const int loops = static_cast<int>(result_.phase.steps[s].loops.size());
    const RowNest alone{s, 1, result_.phase.steps[s].reduction ? loops : 0, teams_ ? 2 : 1};
    return movement::CheckRowNest(kernel_, result_.phase, alone);
  }
  bool Joinable(int s) const { return CheckAlone(s).ok(); }

  // The steps of the phase with the nest's rows.
  Phase Renamed(const RowNest& nest) const {
    Phase phase = result_.phase;
    const std::vector<Loop>& loops = phase.steps[nest.first].loops;
    const std::vector<Loop> rows(loops.begin(), loops.begin() + nest.loops);
    for (int s = nest.first; s < nest.first + nest.count; ++s) phase.steps[s] = WithRows(phase.steps[s], rows);
    return phase;
  }

  // The longest nest that begins with this step and keeps something in registers, or null. Its rows are the points of
  // its first reduction.
  std::optional<RowNest> NestFrom(int first) const {
    const std::vector<Step>& steps = result_.phase.steps;
    const int count = static_cast<int>(steps.size());
    int reduction = first;
    while (reduction < count && Joinable(reduction) && !steps[reduction].reduction) ++reduction;
    if (reduction == count || !Joinable(reduction)) return std::nullopt;
    const std::vector<Loop>& rows = steps[reduction].loops;
    RowNest nest{first, 0, static_cast<int>(rows.size()), teams_ ? 2 : 1};
    std::optional<RowNest> best;
    for (int s = first; s < count; ++s) {
      if (!Joinable(s) || !HasRows(steps[s], rows)) break;
      if (steps[s].reduction && steps[s].loops.size() != rows.size()) break;
      // Beside a reduction that is long enough for vectors, one map without them costs little.
      if (LanesAreRows(steps[s], rows.size()) && !steps[reduction].Is<movement::RowReduction>()) break;
      ++nest.count;
      const Phase phase = Renamed(nest);
      if (!movement::CheckRowNest(kernel_, phase, nest).ok()) break;
      if (s < reduction || RegistersOf(phase, nest).empty()) continue;
      nest.team = teams_ ? BestTeam(phase, nest) : 1;
      if (Worthwhile(phase, nest)) best = nest;
    }
    return best;
  }

  bool ReachedOutside(const RowNest& nest, int buffer) const {
    for (int s = 0; s < static_cast<int>(result_.phase.steps.size()); ++s) {
      if (nest.first <= s && s < nest.first + nest.count) continue;
      bool reached = false;
      movement::VisitBuffers(result_.phase.steps[s], [&](int b) { reached = reached || b == buffer; });
      for (const Step& copy : movement::SharedCopiesOf(result_.phase.steps[s])) {
        movement::VisitBuffers(copy, [&](int b) { reached = reached || b == buffer; });
      }
      if (reached) return true;
    }
    return false;
  }

  // Scratch that only the nest's steps reach, of which each row has elements of its own.
  std::map<int, movement::RowAccess> OwnScratch(const Phase& phase, const RowNest& nest) const {
    std::map<int, movement::RowAccess> own;
    for (int s = nest.first; s < nest.first + nest.count; ++s) {
      for (const movement::Store& store : phase.steps[s].stores) {
        if (result_.buffers[store.buffer].scope != Scope::kBlock || ReachedOutside(nest, store.buffer)) continue;
        const std::optional<movement::RowAccess> access = movement::RowAccessOf(phase, nest, store.buffer);
        if (access && access->task == Index(0)) own.emplace(store.buffer, *access);
      }
    }
    return own;
  }

  // Narrower types are loaded and stored by conversions of memory.
  static bool FitsRegister(DType dtype) {
    return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kI32 || dtype == DType::kI64;
  }

  // Is the buffer stored once for each row, by steps that store nothing else? A team of work-items stores to registers
  // alike, and to memory once.
  static bool IsResultOfRow(const Phase& phase, const RowNest& nest, int buffer) {
    for (int s = nest.first; s < nest.first + nest.count; ++s) {
      const Step& step = phase.steps[s];
      for (const movement::Store& store : step.stores) {
        if (store.buffer != buffer) continue;
        if (static_cast<int>(step.loops.size()) != nest.loops || step.stores.size() != 1) return false;
      }
    }
    return true;
  }

  std::set<int> RegistersOf(const Phase& phase, const RowNest& nest) const {
    std::set<int> registers;
    for (const auto& [buffer, access] : OwnScratch(phase, nest)) {
      const bool fits = access.one_element && FitsRegister(result_.buffers[buffer].dtype) &&
                        requests_.unwanted.count(result_.buffers[buffer].tensor) == 0;
      if (fits && IsResultOfRow(phase, nest, buffer)) registers.insert(buffer);
    }
    return registers;
  }

  // Turns of the loop that a work-item runs for the step where teams of so many take rows, or, with 0, where the
  // work-group takes points.
  int64_t Turns(const Step& step, const RowNest& nest, int64_t team) const {
    int64_t rows = 1, points = 1;
    for (size_t l = 0; l < step.loops.size(); ++l) {
      int64_t extent = step.loops[l].axis.extent;
      const auto* map = step.As<movement::VectorMap>();
      if (map != nullptr && map->axis == step.loops[l].axis.id) extent = DivideUp(extent, device_.vector_bytes / 4);
      (static_cast<int>(l) < nest.loops ? rows : points) *= extent;
    }
    for (size_t a = 0; step.reduction && a < step.reduction->axes.size(); ++a) {
      points *= step.reduction->axes[a].extent;
    }
    const int64_t group = device_.work_group_size;
    return team > 0 ? DivideUp(rows, group / team) * DivideUp(points, team) : DivideUp(rows * points, group);
  }

  int64_t Turns(const Phase& phase, const RowNest& nest, int64_t team) const {
    int64_t turns = 0;
    for (int s = nest.first; s < nest.first + nest.count; ++s) turns += Turns(phase.steps[s], nest, team);
    return turns;
  }

  // The team with which a work-item runs the fewest turns. The largest of several, which reads the longest runs.
  int BestTeam(const Phase& phase, const RowNest& nest) const {
    int best = std::min(device_.work_group_size, movement::kRowTeam);
    for (int team = best / 2; team >= 2; team /= 2) {
      if (Turns(phase, nest, team) < Turns(phase, nest, best)) best = team;
    }
    return best;
  }

  bool Worthwhile(const Phase& phase, const RowNest& nest) const {
    if (!teams_) return true;
    return WantsAny(RegistersOf(phase, nest)) || Turns(phase, nest, nest.team) <= Turns(phase, nest, /*team=*/0);
  }

  void Take(const RowNest& nest) {
    Phase phase = Renamed(nest);
    const std::set<int> registers = RegistersOf(phase, nest);
    std::set<int> of_one_row = registers;
    std::vector<Buffer> buffers = result_.buffers;
    for (const auto& [buffer, access] : OwnScratch(phase, nest)) {
      if (registers.count(buffer) > 0) {
        buffers[buffer].scope = Scope::kWarp;
        buffers[buffer].elements = 1;
      } else if (!teams_ && nest.loops > 0) {
        // Elements behind the last row, which whole vectors may read, stay behind the only row.
        int64_t rows_end = access.last + 1;
        const std::vector<Loop>& loops = phase.steps[nest.first].loops;
        for (int l = 0; l < nest.loops; ++l) rows_end += access.strides[l] * (loops[l].axis.extent - 1);
        const int64_t behind = std::max<int64_t>(0, buffers[buffer].elements - rows_end);
        buffers[buffer].elements = access.last + 1 + behind;
        of_one_row.insert(buffer);
      }
    }
    for (int s = nest.first; s < nest.first + nest.count; ++s) AddressOneRow(nest, registers, of_one_row, &phase.steps[s]);
    phase.row_nests.push_back(nest);
    // All of a nest's scratch is alive at once. Where shared memory decides how many work-groups run at the same time,
    // a nest that needs more of it costs more than it saves.
    const bool wanted = WantsAny(registers);
    if (teams_ && !wanted && ScratchBytes(buffers, phase) > ScratchBytes(result_.buffers, result_.phase)) return;
    result_.buffers = std::move(buffers);
    result_.phase = std::move(phase);
  }

  static int64_t ScratchBytes(const std::vector<Buffer>& buffers, const Phase& phase) {
    Kernel kernel;
    kernel.buffers = buffers;
    kernel.phases = {phase};
    return kernel.PlannedScratchBytes();
  }

  bool WantsAny(const std::set<int>& registers) const {
    return std::any_of(registers.begin(), registers.end(), [&](int buffer) {
      return requests_.wanted.count(result_.buffers[buffer].tensor) > 0;
    });
  }

  // Lets the step reach the first row of these buffers, whatever its row.
  static void AddressOneRow(const RowNest& nest, const std::set<int>& registers, const std::set<int>& of_one_row,
                            Step* step) {
    const auto one_row = [&](int buffer, const Index& address) {
      if (registers.count(buffer) > 0) return Index(0);
      static const Index kZero;
      return te::Substitute(address, [&](const te::Axis& axis) -> const Index* {
        for (int l = 0; l < nest.loops; ++l) {
          if (step->loops[l].axis.id == axis.id) return &kZero;
        }
        return nullptr;
      });
    };
    const auto in_loads = [&](const te::Scalar& s) {
      return te::MapLoads(s, [&](const te::Scalar& load) -> te::Scalar {
        if (of_one_row.count(load->tensor) == 0) return nullptr;
        return te::Load(load->tensor, load->dtype, {one_row(load->tensor, load->indices[0])});
      });
    };
    for (te::Scalar& s : step->body) s = in_loads(s);
    for (te::Scalar& s : step->then) s = in_loads(s);
    if (step->reduction) {
      for (te::Scalar& s : step->reduction->init) s = in_loads(s);
    }
    for (movement::Store& store : step->stores) {
      if (of_one_row.count(store.buffer) > 0) store.address = one_row(store.buffer, store.address);
    }
  }

  // Says why tensors that are wanted in registers are in scratch.
  void Explain() {
    for (const te::TensorId tensor : requests_.wanted) {
      for (size_t b = 0; b < result_.buffers.size(); ++b) {
        const Buffer& buffer = result_.buffers[b];
        if (buffer.tensor == tensor && buffer.scope == Scope::kBlock) {
          result_.refused[tensor] = WhyInScratch(static_cast<int>(b));
        }
      }
    }
  }

  std::string WhyInScratch(int buffer) const {
    if (!FitsRegister(result_.buffers[buffer].dtype)) {
      return absl::StrCat("registers hold no ", DTypeName(result_.buffers[buffer].dtype));
    }
    bool several = false;
    for (int s = 0; s < static_cast<int>(result_.phase.steps.size()); ++s) {
      const Step& step = result_.phase.steps[s];
      bool reaches = false;
      movement::VisitBuffers(step, [&](int b) { reaches = reaches || b == buffer; });
      if (!reaches) continue;
      if (const absl::Status alone = CheckAlone(s); !alone.ok()) return std::string(alone.message());
      for (const movement::Store& store : step.stores) {
        several = several || (store.buffer == buffer && !step.reduction && !step.loops.empty());
      }
    }
    if (several) return "a row has several elements of it, and a register keeps one";
    return "the steps that make and read it do not go over the same rows";
  }

  const Kernel& kernel_;
  const RegisterRequests& requests_;
  const DeviceModel& device_;
  const bool teams_;
  JoinedRows result_;
};

}  // namespace

JoinedRows JoinRows(const Kernel& kernel, const Phase& phase, const RegisterRequests& requests,
                    const DeviceModel& device) {
  return RowJoiner(kernel, phase, requests, device).Join();
}

}  // namespace fusion
