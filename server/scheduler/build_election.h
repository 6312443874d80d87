// Which binary of a unit counts, of those that builders have made. Two builders are two tokens: workers that share one
// cannot vouch for each other.
#ifndef FUSION_SERVER_SCHEDULER_BUILD_ELECTION_H_
#define FUSION_SERVER_SCHEDULER_BUILD_ELECTION_H_

#include <set>
#include <string>

#include "absl/types/span.h"
#include "db/stores/store.h"

namespace fusion {

struct BuildElection {
  std::string binary_digest = {};       // "": none counts
  std::string toolchain = {};           // of that binary
  std::set<std::string> deviates = {};  // builders of its toolchain that made another binary
  // Trusted builders of one toolchain that made different binaries, where no majority of them decides.
  std::set<std::string> disputed = {};
};

// `rows` are of one unit. A binary counts that a trusted builder made, or that two builders made byte for byte. Of a
// toolchain that reproduces its bytes a binary of trusted builders counts only if all of them made the same, or most of
// them, and at least two; what untrusted ones made does not count beside it. Several toolchains: the newest row
// decides. `toolchains` are those to look at, besides the unknown one of rows from before toolchains were told apart;
// empty: all.
BuildElection ElectBuild(absl::Span<const BuildRow> rows, const std::set<std::string>& toolchains);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_BUILD_ELECTION_H_
