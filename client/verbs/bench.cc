#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/local/tensor_files.h"
#include "client/verbs/verbs.h"
#include "runtime/base/quantile.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "runtime/loader/paired_runs.h"
#include "runtime/loader/session.h"

namespace fusion {
namespace {

constexpr double kMsPerNs = 1e-6;

absl::StatusOr<PreparedRun> Prepare(const std::string& path, const InputFlags& flags, int threads) {
  ASSIGN_OR_RETURN(auto bundle, Bundle::Open(path));
  ASSIGN_OR_RETURN(const std::vector<Tensor> inputs, AssembleInputs(bundle->manifest(), flags));
  return PreparedRun::Create(std::move(bundle), inputs, threads);
}

std::vector<double> InMilliseconds(std::vector<double> latencies_ns) {
  for (double& latency : latencies_ns) latency *= kMsPerNs;
  return latencies_ns;
}

class BenchVerb : public Verb {
 public:
  std::string name() const override { return "bench"; }
  std::string help() const override {
    return "time a bundle on this machine, inputs and outputs in place (no server needed)";
  }
  bool UsesServer() const override { return false; }
  std::vector<Option> Options() override {
    return {{"BUNDLE", "the .fusion file", &bundle_, true},
            {"--against", "another bundle: both take turns, and the ratio is printed", &against_},
            {"--threads", "0: all cores", &threads_},
            {"--runs", "timed runs (0: for about two seconds, four with --against)", &runs_},
            {"--warmup", "runs before them", &warmup_},
            {"--random", "seed of the inputs", &inputs_.seed},
            {"--int-max", "largest random integer", &inputs_.int_max},
            {"--dim", "which of a bundle's specialisations: seq=32 (default: the first)", &inputs_.dims},
            {"--per-kernel", "time each launch as well", &per_kernel_},
            OutputOption(&format_)};
  }

  int Run(const CommonOptions&) override {
    if (!against_.empty() && per_kernel_) {
      std::fprintf(stderr, "fusionctl: --per-kernel times one bundle; leave --against out\n");
      return kExitUsage;
    }
    const absl::Status status = against_.empty() ? Measure() : Compare();
    return status.ok() ? kExitOk : FailLocal(status);
  }

 private:
  absl::Status Measure() {
    ASSIGN_OR_RETURN(PreparedRun runner, Prepare(bundle_, inputs_, static_cast<int>(threads_)));
    std::vector<double> latencies_ms;
    std::vector<std::vector<double>> launches_us(runner.program().launches.size());
    const absl::Time end = SteadyNow() + absl::Seconds(2);
    if (runner.simulated_time()) runs_ = 1, warmup_ = 0;  // each run takes the same time
    for (int64_t run = -warmup_; runs_ > 0 ? run < runs_ : run < 5 || SteadyNow() < end; ++run) {
      ASSIGN_OR_RETURN(const double latency_ns, runner.Run());
      if (run < 0) continue;
      latencies_ms.push_back(latency_ns * kMsPerNs);
      if (!per_kernel_) continue;
      // A separate run, because reading the clock between launches costs time.
      RETURN_IF_ERROR(runner
                          .Run([&](int launch, int64_t latency_ns) {
                            launches_us[launch].push_back(static_cast<double>(latency_ns) * 1e-3);
                          })
                          .status());
    }
    Report(runner, latencies_ms, launches_us);
    return absl::OkStatus();
  }

  absl::Status Compare() {
    ASSIGN_OR_RETURN(PreparedRun first, Prepare(bundle_, inputs_, static_cast<int>(threads_)));
    ASSIGN_OR_RETURN(PreparedRun second, Prepare(against_, inputs_, static_cast<int>(threads_)));
    PairedLimits limits;
    limits.warmup = warmup_;
    limits.runs = runs_;
    ASSIGN_OR_RETURN(const PairedTimes times, RunPaired(first, second, limits));
    ReportComparison(first, second, times);
    return absl::OkStatus();
  }

  void ReportComparison(const PreparedRun& first, const PreparedRun& second, const PairedTimes& times) const {
    const std::vector<double>& ratios = times.ratios;
    const std::array<double, 2> medians = {Quantile(InMilliseconds(times.latencies_ns[0]), 0.5),
                                           Quantile(InMilliseconds(times.latencies_ns[1]), 0.5)};
    if (format_ == "json") {
      nlohmann::ordered_json report = {{"median_ms", medians[0]},
                                       {"against_median_ms", medians[1]},
                                       {"speedup", Quantile(ratios, 0.5)},
                                       {"speedup_p25", Quantile(ratios, 0.25)},
                                       {"speedup_p75", Quantile(ratios, 0.75)},
                                       {"rounds", ratios.size()},
                                       {"threads", first.threads()},
                                       {"kernels", first.program().launches.size()},
                                       {"against_kernels", second.program().launches.size()}};
      std::printf("%s\n", report.dump(2).c_str());
      return;
    }
    if (first.simulated_time()) {
      std::printf("simulated: %.3f ms against %.3f ms of the device: %.2f× as fast\n", medians[0], medians[1],
                  Quantile(ratios, 0.5));
      return;
    }
    std::printf("%.3f ms (%s) against %.3f ms (%s): %.2f× as fast, %.2f–%.2f in half of %zu rounds (%s)\n", medians[0],
                Plural(static_cast<int64_t>(first.program().launches.size()), "kernel").c_str(), medians[1],
                Plural(static_cast<int64_t>(second.program().launches.size()), "kernel").c_str(), Quantile(ratios, 0.5),
                Quantile(ratios, 0.25), Quantile(ratios, 0.75), ratios.size(),
                Plural(first.threads(), "thread").c_str());
  }

  void Report(const PreparedRun& runner, const std::vector<double>& latencies_ms,
              const std::vector<std::vector<double>>& launches_us) const {
    const ManifestProgram& program = runner.program();
    const int threads = runner.threads();
    double flops = 0;
    for (const Launch& launch : program.launches) flops += launch.flops;
    const double median_ms = Quantile(latencies_ms, 0.5);
    nlohmann::ordered_json report = {{"median_ms", median_ms},
                                     {"p10_ms", Quantile(latencies_ms, 0.1)},
                                     {"p90_ms", Quantile(latencies_ms, 0.9)},
                                     {"min_ms", Quantile(latencies_ms, 0)},
                                     {"runs", latencies_ms.size()},
                                     {"threads", threads},
                                     {"kernels", program.launches.size()},
                                     {"gflops_per_s", flops * 1e-6 / median_ms}};
    if (!program.dims.empty()) report["dims"] = program.dims;
    const std::optional<SimulatedTime> simulated = runner.simulated_time();
    if (simulated) report["simulated_cycles"] = simulated->cycles;
    std::vector<std::vector<std::string>> rows;
    if (per_kernel_) {
      double total_us = 0;
      std::vector<double> medians;
      for (const auto& samples : launches_us) {
        medians.push_back(samples.empty() ? 0 : Quantile(samples, 0.5));
        total_us += medians.back();
      }
      nlohmann::ordered_json list = nlohmann::ordered_json::array();
      for (size_t i = 0; i < medians.size(); ++i) {
        const Launch& launch = program.launches[i];
        const double seconds = medians[i] * 1e-6;
        list.push_back({{"launch", i},
                        {"kernel", launch.kernel},
                        {"label", launch.label},
                        {"median_us", medians[i]},
                        {"share", medians[i] / total_us},
                        {"gflops_per_s", launch.flops * 1e-9 / seconds},
                        {"gbytes_per_s", static_cast<double>(launch.bytes) * 1e-9 / seconds}});
        rows.push_back({absl::StrCat(i), absl::StrCat("k", launch.kernel), absl::StrFormat("%.1f", medians[i]),
                        absl::StrFormat("%.1f%%", 100 * medians[i] / total_us),
                        absl::StrFormat("%.1f", launch.flops * 1e-9 / seconds),
                        absl::StrFormat("%.1f", static_cast<double>(launch.bytes) * 1e-9 / seconds), launch.label});
      }
      report["per_kernel"] = list;
    }
    if (format_ == "json") {
      std::printf("%s\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
      return;
    }
    if (!program.dims.empty()) std::printf("%s  ", ProgramName(program).c_str());
    if (simulated) {
      std::printf("simulated: %.3f ms, %.0f cycles of the device (not a time of this machine)\n", median_ms,
                  simulated->cycles);
    } else {
      std::printf("median %.3f ms  p10 %.3f ms  p90 %.3f ms  (%zu runs, %s, %s)\n", median_ms,
                  Quantile(latencies_ms, 0.1), Quantile(latencies_ms, 0.9), latencies_ms.size(),
                  Plural(threads, "thread").c_str(),
                  Plural(static_cast<int64_t>(program.launches.size()), "kernel").c_str());
    }
    if (per_kernel_) {
      std::fputs(Table({"LAUNCH", "KERNEL", "µs", "SHARE", "GFLOP/s", "GB/s", "WHAT"}, rows).c_str(), stdout);
    }
  }

  std::string bundle_, against_, format_ = "table";
  InputFlags inputs_{{}, /*seed=*/0, /*int_max=*/1};
  int64_t threads_ = 0, runs_ = 0, warmup_ = 3;
  bool per_kernel_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeBenchVerb() { return std::make_unique<BenchVerb>(); }

}  // namespace fusion
