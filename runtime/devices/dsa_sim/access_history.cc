#include "runtime/devices/dsa_sim/access_history.h"

namespace fusion::dsa {

AccessStates::AccessStates() {
  Add(kInputWriter, {});  // kUnwritten, whose writer nobody asks for
  Add(kInputWriter, {});  // kInput
}

AccessStates::State AccessStates::Add(int writer, absl::Span<const int> readers) {
  Row row;
  row.writer = writer;
  row.readers = static_cast<int>(readers.size());
  row.first_reader = readers_.size();
  readers_.insert(readers_.end(), readers.begin(), readers.end());
  states_.push_back(row);
  return static_cast<State>(states_.size() - 1);
}

std::vector<AccessStates::State> AccessStates::Keep(const std::vector<bool>& marked) {
  AccessStates kept;
  std::vector<State> numbers(states_.size(), kUnwritten);
  numbers[kInput] = kInput;
  for (size_t s = kInput + 1; s < states_.size(); ++s) {
    if (marked[s]) numbers[s] = kept.Add(states_[s].writer, readers(static_cast<State>(s)));
  }
  *this = std::move(kept);
  return numbers;
}

AccessHistory::AccessHistory(int64_t bytes, int64_t unit_bytes)
    : unit_bytes_(unit_bytes), pages_(static_cast<size_t>((bytes / unit_bytes + kPageUnits - 1) / kPageUnits)) {}

int64_t AccessHistory::FirstUnwritten(int64_t begin, int64_t end) {
  int64_t missing = end;
  Update(begin, end, [&](State state, int64_t byte) {
    if (state != AccessStates::kUnwritten) return int64_t{state};
    missing = byte;
    return int64_t{-1};
  });
  return missing;
}

void AccessHistory::Mark(std::vector<bool>* marked) const {
  for (const Page& page : pages_) {
    if (page.units == nullptr) {
      (*marked)[page.all] = true;
    } else {
      for (int64_t u = 0; u < kPageUnits; ++u) (*marked)[page.units[u]] = true;
    }
  }
}

void AccessHistory::Renumber(const std::vector<State>& numbers) {
  for (Page& page : pages_) {
    page.all = numbers[page.all];
    if (page.units == nullptr) continue;
    for (int64_t u = 0; u < kPageUnits; ++u) page.units[u] = numbers[page.units[u]];
  }
}

}  // namespace fusion::dsa
