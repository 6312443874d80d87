#include "compiler/backends/text/scalar_helpers.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace fusion::text {
namespace {

constexpr char kEvery[] = R"(SI $C smax_$T($C a, $C b) { return a != a ? a : a > b ? a : b; }
SI $C smin_$T($C a, $C b) { return a != a ? a : a < b ? a : b; }
)";

constexpr char kNumber[] = R"(SI $C ssign_$T($C a) { return a != a ? a : a > 0 ? ($C)1 : a < 0 ? ($C)-1 : ($C)0; }
)";

constexpr char kFloat[] = R"(SI $C sabs_$T($C a) { return fabs_$T(a); }
SI $C mod_$T($C a, $C b) { $C r = fmod_$T(a, b); return r == 0 ? (b < 0 ? -($C)0 : ($C)0) : (r < 0) != (b < 0) ? r + b : r; }
)";

constexpr char kInteger[] = R"(SI $C sabs_$T($C a) { return a < 0 ? ($C)(0 - (u64)a) : a; }
SI bool minus_one_$T($C a) { return ($C)-1 < ($C)0 && a == ($C)-1; }
SI $C idiv_$T($C a, $C b) { return b == 0 ? ($C)0 : minus_one_$T(b) ? ($C)(0 - (u64)a) : ($C)(a / b); }
SI $C irem_$T($C a, $C b) { return b == 0 || minus_one_$T(b) ? ($C)0 : ($C)(a % b); }
SI $C mod_$T($C a, $C b) { $C r = irem_$T(a, b); return r != 0 && ((r < 0) != (b < 0)) ? ($C)(r + b) : r; }
SI $C ipow_$T($C a, $C b) { if (b < 0) return a == 1 ? ($C)1 : a == ($C)-1 ? (b & 1 ? a : ($C)1) : ($C)0;
  $C r = 1; while (b > 0) { if (b & 1) r = ($C)((u64)r * (u64)a); a = ($C)((u64)a * (u64)a); b = ($C)(b >> 1); } return r; }
SI $C shl_$T($C a, $C b) { return (u64)b >= 8 * sizeof($C) ? ($C)0 : ($C)(a << b); }
SI $C shr_$T($C a, $C b) { return (u64)b >= 8 * sizeof($C) ? ($C)0 : ($C)(a >> b); }
)";

constexpr char kIndices[] = R"(SI i64 fdiv(i64 a, i64 b) { i64 q = a / b; return q - (a % b < 0); }
SI i64 fmodi(i64 a, i64 b) { i64 r = a % b; return r < 0 ? r + b : r; }
)";

void Add(const char* text, const char* type, const char* name, std::string* out) {
  *out += absl::StrReplaceAll(text, {{"$C", type}, {"$T", name}});
}

}  // namespace

std::string ScalarHelpers(bool f64) {
  std::string text = kIndices;
  for (const char* type : {"i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"}) {
    Add(kEvery, type, type, &text);
    Add(kNumber, type, type, &text);
    Add(kInteger, type, type, &text);
  }
  Add(kEvery, "bool", "bool", &text);
  for (const bool wide : {false, true}) {
    if (wide && !f64) continue;
    const char* type = wide ? "double" : "float";
    const char* name = wide ? "f64" : "f32";
    Add(kEvery, type, name, &text);
    Add(kNumber, type, name, &text);
    Add(kFloat, type, name, &text);
  }
  return text;
}

std::string LibraryNames(bool f64, std::string (*name)(const std::string& function, bool f64)) {
  std::string text;
  for (const char* function :
       {"exp",  "log",   "erf",   "sin",   "cos", "tan",  "asin", "acos",  "atan", "sinh",  "cosh",
        "tanh", "asinh", "acosh", "atanh", "pow", "fmod", "fabs", "floor", "ceil", "round", "sqrt"}) {
    for (const bool wide : {false, true}) {
      if (wide && !f64) continue;
      absl::StrAppend(&text, "#define ", function, wide ? "_f64 " : "_f32 ", name(function, wide), "\n");
    }
  }
  return text;
}

std::string ZippedLanes(int lanes, int first) {
  std::string text;
  for (int i = first; i < first + lanes / 2; ++i) absl::StrAppend(&text, i > first ? "," : "", i, ",", i + lanes);
  return text;
}

std::string EvenLanes(int lanes) {
  std::string text;
  for (int i = 0; i < lanes; ++i) absl::StrAppend(&text, i > 0 ? "," : "", 2 * i);
  return text;
}

std::string ThirdLanes(int lanes, bool last) {
  std::string text;
  for (int i = 0; i < lanes; ++i) {
    const bool first_two = 3 * i < 2 * lanes;
    const int of_first = first_two ? 3 * i : -1, of_last = first_two ? i : 3 * i - lanes + 2;
    absl::StrAppend(&text, i > 0 ? "," : "", last ? of_last : of_first);
  }
  return text;
}

}  // namespace fusion::text
