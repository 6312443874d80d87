#include "server/scheduler/build_election.h"

#include <algorithm>
#include <map>
#include <vector>

namespace fusion {
namespace {

// The digest that most of the rows have, if no other has as many.
const BuildRow* MajorityOf(const std::vector<const BuildRow*>& rows, size_t least) {
  std::map<std::string, std::vector<const BuildRow*>> of_digest;
  for (const BuildRow* row : rows) of_digest[row->binary_digest].push_back(row);
  size_t most = 0;
  const BuildRow* first = nullptr;  // null: several have as many
  for (const auto& [digest, some] : of_digest) {
    if (some.size() == most) first = nullptr;
    if (some.size() > most) most = some.size(), first = some.front();
  }
  return most >= least ? first : nullptr;
}

// The rows are of one toolchain.
const BuildRow* Elected(const std::vector<const BuildRow*>& rows, std::set<std::string>* disputed) {
  std::vector<const BuildRow*> trusted;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(trusted), [](const BuildRow* row) { return row->trusted; });
  if (trusted.empty()) return MajorityOf(rows, 2);
  const auto newer = [](const BuildRow* a, const BuildRow* b) { return a->created_ms < b->created_ms; };
  const BuildRow* newest = *std::max_element(trusted.begin(), trusted.end(), newer);
  if (!newest->reproduces) return newest;
  const bool agree = std::all_of(trusted.begin(), trusted.end(),
                                 [&](const BuildRow* row) { return row->binary_digest == newest->binary_digest; });
  if (agree) return newest;
  if (const BuildRow* majority = MajorityOf(trusted, 2); majority != nullptr) return majority;
  for (const BuildRow* row : trusted) disputed->insert(row->builder);
  return nullptr;
}

}  // namespace

BuildElection ElectBuild(absl::Span<const BuildRow> rows, const std::set<std::string>& toolchains) {
  std::map<std::string, std::vector<const BuildRow*>> of_toolchain;
  for (const BuildRow& row : rows) {
    const bool wanted = toolchains.empty() || row.toolchain.empty() || toolchains.count(row.toolchain) > 0;
    if (wanted) of_toolchain[row.toolchain].push_back(&row);
  }
  BuildElection election;
  const BuildRow* best = nullptr;
  for (const auto& [toolchain, some] : of_toolchain) {
    const BuildRow* elected = Elected(some, &election.disputed);
    if (elected != nullptr && (best == nullptr || best->created_ms < elected->created_ms)) best = elected;
  }
  if (best == nullptr) return election;
  election.disputed.clear();
  election.binary_digest = best->binary_digest;
  election.toolchain = best->toolchain;
  if (!best->reproduces) return election;
  for (const BuildRow* row : of_toolchain[best->toolchain]) {
    if (row->binary_digest != best->binary_digest) election.deviates.insert(row->builder);
  }
  return election;
}

}  // namespace fusion
