// fusion-measure: times bundles and prints summaries (summary.h). It measures several bundles in turns. It is a process
// of its own because the code that it runs may crash or never end; the worker kills it at the deadline. It connects to
// nothing and writes only to its stdout.

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "runtime/devices/cpu/thread_pool.h"
#include "runtime/devices/cuda/context.h"
#include "runtime/devices/opencl/context.h"
#include "runtime/loader/session.h"
#include "worker/measure/cache_flush.h"
#include "worker/measure/confine.h"
#include "worker/measure/host_kernels.h"
#include "worker/measure/model_runs.h"
#include "worker/measure/summary.h"

namespace fusion {
namespace {

constexpr size_t kLeastSamples = 9, kMostSamples = 40;
constexpr absl::Duration kBudget = absl::Milliseconds(600);  // kFewestSamples suffice after this time
constexpr size_t kFewestSamples = 3;
constexpr int64_t kPeakIterations = 1000;  // about 10 µs
constexpr size_t kSentinelSamples = 9;     // of which the shortest counts
constexpr int64_t kMostOutputs = 32;       // that are printed, of one kernel

// A bundle with its operands in place, whose caches can be flushed.
class Subject {
 public:
  static absl::StatusOr<std::unique_ptr<Subject>> Open(const std::string& path, int threads) {
    auto subject = std::make_unique<Subject>();
    ASSIGN_OR_RETURN(subject->bundle_, Bundle::Open(path));
    const Manifest& manifest = subject->bundle_->manifest();
    ASSIGN_OR_RETURN(subject->session_, Session::Create(subject->bundle_, threads));
    ASSIGN_OR_RETURN(subject->team_, ThreadTeam::Create(ThreadPool::OfProcess(), threads));
    Session& session = *subject->session_;
    const std::vector<Tensor> tensors = RandomInputs(manifest, /*seed=*/1);
    for (size_t i = 0; i < tensors.size(); ++i) {
      void* place = session.input(static_cast<int>(i));
      std::memcpy(place, tensors[i].data(), static_cast<size_t>(tensors[i].size_bytes()));
      subject->inputs_.push_back(place);
      subject->touched_.emplace_back(place, tensors[i].size_bytes());
    }
    for (size_t i = 0; i < manifest.outputs.size(); ++i) {
      const void* place = session.output(static_cast<int>(i));
      subject->outputs_.push_back(const_cast<void*>(place));
      subject->touched_.emplace_back(place, manifest.buffers[manifest.outputs[i].buffer].size_bytes);
      const Binding& output = manifest.outputs[i];
      // Elements behind an extent that a run finds out are undefined.
      const bool is_fixed = std::all_of(output.extents.begin(), output.extents.end(), [](int e) { return e < 0; });
      if (is_fixed) subject->results_.emplace_back(output.dtype, output.shape, place, subject->bundle_);
    }
    const absl::string_view weights = subject->bundle_->reader()->weights();
    subject->touched_.emplace_back(weights.data(), static_cast<int64_t>(weights.size()));
    return subject;
  }

  absl::Status Run() { return session_->RunRaw(inputs_, outputs_); }
  // On a simulated device the time of a run is known before one, and each sample is the same.
  std::optional<SimulatedTime> simulated_time() const { return session_->simulated_time(); }

  absl::Status TakeSample(const InstructionSet& isa) {
    if (const std::optional<SimulatedTime> simulated = simulated_time()) {
      samples_.push_back({std::max(1.0, 1e9 * simulated->seconds), FmaFlopsPerSecond(isa, kPeakIterations)});
      return absl::OkStatus();
    }
    for (const auto& [place, bytes] : touched_) FlushFromCaches(place, bytes);
    Sample sample;
    sample.peak_flops_per_s = FmaFlopsPerSecond(isa, kPeakIterations);
    // On a device other than this process, the latency is that of the launches by the device's own clock: copies to and
    // from the device do not belong to a kernel.
    const bool here = bundle_->manifest().target == "cpu";
    double device_ns = 0;
    const LaunchObserver observer =
        here ? LaunchObserver() : [&](int, int64_t ns) { device_ns += static_cast<double>(ns); };
    // The threads have gone to sleep by now. In a model they are awake when a kernel starts, so they are woken first.
    team_->Enter();
    team_->Run([](void*, int) {}, nullptr);
    team_->Leave();
    const int64_t begin = SteadyNanos();
    RETURN_IF_ERROR(session_->RunRaw(inputs_, outputs_, observer));
    const auto elapsed_ns = static_cast<double>(SteadyNanos() - begin);
    sample.latency_ns = std::max(1.0, here ? elapsed_ns : device_ns);
    samples_.push_back(sample);
    return absl::OkStatus();
  }

  const std::vector<Sample>& samples() const { return samples_; }

  // Returns numbers of the last run, evenly chosen from all outputs.
  std::vector<double> SomeOutputs() const {
    int64_t all = 0;
    for (const Tensor& result : results_) all += result.num_elements();
    std::vector<double> some;
    for (int64_t n = 0; n < std::min(all, kMostOutputs); ++n) {
      int64_t element = n * all / std::min(all, kMostOutputs);
      size_t r = 0;
      for (; element >= results_[r].num_elements(); ++r) element -= results_[r].num_elements();
      const double value = results_[r].GetDouble(element);
      some.push_back(std::isfinite(value) ? value : std::numeric_limits<double>::quiet_NaN());
    }
    return some;
  }

 private:
  std::shared_ptr<const Bundle> bundle_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<ThreadTeam> team_;  // the session's threads
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<Tensor> results_;  // in `outputs_`
  std::vector<std::pair<const void*, int64_t>> touched_;
  std::vector<Sample> samples_;
};

// `canaries`: summaries have outputs, too. `sentinel`, unless empty, is one more bundle, whose summary is last.
absl::StatusOr<std::string> MeasureKernels(const std::vector<std::string>& paths, int threads, bool canaries,
                                           const std::string& sentinel) {
  ASSIGN_OR_RETURN(InstructionSet isa, HostInstructionSet());
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const std::string& path : paths) {
    ASSIGN_OR_RETURN(std::unique_ptr<Subject> subject, Subject::Open(path, threads));
    subjects.push_back(std::move(subject));
  }
  const absl::Time start = SteadyNow();
  for (const auto& subject : subjects) {  // touches pages and code
    if (canaries || !subject->simulated_time()) RETURN_IF_ERROR(subject->Run());
  }
  FmaFlopsPerSecond(isa, 50 * kPeakIterations);  // raises the clock
  const absl::Duration budget = kBudget * static_cast<int64_t>(subjects.size());
  for (size_t round = 0; round < kMostSamples; ++round) {
    const bool settled = std::all_of(subjects.begin(), subjects.end(),
                                     [](const auto& subject) { return Settled(subject->samples(), kLeastSamples); });
    if (settled || (round >= kFewestSamples && SteadyNow() - start > budget)) break;
    for (const auto& subject : subjects) RETURN_IF_ERROR(subject->TakeSample(isa));
  }
  std::vector<MeasureSummary> summaries;
  if (!sentinel.empty()) {
    ASSIGN_OR_RETURN(std::unique_ptr<Subject> subject, Subject::Open(sentinel, threads));
    if (canaries || !subject->simulated_time()) RETURN_IF_ERROR(subject->Run());
    for (size_t i = 0; i < kSentinelSamples; ++i) RETURN_IF_ERROR(subject->TakeSample(isa));
    subjects.push_back(std::move(subject));
  }
  for (const auto& subject : subjects) {
    summaries.push_back(Summarize(subject->samples()));
    if (canaries) summaries.back().outputs = subject->SomeOutputs();
  }
  return SummariesToJson(summaries);
}

absl::Status StartDriver(const std::string& kind) {
  if (kind == "cuda") return cuda::Context::Create().status();
  if (kind == "opencl") return opencl::FindDevices().status();
  return absl::OkStatus();
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  int threads = 1;
  enum class What { kKernels, kTimeModels, kVerifyModel, kTimePlans, kStartDriver } what = What::kKernels;
  std::string kind = "cpu";  // of the bundles
  std::string job;           // for people: process lists and this program's last words name it
  std::string sentinel;
  bool canaries = false;
  fusion::Namespaces namespaces = fusion::Namespaces::kShared;
  std::vector<std::string> paths;
  bool well_formed = true;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--threads") == 0) {
      well_formed = well_formed && ++i < argc && absl::SimpleAtoi(argv[i], &threads) && threads >= 0;
    } else if (std::strcmp(argv[i], "--models") == 0) {
      what = What::kTimeModels;
    } else if (std::strcmp(argv[i], "--verify") == 0) {
      what = What::kVerifyModel;
    } else if (std::strcmp(argv[i], "--plans") == 0) {
      what = What::kTimePlans;
    } else if (std::strcmp(argv[i], "--start-driver") == 0) {
      what = What::kStartDriver;
    } else if (std::strcmp(argv[i], "--canaries") == 0) {
      canaries = true;
    } else if (std::strcmp(argv[i], "--sentinel") == 0) {
      well_formed = well_formed && ++i < argc;
      if (well_formed) sentinel = argv[i];
    } else if (std::strcmp(argv[i], "--confine") == 0) {
      well_formed = well_formed && ++i < argc;
      if (well_formed) kind = argv[i];
    } else if (std::strcmp(argv[i], "--namespaces") == 0) {
      namespaces = fusion::Namespaces::kOwn;
    } else if (std::strcmp(argv[i], "--job") == 0) {
      well_formed = well_formed && ++i < argc;
      if (well_formed) job = absl::StrCat("job ", argv[i], ": ");
    } else {
      paths.emplace_back(argv[i]);
    }
  }
  const size_t bundles = what == What::kStartDriver ? 0 : what == What::kTimePlans ? 1 : 2;
  if (what == What::kKernels ? paths.empty() || threads == 0 : paths.size() != bundles) well_formed = false;
  if (!well_formed) {
    std::fprintf(
        stderr,
        "usage: fusion-measure BUNDLE... [--threads N] [--canaries] [--sentinel BUNDLE] [--job ID]\n"
        "       fusion-measure --models BUNDLE UNFUSED [--threads N] [--job ID]\n"
        "       fusion-measure --verify BUNDLE REFERENCE [--threads N] [--job ID]\n"
        "       fusion-measure --plans BUNDLE [--threads N] [--job ID]\n"
        "       fusion-measure --start-driver   (of the kind that --confine names, and nothing else)\n"
        "--confine KIND: what bundles of this kind (cpu, opencl, cuda, dsa) need is all that they can do; none: no "
        "confinement [cpu]\n"
        "--namespaces: with a process of its own for kernels of cpu and dsa, in namespaces of its own\n");
    return 2;
  }
  std::vector<std::string> readable = paths;
  if (!sentinel.empty()) readable.push_back(sentinel);
  if (const absl::Status confined = fusion::Confine(kind, readable, namespaces); !confined.ok()) {
    std::fprintf(stderr, "%s%s\n", job.c_str(), std::string(confined.message()).c_str());
    return 1;
  }
  if (what == What::kStartDriver) {
    const absl::Status started = fusion::StartDriver(kind);
    if (!started.ok()) std::fprintf(stderr, "%s\n", std::string(started.message()).c_str());
    return started.ok() ? 0 : 1;
  }
  const auto run = [&]() -> absl::StatusOr<std::string> {
    switch (what) {
      case What::kTimeModels:
        return fusion::TimeModels(paths[0], paths[1], threads);
      case What::kVerifyModel:
        return fusion::VerifyModel(paths[0], paths[1], threads);
      case What::kTimePlans:
        return fusion::TimePlans(paths[0], threads);
      case What::kStartDriver:  // has been done
      case What::kKernels:
        break;
    }
    return fusion::MeasureKernels(paths, threads, canaries, sentinel);
  };
  const absl::StatusOr<std::string> text = run();
  if (!text.ok()) {
    const bool driver = absl::IsFailedPrecondition(text.status()) && (kind == "cuda" || kind == "opencl");
    std::fprintf(
        stderr, "%s%s%s\n", job.c_str(), text.status().ToString().c_str(),
        driver ? "; this process is confined: if `fusionctl bench` runs such a bundle on this machine, the driver "
                 "needs what it may not do here, and a worker with --unconfined, which lets all who submit do "
                 "what its user may, does without"
               : "");
    return 1;
  }
  std::printf("%s\n", text->c_str());
  std::fflush(nullptr);
  _exit(0);  // destructors would only take time, and a leak checker could not look into a confined process
}
