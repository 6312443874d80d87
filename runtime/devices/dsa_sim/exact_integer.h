// Integers on the machine, which keeps the elements of all tensors as floats.
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_EXACT_INTEGER_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_EXACT_INTEGER_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace fusion::dsa {

// Does a float hold this integer? All up to 2^24 are exact, and beyond them multiples of powers of two.
inline bool IsExactAsFloat(int64_t value) {
  const float held = static_cast<float>(value);
  return held < 0x1p63F && static_cast<int64_t>(held) == value;
}

// For people: why a program does not go on with an integer.
inline std::string InexactInWords(int64_t value) {
  return absl::StrCat(value, "; the machine keeps integers as floats, which hold all of them up to 2^24 only");
}

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_EXACT_INTEGER_H_
