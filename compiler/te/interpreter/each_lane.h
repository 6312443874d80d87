// Kernels from functions of single values, for the sources of this folder.
#ifndef FUSION_COMPILER_TE_INTERPRETER_EACH_LANE_H_
#define FUSION_COMPILER_TE_INTERPRETER_EACH_LANE_H_

#include <cstdint>
#include <type_traits>

#include "compiler/te/interpreter/lanes.h"

namespace fusion::te::lanes {

// An operand may be the destination itself, but only lane by lane, so that lanes do not depend on each other.
#define FUSION_LANES _Pragma("GCC ivdep") for (int l = 0; l < n; ++l)

using U = uint64_t;
constexpr U Unsigned(int64_t x) { return static_cast<U>(x); }
constexpr int64_t Signed(U x) { return static_cast<int64_t>(x); }

// The register that holds a T: one of doubles for a double, one of integers for an int64_t, a uint64_t or a bool.
template <typename T>
using Held = std::conditional_t<std::is_same_v<T, double>, double, int64_t>;
template <typename T>
Held<T>* Register(State& s, int r) {
  if constexpr (std::is_same_v<T, double>) {
    return s.D(r);
  } else {
    return s.I(r);
  }
}

template <auto F, typename R, typename A>
void Apply(R (*)(A), State& s, const Inst& in, int n) {
  Held<R>* d = Register<R>(s, in.dst);
  const Held<A>* a = Register<A>(s, in.a);
  FUSION_LANES d[l] = static_cast<Held<R>>(F(static_cast<A>(a[l])));
}
template <auto F, typename R, typename A>
void Apply(R (*)(A, A), State& s, const Inst& in, int n) {
  Held<R>* d = Register<R>(s, in.dst);
  const Held<A>*a = Register<A>(s, in.a), *b = Register<A>(s, in.b);
  FUSION_LANES d[l] = static_cast<Held<R>>(F(static_cast<A>(a[l]), static_cast<A>(b[l])));
}
template <auto F, typename A>
void Apply(A (*)(A, A, int64_t), State& s, const Inst& in, int n) {  // imm is the number of bits
  Held<A>* d = Register<A>(s, in.dst);
  const Held<A>*a = Register<A>(s, in.a), *b = Register<A>(s, in.b);
  FUSION_LANES d[l] = static_cast<Held<A>>(F(static_cast<A>(a[l]), static_cast<A>(b[l]), in.imm));
}

// Sets dst = F(a) or dst = F(a, b) in each lane. The types of F say which registers it reads and writes.
template <auto F>
void EachLane(State& s, const Inst& in, int n) {
  Apply<F>(+F, s, in, n);
}

}  // namespace fusion::te::lanes

#endif  // FUSION_COMPILER_TE_INTERPRETER_EACH_LANE_H_
