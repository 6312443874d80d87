#include "compiler/launch/join_kernels.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/movement/cost.h"
#include "compiler/movement/print.h"
#include "compiler/movement/renumber_buffers.h"
#include "compiler/movement/verify.h"
#include "compiler/movement/work_groups.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

class Joiner {
 public:
  Joiner(const LoopMemory& memory, const std::vector<KernelRun>& runs) : memory_(memory) {
    joined_.kernel.persistent = true;
    for (const KernelRun& run : runs) {
      if (run.loop < 0) continue;
      const int number = static_cast<int>(phase_loop_of_.size());
      phase_loop_of_.emplace(run.loop, number);
    }
    // A kernel's arguments come first, those of device scope behind those of kernel scope.
    for (const Scope scope : {Scope::kKernel, Scope::kDevice}) {
      for (const KernelRun& run : runs) {
        for (const FusionKernel* kernel : run.kernels) AddArguments(*kernel, scope);
      }
    }
  }

  void Add(const KernelRun& run) {
    movement::Kernel& joined = joined_.kernel;
    const size_t first = joined.phases.size();
    for (const FusionKernel* kernel : run.kernels) {
      std::vector<int> number = numbers_.at(kernel);  // what is no argument is another buffer at each place
      for (size_t b = 0; b < number.size(); ++b) {
        if (number[b] >= 0) continue;
        number[b] = static_cast<int>(joined.buffers.size());
        joined.buffers.push_back(kernel->kernel.buffers[b]);
      }
      for (movement::Phase phase : kernel->kernel.phases) {
        movement::VisitSteps(&phase, [&](movement::Step* step) { movement::RenumberBuffers(number, step); });
        joined.phases.push_back(std::move(phase));
      }
      joined.next_axis = std::max(joined.next_axis, kernel->kernel.next_axis);
      joined_.flops += kernel->flops * static_cast<double>(run.trips);
    }
    if (run.loop >= 0) joined.phase_loops.push_back({first, joined.phases.size(), run.trips});
  }

  FusionKernel Take() {
    joined_.kernel.scratch_bytes = joined_.kernel.PlannedScratchBytes();
    joined_.key = Sha256Hex(movement::Print(joined_.kernel));
    return std::move(joined_);
  }

 private:
  void AddArguments(const FusionKernel& kernel, Scope scope) {
    std::vector<int>& number = numbers_[&kernel];
    number.resize(kernel.kernel.buffers.size(), -1);
    size_t a = 0;
    for (size_t b = 0; b < kernel.kernel.buffers.size(); ++b) {
      const movement::Buffer& buffer = kernel.kernel.buffers[b];
      if (!movement::IsArgument(buffer)) continue;
      const KernelArg& arg = kernel.args[a++];
      if (buffer.scope == scope) number[b] = Argument(kernel, arg, buffer);
    }
  }

  // The number of the argument; a value has one, whichever kernels name it.
  int Argument(const FusionKernel& kernel, KernelArg arg, movement::Buffer buffer) {
    const int next = static_cast<int>(joined_.args.size());
    if (arg.kind == KernelArg::Kind::kValue) {
      const auto [known, fresh] = of_value_.emplace(arg.value, next);
      if (!fresh) {
        joined_.args[static_cast<size_t>(known->second)].written |= arg.written;
        return known->second;
      }
      const auto place = memory_.places.find(arg.value);
      if (place != memory_.places.end() && place->second.loop >= 0) {
        // Verify refuses a kernel with a value that moves with a loop which is not in it.
        const auto loop = phase_loop_of_.find(place->second.loop);
        buffer.moves_with = loop != phase_loop_of_.end() ? loop->second : static_cast<int>(phase_loop_of_.size());
      }
    }
    if (arg.pack >= 0) {
      joined_.kernel.packs.push_back(kernel.kernel.packs[static_cast<size_t>(arg.pack)]);
      arg.pack = buffer.packed_from = static_cast<int>(joined_.kernel.packs.size()) - 1;
    }
    joined_.args.push_back(std::move(arg));
    joined_.kernel.buffers.push_back(std::move(buffer));
    return next;
  }

  const LoopMemory& memory_;
  FusionKernel joined_;
  std::map<int, int> phase_loop_of_;                         // by loop of the graph
  std::map<ecg::ValueId, int> of_value_;                     // the argument
  std::map<const FusionKernel*, std::vector<int>> numbers_;  // of arguments, by buffer; -1 for others
};

// The work-items that the kernel's threadgroup tiles are spread over, 0 where it has none. Without tiles any number
// does.
int TileWorkItems(const movement::Kernel& kernel, const DeviceModel& device) {
  bool tiles = false;
  for (const movement::Phase& phase : kernel.phases) {
    movement::VisitSteps(phase, [&](const movement::Step& step) { tiles |= step.Is<movement::ThreadgroupTile>(); });
  }
  return tiles ? movement::WorkItems(kernel, device.work_group_size) : 0;
}

// OpenCL promises room for 1 KiB of parameters, two for each argument, CUDA for 4 KiB.
size_t MostArguments(const DeviceModel& device) { return device.kind == "cuda" ? 500 : 64; }

}  // namespace

absl::Status CheckJoins(const std::vector<KernelRun>& runs, const DeviceModel& device) {
  int work_items = 0;
  size_t arguments = 0;
  for (const KernelRun& run : runs) {
    for (const FusionKernel* kernel : run.kernels) {
      for (const movement::Phase& phase : kernel->kernel.phases) {
        for (const movement::Step& step : phase.steps) {
          if (step.Is<LibraryCall>()) return absl::FailedPreconditionError("a library computes a phase");
          if (step.Is<movement::RoutineCall>()) return absl::FailedPreconditionError("a routine computes a phase");
        }
      }
      const int own = TileWorkItems(kernel->kernel, device);
      if (work_items > 0 && own > 0 && own != work_items) {
        return absl::FailedPreconditionError(
            absl::StrCat("tiles need work-groups of ", work_items, " and of ", own, " work-items"));
      }
      work_items = std::max(work_items, own);
      arguments += kernel->args.size();
    }
  }
  if (arguments > MostArguments(device)) {
    return absl::FailedPreconditionError(absl::StrCat(arguments, " arguments are more than a launch takes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FusionKernel> JoinKernels(const std::vector<KernelRun>& runs, const LoopMemory& memory,
                                         const DeviceModel& device) {
  RETURN_IF_ERROR(CheckJoins(runs, device));
  Joiner joiner(memory, runs);
  for (const KernelRun& run : runs) joiner.Add(run);
  FusionKernel joined = joiner.Take();
  RETURN_IF_ERROR(movement::Verify(joined.kernel));
  return joined;
}

double ApartNs(const std::vector<KernelRun>& runs, const DeviceModel& device, int threads) {
  double ns = 0;
  for (const KernelRun& run : runs) {
    for (const FusionKernel* kernel : run.kernels) {
      ns += static_cast<double>(run.trips) * movement::EstimateCost(kernel->kernel, device, threads).latency_ns;
    }
  }
  return ns;
}

}  // namespace fusion
