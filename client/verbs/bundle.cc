#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/verbs/repeated_weights.h"
#include "client/verbs/submission.h"
#include "client/verbs/verbs.h"
#include "runtime/bundle/bundle_reader.h"

namespace fusion {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class BundleGetVerb : public Verb {
 public:
  std::string name() const override { return "bundle get"; }
  std::string help() const override { return "fetch the bundle of a finished job, or what there is of a running one"; }
  std::vector<Option> Options() override {
    return {{"JOB", "its name", &job_, true},
            {"-o,--output", "where to (default: JOB.fusion)", &output_},
            {"--best", "the best that is there now: the job's bundle, else its early one (submit --async)", &best_},
            {"--early", "the early, unfused bundle, also when there is a better one", &early_}};
  }
  int Run(const CommonOptions& common) override {
    if (best_ && early_) return Fail(UsageError("--best and --early: name one of them"));
    auto connection = Connection::Open(common.endpoint);
    auto job = connection->GetJob(job_);
    if (!job.ok()) return Fail(job.status());
    const bool early = early_ || (best_ && job->state() != v1::SUCCEEDED);
    if (const absl::Status there = IsThere(*job, early); !there.ok()) return Fail(there);
    const v1::BundleInfo& bundle = early ? job->early_bundle() : job->bundle();
    if (output_.empty()) output_ = job_ + ".fusion";
    Progress progress(common.progress);
    const absl::Status fetched = FetchBundle(*connection, job_, bundle, early, output_, progress);
    if (!fetched.ok()) return FailLocal(fetched);
    PrintFetched(output_, bundle, early ? "early: unfused" : "");
    return kExitOk;
  }

 private:
  static absl::Status IsThere(const v1::Job& job, bool early) {
    const std::string& id = job.job_id();
    if (early && !job.has_early_bundle()) {
      return absl::NotFoundError(absl::StrCat("job ", id, " has no early bundle",
                                              IsFinal(job.state()) ? "" : " yet; `fusionctl job watch` follows it"));
    }
    if (early || job.state() == v1::SUCCEEDED) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("job ", id, " has no bundle: it has not succeeded",
                                            job.has_early_bundle() ? "; --best fetches its early one" : ""));
  }

  std::string job_, output_;
  bool best_ = false, early_ = false;
};

std::string WeightsInWords(const BundleReader& bundle) {
  std::string words = BytesInWords(static_cast<int64_t>(bundle.weights().size()));
  const std::optional<WeightsAccount>& weights = bundle.manifest().weights;
  if (!weights) return words;
  if (weights->model_bytes > 0) {
    absl::StrAppend(&words, " for ", BytesInWords(weights->model_bytes), " of the model, ",
                    absl::StrFormat("%.2f times", weights->ratio()));
  }
  if (weights->time_ratio > 0) {
    absl::StrAppend(&words, absl::StrFormat("; kept small at %.2f of the estimated time", weights->time_ratio));
  }
  return words;
}

std::string KernelsInWords(const ManifestProgram& program) {
  std::string words = absl::StrCat(program.kernels.size(), " built, ", program.launches.size(), " launches");
  if (program.repeats.empty()) return words;
  int64_t runs = 0;
  for (size_t l = 0; l < program.launches.size(); ++l) runs += program.TripsOf(static_cast<int>(l));
  const auto loops = [](std::ptrdiff_t count) { return absl::StrCat(count, count == 1 ? " loop" : " loops"); };
  const std::ptrdiff_t inside = std::count_if(program.repeats.begin(), program.repeats.end(),
                                              [](const Repeat& repeat) { return repeat.in_launch; });
  const std::ptrdiff_t outside = std::ssize(program.repeats) - inside;
  if (outside > 0) absl::StrAppend(&words, ", which are ", runs, " with the iterations of ", loops(outside));
  if (inside > 0) absl::StrAppend(&words, outside > 0 ? "; " : ", ", loops(inside), " inside of a launch");
  return words;
}

// Returns what the bundle says of a program for the whole model; nothing if it has kernels.
Rows ProgramFacts(const Manifest& manifest) {
  Rows rows;
  for (const char* fact : {"machine", "program", "simulated"}) {
    const auto found = manifest.options.find(fact);
    if (found != manifest.options.end()) rows.push_back({fact, found->second});
  }
  return rows;
}

void PrintBundle(const BundleReader& bundle) {
  const Manifest& manifest = bundle.manifest();
  Rows facts = {{"model", manifest.model_name},
                {"target", absl::StrCat(manifest.target, " ", manifest.isa)},
                {"made by", manifest.generator},
                {"kernels", KernelsInWords(manifest)},
                {"arena", BytesInWords(manifest.arena_bytes)},
                {"scratch", BytesInWords(manifest.scratch_bytes_per_thread) + " a thread"},
                {"weights", WeightsInWords(bundle)}};
  for (const std::vector<std::string>& fact : ProgramFacts(manifest)) facts.push_back(fact);
  std::fputs(Table({}, facts).c_str(), stdout);
  Rows rows;
  if (manifest.weights && !manifest.weights->causes.empty()) {
    for (const auto& [cause, bytes] : manifest.weights->causes) {
      rows.push_back({WeightCauseInWords(cause), (bytes < 0 ? "-" : "+") + BytesInWords(std::abs(bytes))});
    }
    std::printf("\n%s", Table({"WEIGHTS BEYOND THE MODEL'S", "SIZE"}, rows).c_str());
    if (!manifest.weights->repeated.empty()) {
      std::printf("\n%s", RepeatedWeightsTable(manifest.weights->repeated).c_str());
    }
    rows.clear();
  }
  if (!manifest.others.empty()) {
    for (size_t p = 0; p < manifest.program_count(); ++p) {
      const ManifestProgram& program = manifest.program(p);
      rows.push_back({ProgramName(program), absl::StrCat(program.launches.size()), BytesInWords(program.arena_bytes),
                      absl::StrJoin(program.inputs, ", ", [](std::string* out, const Binding& input) {
                        absl::StrAppend(out, input.name, ShapeToString(input.shape));
                      })});
    }
    std::printf("\n%s", Table({"SPECIALISATION", "LAUNCHES", "ARENA", "INPUTS"}, rows).c_str());
    std::printf("what follows is of %s; all: -o json\n", DimsInWords(manifest.dims).c_str());
    rows.clear();
  }
  for (const auto* bindings : {&manifest.inputs, &manifest.outputs}) {
    for (const Binding& binding : *bindings) {
      rows.push_back({bindings == &manifest.inputs ? "input" : "output", binding.name,
                      absl::StrCat(DTypeName(binding.dtype), ShapeToString(binding.shape))});
    }
  }
  std::printf("\n%s", Table({"KIND", "NAME", "TYPE"}, rows).c_str());

  rows.clear();
  double flops = 0;
  for (size_t i = 0; i < manifest.launches.size(); ++i) {
    const Launch& launch = manifest.launches[i];
    flops += launch.flops;
    int64_t tasks = 0;
    for (const Phase& phase : manifest.kernels[launch.kernel].phases) tasks = std::max(tasks, phase.tasks);
    rows.push_back({absl::StrCat(i), absl::StrCat("k", launch.kernel), absl::StrCat(tasks),
                    absl::StrFormat("%.2f", launch.flops * 1e-6), BytesInWords(launch.bytes),
                    absl::StrCat(launch.nodes.size()), launch.label});
  }
  std::printf("\n%s", Table({"LAUNCH", "KERNEL", "TASKS", "MFLOP", "MOVES", "NODES", "WHAT"}, rows).c_str());
  std::printf("total %.3f GFLOP\n", flops * 1e-9);

  // The memory plan: the place of each intermediate, and its first and last launch.
  std::vector<std::pair<int, int>> used(manifest.buffers.size(), {-1, -1});
  for (size_t i = 0; i < manifest.launches.size(); ++i) {
    for (int buffer : manifest.launches[i].buffers) {
      if (used[buffer].first < 0) used[buffer].first = static_cast<int>(i);
      used[buffer].second = static_cast<int>(i);
    }
  }
  rows.clear();
  int64_t without_reuse = 0;
  for (size_t b = 0; b < manifest.buffers.size(); ++b) {
    const Buffer& buffer = manifest.buffers[b];
    if (buffer.kind != Buffer::Kind::kArena) continue;
    without_reuse += buffer.size_bytes;
    rows.push_back({absl::StrCat(buffer.offset), absl::StrCat(buffer.size_bytes),
                    absl::StrCat(used[b].first, "–", used[b].second),
                    absl::StrCat(DTypeName(buffer.dtype), ShapeToString(buffer.shape)), buffer.layout, buffer.name});
  }
  std::printf("\n%s", Table({"OFFSET", "BYTES", "LAUNCHES", "TYPE", "LAYOUT", "VALUE"}, rows).c_str());
  std::printf("arena %s for %s of intermediates\n", BytesInWords(manifest.arena_bytes).c_str(),
              BytesInWords(without_reuse).c_str());

  rows.clear();
  for (const auto& [name, size] : bundle.EntrySizes()) rows.push_back({name, BytesInWords(size)});
  std::printf("\n%s", Table({"ENTRY", "SIZE"}, rows).c_str());
}

class BundleInspectVerb : public Verb {
 public:
  std::string name() const override { return "bundle inspect"; }
  std::string help() const override { return "what a bundle holds: inputs, launches, memory plan"; }
  bool UsesServer() const override { return false; }
  std::vector<Option> Options() override {
    return {{"BUNDLE", "the .fusion file", &path_, true},
            {"--entry", "print this entry of the bundle instead (plan.json, src/k0.cc, …)", &entry_},
            OutputOption(&format_)};
  }
  int Run(const CommonOptions&) override {
    auto bundle = BundleReader::Open(path_);
    if (!bundle.ok()) return FailLocal(bundle.status());
    if (!entry_.empty()) {
      auto bytes = (*bundle)->Entry(entry_);
      if (!bytes.ok()) return FailLocal(bytes.status());
      std::fwrite(bytes->data(), 1, bytes->size(), stdout);
    } else if (format_ == "json") {
      std::fputs((*bundle)->manifest_json().c_str(), stdout);
    } else {
      PrintBundle(**bundle);
    }
    return kExitOk;
  }

 private:
  std::string path_, entry_, format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeBundleGetVerb() { return std::make_unique<BundleGetVerb>(); }
std::unique_ptr<Verb> MakeBundleInspectVerb() { return std::make_unique<BundleInspectVerb>(); }

}  // namespace fusion
