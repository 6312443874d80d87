// fusion-measure: times one bundle and prints a summary (summary.h). A process of its own, because what it runs may
// crash or never end; the worker kills it at the deadline. It talks to nobody and writes nothing but its stdout.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/session.h"
#include "worker/measure/cache_flush.h"
#include "worker/measure/host_kernels.h"
#include "worker/measure/summary.h"

namespace fusion {
namespace {

constexpr size_t kLeastSamples = 9, kMostSamples = 40;
constexpr absl::Duration kBudget = absl::Milliseconds(600);  // after which kFewestSamples suffice
constexpr size_t kFewestSamples = 3;
constexpr int64_t kPeakIterations = 1000;  // about 10 µs

void Confine() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  auto limit = [](int resource, rlim_t value) {
    struct rlimit bound = {value, value};
    setrlimit(static_cast<__rlimit_resource>(resource), &bound);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, rlim_t{1} << 30);  // kernels are loaded from a file in memory
  limit(RLIMIT_CPU, 600);
  limit(RLIMIT_AS, rlim_t{64} << 30);
}

absl::StatusOr<MeasureSummary> Measure(const std::string& path, int threads) {
  ASSIGN_OR_RETURN(HostIsa isa, DetectHostIsa());
  ASSIGN_OR_RETURN(std::shared_ptr<const Bundle> bundle, Bundle::Open(path));
  const Manifest& manifest = bundle->manifest();
  ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Session::Create(bundle, threads));
  const std::vector<Tensor> tensors = RandomInputs(manifest, /*seed=*/1);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    void* place = session->input(static_cast<int>(i));
    std::memcpy(place, tensors[i].data(), static_cast<size_t>(tensors[i].size_bytes()));
    inputs.push_back(place);
  }
  for (size_t i = 0; i < manifest.outputs.size(); ++i) {
    outputs.push_back(const_cast<void*>(session->output(static_cast<int>(i))));
  }
  auto flush = [&] {
    for (size_t i = 0; i < inputs.size(); ++i) FlushFromCaches(inputs[i], tensors[i].size_bytes());
    for (size_t i = 0; i < outputs.size(); ++i) {
      FlushFromCaches(outputs[i], manifest.buffers[manifest.outputs[i].buffer].size_bytes);
    }
    const absl::string_view weights = bundle->reader()->weights();
    FlushFromCaches(weights.data(), static_cast<int64_t>(weights.size()));
  };

  std::vector<Sample> samples;
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(session->RunRaw(inputs, outputs));  // pages and code
  FmaFlopsPerSecond(isa, 50 * kPeakIterations);       // clock
  while (samples.size() < kMostSamples && !Settled(samples, kLeastSamples)) {
    if (samples.size() >= kFewestSamples && absl::Now() - start > kBudget) break;
    flush();
    Sample sample;
    sample.peak_flops_per_s = FmaFlopsPerSecond(isa, kPeakIterations);
    const int64_t begin = absl::GetCurrentTimeNanos();
    RETURN_IF_ERROR(session->RunRaw(inputs, outputs));
    sample.latency_ns = static_cast<double>(std::max<int64_t>(1, absl::GetCurrentTimeNanos() - begin));
    samples.push_back(sample);
  }
  return Summarize(samples);
}

}  // namespace
}  // namespace fusion

int main(int argc, char** argv) {
  int threads = 1;
  const bool well_formed = argc == 2 || (argc == 4 && std::strcmp(argv[2], "--threads") == 0 &&
                                         absl::SimpleAtoi(argv[3], &threads) && threads > 0);
  if (!well_formed) {
    std::fprintf(stderr, "usage: fusion-measure BUNDLE [--threads N]\n");
    return 2;
  }
  fusion::Confine();
  auto summary = fusion::Measure(argv[1], threads);
  if (!summary.ok()) {
    std::fprintf(stderr, "%s\n", summary.status().ToString().c_str());
    return 1;
  }
  std::printf("%s\n", fusion::SummaryToJson(*summary).c_str());
  return 0;
}
