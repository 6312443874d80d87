#include "compiler/backends/text/narrow_floats.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/narrow_float.h"

namespace fusion::text {
namespace {

// Placeholders:
// - $T the type; $F the code with its sign;
// - $M bits of the mantissa, $D 23 - $M, $S the sign's bit number, $B 127 less the format's bias;
// - $R half a unit of the dropped bits, less one;
// - $L the largest code, $O the code for values that round past the largest;
// - $X the test for a NaN code, $N the code of NaN;
// - $Z the bits of the least normal value, $V the value of the least code, $U its inverse.
constexpr char kFrom[] = R"(SI float from_$T(u8 c) {
  union { u32 bits; float value; } v;
  u32 m = c & ((1u << $S) - 1u), s = ((u32)c >> $S) & 1u;
  if ($X) v.bits = 0x7fc00000u;
  else if (m > $L) v.bits = 0x7f800000u;
  else if ((m >> $M) == 0u) v.value = (float)m * $V;
  else v.bits = (m << $D) + ($Bu << 23);
  v.bits |= s << 31;
  return v.value;
}
)";

constexpr char kTo[] = R"(SI u8 to_$T(float x) {
  union { u32 bits; float value; } v;
  u32 c, s, a;
  v.value = x;
  s = (v.bits >> 31) << $S;
  a = v.bits & 0x7fffffffu;
  if (a > 0x7f800000u) return (u8)($N);
  if (a < $Zu) { v.bits = a; c = (u32)round_f32(v.value * $U); }
  else c = ((a + $Ru + ((a >> $D) & 1u)) >> $D) - ($Bu << $M);
  if (c > $L) c = $O;
  return (u8)($F);
}
)";

constexpr char kPowers[] = R"(SI float from_f8e8m0(u8 c) {
  union { u32 bits; float value; } v;
  v.bits = c == 0 ? 0x400000u : (u32)c << 23;
  return c == 255 ? nan_f32 : v.value;
}
SI u8 to_f8e8m0(float x) {
  union { u32 bits; float value; } v;
  u32 a;
  v.value = x;
  a = v.bits & 0x7fffffffu;
  return (u8)(a >= 0x7f400000u ? 255u : a < 0x800000u ? (u32)(a >= 0x600000u) : (a + 0x400000u) >> 23);
}
)";

std::string Helpers(DType dtype) {
  if (dtype == DType::kF8E8M0) return kPowers;
  const NarrowFormat& format = NarrowFormatOf(dtype);
  const int dropped = 23 - format.mantissa_bits;
  const int lowest = 1 - format.bias - format.mantissa_bits;  // the exponent of code 1
  const std::string nan = format.one_zero        ? "s != 0u && m == 0u"
                          : format.nan_code == 0 ? "false"
                                                 : absl::StrCat("m > ", format.max_code + (format.has_infinity ? 1 : 0));
  return absl::StrReplaceAll(
      absl::StrCat(kFrom, kTo),
      {{"$T", DTypeName(dtype)},
       {"$M", absl::StrCat(format.mantissa_bits)},
       {"$D", absl::StrCat(dropped)},
       {"$R", absl::StrCat((1u << (dropped - 1)) - 1)},
       {"$S", absl::StrCat(format.sign_bit())},
       {"$L", absl::StrCat(format.max_code, "u")},
       {"$X", nan},
       {"$N", format.nan_code == 0 ? "0" : absl::StrCat(format.nan_code, " | s")},
       {"$O", absl::StrCat(format.overflow_code, "u")},
       {"$F", format.one_zero ? "c == 0u ? 0u : c | s" : "c | s"},
       {"$B", absl::StrCat(127 - format.bias)},
       {"$Z", absl::StrCat(static_cast<uint32_t>(128 - format.bias) << 23)},
       {"$U", absl::StrFormat("0x1p%df", -lowest)},
       {"$V", absl::StrFormat("0x1p%df", lowest)}});
}

}  // namespace

std::string WithNarrowFloats(std::string kernel) {
  std::string helpers;
  for (int number = 0; number < kNumDTypes; ++number) {
    const auto dtype = static_cast<DType>(number);
    const std::string name = DTypeName(dtype);
    if (!IsByteFloat(dtype)) continue;
    if (!absl::StrContains(kernel, "from_" + name + "(") && !absl::StrContains(kernel, "to_" + name + "(")) continue;
    absl::StrAppend(&helpers, "#ifndef HAS_", name, "\n#define HAS_", name, "\n", Helpers(dtype), "#endif\n");
  }
  return helpers.empty() ? kernel : helpers + kernel;
}

}  // namespace fusion::text
