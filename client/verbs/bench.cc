#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/local/tensor_files.h"
#include "client/verbs/verbs.h"
#include "runtime/loader/session.h"

namespace fusion {
namespace {

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(std::lround(q * static_cast<double>(values.size() - 1)))];
}

class BenchVerb : public Verb {
 public:
  std::string name() const override { return "bench"; }
  std::string help() const override { return "time a bundle on this machine (no server needed)"; }
  std::vector<Option> Options() override {
    return {{"BUNDLE", "the .fusion file", &bundle_, true},
            {"--threads", "0: all cores", &threads_},
            {"--runs", "timed runs (0: for about two seconds)", &runs_},
            {"--warmup", "runs before them", &warmup_},
            {"--random", "seed of the inputs", &inputs_.seed},
            {"--int-max", "largest random integer", &inputs_.int_max},
            {"--dim", "which of a bundle's specialisations: seq=32 (default: the first)", &inputs_.dims},
            {"--per-kernel", "time each launch as well", &per_kernel_},
            OutputOption(&format_)};
  }

  int Run(const CommonOptions&) override {
    auto bundle = Bundle::Open(bundle_);
    if (!bundle.ok()) return FailLocal(bundle.status());
    auto tensors = AssembleInputs((*bundle)->manifest(), inputs_);
    if (!tensors.ok()) return FailLocal(tensors.status());
    auto created = Session::Create(*bundle, static_cast<int>(threads_));
    if (!created.ok()) return FailLocal(created.status());
    Session& session = **created;
    std::vector<Shape> shapes;
    for (const Tensor& tensor : *tensors) shapes.push_back(tensor.shape());
    const absl::Status selected = session.Select(shapes);
    if (!selected.ok()) return FailLocal(selected);
    const Program& program = session.program();

    // In the session's own memory: what is timed is kernels, not copies.
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (size_t i = 0; i < tensors->size(); ++i) {
      std::memcpy(session.input(static_cast<int>(i)), (*tensors)[i].data(), (*tensors)[i].size_bytes());
      inputs.push_back(session.input(static_cast<int>(i)));
    }
    for (size_t i = 0; i < program.outputs.size(); ++i) {
      outputs.push_back(const_cast<void*>(session.output(static_cast<int>(i))));
    }

    std::vector<double> latencies_ms;
    std::vector<std::vector<double>> launches_us(program.launches.size());
    const absl::Time end = absl::Now() + absl::Seconds(2);
    for (int64_t run = -warmup_; runs_ > 0 ? run < runs_ : run < 5 || absl::Now() < end; ++run) {
      const int64_t start = absl::GetCurrentTimeNanos();
      const absl::Status status = session.RunRaw(inputs, outputs);
      if (!status.ok()) return FailLocal(status);
      if (run >= 0) latencies_ms.push_back(static_cast<double>(absl::GetCurrentTimeNanos() - start) * 1e-6);
      if (!per_kernel_ || run < 0) continue;
      // A run of its own: reading the clock between launches is not free.
      const absl::Status timed = session.RunRaw(inputs, outputs, [&](int launch, int64_t latency_ns) {
        launches_us[launch].push_back(static_cast<double>(latency_ns) * 1e-3);
      });
      if (!timed.ok()) return FailLocal(timed);
    }
    Report(program, session.threads(), latencies_ms, launches_us);
    return kExitOk;
  }

 private:
  void Report(const Program& program, int threads, const std::vector<double>& latencies_ms,
              const std::vector<std::vector<double>>& launches_us) const {
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
    std::printf("median %.3f ms  p10 %.3f ms  p90 %.3f ms  (%zu runs, %s, %s)\n", median_ms,
                Quantile(latencies_ms, 0.1), Quantile(latencies_ms, 0.9), latencies_ms.size(),
                Plural(threads, "thread").c_str(),
                Plural(static_cast<int64_t>(program.launches.size()), "kernel").c_str());
    if (per_kernel_) {
      std::fputs(Table({"LAUNCH", "KERNEL", "µs", "SHARE", "GFLOP/s", "GB/s", "WHAT"}, rows).c_str(), stdout);
    }
  }

  std::string bundle_, format_ = "table";
  InputFlags inputs_{{}, /*seed=*/0, /*int_max=*/1};
  int64_t threads_ = 0, runs_ = 0, warmup_ = 3;
  bool per_kernel_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeBenchVerb() { return std::make_unique<BenchVerb>(); }

}  // namespace fusion
