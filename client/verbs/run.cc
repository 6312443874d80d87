#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/local/tensor_files.h"
#include "client/verbs/verbs.h"
#include "runtime/base/npy.h"
#include "runtime/loader/session.h"

namespace fusion {
namespace {

struct Range {
  double min = std::numeric_limits<double>::infinity(), max = -min, mean = 0;
};

Range RangeOf(const Tensor& tensor) {
  Range range;
  const int64_t n = tensor.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const double value = IsFloat(tensor.dtype()) ? tensor.GetDouble(i) : static_cast<double>(tensor.GetInt(i));
    range.min = std::min(range.min, value);
    range.max = std::max(range.max, value);
    range.mean += value / static_cast<double>(n);
  }
  return range;
}

class RunVerb : public Verb {
 public:
  std::string name() const override { return "run"; }
  std::string help() const override { return "run a bundle on this machine (no server needed)"; }
  bool UsesServer() const override { return false; }
  std::vector<Option> Options() override {
    return {{"BUNDLE", "the .fusion file", &bundle_, true},
            {"--input", "NAME=FILE.npy or NAME=FILE.pb; repeat for several inputs", &inputs_.files},
            {"--random", "fill the other inputs with random values from this seed", &seed_},
            {"--int-max", "largest random integer (indices and masks must stay valid)", &inputs_.int_max},
            {"--dim", "of a bundle's specialisations, for inputs that no file gives: seq=32", &inputs_.dims},
            {"--output-dir", "write one .npy per output here", &output_dir_},
            {"--threads", "0: all cores", &threads_},
            {"--require-key", "run only what a public key of this file (PEM) has signed (bundle sign)", &keys_},
            OutputOption(&format_)};
  }

  int Run(const CommonOptions&) override {
    if (!seed_.empty()) {
      try {
        inputs_.seed = static_cast<int64_t>(std::stoull(seed_) & 0x7fffffffffffffff);
      } catch (const std::exception&) {
        return Fail(UsageError(absl::StrCat("--random '", seed_, "' is no number")));
      }
    }
    auto bundle = keys_.empty() ? Bundle::Open(bundle_) : Bundle::OpenSigned(bundle_, keys_);
    if (!keys_.empty() && absl::IsPermissionDenied(bundle.status())) {
      FailLocal(bundle.status());
      return kExitVerificationFailed;
    }
    if (!bundle.ok()) return FailLocal(bundle.status());
    auto inputs = AssembleInputs((*bundle)->manifest(), inputs_);
    if (!inputs.ok()) return FailLocal(inputs.status());
    auto session = Session::Create(*bundle, static_cast<int>(threads_));
    if (!session.ok()) return FailLocal(session.status());
    auto outputs = (*session)->Run(*inputs);
    if (!outputs.ok()) return FailLocal(outputs.status());
    return Report((*bundle)->manifest(), *outputs);
  }

 private:
  int Report(const Manifest& manifest, const std::vector<Tensor>& outputs) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    std::vector<std::vector<std::string>> rows;
    std::set<std::string> taken;
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string& name = manifest.outputs[i].name;
      std::string path;
      if (!output_dir_.empty()) {
        std::error_code error;
        std::filesystem::create_directories(output_dir_, error);
        std::string file = FileNameOf(name);
        if (!taken.insert(file).second) file += absl::StrCat("_", i);
        taken.insert(file);
        path = (std::filesystem::path(output_dir_) / (file + ".npy")).string();
        const absl::Status written = WriteNpyFile(path, outputs[i]);
        if (!written.ok()) return FailLocal(written);
      }
      const Range range = RangeOf(outputs[i]);
      nlohmann::ordered_json item = {{"name", name},
                                     {"dtype", DTypeName(outputs[i].dtype())},
                                     {"shape", outputs[i].shape()},
                                     {"min", range.min},
                                     {"max", range.max},
                                     {"mean", range.mean}};
      if (!path.empty()) item["path"] = path;
      list.push_back(item);
      rows.push_back({name, absl::StrCat(DTypeName(outputs[i].dtype()), ShapeToString(outputs[i].shape())),
                      absl::StrFormat("%.6g", range.min), absl::StrFormat("%.6g", range.max),
                      absl::StrFormat("%.6g", range.mean), path});
    }
    if (format_ == "json") {
      const nlohmann::ordered_json report = {{"outputs", list}};
      std::printf("%s\n", report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
    } else {
      std::fputs(Table({"OUTPUT", "TYPE", "MIN", "MAX", "MEAN", "FILE"}, rows).c_str(), stdout);
    }
    return kExitOk;
  }

  std::string bundle_, keys_, output_dir_, seed_, format_ = "table";
  InputFlags inputs_;
  int64_t threads_ = 0;
};

}  // namespace

std::unique_ptr<Verb> MakeRunVerb() { return std::make_unique<RunVerb>(); }

}  // namespace fusion
