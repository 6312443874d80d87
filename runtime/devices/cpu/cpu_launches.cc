#include "runtime/devices/cpu/cpu_launches.h"

#include <utility>

#include "runtime/base/status_macros.h"

namespace fusion {

absl::StatusOr<CpuLaunches> CpuLaunches::Create(const BundleReader& bundle, const ManifestProgram& program, Which which,
                                                const std::vector<char*>& bases, int threads,
                                                std::shared_ptr<ThreadPool> pool) {
  CpuLaunches result;
  result.arguments_.resize(program.buffers.size());
  result.parts_.resize(program.launches.size());
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
      result.parts_[result.launches_.size() - 1].push_back(
          {reinterpret_cast<fusion_kernel_phase>(address), bound.sets, phase.tasks});
    }
  }
  if (which == Which::kAll || !result.libraries_.empty()) {
    const auto math = bundle.manifest().options.find("math");
    const bool strict = math != bundle.manifest().options.end() && math->second == "strict";
    ASSIGN_OR_RETURN(result.pool_, WorkerPool::Create(threads, program.scratch_bytes_per_thread,
                                                      strict ? Subnormals::kKept : Subnormals::kZero, std::move(pool)));
  }
  for (size_t first = 0, end = 0; first < program.launches.size(); first = end) {
    for (end = first + 1; end < program.launches.size() && program.launches[end].concurrent;) ++end;
    result.AddPhases(first, end);
  }
  return result;
}

void CpuLaunches::AddPhases(size_t first, size_t end) {
  // Phase p of the group is phase p of each launch that has one.
  for (size_t p = 0;; ++p) {
    std::vector<WorkerPool::Part> parts;
    for (size_t l = first; l < end; ++l) {
      if (p < parts_[l].size()) parts.push_back(parts_[l][p]);
    }
    if (parts.empty()) return;
    phases_.push_back(pool_->Cut(std::move(parts)));
    parallel_ = parallel_ || phases_.back().tasks() > 1;
  }
}

void CpuLaunches::Rebind(int buffer, char* base) {
  for (void** argument : arguments_[buffer]) *argument = base;
}

void CpuLaunches::Run() {
  if (!phases_.empty()) pool_->Run(phases_);
}

void CpuLaunches::Run(size_t launch) {
  std::vector<WorkerPool::Phase> phases;
  for (const WorkerPool::Part& part : parts_[launch]) phases.push_back(pool_->Cut({part}));
  if (!phases.empty()) pool_->Run(phases);
}

}  // namespace fusion
