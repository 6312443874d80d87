// SeededRandom: the only source of chance in a simulation. Equal seeds give equal numbers on every machine (SplitMix64:
// Steele, Lea and Flood, OOPSLA 2014).
#ifndef FUSION_SERVER_SIMULATION_RANDOM_H_
#define FUSION_SERVER_SIMULATION_RANDOM_H_

#include <cstdint>

#include "absl/time/time.h"

namespace fusion::simulation {

// Spreads numbers over all of 64 bits.
inline uint64_t Mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// The sequence of a seed is that of the seed before it without its first number: seeds that follow each other are to be
// mixed.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t Next() { return Mixed(state_ += 0x9e3779b97f4a7c15u); }
  int Below(int end) { return static_cast<int>(Next() % static_cast<uint64_t>(end)); }
  bool Chance(double probability) { return static_cast<double>(Next() >> 11) * 0x1p-53 < probability; }
  // At least `least`, less than `end`, in whole milliseconds.
  absl::Duration Between(absl::Duration least, absl::Duration end) {
    const int64_t span = absl::ToInt64Milliseconds(end - least);
    return least + absl::Milliseconds(span > 0 ? static_cast<int64_t>(Next() % static_cast<uint64_t>(span)) : 0);
  }

 private:
  uint64_t state_;
};

}  // namespace fusion::simulation

#endif  // FUSION_SERVER_SIMULATION_RANDOM_H_
