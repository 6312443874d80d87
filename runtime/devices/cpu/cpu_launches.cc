#include "runtime/devices/cpu/cpu_launches.h"

#include <optional>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusion {

std::unique_ptr<CpuLaunches::BoundLaunch> CpuLaunches::Bind(
    const ManifestProgram& program, const Launch& launch, int64_t iteration, const std::vector<char*>& bases,
    const std::vector<std::pair<fusion_kernel_phase, int64_t>>& phases) {
  auto bound = std::make_unique<BoundLaunch>();
  for (size_t s = 0; s < launch.sets(); ++s) {
    std::vector<void*>& arguments = bound->arguments.emplace_back();
    for (const int buffer : launch.set(s)) {
      const std::optional<BufferSteps>& steps = program.buffers[buffer].steps;
      arguments.push_back(bases[buffer] + (steps ? steps->OffsetAt(iteration) : 0));
    }
  }
  for (size_t s = 0; s < launch.sets(); ++s) {
    for (size_t a = 0; a < launch.set(s).size(); ++a) {
      // Inputs and outputs are rebound; they do not move.
      arguments_[launch.set(s)[a]].push_back(&bound->arguments[s][a]);
    }
    bound->sets.push_back(bound->arguments[s].data());
  }
  for (const auto& [function, tasks] : phases) bound->parts.push_back({function, bound->sets, tasks});
  return bound;
}

// Appends the phases of launches [first, end) in one iteration. Phase p of a group of concurrent launches is phase p of
// each launch that has one.
void CpuLaunches::AppendPhases(const ManifestProgram& program, size_t first, size_t end, int64_t iteration) {
  for (size_t begin = first, behind = first; begin < end; begin = behind) {
    for (behind = begin + 1; behind < end && program.launches[behind].concurrent;) ++behind;
    for (size_t p = 0;; ++p) {
      std::vector<WorkerPool::Part> group;
      for (size_t l = begin; l < behind; ++l) {
        const std::vector<WorkerPool::Part>& parts = launches_[l][static_cast<size_t>(iteration)]->parts;
        if (p < parts.size()) group.push_back(parts[p]);
      }
      if (group.empty()) break;
      phases_.push_back(pool_->Cut(std::move(group)));
      parallel_ = parallel_ || phases_.back().tasks() > 1;
    }
  }
}

absl::StatusOr<CpuLaunches> CpuLaunches::Create(const BundleReader& bundle, const ManifestProgram& program, Which which,
                                                const std::vector<char*>& bases, int threads,
                                                std::shared_ptr<ThreadPool> pool) {
  CpuLaunches result;
  result.arguments_.resize(program.buffers.size());
  for (const Launch& launch : program.launches) {
    auto& iterations = result.launches_.emplace_back();
    const int64_t trips = program.TripsOf(static_cast<int>(result.launches_.size()) - 1);
    const ManifestKernel& kernel = program.kernels[launch.kernel];
    std::vector<std::pair<fusion_kernel_phase, int64_t>> phases;
    if (which == Which::kAll || kernel.on_host) {
      std::unique_ptr<CodeLibrary>& library = result.libraries_[kernel.file];
      if (library == nullptr) {
        ASSIGN_OR_RETURN(const absl::string_view elf, bundle.Entry(kernel.file));
        ASSIGN_OR_RETURN(library, CodeLibrary::Load(elf, kernel.file));
      }
      for (const Phase& phase : kernel.phases) {
        ASSIGN_OR_RETURN(void* const address, library->Symbol(phase.symbol));
        if (phase.tasks > 0) phases.emplace_back(reinterpret_cast<fusion_kernel_phase>(address), phase.tasks);
      }
    }
    for (int64_t t = 0; t < trips; ++t) iterations.push_back(result.Bind(program, launch, t, bases, phases));
  }
  if (which == Which::kAll || !result.libraries_.empty()) {
    const auto math = bundle.manifest().options.find("math");
    const bool strict = math != bundle.manifest().options.end() && math->second == "strict";
    ASSIGN_OR_RETURN(result.pool_, WorkerPool::Create(threads, program.scratch_bytes_per_thread,
                                                      strict ? Subnormals::kKept : Subnormals::kZero, std::move(pool)));
  }
  size_t next = 0;
  for (const Repeat& repeat : program.repeats) {
    if (repeat.in_launch) continue;  // its kernel runs on another device
    const auto first = static_cast<size_t>(repeat.first), end = static_cast<size_t>(repeat.end);
    result.AppendPhases(program, next, first, 0);
    for (int64_t t = 0; t < repeat.trips; ++t) result.AppendPhases(program, first, end, t);
    next = end;
  }
  result.AppendPhases(program, next, program.launches.size(), 0);
  return result;
}

void CpuLaunches::Rebind(int buffer, char* base) {
  for (void** argument : arguments_[buffer]) *argument = base;
}

void CpuLaunches::Run() {
  if (!phases_.empty()) pool_->Run(phases_);
}

void CpuLaunches::Run(size_t launch, int64_t iteration) {
  std::vector<WorkerPool::Phase> phases;
  for (const WorkerPool::Part& part : launches_[launch][static_cast<size_t>(iteration)]->parts) {
    phases.push_back(pool_->Cut({part}));
  }
  if (!phases.empty()) pool_->Run(phases);
}

}  // namespace fusion
