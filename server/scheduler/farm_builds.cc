#include "server/scheduler/farm_builds.h"

#include <algorithm>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/api/generator_version.h"
#include "proto/worker.pb.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "server/scheduler/build_election.h"

namespace fusion {
namespace {

constexpr size_t kUnitsPerTask = 8;  // enough for one worker's cores, few enough to share the units among workers
constexpr size_t kUnitBytesPerTask = 1 << 20;

v1::BuildUnitProto ToProto(const BuildUnit& unit) {
  v1::BuildUnitProto proto;
  proto.set_kind(unit.kind);
  proto.set_march(unit.march);
  proto.set_source(unit.source);
  return proto;
}

// "token t1", for people.
std::string InWords(const std::string& builder) {
  return builder.empty() ? "the socket's owner" : absl::StrCat("token ", builder);
}
std::string InWords(const std::set<std::string>& builders) {
  return absl::StrJoin(builders, ", ",
                       [](std::string* out, const std::string& builder) { absl::StrAppend(out, InWords(builder)); });
}

bool HasRowOf(const FarmBuilder& builder, const std::vector<BuildRow>& rows) {
  return std::any_of(rows.begin(), rows.end(), [&](const BuildRow& row) {
    return row.builder == builder.token && row.toolchain == builder.toolchain;
  });
}

}  // namespace

std::string BuildUnitKey(const BuildUnit& unit) {
  Sha256 hash;
  for (const std::string& part : {absl::StrCat("build ", kGeneratorVersion), unit.kind, unit.march, unit.source}) {
    hash.Update(absl::StrCat(part.size(), ":"));
    hash.Update(part);
  }
  return hash.FinishHex();
}

const std::set<std::string>& FarmToolchain::ToolchainsFor(const std::string& kind, Request* request) {
  std::set<std::string>& toolchains = request->toolchains[kind];
  for (const FarmBuilder& builder : job_.farm->Builders(kind)) {
    if (!builder.toolchain.empty()) toolchains.insert(builder.toolchain);  // an unknown one counts anyway
  }
  return toolchains;
}

absl::Status FarmToolchain::ReadKnown(const std::vector<size_t>& positions, Request* request) {
  std::vector<std::string> keys;
  std::set<std::string> kinds;
  for (const size_t i : positions) {
    keys.push_back(request->keys[i]);
    kinds.insert(request->units[i].kind);
  }
  for (const std::string& kind : kinds) ToolchainsFor(kind, request);
  ASSIGN_OR_RETURN(const auto rows, job_.store->FindBuilds(keys));
  for (size_t p = 0; p < positions.size(); ++p) {
    const BuildElection election = ElectBuild(rows[p], request->toolchains[request->units[positions[p]].kind]);
    if (election.binary_digest.empty()) continue;
    absl::StatusOr<std::string> binary = job_.artifacts->Get(election.binary_digest);
    if (binary.ok()) request->binaries[positions[p]] = *std::move(binary);
  }
  return absl::OkStatus();
}

std::vector<FarmToolchain::Group> FarmToolchain::GroupsOf(const std::vector<size_t>& positions,
                                                          const Request& request) {
  std::vector<Group> groups;
  std::vector<v1::BuildPayload> payloads;
  size_t bytes = 0;
  for (const size_t i : positions) {
    const BuildUnit& unit = request.units[i];
    const bool fits = !groups.empty() && groups.back().units.size() < kUnitsPerTask &&
                      request.units[groups.back().units[0]].kind == unit.kind &&
                      bytes + unit.source.size() <= kUnitBytesPerTask;
    if (!fits) {
      groups.emplace_back();
      payloads.emplace_back();
      bytes = 0;
    }
    groups.back().units.push_back(i);
    *payloads.back().add_units() = ToProto(unit);
    bytes += unit.source.size();
  }
  for (size_t g = 0; g < groups.size(); ++g) groups[g].payload = payloads[g].SerializeAsString();
  return groups;
}

absl::StatusOr<std::vector<FarmOutcome>> FarmToolchain::Run(const std::vector<Group*>& groups,
                                                            const std::vector<std::string>& requirements, bool needs,
                                                            const Request& request) {
  std::vector<FarmTask> tasks;
  int64_t units = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const Group& group = *groups[g];
    FarmTask task;
    task.kind = TaskType::kBuild;
    task.job = job_.id, task.trace = job_.trace;
    task.device_kind = request.units[group.units[0]].kind;
    task.requirement = requirements[g];
    task.payload = group.payload;
    task.key = Sha256Hex(absl::StrCat("build task ", kGeneratorVersion, " ", task.requirement, ":", task.payload));
    task.description = absl::StrCat("build ", group.units.size(), " units for ", task.device_kind);
    task.timeout = absl::Seconds(60) + absl::Seconds(30) * group.units.size();
    units += static_cast<int64_t>(group.units.size());
    tasks.push_back(std::move(task));
  }
  FarmWait wait = job_.Wait(job_.queue_timeout, [&](int64_t done, int64_t, const std::string& message) {
    int64_t units_done = 0;
    for (int64_t g = 0; g < done; ++g) units_done += static_cast<int64_t>(groups[g]->units.size());
    job_.progress({"build", units_done, units, message});
  });
  wait.needs = needs && job_.needs_builds;
  return job_.farm->RunAll(tasks, wait);
}

absl::StatusOr<bool> FarmToolchain::AskAnother(Group* group, Request* request) {
  const std::string kind = request->units[group->units[0]].kind;
  std::vector<std::string> keys;
  for (const size_t i : group->units) keys.push_back(request->keys[i]);
  ASSIGN_OR_RETURN(const auto rows, job_.store->FindBuilds(keys));
  const std::set<std::string>& toolchains = ToolchainsFor(kind, request);
  // One builder makes the whole group; the first unit without a binary that counts says who.
  size_t open = 0;
  BuildElection election = ElectBuild(rows[0], toolchains);
  for (size_t u = 1; u < rows.size() && !election.binary_digest.empty(); ++u) {
    BuildElection next = ElectBuild(rows[u], toolchains);
    if (next.binary_digest.empty()) open = u, election = std::move(next);
  }
  const std::vector<BuildRow>& made = rows[open];
  const auto first_that = [&](const std::function<bool(const FarmBuilder&)>& fits) -> std::optional<FarmBuilder> {
    for (const FarmBuilder& builder : job_.farm->Builders(kind)) {
      if (fits(builder)) return builder;
    }
    return std::nullopt;
  };
  const auto is_new = [&](const FarmBuilder& builder) {
    return !HasRowOf(builder, made) && group->asked.count(builder.Requirement()) == 0;
  };
  std::optional<FarmBuilder> chosen;
  if (!election.binary_digest.empty()) {
    if (std::exchange(group->checked, true) || job_.check_one_build_in <= 0) return false;
    // Only one trusted builder's word, of a toolchain that can be compared?
    const bool alone = made.size() == 1 && made[0].trusted && made[0].reproduces && !made[0].builder.empty();
    if (!alone || std::uniform_int_distribution<int>(1, job_.check_one_build_in)(random_) != 1) return false;
    chosen = first_that([&](const FarmBuilder& builder) {
      return builder.trusted && builder.toolchain == made[0].toolchain && is_new(builder);
    });
    if (!chosen.has_value()) return false;
  } else {
    group->checked = true;
    const auto helps = [&](const FarmBuilder& builder) {
      const bool compares = std::any_of(made.begin(), made.end(),
                                        [&](const BuildRow& row) { return row.toolchain == builder.toolchain; });
      return is_new(builder) && (compares || made.empty() || (builder.trusted && election.disputed.empty()));
    };
    chosen = first_that(helps);
    if (!chosen.has_value() && !group->error.ok()) return group->error;
    std::set<std::string> makers;
    for (const BuildRow& row : made) makers.insert(row.builder);
    const std::string why =
        election.disputed.empty()
            ? absl::StrCat("binaries of untrusted builders (", InWords(makers),
                           ") count when a second builder with the same toolchain makes the same bytes")
            : absl::StrCat("trusted builders (", InWords(election.disputed),
                           ") with one toolchain made different binaries of one kernel: revoke the token of the wrong "
                           "one, which drops its binaries, or attach a third");
    if (!chosen.has_value()) {
      job_.progress({"build", 0, static_cast<int64_t>(group->units.size()), why});
      FarmWait wait = job_.Wait(job_.queue_timeout);
      wait.needs = job_.needs_builds;
      chosen = job_.farm->AwaitBuilder(kind, helps, why, wait);
    }
    if (job_.cancelled && job_.cancelled()) return absl::CancelledError("cancelled");
    if (!chosen.has_value()) {
      return absl::FailedPreconditionError(absl::StrCat(why, "; no other builder for ", kind, " came within ",
                                                        absl::FormatDuration(job_.queue_timeout)));
    }
  }
  // By name, and once: it may be broken, or gone.
  group->asked.insert(chosen->Requirement());
  ASSIGN_OR_RETURN(const std::vector<FarmOutcome> outcomes,
                   Run({group}, {chosen->Requirement()}, /*needs=*/false, *request));
  group->error = outcomes[0].status;
  return true;
}

void FarmToolchain::NameDeviators(const Group& group, const Request& request) {
  std::vector<std::string> keys;
  for (const size_t i : group.units) keys.push_back(request.keys[i]);
  const auto rows = job_.store->FindBuilds(keys);
  if (!rows.ok()) return;
  std::set<std::string> deviators;
  for (const std::vector<BuildRow>& of_unit : *rows) {
    const BuildElection election = ElectBuild(of_unit, {});
    deviators.insert(election.deviates.begin(), election.deviates.end());
  }
  if (deviators.empty()) return;
  job_.farm->Say({LogLevel::kError,
                  "builders made other binaries than the ones that count; revoking a token drops its binaries",
                  {{"job", job_.id}, {"builders", InWords(deviators)}}});
}

absl::StatusOr<std::vector<std::string>> FarmToolchain::Build(absl::Span<const BuildUnit> units) {
  Request request{units};
  request.binaries.resize(units.size());
  std::vector<size_t> all;
  for (size_t i = 0; i < units.size(); ++i) {
    request.keys.push_back(BuildUnitKey(units[i]));
    all.push_back(i);
  }
  RETURN_IF_ERROR(ReadKnown(all, &request));
  std::vector<size_t> missing;  // equal units once
  std::unordered_map<std::string, size_t> first_of_key;
  for (const size_t i : all) {
    if (!request.binaries[i].has_value() && first_of_key.emplace(request.keys[i], i).second) missing.push_back(i);
  }
  job_.metrics->Count(Metric::kCacheRequests, {{"tier", "build"}, {"result", "miss"}}, missing.size());
  job_.metrics->Count(Metric::kCacheRequests, {{"tier", "build"}, {"result", "hit"}}, units.size() - missing.size());

  std::vector<Group> groups = GroupsOf(missing, request);
  if (!groups.empty()) {
    std::vector<Group*> first;
    std::vector<std::string> requirements;
    for (Group& group : groups) {
      const std::string& kind = units[group.units[0]].kind;
      const std::vector<FarmBuilder> builders = job_.farm->Builders(kind);  // trusted ones first
      const bool trusted = !builders.empty() && builders.front().trusted;
      requirements.push_back(trusted ? TrustedBuildRequirement(kind) : BuildRequirement(kind));
      first.push_back(&group);
    }
    ASSIGN_OR_RETURN(const std::vector<FarmOutcome> outcomes, Run(first, requirements, /*needs=*/true, request));
    for (size_t g = 0; g < groups.size(); ++g) {
      groups[g].error = outcomes[g].status;
      // An untrusted builder's failure is no more believed than its binaries.
      if (requirements[g] != BuildRequirement(units[groups[g].units[0]].kind)) RETURN_IF_ERROR(groups[g].error);
    }
  }
  for (Group& group : groups) {
    bool asked = false;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, AskAnother(&group, &request));
      if (!more) break;
      asked = true;
    }
    if (asked) NameDeviators(group, request);
  }
  RETURN_IF_ERROR(ReadKnown(missing, &request));
  std::vector<std::string> binaries;
  for (const size_t i : all) {
    if (!request.binaries[i].has_value()) request.binaries[i] = request.binaries[first_of_key[request.keys[i]]];
    if (!request.binaries[i].has_value()) {
      return absl::UnavailableError(
          "a binary is gone since it was built: its builder was revoked, or the disk lost it");
    }
    binaries.push_back(*request.binaries[i]);
  }
  return binaries;
}

}  // namespace fusion
