#include "worker/simulated/simulated_device.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {
namespace {

// Returns a factor in [1/2, 2], distributed evenly on a logarithmic scale.
double Factor(int64_t seed, const std::string& kernel) {
  uint64_t bits = 0;
  if (!absl::SimpleHexAtoi(Sha256Hex(absl::StrCat(seed, " ", kernel)).substr(0, 8), &bits)) return 1;
  return std::exp2(2.0 * static_cast<double>(bits) / 4294967295.0 - 1.0);
}

}  // namespace

DeviceModel SimulatedDeviceModel(int64_t seed) {
  DeviceModel model;
  model.kind = kSimulatedKind;
  model.name = absl::StrCat("simulated accelerator, seed ", seed);
  model.isa = "avx2";
  model.march = "x86-64-v3";
  model.toolchain = kSimulatedToolchain;
  model.vector_bytes = 32;
  model.vector_registers = 16;
  model.memory = {{"L1", 48 << 10, 2e11, false},
                  {"L2", 1 << 20, 7e10, false},
                  {"L3", 32 << 20, 2.5e10, true},
                  {"DRAM", 0, 1e10, true}};
  return model;
}

absl::StatusOr<std::string> SimulatedBuildExecutor::Execute(const v1::Task&, const std::string& payload,
                                                            const TaskContext&) {
  v1::BuildPayload request;
  if (!request.ParseFromString(payload)) return absl::InvalidArgumentError("the payload is no BuildPayload");
  v1::BuildResult result;
  result.set_toolchain(kSimulatedToolchain);
  for (const v1::BuildUnitProto& unit : request.units()) result.add_binaries(unit.source());
  return result.SerializeAsString();
}

absl::StatusOr<v1::MeasureResult> SimulatedMeasureExecutor::Measure(const std::string& bytes, bool outputs) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<const BundleReader> bundle, BundleReader::FromBytes(bytes));
  const std::map<std::string, std::string>& options = bundle->manifest().options;
  const auto kernel = options.find("kernel");
  const auto estimate = options.find("estimate_ns");
  double estimate_ns = 0;
  if (kernel == options.end() || estimate == options.end() || !absl::SimpleAtod(estimate->second, &estimate_ns) ||
      !std::isfinite(estimate_ns) || estimate_ns <= 0) {
    return absl::InvalidArgumentError("the bundle says no kernel or no estimate_ns: it is no measurement");
  }
  const double factor = Factor(seed_, kernel->second);
  const double latency_ns = estimate_ns * factor * pace_;
  v1::MeasureResult result;
  result.add_samples_ns(latency_ns);
  result.set_min_ns(latency_ns);
  result.set_median_ns(latency_ns);
  result.set_p90_ns(latency_ns);
  if (outputs) result.add_outputs(factor);
  return result;
}

absl::StatusOr<std::string> SimulatedMeasureExecutor::Execute(const v1::Task&, const std::string& payload,
                                                              const TaskContext& context) {
  const absl::Time end = SteadyNow() + measurement_;
  v1::MeasurePayload request;
  if (!request.ParseFromString(payload)) return absl::InvalidArgumentError("the payload is no MeasurePayload");
  v1::MeasureResults results;
  if (request.has_model()) {
    std::string* not_done = request.model().verify() ? results.mutable_verification()->mutable_not_done()
                                                     : results.mutable_measurement()->mutable_not_done();
    *not_done = "a simulated device runs no model";
    return results.SerializeAsString();
  }
  if (request.has_plans()) {
    results.mutable_plans()->set_not_done("a simulated device runs no model");
    return results.SerializeAsString();
  }
  for (const v1::MeasureItem& item : request.items()) {
    ASSIGN_OR_RETURN(*results.add_results(), Measure(item.bundle(), request.canaries()));
  }
  if (!request.sentinel().empty()) {
    ASSIGN_OR_RETURN(*results.mutable_sentinel(), Measure(request.sentinel(), request.canaries()));
  }
  for (absl::Duration left = measurement_; left > absl::ZeroDuration(); left = end - SteadyNow()) {
    if (context.cancelled()) return absl::CancelledError("the measurement was cancelled");
    absl::SleepFor(std::min(left, absl::Milliseconds(10)));
  }
  return results.SerializeAsString();
}

}  // namespace fusion
