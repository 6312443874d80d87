#include "client/verbs/checks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/words.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

bool Crashed(const v1::ModelVerification& verified) {
  return !verified.not_done().empty() && verified.verdict() == v1::OUTPUT_NOT_COMPARED;
}

// The outputs with a verdict; the worker tells the worst first.
std::vector<const v1::VerifiedOutput*> With(const v1::ModelVerification& verified, v1::OutputVerdict verdict) {
  std::vector<const v1::VerifiedOutput*> outputs;
  for (const v1::VerifiedOutput& output : verified.outputs()) {
    if (output.verdict() == verdict) outputs.push_back(&output);
  }
  return outputs;
}

std::string OutputInWords(const v1::VerifiedOutput& output) {
  std::string text = absl::StrCat("'", output.name(), "'", output.program().empty() ? "" : " with ", output.program());
  if (!output.why().empty()) return absl::StrCat(text, ": ", output.why());
  return absl::StrCat(
      text, absl::StrFormat(": relative error %.3g, tolerance %.3g", output.max_rel_err(), output.tolerance()));
}

double WorstError(const v1::ModelVerification& verified) {
  double worst = 0;
  for (const v1::VerifiedOutput& output : verified.outputs()) worst = std::max(worst, output.max_rel_err());
  return worst;
}

double LargestTolerance(const v1::ModelVerification& verified) {
  double largest = 0;
  for (const v1::VerifiedOutput& output : verified.outputs()) largest = std::max(largest, output.tolerance());
  return largest;
}

Json TimesToJson(const v1::RunTimes& times) {
  return {{"median_ms", times.median_ns() * 1e-6},
          {"p25_ms", times.p25_ns() * 1e-6},
          {"p75_ms", times.p75_ns() * 1e-6},
          {"min_ms", times.min_ns() * 1e-6},
          {"runs", times.runs()},
          {"kernels", times.kernels()},
          {"estimate_ms", times.model_ns() * 1e-6}};
}

const char* VerdictInWords(v1::OutputVerdict verdict) {
  return verdict == v1::OUTPUT_OK ? "ok" : verdict == v1::OUTPUT_WRONG ? "wrong" : "not compared";
}

}  // namespace

std::string MeasurementInWords(const v1::ModelMeasurement& measured) {
  if (!measured.not_done().empty()) return absl::StrCat("no: ", measured.not_done());
  return absl::StrFormat("%s%s%s (%s–%s), unfused and untuned %s: %.2f× as fast, %.2f–%.2f in half of %s (%s)",
                         measured.simulated() ? "simulated " : "",
                         measured.program().empty() ? "" : measured.program() + " ",
                         LatencyInWords(measured.bundle().median_ns()), LatencyInWords(measured.bundle().p25_ns()),
                         LatencyInWords(measured.bundle().p75_ns()), LatencyInWords(measured.unfused().median_ns()),
                         measured.ratio(), measured.ratio_p25(), measured.ratio_p75(),
                         Plural(measured.rounds(), "round"), Plural(measured.threads(), "thread"));
}

std::string VerificationInWords(const v1::ModelVerification& verified) {
  if (!verified.not_done().empty()) return absl::StrCat("no: ", verified.not_done());
  const std::string outputs = Plural(verified.outputs_total(), "output");
  if (verified.verdict() == v1::OUTPUT_WRONG) {
    const auto wrong = With(verified, v1::OUTPUT_WRONG);
    return absl::StrCat("WRONG: ", wrong.size(), " of ", outputs, ", ",
                        wrong.empty() ? "" : OutputInWords(*wrong.front()));
  }
  if (verified.verdict() == v1::OUTPUT_NOT_COMPARED) {
    const auto left_out = With(verified, v1::OUTPUT_NOT_COMPARED);
    return absl::StrCat("not throughout: ", left_out.size(), " of ", outputs, " not compared, ",
                        left_out.empty() ? "" : OutputInWords(*left_out.front()));
  }
  std::string text = absl::StrFormat("%s, relative error %.3g ≤ %.3g of the strict reference (seed %d)", outputs,
                                     WorstError(verified), LargestTolerance(verified), verified.seed());
  for (const v1::VerifiedOutput& output : verified.outputs()) {
    if (!output.why().empty()) absl::StrAppend(&text, "; ", OutputInWords(output));
  }
  return text;
}

void PrintChecks(const v1::Checks& checks, Progress& progress) {
  if (checks.has_measurement()) {
    progress.Line("measured", MeasurementInWords(checks.measurement()), checks.measurement().seconds());
  }
  if (checks.has_verification()) {
    progress.Line("verified", VerificationInWords(checks.verification()), checks.verification().seconds());
  }
}

void AddChecks(const v1::Checks& checks, Json* report) {
  Json& measured = (*report)["measured"] = nullptr;
  if (checks.has_measurement() && !checks.measurement().not_done().empty()) {
    measured = {{"done", false}, {"why", checks.measurement().not_done()}};
  } else if (checks.has_measurement()) {
    const v1::ModelMeasurement& done = checks.measurement();
    measured = {{"done", true},
                {"bundle", TimesToJson(done.bundle())},
                {"unfused", TimesToJson(done.unfused())},
                {"ratio", done.ratio()},
                {"ratio_p25", done.ratio_p25()},
                {"ratio_p75", done.ratio_p75()},
                {"rounds", done.rounds()},
                {"threads", done.threads()},
                {"simulated", done.simulated()},
                {"program", done.program()},
                {"worker", done.worker()},
                {"device", done.device()},
                {"time_ms", done.time_ms()},
                {"seconds", done.seconds()}};
  }
  Json& verified = (*report)["verified"] = nullptr;
  if (!checks.has_verification()) return;
  const v1::ModelVerification& done = checks.verification();
  if (!done.not_done().empty()) {
    verified = {{"done", false}, {"crashed", Crashed(done)}, {"why", done.not_done()}};
    return;
  }
  Json outputs = Json::array();
  for (const v1::VerifiedOutput& output : done.outputs()) {
    outputs.push_back({{"program", output.program()},
                       {"name", output.name()},
                       {"verdict", VerdictInWords(output.verdict())},
                       {"why", output.why()},
                       {"max_abs_err", output.max_abs_err()},
                       {"max_rel_err", output.max_rel_err()},
                       {"tolerance", output.tolerance()}});
  }
  verified = {{"done", true},
              {"verdict", VerdictInWords(done.verdict())},
              {"outputs_total", done.outputs_total()},
              {"outputs", outputs},
              {"seed", done.seed()},
              {"int_max", done.integer_limit() - 1},
              {"worker", done.worker()},
              {"device", done.device()},
              {"time_ms", done.time_ms()},
              {"seconds", done.seconds()}};
}

ExitCode JudgeChecks(const v1::Checks& checks) {
  const v1::ModelVerification& verified = checks.verification();
  if (Crashed(verified)) {
    std::fprintf(stderr, "fusionctl: NOT VERIFIED: running the bundle or its strict reference failed: %s\n",
                 Printable(verified.not_done()).c_str());
    return kExitVerificationFailed;
  }
  if (verified.verdict() != v1::OUTPUT_WRONG) return kExitOk;
  std::fprintf(stderr, "fusionctl: NOT VERIFIED: the bundle computes other numbers than its strict reference\n");
  for (const v1::VerifiedOutput* output : With(verified, v1::OUTPUT_WRONG)) {
    std::fprintf(stderr, "fusionctl:   %s\n", Printable(OutputInWords(*output)).c_str());
  }
  std::fprintf(stderr, "fusionctl: `fusionctl verify BUNDLE --model MODEL` compares them again on this machine\n");
  return kExitVerificationFailed;
}

}  // namespace fusion
