#include "server/jobs/job_messages.h"

#include <sys/random.h>

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "compiler/api/generator_version.h"
#include "compiler/api/modes.h"
#include "compiler/api/specialisations.h"
#include "compiler/cost/target.h"
#include "compiler/tune/budget.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"

namespace fusion {

namespace {

constexpr char kAutoPlanner[] = "auto";

// Where a submission names no planner, whole plans are compared if somebody can tell them apart: a worker that measures
// a processor. Elsewhere estimates would choose among them.
std::string DefaultPlanner(const CompileOptions& options, const std::vector<std::string>& planners) {
  const bool has_auto = std::find(planners.begin(), planners.end(), kAutoPlanner) != planners.end();
  return has_auto && ParseTarget(options.target).kind == "cpu" && options.tune != "off" ? kAutoPlanner
                                                                                        : CompileOptions().planner;
}

}  // namespace

absl::StatusOr<CompileOptions> OptionsFromProto(const v1::CompileOptionsProto& proto,
                                                const std::vector<std::string>& planners) {
  CompileOptions options;
  if (!proto.target().empty()) options.target = proto.target();
  if (!proto.math().empty()) options.math = proto.math();
  if (!proto.precision().empty()) options.precision = proto.precision();
  if (!proto.size().empty()) options.size = proto.size();
  if (!proto.tune().empty()) options.tune = proto.tune();
  options.planner = proto.planner().empty() ? DefaultPlanner(options, planners) : proto.planner();
  if (options.target.size() > 64) return absl::InvalidArgumentError("target: longer than 64 characters");
  if (std::find(planners.begin(), planners.end(), options.planner) == planners.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("planner '", options.planner, "' is unknown; there are ", absl::StrJoin(planners, ", ")));
  }
  RETURN_IF_ERROR(MathLevelOf(CutMessage(options.math)).status());
  RETURN_IF_ERROR(CheckPrecision(CutMessage(options.precision)));
  RETURN_IF_ERROR(CheckSize(CutMessage(options.size)));
  if (auto budget = tune::ParseBudget(CutMessage(options.tune)); !budget.ok()) return budget.status();
  if (proto.threads() < 0 || proto.threads() > 1024) {
    return absl::InvalidArgumentError(absl::StrCat("threads: ", proto.threads(), " is not in 0..1024"));
  }
  if (proto.threads() > 0) options.threads = proto.threads();
  for (const auto& [name, extent] : proto.dims()) {
    if (extent <= 0) return absl::InvalidArgumentError(absl::StrCat("dim '", name, "': ", extent, " is not positive"));
    options.dims[name] = extent;
  }
  for (const auto& [name, shape] : proto.shapes()) {
    for (int64_t extent : shape.extents()) {
      if (extent < 0) return absl::InvalidArgumentError(absl::StrCat("shape '", name, "': ", extent, " is negative"));
    }
    options.shapes[name].assign(shape.extents().begin(), shape.extents().end());
  }
  for (const auto& [name, extents] : proto.specialised_dims()) {
    options.specialised_dims[name].assign(extents.extents().begin(), extents.extents().end());
  }
  for (const std::string& id : proto.disabled_rules()) options.disabled_rules.insert(CutMessage(id));
  if (auto all = Specialisations(options); !all.ok()) return all.status();
  return options;
}

std::string JobKey(const v1::SubmitRequest& request, const CompileOptions& options, const std::string& fingerprint) {
  Sha256 hash;
  auto add = [&](const std::string& part) {
    hash.Update(absl::StrCat(part.size(), ":"));
    hash.Update(part);
  };
  add(absl::StrCat("job generator ", kGeneratorVersion));
  if (!request.tenant().empty()) add(absl::StrCat("tenant ", request.tenant()));
  for (const std::string& part : {options.target, options.planner, options.math, options.tune, fingerprint}) add(part);
  add(absl::StrCat("threads ", options.threads));
  if (options.precision != "fp32") add(absl::StrCat("precision ", options.precision));
  if (options.size != "any") add(absl::StrCat("size ", options.size));
  for (const auto& [name, extent] : options.dims) add(absl::StrCat("dim ", extent, " ", name));
  for (const auto& [name, extents] : options.specialised_dims) {
    add(absl::StrCat("dims ", absl::StrJoin(extents, ","), " ", name));
  }
  for (const auto& [name, shape] : options.shapes) add(absl::StrCat("shape ", absl::StrJoin(shape, "x"), " ", name));
  for (const std::string& id : options.disabled_rules) add(absl::StrCat("without rule ", id));
  if (fingerprint.empty()) {  // the device is not known yet, and these decide which it will be
    const std::map<std::string, std::string> require(request.require().begin(), request.require().end());
    for (const auto& [name, value] : require) add(absl::StrCat("require ", name, "=", value));
  }
  for (int i = 0; i < request.files_size(); ++i) {
    const v1::ModelFile& file = request.files(i);
    add(i == 0 ? "model" : absl::StrCat("file ", file.path()));
    add(absl::StrCat(file.size_bytes()));
    for (const std::string& digest : file.chunk_digests()) add(digest);
  }
  return hash.FinishHex();
}

void NameModel(const v1::SubmitRequest& request, JobRow* job) {
  Sha256 hash;
  for (const v1::ModelFile& file : request.files()) {
    for (const std::string& digest : file.chunk_digests()) {
      hash.Update(digest);
      job->model_blobs.push_back(digest);
    }
  }
  job->model = hash.FinishHex();
}

std::string TraceOf(const JobRow& job) {
  v1::SubmitRequest request;
  return request.ParseFromString(job.request) ? request.trace_id() : "";
}

absl::Duration QueueTimeout(const v1::SubmitRequest& request) {
  return request.queue_timeout_ms() > 0 ? absl::Milliseconds(request.queue_timeout_ms()) : absl::Minutes(10);
}

absl::Duration PlaceTimeout(const v1::SubmitRequest& request) {
  return request.queue_timeout_ms() > 0 ? QueueTimeout(request) : absl::InfiniteDuration();
}

DeviceWish WishOf(const v1::SubmitRequest& request, const std::string& target) {
  return {target, {request.require().begin(), request.require().end()}};
}

int64_t UnixMillisNow() { return absl::ToUnixMillis(absl::Now()); }

v1::JobEvent MakeJobEvent(v1::JobState state, const std::string& stage, const std::string& message) {
  v1::JobEvent event;
  event.set_time_ms(UnixMillisNow());
  event.set_state(state);
  event.set_stage(stage);
  event.set_message(CutMessage(message));
  return event;
}

v1::Account AccountToProto(const CompileAccount& account) {
  v1::Account proto;
  proto.set_nodes_model(account.nodes_model);
  proto.set_nodes_simplified(account.nodes_simplified);
  proto.set_nodes_rewritten(account.nodes_rewritten);
  proto.set_kernels(account.kernels);
  proto.set_kernels_distinct(account.kernels_distinct);
  proto.set_fused_by_rule(account.fused_by_rule);
  proto.set_fused_by_latency(account.fused_by_latency);
  proto.set_kept_by_latency(account.kept_by_latency);
  proto.set_kept_by_rule(account.kept_by_rule);
  proto.set_questions(account.questions);
  proto.set_trials(account.trials);
  proto.set_tuned(account.tuned);
  proto.set_from_database(account.from_database);
  proto.set_measured(account.measured);
  proto.set_from_model(account.from_model);
  proto.set_intermediate_bytes_before(account.intermediate_bytes_before);
  proto.set_intermediate_bytes_after(account.intermediate_bytes_after);
  proto.set_arena_bytes(account.arena_bytes);
  proto.set_weight_bytes(account.weight_bytes);
  proto.set_model_weight_bytes(account.weights.model_bytes);
  for (const auto& [cause, bytes] : account.weights.causes) (*proto.mutable_weight_causes())[cause] = bytes;
  proto.set_size_time_ratio(account.weights.time_ratio);
  proto.set_flops(account.flops);
  proto.set_estimate_ns(account.estimate_ns);
  for (const StageSeconds& stage : account.stages) {
    v1::StageTime* time = proto.add_stages();
    time->set_stage(stage.stage);
    time->set_seconds(stage.seconds);
  }
  for (const PlanAlternative& one : account.alternatives) {
    v1::PlanAlternative* out = proto.add_alternatives();
    out->set_plan(one.plan);
    out->set_kernels(one.kernels);
    out->set_estimate_ns(one.estimate_ns);
    out->set_median_ns(one.median_ns);
    out->set_ratio(one.ratio);
    out->set_ratio_low(one.ratio_low);
    out->set_ratio_high(one.ratio_high);
    out->set_rounds(one.rounds);
    out->set_chosen(one.chosen);
    out->set_specialisation(one.specialisation);
  }
  proto.set_not_compared(CutMessage(account.not_compared));
  for (const SpecialisationAccount& one : account.specialisations) {
    v1::SpecialisationAccount* out = proto.add_specialisations();
    out->set_name(one.name);
    out->set_kernels(one.kernels);
    out->set_exact_only(CutMessage(one.exact_only));
  }
  return proto;
}

v1::RewriteProto RewriteToProto(const RewriteAccount& rewrite) {
  v1::RewriteProto proto;
  proto.set_rule(rewrite.rule);
  proto.set_where(CutMessage(rewrite.where));
  proto.set_flops_saved(rewrite.flops_saved);
  proto.set_bytes_saved(rewrite.bytes_saved);
  proto.set_nodes_saved(rewrite.nodes_saved);
  proto.set_specialisation(rewrite.specialisation);
  return proto;
}

std::string CutMessage(absl::string_view message) {
  constexpr size_t kMaxMessage = 4096;
  if (message.size() <= kMaxMessage) return std::string(message);
  size_t end = kMaxMessage - 4;
  while (end > 0 && (static_cast<unsigned char>(message[end]) & 0xc0) == 0x80) --end;
  return absl::StrCat(message.substr(0, end), "…");
}

v1::ErrorInfo ErrorToProto(const absl::Status& status) {
  v1::ErrorInfo error;
  error.set_code(static_cast<int>(status.code()));
  error.set_message(CutMessage(status.message()));
  return error;
}

v1::BundleInfo BundleInfoOf(const std::string& digest, int64_t size_bytes, const std::string& key) {
  v1::BundleInfo bundle;
  bundle.set_digest(digest);
  bundle.set_size_bytes(size_bytes);
  bundle.set_key(key);
  return bundle;
}

v1::Job JobToProto(const JobRow& row) {
  v1::Job job;
  job.set_job_id(row.id);
  job.set_key(row.key);
  job.set_model_name(row.model_name);
  job.set_target(row.target);
  job.set_client_id(row.client_id);
  job.set_owner(row.owner);
  job.set_pinned(row.pinned);
  job.set_state(static_cast<v1::JobState>(row.state));
  job.set_created_ms(row.created_ms);
  job.set_started_ms(row.started_ms);
  job.set_finished_ms(row.finished_ms);
  job.set_last_seq(row.last_seq);
  job.set_priority(row.priority);
  if (!row.early_digest.empty())
    *job.mutable_early_bundle() = BundleInfoOf(row.early_digest, row.early_bytes, row.early_key);
  if (row.state == JobPhase::kSucceeded) {
    job.mutable_account()->ParseFromString(row.account);
    *job.mutable_bundle() = BundleInfoOf(row.bundle_digest, row.bundle_bytes, row.key);
    if (!row.checks.empty()) job.mutable_checks()->ParseFromString(row.checks);
  } else if (IsFinal(row.state)) {
    job.mutable_error()->set_code(row.error_code);
    job.mutable_error()->set_message(row.error_message);
  }
  return job;
}

std::string NewJobId() {
  static constexpr char kAlphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";  // Crockford's: no two look alike
  unsigned char bytes[10];
  for (size_t filled = 0; filled < sizeof bytes;) {
    const ssize_t got = getrandom(bytes + filled, sizeof bytes - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  std::string id = "j-";
  for (unsigned char byte : bytes) id += kAlphabet[byte % 32];
  return id;
}

}  // namespace fusion
