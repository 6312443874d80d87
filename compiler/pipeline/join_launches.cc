#include "compiler/pipeline/join_launches.h"

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/backend.h"
#include "compiler/backends/placement.h"
#include "compiler/launch/join_kernels.h"
#include "compiler/movement/cost.h"
#include "nlohmann/json.hpp"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// A launch, or all launches of a loop.
struct Item {
  size_t first = 0, end = 0;  // launches
  const LaunchLoop* loop = nullptr;
  int subprogram = -1;  // that all fusion blocks of it are of; -1: none
};

class LaunchJoiner {
 public:
  LaunchJoiner(const DeviceModel& device, int units, Planned* planned, std::vector<PlannedLaunch>* launches)
      : device_(device), units_(units), planned_(*planned), launches_(*launches) {}

  std::vector<JoinedLaunch> Join() {
    const std::vector<Item> items = Items();
    std::vector<Item> group;
    for (const Item& item : items) {
      std::vector<Item> more = group;
      more.push_back(item);
      const bool same = !group.empty() && item.subprogram >= 0 && item.subprogram == group.back().subprogram;
      if (!same || !CheckLaunches(more).ok() || !CheckJoins(RunsOf(more), device_).ok()) {
        Take(group);
        more = {item};
      }
      group = std::move(more);
    }
    Take(group);
    launches_ = std::move(out_);
    planned_.loops.launches = std::move(loops_);
    return std::move(joined_);
  }

 private:
  int SubprogramOf(size_t launch) const {
    const std::vector<int>& subprograms = planned_.plan.subprograms;
    int common = -1;
    for (const size_t b : planned_.launches[launch]) {
      const int own = subprograms.empty() ? -1 : subprograms[b];
      if (b == planned_.launches[launch][0]) common = own;
      if (own != common) return -1;
    }
    return common;
  }

  std::vector<Item> Items() const {
    std::vector<Item> items;
    auto loop = planned_.loops.launches.begin();
    for (size_t l = 0; l < launches_.size(); l = items.back().end) {
      Item& item = items.emplace_back(Item{l, l + 1});
      if (loop != planned_.loops.launches.end() && loop->first == l) {
        item.loop = &*loop;
        item.end = (loop++)->end;
      }
      item.subprogram = SubprogramOf(l);
      for (size_t other = l + 1; other < item.end; ++other) {
        if (SubprogramOf(other) != item.subprogram) item.subprogram = -1;
      }
    }
    return items;
  }

  std::vector<KernelRun> RunsOf(const std::vector<Item>& group) const {
    std::vector<KernelRun> runs;
    for (const Item& item : group) {
      KernelRun& run = runs.emplace_back();
      if (item.loop != nullptr) run.loop = item.loop->loop, run.trips = item.loop->trips;
      for (size_t l = item.first; l < item.end; ++l) run.kernels.push_back(&launches_[l].fusion_kernel);
    }
    return runs;
  }

  // A batch, launches beside each other and kernels of the host stay launches of their own.
  absl::Status CheckLaunches(const std::vector<Item>& group) const {
    for (const Item& item : group) {
      for (size_t l = item.first; l < item.end; ++l) {
        if (!launches_[l].others.empty()) return absl::FailedPreconditionError("a launch is a batch");
        if (launches_[l].concurrent) return absl::FailedPreconditionError("launches run beside each other");
        if (PlaceKernel(launches_[l].fusion_kernel.kernel, device_).on_host) {
          return absl::FailedPreconditionError("a kernel runs on the host");
        }
      }
    }
    return absl::OkStatus();
  }

  // A loop that is in no subprogram has to be faster as one launch.
  absl::StatusOr<FusionKernel> KernelOf(const std::vector<Item>& group) const {
    RETURN_IF_ERROR(CheckLaunches(group));
    const std::vector<KernelRun> runs = RunsOf(group);
    ASSIGN_OR_RETURN(FusionKernel kernel, JoinKernels(runs, planned_.loops.memory, device_));
    RETURN_IF_ERROR(PlaceKernel(kernel.kernel, device_).backend->CheckSupported(kernel.kernel));
    const bool asked = group[0].subprogram >= 0;
    if (!asked && movement::EstimateCost(kernel.kernel, device_, units_).latency_ns > ApartNs(runs, device_, units_)) {
      return absl::FailedPreconditionError("launches are estimated to be faster");
    }
    return kernel;
  }

  // Appends the group to the launches, as one where it can be.
  void Take(const std::vector<Item>& group) {
    const bool several = group.size() > 1 || (group.size() == 1 && group[0].loop != nullptr);
    if (several && Joined(group)) return;
    for (const Item& item : group) {
      if (group.size() > 1 && item.loop != nullptr && Joined({item})) continue;
      if (item.loop != nullptr) {
        loops_.push_back(*item.loop);
        loops_.back().first = out_.size();
        loops_.back().end = out_.size() + item.end - item.first;
      }
      for (size_t l = item.first; l < item.end; ++l) out_.push_back(std::move(launches_[l]));
    }
  }

  bool Joined(const std::vector<Item>& group) {
    absl::StatusOr<FusionKernel> kernel = KernelOf(group);
    if (!kernel.ok()) return false;
    JoinedLaunch& joined = joined_.emplace_back();
    PlannedLaunch launch;
    std::vector<std::string> labels;
    for (const Item& item : group) {
      if (item.loop != nullptr) {
        loops_.push_back(*item.loop);
        loops_.back().first = out_.size();
        loops_.back().end = out_.size() + 1;
        loops_.back().in_launch = true;
        ++joined.loops;
      }
      for (size_t l = item.first; l < item.end; ++l) {
        labels.push_back(launches_[l].label);
        launch.nodes.insert(launch.nodes.end(), launches_[l].nodes.begin(), launches_[l].nodes.end());
        const std::vector<size_t>& fusion_blocks = planned_.launches[l];
        joined.fusion_blocks.insert(joined.fusion_blocks.end(), fusion_blocks.begin(), fusion_blocks.end());
      }
    }
    // Each phase of each iteration but the first has a barrier in front of it.
    for (const movement::PhaseRange& range : kernel->kernel.BetweenBarriers()) {
      joined.barriers += kernel->kernel.TripsOf(range.first);
    }
    --joined.barriers;
    constexpr size_t kMostLabels = 3;
    const size_t all = labels.size();
    if (all > kMostLabels) labels.resize(kMostLabels);
    launch.label = absl::StrCat(absl::StrJoin(labels, " | "),
                                all > kMostLabels ? absl::StrCat(" | … ", all - kMostLabels, " more") : "",
                                ", one launch with ", joined.barriers, " barriers");
    launch.fusion_kernel = *std::move(kernel);
    out_.push_back(std::move(launch));
    return true;
  }

  const DeviceModel& device_;
  const int units_;
  Planned& planned_;
  std::vector<PlannedLaunch>& launches_;
  std::vector<PlannedLaunch> out_;
  std::vector<LaunchLoop> loops_;
  std::vector<JoinedLaunch> joined_;
};

}  // namespace

std::vector<JoinedLaunch> JoinLaunches(const DeviceModel& device, int units, Planned* planned,
                                       std::vector<PlannedLaunch>* launches) {
  return LaunchJoiner(device, units, planned, launches).Join();
}

std::string InWords(const std::vector<JoinedLaunch>& joined) {
  std::string text;
  for (const JoinedLaunch& one : joined) {
    absl::StrAppend(
        &text, "one launch with ", one.barriers, " barriers",
        one.loops > 0 ? absl::StrCat(" and the iterations of ", one.loops, one.loops == 1 ? " loop" : " loops") : "",
        ": fusion blocks ", absl::StrJoin(one.fusion_blocks, ", "), "\n");
  }
  return text;
}

void AccountForJoined(const std::vector<JoinedLaunch>& joined, int64_t launches, CompileAccount* account) {
  account->kernels = launches;
  if (joined.empty()) return;
  using nlohmann::json;
  json plan = json::parse(account->plan_json, nullptr, /*allow_exceptions=*/false);
  if (!plan.is_object()) return;
  json list = json::array();
  for (const JoinedLaunch& one : joined) {
    list.push_back({{"fusion_blocks", one.fusion_blocks}, {"barriers", one.barriers}, {"loops", one.loops}});
  }
  plan["joined_launches"] = std::move(list);
  account->plan_json = plan.dump(1, ' ', false, json::error_handler_t::replace);
}

}  // namespace fusion
