#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/local/compare.h"
#include "client/local/sensitivity.h"
#include "client/local/tensor_files.h"
#include "client/local/tied_rows.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/session.h"

namespace fusion {
namespace {

absl::StatusOr<std::unique_ptr<Session>> OpenSession(const std::string& path, int threads) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Bundle> bundle, Bundle::Open(path));
  return Session::Create(bundle, threads);
}

struct Verdict {
  std::vector<Comparison> outputs;
  std::vector<Shape> shapes;        // parallel
  std::vector<double> sensitivity;  // parallel; empty where it was not needed
  std::vector<int64_t> moved_rows;  // parallel; empty where none did
};

bool AllOk(const Verdict& verdict) {
  return std::all_of(verdict.outputs.begin(), verdict.outputs.end(), [](const Comparison& c) { return c.ok; });
}

// A difference beyond the tolerance counts only if the model determines its outputs better than that.
absl::StatusOr<Verdict> Judge(const Manifest& manifest, const std::vector<Tensor>& inputs,
                              const std::vector<Tensor>& actual, const std::vector<Tensor>& expected,
                              const ModelRun& reference) {
  if (actual.size() != expected.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the bundle has ", actual.size(), " outputs, the reference ", expected.size()));
  }
  Verdict verdict;
  const auto precision = manifest.options.find("precision");
  // Halves and tf32 have mantissas of 10 bits.
  const DType stored = precision != manifest.options.end() ? DType::kF16 : DType::kF32;
  for (size_t i = 0; i < actual.size(); ++i) {
    auto compared = CompareTensors(actual[i], expected[i], stored);
    RETURN_IF_ERROR(Annotate(compared.status(), absl::StrCat("output '", manifest.outputs[i].name, "'")));
    verdict.outputs.push_back(*compared);
    verdict.shapes.push_back(actual[i].shape());
  }
  if (AllOk(verdict)) return verdict;
  if (const auto reordered = ReorderTiedRows(actual, expected, verdict.outputs); reordered.has_value()) {
    for (size_t i = 0; i < actual.size(); ++i) {
      ASSIGN_OR_RETURN(verdict.outputs[i], CompareTensors(reordered->actual[i], expected[i], stored));
    }
    verdict.moved_rows = reordered->moved_rows;
  }
  if (AllOk(verdict)) return verdict;
  ASSIGN_OR_RETURN(verdict.sensitivity, Sensitivity(reference, inputs, expected));
  for (size_t i = 0; i < actual.size(); ++i) Allow(verdict.sensitivity[i], &verdict.outputs[i]);
  return verdict;
}

class VerifyVerb : public Verb {
 public:
  std::string name() const override { return "verify"; }
  std::string help() const override { return "compare a bundle with the unfused, strict form of its model"; }
  std::vector<Option> Options() override {
    return {{"BUNDLE", "the .fusion file", &bundle_, true},
            {"--model", "its .onnx file: the server compiles the reference (--planner none --math strict)", &model_},
            {"--reference", "a bundle to compare with, instead of --model", &reference_},
            {"--input", "NAME=FILE.npy or NAME=FILE.pb", &inputs_.files},
            {"--random", "seed of the inputs that no file gives", &inputs_.seed},
            {"--int-max", "largest random integer (indices and masks must stay valid)", &inputs_.int_max},
            {"--dim", "of a bundle's specialisations, for inputs that no file gives: seq=32", &inputs_.dims},
            {"--threads", "0: all cores", &threads_},
            OutputOption(&format_)};
  }

  int Run(const CommonOptions& common) override {
    if (model_.empty() == reference_.empty()) return Fail(UsageError("give one of --model and --reference"));
    auto bundle = Bundle::Open(bundle_);
    if (!bundle.ok()) return FailLocal(bundle.status());
    const Manifest manifest = (*bundle)->manifest();
    auto inputs = AssembleInputs(manifest, inputs_);
    if (!inputs.ok()) return FailLocal(inputs.status());

    std::string folder;
    auto remove_folder = absl::MakeCleanup([&] {
      std::error_code ignored;
      if (!folder.empty()) std::filesystem::remove_all(folder, ignored);
    });
    std::string reference = reference_;
    if (reference.empty()) {
      folder = (std::filesystem::temp_directory_path() / "fusion-verify-XXXXXX").string();
      if (mkdtemp(folder.data()) == nullptr) return FailLocal(absl::InternalError("cannot make a temporary folder"));
      reference = folder + "/reference.fusion";
      const absl::Status compiled = CompileReference(common, manifest, *inputs, reference);
      if (!compiled.ok()) return Fail(compiled);
    }
    auto verdict = Compare(manifest, *inputs, reference);
    if (!verdict.ok()) return FailLocal(verdict.status());
    return Report(manifest, *verdict);
  }

 private:
  // Bound to the shapes of this run.
  absl::Status CompileReference(const CommonOptions& common, const Manifest& manifest,
                                const std::vector<Tensor>& inputs, const std::string& path) {
    CompilationFlags flags;
    flags.target = manifest.target;
    flags.planner = "none";
    flags.tune = "off";
    flags.math = "strict";
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& shape = inputs[i].shape();
      flags.shapes.push_back(
          absl::StrCat(manifest.inputs[i].name, "=", shape.empty() ? "scalar" : absl::StrJoin(shape, "x")));
    }
    Progress progress(common.progress);
    auto connection = Connection::Open(common.server);
    ASSIGN_OR_RETURN(v1::SubmitRequest request, PrepareSubmission(*connection, model_, flags, progress));
    ASSIGN_OR_RETURN(Compilation compilation, CompileRemotely(*connection, request, progress));
    return DownloadBundle(*connection, compilation.last.bundle(), path, progress);
  }

  absl::StatusOr<Verdict> Compare(const Manifest& manifest, const std::vector<Tensor>& inputs,
                                  const std::string& reference) {
    std::vector<Tensor> actual;
    {  // one model's memory at a time
      ASSIGN_OR_RETURN(const auto session, OpenSession(bundle_, static_cast<int>(threads_)));
      ASSIGN_OR_RETURN(actual, session->Run(inputs));
    }
    const auto session = OpenSession(reference, static_cast<int>(threads_));
    RETURN_IF_ERROR(Annotate(session.status(), "reference"));
    const auto expected = (*session)->Run(inputs);
    RETURN_IF_ERROR(Annotate(expected.status(), "reference"));
    return Judge(manifest, inputs, actual, *expected,
                 [&](const std::vector<Tensor>& nudged) { return (*session)->Run(nudged); });
  }

  int Report(const Manifest& manifest, const Verdict& verdict) {
    Comparison worst;
    worst.ok = AllOk(verdict);
    double sensitivity = 0;
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < verdict.outputs.size(); ++i) {
      const Binding& output = manifest.outputs[i];
      const Comparison& compared = verdict.outputs[i];
      list.push_back({{"name", output.name},
                      {"max_abs_err", compared.max_abs_err},
                      {"max_rel_err", compared.max_rel_err},
                      {"tolerance", compared.tolerance},
                      {"special_mismatches", compared.special_mismatches},
                      {"only_nan", compared.only_nan},
                      {"ok", compared.ok}});
      if (!verdict.sensitivity.empty()) {
        list.back()["sensitivity"] = verdict.sensitivity[i];
        sensitivity = std::max(sensitivity, verdict.sensitivity[i]);
      }
      if (!verdict.moved_rows.empty()) list.back()["moved_rows"] = verdict.moved_rows[i];
      rows.push_back({compared.ok ? "ok" : "WRONG", output.name,
                      absl::StrCat(DTypeName(output.dtype), ShapeToString(verdict.shapes[i])),
                      absl::StrFormat("%.3g", compared.max_abs_err), absl::StrFormat("%.3g", compared.max_rel_err),
                      absl::StrFormat("%.3g", compared.tolerance), absl::StrCat(compared.special_mismatches)});
      worst.max_abs_err = std::max(worst.max_abs_err, compared.max_abs_err);
      worst.max_rel_err = std::max(worst.max_rel_err, compared.max_rel_err);
      worst.tolerance = std::max(worst.tolerance, compared.tolerance);
    }
    const std::string given = inputs_.files.empty() ? "random" : absl::StrJoin(inputs_.files, " ");
    if (format_ == "json") {
      const nlohmann::ordered_json report = {{"ok", worst.ok},
                                             {"max_abs_err", worst.max_abs_err},
                                             {"max_rel_err", worst.max_rel_err},
                                             {"tolerance", worst.tolerance},
                                             {"sensitivity", sensitivity},
                                             {"inputs", given},
                                             {"seed", inputs_.seed},
                                             {"int_max", inputs_.int_max},
                                             {"outputs", list}};
      std::printf("%s\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    } else {
      std::fputs(Table({"", "OUTPUT", "TYPE", "MAX ABS", "MAX REL", "TOLERANCE", "NAN/INF"}, rows).c_str(), stdout);
      std::printf("%s: max relative error %.3g %s %.3g on %s inputs (seed %lld, integers up to %lld)\n",
                  worst.ok ? "verified" : "NOT VERIFIED", worst.max_rel_err, worst.ok ? "≤" : "against",
                  worst.tolerance, given.c_str(), static_cast<long long>(inputs_.seed),
                  static_cast<long long>(inputs_.int_max));
      if (!verdict.moved_rows.empty()) {
        std::printf("%s in another order than the reference's, by places whose scores tie\n",
                    Plural(*std::max_element(verdict.moved_rows.begin(), verdict.moved_rows.end()), "row").c_str());
      }
      for (size_t i = 0; i < verdict.outputs.size(); ++i) {
        if (!verdict.outputs[i].only_nan) continue;
        std::printf(
            "'%s' is NaN throughout, in the reference too, which verifies nothing: give inputs that the model is "
            "meant for (--input NAME=FILE), or smaller random integers (--int-max)\n",
            manifest.outputs[i].name.c_str());
      }
      if (!verdict.sensitivity.empty()) {
        std::printf("the reference's own outputs move by %.3g when its inputs move by one unit in the last place%s\n",
                    sensitivity, sensitivity >= kMostTolerance ? ": rounding decides them" : "");
      }
    }
    return worst.ok ? kExitOk : kExitVerificationFailed;
  }

  std::string bundle_, model_, reference_, format_ = "table";
  InputFlags inputs_{{}, /*seed=*/1, /*int_max=*/1};
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Verb> MakeVerifyVerb() { return std::make_unique<VerifyVerb>(); }

}  // namespace fusion
