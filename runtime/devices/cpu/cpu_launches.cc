#include "runtime/devices/cpu/cpu_launches.h"

#include <numeric>

#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<CpuLaunches> CpuLaunches::Create(const BundleReader& bundle, const ManifestProgram& program, Which which,
                                                const std::vector<char*>& bases, int threads,
                                                std::shared_ptr<ThreadPool> pool) {
  CpuLaunches result;
  result.arguments_.resize(program.buffers.size());
  struct Phase {
    size_t launch;
    fusion_kernel_phase function;
    int64_t tasks;
  };
  std::vector<Phase> phases;
  for (const Launch& launch : program.launches) {
    BoundLaunch& bound = result.launches_.emplace_back();
    const ManifestKernel& kernel = program.kernels[launch.kernel];
    if (which == Which::kOnHost && !kernel.on_host) continue;
    std::unique_ptr<CodeLibrary>& library = result.libraries_[kernel.file];
    if (library == nullptr) {
      ASSIGN_OR_RETURN(const absl::string_view elf, bundle.Entry(kernel.file));
      ASSIGN_OR_RETURN(library, CodeLibrary::Load(elf, kernel.file));
    }
    for (const fusion::Phase& phase : kernel.phases) {
      ASSIGN_OR_RETURN(void* const address, library->Symbol(phase.symbol));
      if (phase.tasks <= 0) continue;
      phases.push_back({result.launches_.size() - 1, reinterpret_cast<fusion_kernel_phase>(address), phase.tasks});
      result.parallel_ = result.parallel_ || phase.tasks * static_cast<int64_t>(launch.sets()) > 1;
    }
    for (size_t s = 0; s < launch.sets(); ++s) {
      std::vector<void*>& arguments = bound.arguments.emplace_back();
      for (const int buffer : launch.set(s)) arguments.push_back(bases[buffer]);
    }
    for (size_t s = 0; s < launch.sets(); ++s) {
      for (size_t a = 0; a < launch.set(s).size(); ++a) {
        result.arguments_[launch.set(s)[a]].push_back(&bound.arguments[s][a]);
      }
      bound.sets.push_back(bound.arguments[s].data());
    }
  }
  if (which == Which::kAll || !result.libraries_.empty()) {
    const auto math = bundle.manifest().options.find("math");
    const bool strict = math != bundle.manifest().options.end() && math->second == "strict";
    ASSIGN_OR_RETURN(result.pool_, WorkerPool::Create(threads, program.scratch_bytes_per_thread,
                                                      strict ? Subnormals::kKept : Subnormals::kZero, std::move(pool)));
  }
  result.first_phases_.resize(program.launches.size() + 1);
  for (const Phase& phase : phases) {
    result.phases_.push_back(result.pool_->Cut(phase.function, result.launches_[phase.launch].sets, phase.tasks));
    ++result.first_phases_[phase.launch + 1];
  }
  std::partial_sum(result.first_phases_.begin(), result.first_phases_.end(), result.first_phases_.begin());
  return result;
}

void CpuLaunches::Rebind(int buffer, char* base) {
  for (void** argument : arguments_[buffer]) *argument = base;
}

void CpuLaunches::Run(size_t begin, size_t end) {
  const size_t first = first_phases_[begin], count = first_phases_[end] - first;
  if (count > 0) pool_->Run(absl::MakeConstSpan(phases_).subspan(first, count));
}

}  // namespace fusion
