// Roles: what a caller may do. Each method of each service names the roles of which a caller needs one; no role implies
// another.
#ifndef FUSION_SERVER_AUTH_ROLES_H_
#define FUSION_SERVER_AUTH_ROLES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace fusion {

enum class Role : uint32_t {
  kClient = 1,           // submits models, reads results and measurements
  kBuild = 2,            // a worker that builds
  kMeasure = 4,          // a worker that measures
  kAdmin = 8,            // operates the service
  kJoin = 16,            // only of join tokens: a worker that has no token of its own yet
  kUntrustedBuild = 32,  // a worker that builds, whose binaries count when another builder made the same
};

class RoleSet {
 public:
  constexpr RoleSet() = default;
  constexpr RoleSet(std::initializer_list<Role> roles) {
    for (const Role role : roles) bits_ |= static_cast<uint32_t>(role);
  }
  // Those that a token can be given: all but kJoin.
  static constexpr RoleSet All() {
    return {Role::kClient, Role::kBuild, Role::kUntrustedBuild, Role::kMeasure, Role::kAdmin};
  }

  constexpr bool Has(Role role) const { return (bits_ & static_cast<uint32_t>(role)) != 0; }
  constexpr bool HasAnyOf(RoleSet others) const { return (bits_ & others.bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr void Add(Role role) { bits_ |= static_cast<uint32_t>(role); }
  friend constexpr bool operator==(RoleSet a, RoleSet b) { return a.bits_ == b.bits_; }

 private:
  uint32_t bits_ = 0;
};

const std::vector<Role>& AllRoles();    // kJoin, too
const char* NameOf(Role role);          // "client"
std::string NamesOf(RoleSet roles);     // "client,admin"; "none" if there is none
std::string NamesInWords(RoleSet any);  // "client or admin"
// Reads roles that a token can be given. Fails with INVALID_ARGUMENT, naming those that there are.
absl::StatusOr<RoleSet> ParseRoles(const std::vector<std::string>& names);
// Reads NamesOf's text. Unknown names are left out: a newer program wrote them.
RoleSet RolesOf(absl::string_view names);

struct MethodAccess {
  const char* method;  // as on the wire: "/fusion.v1.Compile/Submit"
  RoleSet any_of;
  bool audited = false;  // each call is a line of the log
};

// Every method of every service of fusion.v1.
absl::Span<const MethodAccess> MethodTable();
// The roles of which a caller of `method` needs one; none for a method that is not in the table.
RoleSet RolesFor(absl::string_view method);
bool IsAudited(absl::string_view method);

}  // namespace fusion

#endif  // FUSION_SERVER_AUTH_ROLES_H_
