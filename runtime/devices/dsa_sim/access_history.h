// The history of each byte of a memory: who wrote it last, and who has read it since. Bytes with one history share a
// state, which is a number, so that an instruction looks at each history that it meets once, however many rows it
// touches.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_ACCESS_HISTORY_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_ACCESS_HISTORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"

namespace fusion::dsa {

// Numbers of the histories that some byte has. They are those of one table, whose memories forget together.
class AccessStates {
 public:
  using State = uint32_t;
  static constexpr State kUnwritten = 0;  // no instruction and no input has written the byte
  static constexpr State kInput = 1;      // an input has written it, and nothing has read it
  static constexpr int kInputWriter = -1;

  AccessStates();
  State Add(int writer, absl::Span<const int> readers);
  int writer(State state) const { return states_[state].writer; }
  // Those since the write, of which none has completed before another of them starts.
  absl::Span<const int> readers(State state) const {
    return {readers_.data() + states_[state].first_reader, static_cast<size_t>(states_[state].readers)};
  }
  // A note of one instruction on a state; -1 where the last note is of another instruction.
  int64_t Note(int instruction, State state) const {
    return states_[state].noted_by == instruction ? int64_t{states_[state].note} : -1;
  }
  void SetNote(int instruction, State state, State note) {
    states_[state].noted_by = instruction;
    states_[state].note = note;
  }
  size_t size() const { return states_.size(); }

  // Forgets the states that are not marked (one flag a state); the others get new numbers, which it returns.
  std::vector<State> Keep(const std::vector<bool>& marked);

 private:
  struct Row {
    int writer = 0;
    int readers = 0;
    size_t first_reader = 0;
    int noted_by = -1;
    State note = 0;
  };
  std::vector<Row> states_;
  std::vector<int> readers_;
};

// The states of one memory, by unit of some bytes. Pages of equal units are one number.
class AccessHistory {
 public:
  using State = AccessStates::State;

  // A memory of addresses below `bytes`. Each range begins and ends at a multiple of `unit_bytes`.
  AccessHistory(int64_t bytes, int64_t unit_bytes);

  // Calls next(state, byte) for each stretch of [begin, end) that has one state, with its first byte. The stretch gets
  // the state that it returns; a negative number ends the visit. Returns whether none was.
  template <typename Next>
  bool Update(int64_t begin, int64_t end, const Next& next);
  // The first byte of [begin, end) that is kUnwritten; `end` if there is none.
  int64_t FirstUnwritten(int64_t begin, int64_t end);

  void Mark(std::vector<bool>* marked) const;
  void Renumber(const std::vector<State>& numbers);

 private:
  static constexpr int64_t kPageUnits = 1024;
  struct Page {
    State all = AccessStates::kUnwritten;  // without `units`
    std::unique_ptr<State[]> units;
  };
  template <typename Next>
  bool UpdateUnits(Page* page, int64_t page_begin, int64_t from, int64_t to, const Next& next) const;

  int64_t unit_bytes_;
  std::vector<Page> pages_;
};

template <typename Next>
bool AccessHistory::UpdateUnits(Page* page, int64_t page_begin, int64_t from, int64_t to, const Next& next) const {
  State* const units = page->units.get();
  for (int64_t u = from; u < to;) {
    const State state = units[u];
    int64_t end = u + 1;
    while (end < to && units[end] == state) ++end;
    const int64_t changed = next(state, (page_begin + u) * unit_bytes_);
    if (changed < 0) return false;
    if (changed != state) {
      for (int64_t k = u; k < end; ++k) units[k] = static_cast<State>(changed);
    }
    u = end;
  }
  return true;
}

template <typename Next>
bool AccessHistory::Update(int64_t begin, int64_t end, const Next& next) {
  int64_t unit = begin / unit_bytes_;
  const int64_t last = end / unit_bytes_;
  while (unit < last) {
    Page& page = pages_[static_cast<size_t>(unit / kPageUnits)];
    const int64_t page_begin = unit / kPageUnits * kPageUnits;
    const int64_t from = unit - page_begin, to = std::min(kPageUnits, last - page_begin);
    const bool whole = from == 0 && to == kPageUnits;
    if (page.units == nullptr) {
      const int64_t changed = next(page.all, unit * unit_bytes_);
      if (changed < 0) return false;
      if (whole) {
        page.all = static_cast<State>(changed);
      } else if (changed != page.all) {
        page.units = std::make_unique<State[]>(kPageUnits);
        std::fill_n(page.units.get(), kPageUnits, page.all);
        std::fill(page.units.get() + from, page.units.get() + to, static_cast<State>(changed));
      }
    } else {
      if (!UpdateUnits(&page, page_begin, from, to, next)) return false;
      const State* const units = page.units.get();
      if (whole && std::all_of(units, units + kPageUnits, [&](State state) { return state == units[0]; })) {
        page.all = units[0];
        page.units.reset();
      }
    }
    unit = page_begin + to;
  }
  return true;
}

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_ACCESS_HISTORY_H_
