#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/local/tensor_files.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"
#include "runtime/base/status_macros.h"
#include "runtime/loader/session.h"
#include "runtime/verdict/compare.h"
#include "runtime/verdict/judge.h"

namespace fusion {
namespace {

absl::StatusOr<std::unique_ptr<Session>> OpenSession(const std::string& path, int threads) {
  ASSIGN_OR_RETURN(std::shared_ptr<const Bundle> bundle, Bundle::Open(path));
  return Session::Create(bundle, threads);
}

// The type in which the bundle stores floats on the way: halves and tf32 both have mantissas of 10 bits.
DType StoredType(const Manifest& manifest) {
  return manifest.options.count("precision") > 0 ? DType::kF16 : DType::kF32;
}

std::vector<Tensor> Select(const std::vector<Tensor>& tensors, const std::vector<size_t>& which) {
  std::vector<Tensor> selected;
  for (const size_t i : which) selected.push_back(tensors[i]);
  return selected;
}

// One entry for each output of the manifest.
struct Account {
  std::vector<Comparison> outputs;
  std::vector<Shape> shapes;
  std::vector<int64_t> moved_rows;
  std::vector<std::optional<double>> sensitivity;

  bool Any(Verdict verdict) const {
    return std::any_of(outputs.begin(), outputs.end(), [&](const Comparison& c) { return c.verdict == verdict; });
  }
};

class VerifyVerb : public Verb {
 public:
  std::string name() const override { return "verify"; }
  std::string help() const override {
    return "compare a bundle with the unfused, strict form of its model, or with any other runtime's outputs";
  }
  std::vector<Option> Options() override {
    return {
        {"BUNDLE", "the .fusion file", &bundle_, true},
        {"--model", "its .onnx file: the server compiles the reference (--planner none --math strict)", &model_},
        {"--reference", "a bundle to compare with, instead of --model", &reference_},
        {"--expect", "NAME=FILE.npy: an output that another runtime computed from the same --input files; repeat",
         &expect_},
        {"--input", "NAME=FILE.npy or NAME=FILE.pb", &inputs_.files},
        {"--random", "seed of the inputs that no file gives", &inputs_.seed},
        {"--int-max", "largest random integer (indices and masks must stay valid)", &inputs_.int_max},
        {"--dim", "of a bundle's specialisations, for inputs that no file gives: seq=32", &inputs_.dims},
        {"--absolute", "a difference up to this is none: 1e-7 for runtimes whose sigmoids end in zeros", &absolute_},
        {"--allow-not-compared", "exit with 0 although outputs could not be compared", &allow_not_compared_},
        {"--threads", "0: all cores", &threads_},
        OutputOption(&format_)};
  }

  int Run(const CommonOptions& common) override {
    if ((model_.empty() ? 0 : 1) + (reference_.empty() ? 0 : 1) + (expect_.empty() ? 0 : 1) != 1) {
      return Fail(UsageError("give one of --model, --reference and --expect"));
    }
    auto bundle = Bundle::Open(bundle_);
    if (!bundle.ok()) return FailLocal(bundle.status());
    const Manifest manifest = (*bundle)->manifest();
    slack_.stored = StoredType(manifest);
    if (!absl::SimpleAtod(absolute_, &slack_.absolute) || !(slack_.absolute >= 0)) {
      return Fail(UsageError(absl::StrCat("--absolute takes a number of at least 0, not '", absolute_, "'")));
    }
    auto inputs = AssembleInputs(manifest, inputs_);
    if (!inputs.ok()) return FailLocal(inputs.status());

    if (!expect_.empty()) {
      auto account = CompareWithFiles(manifest, *inputs);
      return account.ok() ? Report(manifest, *account) : FailLocal(account.status());
    }

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
    auto account = CompareWithBundle(manifest, *inputs, reference);
    return account.ok() ? Report(manifest, *account) : FailLocal(account.status());
  }

 private:
  // Compiles the reference for the shapes of this run.
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
    auto connection = Connection::Open(common.endpoint);
    ASSIGN_OR_RETURN(v1::SubmitRequest request, PrepareSubmission(*connection, model_, flags, progress));
    ASSIGN_OR_RETURN(Compilation compilation, CompileRemotely(*connection, request, progress));
    return DownloadBundle(*connection, compilation.last.bundle(), path, progress);
  }

  absl::StatusOr<Account> CompareWithBundle(const Manifest& manifest, const std::vector<Tensor>& inputs,
                                            const std::string& path) {
    std::vector<Tensor> actual;
    {  // holds only one model in memory at a time
      ASSIGN_OR_RETURN(const auto session, OpenSession(bundle_, static_cast<int>(threads_)));
      ASSIGN_OR_RETURN(actual, session->Run(inputs));
    }
    const auto session = OpenSession(path, static_cast<int>(threads_));
    RETURN_IF_ERROR(Annotate(session.status(), "reference"));
    auto expected = (*session)->Run(inputs);
    RETURN_IF_ERROR(Annotate(expected.status(), "reference"));
    std::vector<size_t> all(manifest.outputs.size());
    std::iota(all.begin(), all.end(), size_t{0});
    if (expected->size() != all.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the bundle has ", all.size(), " outputs, the reference ", expected->size()));
    }
    return Judge(manifest, inputs, actual, all, *expected, **session, MadeByRun::kReference);
  }

  absl::StatusOr<Account> CompareWithFiles(const Manifest& manifest, const std::vector<Tensor>& inputs) {
    ASSIGN_OR_RETURN(auto read, ReadNamedTensors(manifest.outputs, expect_, "--expect"));
    std::vector<size_t> named;
    std::vector<Tensor> expected;
    for (size_t i = 0; i < manifest.outputs.size(); ++i) {
      const auto found = read.find(manifest.outputs[i].name);
      if (found == read.end()) continue;
      named.push_back(i);
      expected.push_back(found->second);
    }
    ASSIGN_OR_RETURN(const auto session, OpenSession(bundle_, static_cast<int>(threads_)));
    ASSIGN_OR_RETURN(const std::vector<Tensor> actual, session->Run(inputs));
    return Judge(manifest, inputs, actual, named, expected, *session, MadeByRun::kActual);
  }

  // `expected` is parallel to `named`, which are outputs of the manifest. `session` runs the reference or, where that
  // cannot run, the bundle.
  absl::StatusOr<Account> Judge(const Manifest& manifest, const std::vector<Tensor>& inputs,
                                const std::vector<Tensor>& actual, const std::vector<size_t>& named,
                                const std::vector<Tensor>& expected, Session& session, MadeByRun made_by_run) const {
    const ModelRun run = [&](const std::vector<Tensor>& nudged) -> absl::StatusOr<std::vector<Tensor>> {
      ASSIGN_OR_RETURN(const std::vector<Tensor> outputs, session.Run(nudged));
      return Select(outputs, named);
    };
    for (size_t k = 0; k < named.size(); ++k) {
      const Binding& output = manifest.outputs[named[k]];
      if (expected[k].dtype() == output.dtype) continue;
      return absl::InvalidArgumentError(absl::StrCat("output '", output.name, "' is ", DTypeName(output.dtype),
                                                     ", the reference's ", DTypeName(expected[k].dtype())));
    }
    ASSIGN_OR_RETURN(Judgement judgement,
                     JudgeOutputs(inputs, Select(actual, named), expected, run, made_by_run, slack_));
    Account account;
    Comparison unnamed;
    unnamed.verdict = Verdict::kNotCompared;
    unnamed.why = "no --expect names it";
    account.outputs.assign(actual.size(), unnamed);
    account.moved_rows.resize(actual.size());
    account.sensitivity.resize(actual.size());
    for (const Tensor& tensor : actual) account.shapes.push_back(tensor.shape());
    for (size_t k = 0; k < named.size(); ++k) {
      account.outputs[named[k]] = std::move(judgement.outputs[k]);
      account.moved_rows[named[k]] = judgement.moved_rows[k];
      if (!judgement.movements.empty()) account.sensitivity[named[k]] = judgement.movements[k].most();
    }
    return account;
  }

  int Report(const Manifest& manifest, const Account& account) {
    const bool wrong = account.Any(Verdict::kWrong), left_out = account.Any(Verdict::kNotCompared);
    const bool ok = !wrong && (!left_out || allow_not_compared_);
    if (format_ == "json") {
      PrintJson(manifest, account, ok);
    } else {
      PrintTable(manifest, account, wrong, left_out);
    }
    return ok ? kExitOk : kExitVerificationFailed;
  }

  std::string InputsInWords() const { return inputs_.files.empty() ? "random" : absl::StrJoin(inputs_.files, " "); }

  // The largest figures of all outputs.
  static Comparison Worst(const Account& account) {
    Comparison worst;
    for (const Comparison& compared : account.outputs) {
      worst.max_abs_err = std::max(worst.max_abs_err, compared.max_abs_err);
      worst.max_rel_err = std::max(worst.max_rel_err, compared.max_rel_err);
      worst.tolerance = std::max(worst.tolerance, compared.tolerance);
    }
    return worst;
  }

  static double MostSensitive(const Account& account) {
    double most = 0;
    for (const std::optional<double>& sensitivity : account.sensitivity) most = std::max(most, sensitivity.value_or(0));
    return most;
  }

  void PrintJson(const Manifest& manifest, const Account& account, bool ok) const {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (size_t i = 0; i < account.outputs.size(); ++i) {
      const Comparison& compared = account.outputs[i];
      list.push_back({{"name", manifest.outputs[i].name},
                      {"verdict", VerdictInWords(compared.verdict)},
                      {"why", compared.why},
                      {"shape", account.shapes[i]},
                      {"max_abs_err", compared.max_abs_err},
                      {"max_rel_err", compared.max_rel_err},
                      {"tolerance", compared.tolerance},
                      {"max_ulps", compared.max_ulps},
                      {"p999_ulps", compared.p999_ulps},
                      {"special_mismatches", compared.special_mismatches},
                      {"special_matches", compared.special_matches},
                      {"ok", compared.ok()}});
      if (compared.worst >= 0) {
        list.back()["worst"] = {{"index", IndexOf(compared.worst, account.shapes[i])},
                                {"actual", compared.worst_actual},
                                {"reference", compared.worst_reference}};
      }
      if (account.sensitivity[i].has_value()) list.back()["sensitivity"] = *account.sensitivity[i];
      if (account.moved_rows[i] > 0) list.back()["moved_rows"] = account.moved_rows[i];
    }
    const Comparison worst = Worst(account);
    const nlohmann::ordered_json report = {{"ok", ok},
                                           {"max_abs_err", worst.max_abs_err},
                                           {"max_rel_err", worst.max_rel_err},
                                           {"tolerance", worst.tolerance},
                                           {"sensitivity", MostSensitive(account)},
                                           {"inputs", InputsInWords()},
                                           {"seed", inputs_.seed},
                                           {"int_max", inputs_.int_max},
                                           {"absolute", slack_.absolute},
                                           {"outputs", list}};
    std::printf("%s\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  }

  static const char* VerdictInWords(Verdict verdict) {
    return verdict == Verdict::kOk ? "ok" : verdict == Verdict::kWrong ? "wrong" : "not compared";
  }

  static std::string UlpsInWords(uint64_t ulps) {
    return CountInWords(static_cast<int64_t>(std::min<uint64_t>(ulps, std::numeric_limits<int64_t>::max())));
  }

  void PrintTable(const Manifest& manifest, const Account& account, bool wrong, bool left_out) const {
    std::vector<std::vector<std::string>> rows;
    for (size_t i = 0; i < account.outputs.size(); ++i) {
      const Comparison& compared = account.outputs[i];
      const Binding& output = manifest.outputs[i];
      rows.push_back({compared.verdict == Verdict::kWrong ? "WRONG" : VerdictInWords(compared.verdict), output.name,
                      absl::StrCat(DTypeName(output.dtype), ShapeToString(account.shapes[i])),
                      absl::StrFormat("%.3g", compared.max_abs_err), absl::StrFormat("%.3g", compared.max_rel_err),
                      absl::StrFormat("%.3g", compared.tolerance),
                      IsFloat(output.dtype) ? UlpsInWords(compared.max_ulps) : "-",
                      IsFloat(output.dtype) ? UlpsInWords(compared.p999_ulps) : "-",
                      compared.worst < 0 ? "-" : ShapeToString(IndexOf(compared.worst, account.shapes[i])),
                      absl::StrCat(compared.special_mismatches)});
    }
    std::fputs(
        Table({"", "OUTPUT", "TYPE", "MAX ABS", "MAX REL", "TOLERANCE", "MAX ULP", "99.9% ULP", "WORST AT", "NAN/INF"},
              rows)
            .c_str(),
        stdout);
    const Comparison worst = Worst(account);
    std::printf("%s: max relative error %.3g %s %.3g on %s inputs (seed %lld, integers up to %lld)\n",
                wrong      ? "NOT VERIFIED"
                : left_out ? "NOT COMPARED THROUGHOUT"
                           : "verified",
                worst.max_rel_err, wrong || left_out ? "against" : "≤", worst.tolerance, InputsInWords().c_str(),
                static_cast<long long>(inputs_.seed), static_cast<long long>(inputs_.int_max));
    for (size_t i = 0; i < account.outputs.size(); ++i) {
      const Comparison& compared = account.outputs[i];
      const char* name = manifest.outputs[i].name.c_str();
      if (compared.verdict == Verdict::kWrong && compared.worst >= 0) {
        std::printf("'%s' at %s is %.9g, the reference has %.9g\n", name,
                    ShapeToString(IndexOf(compared.worst, account.shapes[i])).c_str(), compared.worst_actual,
                    compared.worst_reference);
      }
      if (!compared.why.empty()) {
        std::printf("'%s' is %s: %s\n", name, VerdictInWords(compared.verdict), compared.why.c_str());
      }
      if (compared.special_matches > 0) {
        std::printf("'%s' has %s that are NaN or infinite on both sides\n", name,
                    Plural(compared.special_matches, "element").c_str());
      }
    }
    if (left_out && !wrong) {
      std::printf("%s\n", allow_not_compared_ ? "accepted: --allow-not-compared"
                                              : "--allow-not-compared accepts outputs that were not compared");
    }
    int64_t moved = 0;
    for (const int64_t rows_moved : account.moved_rows) moved = std::max(moved, rows_moved);
    if (moved > 0) {
      std::printf("%s in another order than the reference's, by places whose scores tie\n",
                  Plural(moved, "row").c_str());
    }
    const double sensitivity = MostSensitive(account);
    if (sensitivity > 0) {
      std::printf("%s outputs move by %.3g when the inputs move by one unit in the last place%s\n",
                  expect_.empty() ? "the reference's own" : "the bundle's own", sensitivity,
                  sensitivity >= kMostTolerance ? ": rounding decides them" : "");
    }
  }

  std::string bundle_, model_, reference_, format_ = "table", absolute_ = "0";
  Slack slack_;
  std::vector<std::string> expect_;
  bool allow_not_compared_ = false;
  InputFlags inputs_{{}, /*seed=*/1, /*int_max=*/1};
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Verb> MakeVerifyVerb() { return std::make_unique<VerifyVerb>(); }

}  // namespace fusion
