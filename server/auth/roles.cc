#include "server/auth/roles.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace fusion {
namespace {

constexpr RoleSet kClientOnly = {Role::kClient}, kAdminOnly = {Role::kAdmin};
constexpr RoleSet kClientOrAdmin = {Role::kClient, Role::kAdmin};
constexpr RoleSet kWorkers = {Role::kBuild, Role::kUntrustedBuild, Role::kMeasure};
constexpr RoleSet kClientOrWorkers = {Role::kClient, Role::kBuild, Role::kUntrustedBuild, Role::kMeasure};

// An administrator looks after jobs and submits none. A worker's roles bound its offers, too: see
// worker_service.cc.
constexpr MethodAccess kMethods[] = {
    {"/fusion.v1.Compile/GetCapabilities", RoleSet::All()},
    {"/fusion.v1.Compile/Submit", kClientOnly},
    {"/fusion.v1.Compile/Plan", kClientOnly},
    {"/fusion.v1.Compile/Watch", kClientOrAdmin},
    {"/fusion.v1.Compile/Get", kClientOrAdmin},
    {"/fusion.v1.Compile/List", kClientOrAdmin},
    {"/fusion.v1.Compile/Cancel", kClientOrAdmin},
    {"/fusion.v1.Compile/Pin", kClientOrAdmin},
    {"/fusion.v1.Compile/Logs", kClientOrAdmin},
    {"/fusion.v1.Signatures/Sign", kClientOrAdmin},
    {"/fusion.v1.Blobs/FindMissing", kClientOnly},
    {"/fusion.v1.Blobs/Write", kClientOrWorkers},
    {"/fusion.v1.Blobs/Read", kClientOrWorkers},
    {"/fusion.v1.Worker/Synchronize", kWorkers},
    {"/fusion.v1.WorkerAdmin/ListWorkers", kClientOrAdmin},
    {"/fusion.v1.WorkerAdmin/DrainWorker", kAdminOnly, true},
    {"/fusion.v1.WorkerAdmin/QuarantineWorker", kAdminOnly, true},
    {"/fusion.v1.WorkerAdmin/ReleaseWorker", kAdminOnly, true},
    {"/fusion.v1.Profile/Stats", kClientOrAdmin},
    {"/fusion.v1.Profile/Query", kClientOrAdmin},
    {"/fusion.v1.Profile/Export", kClientOrAdmin},
    {"/fusion.v1.Profile/Import", kAdminOnly, true},
    {"/fusion.v1.Admin/Collect", kAdminOnly, true},
    {"/fusion.v1.Admin/Check", kAdminOnly, true},
    {"/fusion.v1.Admin/BackUp", kAdminOnly, true},
    {"/fusion.v1.Admin/PruneProfile", kAdminOnly, true},
    {"/fusion.v1.Auth/CreateToken", kAdminOnly, true},
    {"/fusion.v1.Auth/RevokeToken", kAdminOnly, true},
    {"/fusion.v1.Auth/ListTokens", kAdminOnly, true},
    {"/fusion.v1.Auth/Join", {Role::kJoin}, true},
    {"/fusion.v1.Auth/RenewCertificate", kWorkers, true},
};

std::vector<std::string> NameList(RoleSet roles) {
  std::vector<std::string> names;
  for (const Role role : AllRoles()) {
    if (roles.Has(role)) names.emplace_back(NameOf(role));
  }
  return names;
}

}  // namespace

const std::vector<Role>& AllRoles() {
  static const auto* roles = new std::vector<Role>{Role::kClient,  Role::kBuild, Role::kUntrustedBuild,
                                                   Role::kMeasure, Role::kAdmin, Role::kJoin};
  return *roles;
}

const char* NameOf(Role role) {
  switch (role) {
    case Role::kClient:
      return "client";
    case Role::kBuild:
      return "build";
    case Role::kUntrustedBuild:
      return "untrusted-build";
    case Role::kMeasure:
      return "measure";
    case Role::kAdmin:
      return "admin";
    case Role::kJoin:
      return "join";
  }
  return "";
}

std::string NamesOf(RoleSet roles) { return roles.empty() ? "none" : absl::StrJoin(NameList(roles), ","); }

std::string NamesInWords(RoleSet any) { return absl::StrJoin(NameList(any), " or "); }

absl::StatusOr<RoleSet> ParseRoles(const std::vector<std::string>& names) {
  RoleSet roles;
  for (const std::string& name : names) {
    const auto& all = AllRoles();
    const auto role = std::find_if(all.begin(), all.end(), [&](Role one) { return name == NameOf(one); });
    if (role == all.end() || !RoleSet::All().Has(*role)) {
      return absl::InvalidArgumentError(absl::StrCat("no role '", name, "': use ", NamesInWords(RoleSet::All())));
    }
    roles.Add(*role);
  }
  return roles;
}

RoleSet RolesOf(absl::string_view names) {
  RoleSet roles;
  for (const absl::string_view name : absl::StrSplit(names, ',')) {
    for (const Role role : AllRoles()) {
      if (name == NameOf(role)) roles.Add(role);
    }
  }
  return roles;
}

bool IsAudited(absl::string_view method) {
  for (const MethodAccess& access : kMethods) {
    if (method == access.method) return access.audited;
  }
  return false;
}

absl::Span<const MethodAccess> MethodTable() { return kMethods; }

RoleSet RolesFor(absl::string_view method) {
  for (const MethodAccess& access : kMethods) {
    if (method == access.method) return access.any_of;
  }
  return {};
}

}  // namespace fusion
