#include "runtime/devices/cpu/cpu_launches.h"

#include <utility>

#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<CpuLaunches> CpuLaunches::Create(const BundleReader& bundle, const ManifestProgram& program, Which which,
                                                const std::vector<char*>& bases, int threads,
                                                std::shared_ptr<ThreadPool> pool) {
  CpuLaunches result;
  result.arguments_.resize(program.buffers.size());
  std::vector<std::vector<WorkerPool::Part>> parts(program.launches.size());  // of each launch, one a phase
  for (const Launch& launch : program.launches) {
    BoundLaunch& bound = result.launches_.emplace_back();
    const ManifestKernel& kernel = program.kernels[launch.kernel];
    if (which == Which::kOnHost && !kernel.on_host) continue;
    std::unique_ptr<CodeLibrary>& library = result.libraries_[kernel.file];
    if (library == nullptr) {
      ASSIGN_OR_RETURN(const absl::string_view elf, bundle.Entry(kernel.file));
      ASSIGN_OR_RETURN(library, CodeLibrary::Load(elf, kernel.file));
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
    for (const Phase& phase : kernel.phases) {
      ASSIGN_OR_RETURN(void* const address, library->Symbol(phase.symbol));
      if (phase.tasks <= 0) continue;
      parts[result.launches_.size() - 1].push_back(
          {reinterpret_cast<fusion_kernel_phase>(address), bound.sets, phase.tasks});
    }
  }
  if (which == Which::kAll || !result.libraries_.empty()) {
    const auto math = bundle.manifest().options.find("math");
    const bool strict = math != bundle.manifest().options.end() && math->second == "strict";
    ASSIGN_OR_RETURN(result.pool_, WorkerPool::Create(threads, program.scratch_bytes_per_thread,
                                                      strict ? Subnormals::kKept : Subnormals::kZero, std::move(pool)));
  }
  for (const std::vector<WorkerPool::Part>& of_launch : parts) {
    std::vector<WorkerPool::Phase>& alone = result.alone_.emplace_back();
    for (const WorkerPool::Part& part : of_launch) alone.push_back(result.pool_->Cut({part}));
  }
  for (size_t first = 0, end = 0; first < program.launches.size(); first = end) {
    for (end = first + 1; end < program.launches.size() && program.launches[end].concurrent;) ++end;
    // Phase p of the group is phase p of each launch that has one.
    for (size_t p = 0;; ++p) {
      std::vector<WorkerPool::Part> group;
      for (size_t l = first; l < end; ++l) {
        if (p < parts[l].size()) group.push_back(parts[l][p]);
      }
      if (group.empty()) break;
      result.phases_.push_back(result.pool_->Cut(std::move(group)));
      result.parallel_ = result.parallel_ || result.phases_.back().tasks() > 1;
    }
  }
  return result;
}

void CpuLaunches::Rebind(int buffer, char* base) {
  for (void** argument : arguments_[buffer]) *argument = base;
}

void CpuLaunches::Run() {
  if (!phases_.empty()) pool_->Run(phases_);
}

void CpuLaunches::Run(size_t launch) {
  if (!alone_[launch].empty()) pool_->Run(alone_[launch]);
}

}  // namespace fusion
