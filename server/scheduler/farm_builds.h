// FarmToolchain: builds that a compilation gives to workers.
//
// A unit's binary is one in the database that counts (build_election.h), of a toolchain that an attached builder has.
// The other units go in groups to any trusted builder; where none is attached, to any, and then to others until the
// binaries count: an untrusted builder's do once a second one with its toolchain has made the same. One in
// FarmJob::check_one_build_in tasks of a trusted builder goes to a second trusted one, too, if there is one with its
// toolchain. The worker that comes through the socket is not checked.
//
// If there is no builder, or no second one, it says so and waits until the queue timeout. Builders that made another
// binary than the one that counts are named in the server's log.
#ifndef FUSION_SERVER_SCHEDULER_FARM_BUILDS_H_
#define FUSION_SERVER_SCHEDULER_FARM_BUILDS_H_

#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/backends/toolchain.h"
#include "server/scheduler/farm_tasks.h"

namespace fusion {

// One thread calls all functions of an object, which lives for one job.
class FarmToolchain : public Toolchain {
 public:
  explicit FarmToolchain(const FarmJob& job) : job_(job) {}
  // Fails with FAILED_PRECONDITION, naming the builders, where no binary of a unit comes to count.
  absl::StatusOr<std::vector<std::string>> Build(absl::Span<const BuildUnit> units) override;

 private:
  // Units of one kind that a task builds.
  struct Group {
    std::vector<size_t> units;         // positions
    std::string payload;               // serialised
    bool checked = false;              // whether a trusted builder's work is checked has been decided
    std::set<std::string> asked = {};  // requirements of builders that were asked by name
    absl::Status error = {};           // of the last one that could not build it
  };
  struct Request {
    absl::Span<const BuildUnit> units;
    std::vector<std::string> keys;  // parallel to `units`
    std::vector<std::optional<std::string>> binaries;
    std::map<std::string, std::set<std::string>> toolchains = {};  // of builders that were attached meanwhile, by kind
  };

  // The toolchains of which binaries count.
  const std::set<std::string>& ToolchainsFor(const std::string& kind, Request* request);
  // Reads the binaries that count, of the units at these positions.
  absl::Status ReadKnown(const std::vector<size_t>& positions, Request* request);
  static std::vector<Group> GroupsOf(const std::vector<size_t>& positions, const Request& request);
  // Runs a task for each group; the outcomes are parallel to them. `needs`: as in FarmWait.
  absl::StatusOr<std::vector<FarmOutcome>> Run(const std::vector<Group*>& groups,
                                               const std::vector<std::string>& requirements, bool needs,
                                               const Request& request);
  // Gives the group to one more builder, if it needs one; false: what counts is settled.
  absl::StatusOr<bool> AskAnother(Group* group, Request* request);
  void NameDeviators(const Group& group, const Request& request);

  const FarmJob& job_;
  std::random_device random_;  // nobody foresees which tasks are checked
};

// Returns a key of everything that a unit's binary depends on, apart from the toolchain.
std::string BuildUnitKey(const BuildUnit& unit);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_FARM_BUILDS_H_
