#include "client/verbs/submission.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/api/digest_cache.h"
#include "client/api/model_files.h"
#include "client/cli/exit_codes.h"
#include "client/cli/interrupt.h"
#include "client/cli/words.h"
#include "client/verbs/alternatives.h"
#include "client/verbs/patience.h"
#include "compiler/api/modes.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "runtime/base/steady_clock.h"
#include "runtime/base/user_folders.h"
#include "runtime/bundle/bundle_signature.h"

namespace fusion {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(10);  // how long a server may stay away while a job runs

// Splits "NAME=VALUE" at the last '=', because tensor names may contain one.
absl::Status SplitBinding(const std::string& text, const char* flag, const char* example, std::string* name,
                          std::string* value) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    return UsageError(absl::StrCat(flag, " '", text, "' is not of the form ", example));
  }
  *name = text.substr(0, equals);
  *value = text.substr(equals + 1);
  return absl::OkStatus();
}

absl::StatusOr<int> PriorityOf(const std::string& text) {
  for (const auto& [word, priority] : {std::pair{"low", -10}, std::pair{"normal", 0}, std::pair{"high", 10}}) {
    if (text == word) return priority;
  }
  int priority = 0;
  if (absl::SimpleAtoi(text, &priority) && priority >= -100 && priority <= 100) return priority;
  return UsageError(absl::StrCat("--priority '", text, "': low, normal, high, or a number from -100 to 100"));
}

absl::Status FillOptions(const CompilationFlags& flags, v1::CompileOptionsProto* options) {
  ASSIGN_OR_RETURN(const std::vector<std::string> targets, TargetsOf(flags));
  if (targets.size() > 1) {
    return UsageError(absl::StrCat("--target '", flags.target, "': several targets are for submit, name one here"));
  }
  options->set_target(targets[0]);
  options->set_planner(flags.planner);
  options->set_math(flags.math);
  options->set_precision(flags.precision);
  options->set_size(flags.size);
  options->set_tune(flags.tune);
  for (const std::string& id : flags.disabled_rules) options->add_disabled_rules(id);
  options->set_threads(static_cast<int32_t>(std::clamp<int64_t>(flags.threads, 1, 1024)));
  std::string name, value;
  std::set<std::string> bound;
  for (const std::string& dim : flags.dims) {
    RETURN_IF_ERROR(SplitBinding(dim, "--dim", "batch=1", &name, &value));
    if (!bound.insert(name).second) return UsageError(absl::StrCat("--dim '", dim, "': '", name, "' is bound twice"));
    v1::ShapeProto extents;
    std::set<int64_t> seen;
    for (const std::string& part : std::vector<std::string>(absl::StrSplit(value, ','))) {
      int64_t extent = 0;
      if (!absl::SimpleAtoi(part, &extent) || extent < 1) {
        return UsageError(absl::StrCat("--dim '", dim, "': '", part, "' is no positive number"));
      }
      if (!seen.insert(extent).second) return UsageError(absl::StrCat("--dim '", dim, "': ", extent, " twice"));
      extents.add_extents(extent);
    }
    if (extents.extents_size() > 1) {
      (*options->mutable_specialised_dims())[name] = extents;
    } else {
      (*options->mutable_dims())[name] = extents.extents(0);
    }
  }
  for (const std::string& shape : flags.shapes) {
    RETURN_IF_ERROR(SplitBinding(shape, "--shape", "input=1x3x224x224", &name, &value));
    v1::ShapeProto extents;
    if (value != "scalar") {
      for (const std::string& part : std::vector<std::string>(absl::StrSplit(value, 'x'))) {
        int64_t extent = 0;
        if (!absl::SimpleAtoi(part, &extent) || extent < 0) {
          return UsageError(absl::StrCat("--shape '", shape, "': '", part, "' is no extent"));
        }
        extents.add_extents(extent);
      }
    }
    (*options->mutable_shapes())[name] = extents;
  }
  return absl::OkStatus();
}

std::string ClientId() {
  const char* user = getenv("USER");
  char host[256] = "";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(user == nullptr ? "" : user, "@", host);
}

// The trace that the caller is a part of: W3C's TRACEPARENT, "00-<32 hex digits>-<16>-<2>". Else "", and the server
// begins one.
std::string TraceIdOfEnvironment() {
  const char* parent = getenv("TRACEPARENT");
  const std::vector<std::string> parts = absl::StrSplit(parent == nullptr ? "" : parent, '-');
  if (parts.size() < 4 || parts[0].size() != 2 || parts[1].size() != 32) return "";
  if (parts[1].find_first_not_of("0123456789abcdef") != std::string::npos) return "";
  return parts[1].find_first_not_of('0') == std::string::npos ? "" : parts[1];
}

// Reports a transfer that takes long, at every tenth.
class TransferProgress {
 public:
  TransferProgress(std::string label, int64_t all_bytes, Progress& progress)
      : label_(std::move(label)), all_bytes_(all_bytes), progress_(progress) {}
  void Add(int64_t bytes) {
    done_bytes_ += bytes;
    const int64_t tenth = done_bytes_ * 10 / std::max<int64_t>(1, all_bytes_);
    if (tenth == last_tenth_ || all_bytes_ < (16 << 20)) return;
    last_tenth_ = tenth;
    progress_.Now(label_, absl::StrCat(BytesInWords(done_bytes_), " of ", BytesInWords(all_bytes_)));
  }

 private:
  const std::string label_;
  const int64_t all_bytes_;
  int64_t done_bytes_ = 0, last_tenth_ = -1;
  Progress& progress_;
};

// Names a submission among all of this user's.
std::string RandomId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&id, absl::Hex(random(), absl::kZeroPad8));
  return id;
}

absl::Status UploadOnce(Connection& connection, const LocalModel& model, int64_t chunk_bytes, Progress& progress) {
  const absl::Time start = SteadyNow();
  std::map<std::string, absl::string_view> chunks;
  for (const ChunkedFile& file : model.files) {
    for (size_t i = 0; i < file.chunk_digests.size(); ++i) chunks[file.chunk_digests[i]] = file.Chunk(i, chunk_bytes);
  }
  std::vector<std::string> digests;
  int64_t all_bytes = 0;
  for (const auto& [digest, bytes] : chunks) {
    digests.push_back(digest);
    all_bytes += static_cast<int64_t>(bytes.size());
  }
  ASSIGN_OR_RETURN(std::vector<std::string> missing, connection.FindMissing(digests));
  std::vector<BlobSource> blobs;
  int64_t new_bytes = 0;
  for (const std::string& digest : missing) {
    auto found = chunks.find(digest);
    if (found == chunks.end()) return absl::InternalError("the server misses a blob that nobody named");
    blobs.push_back({digest, found->second});
    new_bytes += static_cast<int64_t>(found->second.size());
  }
  if (!blobs.empty()) {
    TransferProgress told("uploading", new_bytes, progress);
    RETURN_IF_ERROR(connection.WriteBlobs(blobs, [&](int64_t bytes) { told.Add(bytes); }));
  }
  progress.Line("uploaded",
                absl::StrCat(BytesInWords(new_bytes), " new, ", BytesInWords(all_bytes - new_bytes), " already there"),
                absl::ToDoubleSeconds(SteadyNow() - start));
  return absl::OkStatus();
}

absl::Status ErrorOf(const v1::JobEvent& last) {
  if (last.state() == v1::CANCELLED) {
    return absl::CancelledError(last.error().message().empty() ? "the job was cancelled" : last.error().message());
  }
  const auto code = static_cast<absl::StatusCode>(last.error().code());
  return absl::Status(code == absl::StatusCode::kOk ? absl::StatusCode::kInternal : code, last.error().message());
}

// Is the bundle that an earlier call fetched still there?
bool IsThere(const std::string& path, const v1::BundleInfo& bundle) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  if (static_cast<int64_t>(std::filesystem::file_size(path, error)) != bundle.size_bytes() || error) return false;
  const FileDigests digests = DigestCache(UserCacheFolder(), std::max<int64_t>(bundle.size_bytes(), 1)).Get(path, [&] {
    const auto file = MappedFile::Open(path);
    const std::string digest = file.ok() ? Sha256Hex((*file)->bytes()) : "";
    return FileDigests{digest, {digest}};
  });
  return digests.sha256 == bundle.digest();
}

// `early_ends`: an event with an early bundle is the last one.
absl::StatusOr<v1::JobEvent> Follow(Connection& connection, const std::string& job_id, int64_t resume_seq,
                                    bool early_ends, Progress& progress) {
  SetInterruptNotice(absl::StrCat("job ", job_id, " goes on: watch it with `fusionctl job watch ", job_id,
                                  "`, stop it with `fusionctl job cancel ", job_id, "`"));
  v1::JobEvent last;
  RETURN_IF_ERROR(WatchToEnd(
      connection, job_id, resume_seq, kPatience,
      [&](const v1::JobEvent& event) {
        last = event;
        if (IsFinal(event.state())) {
          if (event.state() == v1::SUCCEEDED && !event.message().empty()) progress.Line("device", event.message());
          return true;
        }
        if (!event.has_early_bundle()) {
          progress.Now(event.stage(), event.message(), event.done(), event.total());
          return true;
        }
        progress.Line("early", absl::StrCat("an unfused bundle of ", Plural(event.account().kernels(), "kernel"),
                                            " is ready; the job goes on"));
        return !early_ends;
      },
      [&](const std::string& words) { progress.Line("waiting", absl::StrCat("for the server: ", words)); }));
  SetInterruptNotice("");
  if (last.state() != v1::SUCCEEDED && !(early_ends && last.has_early_bundle())) return ErrorOf(last);
  return last;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> TargetsOf(const CompilationFlags& flags) {
  const std::vector<std::string> targets = absl::StrSplit(flags.target, ',');
  std::set<std::string> seen;
  for (const std::string& target : targets) {
    if (target.empty()) return UsageError(absl::StrCat("--target '", flags.target, "': an empty name"));
    if (!seen.insert(target).second) return UsageError(absl::StrCat("--target: '", target, "' twice"));
  }
  return targets;
}

void AddPlanFlags(CompilationFlags* flags, std::vector<Option>* options) {
  options->push_back(
      {"--target", "kind of device to compile for (worker list shows those attached); submit takes several: cpu,opencl",
       &flags->target});
  options->push_back(
      {"--planner",
       "how operators are grouped into kernels: dnnfusion; dnnfusion-listing, the paper's rules alone; none, "
       "a kernel for each; fusion_stitching, memory-intensive operators in large kernels; power_fusion, kernels that "
       "move the fewest bytes; xla_like and tvm_like, the fixed rules of other compilers, to compare with; souffle and "
       "souffle-paper, one program that is cut where the price or the "
       "paper's rule says so; graph_turbo, dnnfusion's kernels in chains that stay in a core's cache; auto, the "
       "fastest of all that a worker measured. Default: auto for a processor, "
       "dnnfusion for other targets and where nothing is tuned",
       &flags->planner});
  options->push_back(
      {"--math",
       "strict: only rewrites that keep every bit; relaxed: also those that hold of real numbers alone, where "
       "floats may overflow, underflow or leave a domain",
       &flags->math, false, MathModes()});
  options->push_back({"--precision",
                      "fp16: weights and values are stored as halves, computed and summed in fp32; tf32: operands of "
                      "products may be rounded to 10 bits of mantissa where the device multiplies such faster",
                      &flags->precision, false, Precisions()});
  options->push_back({"--size",
                      "small: the bundle's weights, and what they take in memory, stay near the bytes of the model's "
                      "(no transformed filters, no second layout); the report says what that costs",
                      &flags->size, false, SizeModes()});
  options->push_back({"--disable-rule", "leave out a rewrite rule by its id (plan --explain lists those that fire)",
                      &flags->disabled_rules});
  options->push_back(
      {"--dim", "bind a symbolic dimension: batch=1, or seq=32,128 for specialisations in one bundle", &flags->dims});
  options->push_back({"--shape", "replace an input's shape: input=1x3x224x224", &flags->shapes});
  options->push_back({"--threads", "threads that measurements assume", &flags->threads});
  options->push_back({"--require",
                      "of several devices of the target, that of a worker with this name=NAME, device=NAME, "
                      "fingerprint=… (worker describe shows them) or label (fusion-worker --label KEY=VALUE); repeat "
                      "for several",
                      &flags->require});
}

void AddJobFlags(CompilationFlags* flags, std::vector<Option>* options) {
  options->push_back(
      {"--tune",
       "try schedules on workers: off; quick, the default, measures for a minute at most, planning included; full; or "
       "measure for so many SECONDS. Building comes on top",
       &flags->tune});
  options->push_back(
      {"--queue-timeout",
       "seconds to wait for a place among the compilations, and for a worker (0: as long as it takes, and "
       "the server's default)",
       &flags->queue_timeout_s});
  options->push_back(
      {"--priority",
       "low, normal, high, or a number from -100 to 100: the order of your own jobs that wait; callers take "
       "turns whatever theirs are",
       &flags->priority});
}

absl::StatusOr<v1::SubmitRequest> PrepareSubmission(Connection& connection, const std::string& model_path,
                                                    const CompilationFlags& flags, Progress& progress) {
  v1::SubmitRequest request;
  RETURN_IF_ERROR(FillOptions(flags, request.mutable_options()));
  ASSIGN_OR_RETURN(const int priority, PriorityOf(flags.priority));
  RETURN_IF_ERROR(MappedFile::Open(model_path).status());  // fails before a server is asked
  ASSIGN_OR_RETURN(v1::Capabilities capabilities, connection.GetCapabilities());
  progress.Headline(absl::StrCat("fusion ", FUSION_VERSION, " → ", connection.address(), " (server ",
                                 capabilities.server_version(), ")"));
  if (capabilities.protocol_min() > 1) {
    return absl::FailedPreconditionError(absl::StrCat("the server speaks protocol ", capabilities.protocol_min(),
                                                      " and newer, this client 1: update fusionctl"));
  }
  const auto& planners = capabilities.planners();
  if (!planners.empty() && !flags.planner.empty() &&
      std::find(planners.begin(), planners.end(), flags.planner) == planners.end()) {
    return UsageError(absl::StrCat("--planner '", flags.planner, "': the server has ", absl::StrJoin(planners, ", ")));
  }
  const int64_t chunk_bytes = capabilities.chunk_size_bytes() > 0 ? capabilities.chunk_size_bytes() : 4 << 20;
  ASSIGN_OR_RETURN(LocalModel model, OpenModel(model_path, chunk_bytes, UserCacheFolder()));
  progress.Line("model",
                absl::StrCat(model.name, "  ", BytesInWords(model.size_bytes), "  sha256:", ShortDigest(model.sha256)));
  progress.Line("checked", absl::StrCat(Plural(model.nodes, "node"), ", opset ", model.opset));
  if (capabilities.max_model_bytes() > 0 && model.size_bytes > capabilities.max_model_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat("the model has ", BytesInWords(model.size_bytes),
                                                     ", the server takes at most ",
                                                     BytesInWords(capabilities.max_model_bytes())));
  }
  // Chunks that arrived before an interruption are not sent again.
  RETURN_IF_ERROR(TryPatiently(kPatienceOfACall, progress,
                               [&](RetryPolicy&) { return UploadOnce(connection, model, chunk_bytes, progress); }));
  request.set_model_name(model.name);
  request.set_client_id(ClientId());
  request.set_trace_id(TraceIdOfEnvironment());
  request.set_queue_timeout_ms(flags.queue_timeout_s * 1000);
  request.set_priority(priority);
  for (const std::string& text : flags.require) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      return UsageError(absl::StrCat("--require '", text, "' is not of the form name=rack7"));
    }
    (*request.mutable_require())[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const ChunkedFile& file : model.files) {
    v1::ModelFile* out = request.add_files();
    out->set_path(file.path);
    out->set_size_bytes(static_cast<int64_t>(file.mapping->bytes().size()));
    for (const std::string& digest : file.chunk_digests) out->add_chunk_digests(digest);
  }
  return request;
}

absl::StatusOr<v1::JobEvent> FollowJob(Connection& connection, const std::string& job_id, int64_t resume_seq,
                                       Progress& progress) {
  return Follow(connection, job_id, resume_seq, /*early_ends=*/false, progress);
}

absl::StatusOr<v1::JobEvent> FollowToFirstBundle(Connection& connection, const std::string& job_id,
                                                 Progress& progress) {
  return Follow(connection, job_id, 0, /*early_ends=*/true, progress);
}

absl::StatusOr<v1::SubmitResponse> SubmitPatiently(Connection& connection, v1::SubmitRequest request,
                                                   Progress& progress) {
  const absl::Duration patience =
      request.queue_timeout_ms() > 0 ? absl::Milliseconds(request.queue_timeout_ms()) : kPatienceOfACall;
  request.set_request_id(RandomId());
  absl::StatusOr<v1::SubmitResponse> submitted;
  const absl::Status done = TryPatiently(patience, progress, [&](RetryPolicy&) {
    submitted = connection.Submit(request);
    return submitted.status();
  });
  RETURN_IF_ERROR(done);
  return submitted;
}

absl::StatusOr<v1::SubmitResponse> SubmitJob(Connection& connection, const v1::SubmitRequest& request,
                                             Progress& progress, const std::string& prefix) {
  ASSIGN_OR_RETURN(v1::SubmitResponse submitted, SubmitPatiently(connection, request, progress));
  std::string note;
  if (submitted.from_store()) note = "  (from the store)";
  if (submitted.joined()) note = "  (joined one in flight)";
  progress.Line("job", absl::StrCat(prefix, submitted.job_id(), "  key ", ShortDigest(submitted.key()), note));
  return submitted;
}

absl::StatusOr<Compilation> CompileRemotely(Connection& connection, const v1::SubmitRequest& request,
                                            Progress& progress) {
  Compilation compilation;
  ASSIGN_OR_RETURN(compilation.submitted, SubmitJob(connection, request, progress));
  ASSIGN_OR_RETURN(compilation.last, FollowJob(connection, compilation.submitted.job_id(), 0, progress));
  return compilation;
}

absl::Status CheckOutputPath(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return UsageError(absl::StrCat("-o '", path, "' is a folder; name a file"));
  }
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  if (access(folder.c_str(), W_OK | X_OK) == 0) return absl::OkStatus();
  const bool there = std::filesystem::exists(folder, error);
  return UsageError(absl::StrCat("-o '", path, "': the folder ", there ? "cannot be written to" : "does not exist"));
}

absl::Status DownloadBundle(Connection& connection, const v1::BundleInfo& bundle, const std::string& path,
                            Progress& progress) {
  if (IsThere(path, bundle)) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  Sha256 sha;
  TransferProgress told("fetching", bundle.size_bytes(), progress);
  int64_t received_bytes = 0;
  // An interrupted transfer goes on where it stopped.
  RETURN_IF_ERROR(TryPatiently(kPatienceOfACall, progress, [&](RetryPolicy& policy) {
    return connection.ReadBlob(bundle.digest(), received_bytes, [&](absl::string_view bytes) {
      policy.Succeeded();
      received_bytes += static_cast<int64_t>(bytes.size());
      told.Add(static_cast<int64_t>(bytes.size()));
      sha.Update(bytes);
      return file->Append(bytes);
    });
  }));
  if (sha.FinishHex() != bundle.digest()) {
    return absl::DataLossError("the bundle arrived damaged: its digest differs; try again");
  }
  return file->Commit();
}

absl::Status FetchBundle(Connection& connection, const std::string& job_id, const v1::BundleInfo& bundle, bool early,
                         const std::string& path, Progress& progress) {
  RETURN_IF_ERROR(DownloadBundle(connection, bundle, path, progress));
  ASSIGN_OR_RETURN(const std::string signatures, connection.Sign(job_id, early));
  if (signatures.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(WriteFileAtomically(SignaturesPath(path), signatures));
  progress.Line("signed", SignaturesPath(path));
  return absl::OkStatus();
}

void PrintFetched(const std::string& path, const v1::BundleInfo& bundle, const std::string& note) {
  std::printf("%s  %s  sha256:%s%s%s\n", path.c_str(), BytesInWords(bundle.size_bytes()).c_str(),
              ShortDigest(bundle.digest()).c_str(), note.empty() ? "" : "  ", note.c_str());
  std::fflush(stdout);
}

void PrintAccount(const v1::Account& account, Progress& progress) {
  double planning = 0, building = 0, tuning = -1, profiling = -1, comparing = -1;
  for (const v1::StageTime& stage : account.stages()) {
    const bool build = stage.stage() == "build" || stage.stage() == "pack" || stage.stage() == "write";
    if (stage.stage() == "profiling") {
      profiling = stage.seconds();
    } else if (stage.stage() == "compare") {
      comparing = std::max(0.0, comparing) + stage.seconds();
    } else if (stage.stage() == "tune") {
      tuning = std::max(0.0, tuning) + stage.seconds();
    } else {
      (build ? building : planning) += stage.seconds();
    }
  }
  const std::vector<std::string> alternatives = AlternativesInWords(account);
  if (alternatives.empty()) planning += std::max(0.0, comparing);  // there was nothing to compare
  progress.Line(
      "planned",
      absl::StrCat(Plural(account.nodes_model(), "node"), " → ", Plural(account.kernels(), "kernel"),
                   // A job that only plans builds no kernels.
                   account.kernels_distinct() > 0 ? absl::StrCat(" (", account.kernels_distinct(), " distinct)") : ""),
      planning);
  for (const v1::SpecialisationAccount& one : account.specialisations()) {
    const std::string reason = one.exact_only().empty() ? "" : "; takes no less: " + one.exact_only();
    progress.Line("", absl::StrCat(one.name(), ": ", Plural(one.kernels(), "kernel"), reason));
  }
  if (account.questions() > 0) {
    progress.Line("profiled",
                  absl::StrFormat("%s, %s: %d measured, %d known, %d estimated",
                                  Plural(account.questions() - account.trials(), "timing") + " of yellow cases",
                                  Plural(account.trials(), "trial"), account.measured(), account.from_database(),
                                  account.from_model()),
                  profiling);
  }
  if (tuning >= 0 && account.trials() > 0) {
    progress.Line(
        "tuned", absl::StrFormat("%d of %s run faster schedules", account.tuned(), Plural(account.kernels(), "kernel")),
        tuning);
  }
  for (size_t i = 0; i < alternatives.size(); ++i) {
    progress.Line(i == 0 ? "compared" : "", alternatives[i], i == 0 ? comparing : -1);
  }
  std::string weights = BytesInWords(account.weight_bytes());
  if (account.model_weight_bytes() > 0) {
    absl::StrAppend(&weights, " for ", BytesInWords(account.model_weight_bytes()), " of the model");
  }
  if (account.size_time_ratio() > 0) {
    absl::StrAppend(&weights, absl::StrFormat(", kept small at %.2f of the estimated time", account.size_time_ratio()));
  }
  progress.Line("built",
                absl::StrFormat("intermediates %s → %s, weights %s", BytesInWords(account.intermediate_bytes_before()),
                                BytesInWords(account.intermediate_bytes_after()), weights),
                building);
}

}  // namespace fusion
