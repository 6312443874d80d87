// The interpreter's machine: registers of kLanes doubles or int64s, and instructions that each work on the first n
// lanes. Lanes are consecutive points of a te's spatial domain, so that one dispatch serves many elements.
#ifndef FUSION_COMPILER_TE_INTERPRETER_LANES_H_
#define FUSION_COMPILER_TE_INTERPRETER_LANES_H_

#include <cstdint>
#include <vector>

#include "compiler/te/program/program.h"

namespace fusion::te::lanes {

inline constexpr int kLanes = 256;
// Integer register 0 holds zeros and stands for an absent operand.
inline constexpr int kZeroRegister = 0;

struct Inst;

struct State {
  std::vector<double> doubles;    // [register][lane]
  std::vector<int64_t> ints;      // [register][lane]
  std::vector<const void*> data;  // by tensor id
  const Inst* failed = nullptr;   // the check that failed, with the offending value
  int64_t failed_value = 0;
  uint64_t random = 1;         // random state of the perturbing kernels; never 0
  uint64_t still = 0;          // results move where the random number has none of these bits
  bool skips_padding = false;  // this run leaves out products with padding (PaddedProductKernel)
  uint64_t alike = 0;          // not 0: in this run functions err alike wherever they give the same (PerturbKernel)
  bool fuses = false;          // this run adds products that it has not rounded (PerturbNarrowProductKernel)
  bool infinite_overflows = false;  // in this run finite summands that overflow end as infinities (AnyOrderSumKernel)

  double* D(int r) { return doubles.data() + static_cast<int64_t>(r) * kLanes; }
  int64_t* I(int r) { return ints.data() + static_cast<int64_t>(r) * kLanes; }
};

using LaneKernel = void (*)(State&, const Inst&, int n);

struct Inst {
  LaneKernel run = nullptr;
  int dst = 0, a = 0, b = 0, c = 0;  // registers; the kernel knows which are doubles
  int64_t imm = 0, imm2 = 0;
  double fimm = 0;
  TensorId tensor = -1;
  int dimension = -1;  // checks: the dimension, or -1 for a loaded value
  uint8_t level = 0;   // see Level in te_code.cc
};

// Reads a tensor: dst[l] = t[a[l] + b[0] + imm]. The masked form gives fimm (imm2 for integers) where !c[l].
LaneKernel LoadKernel(DType dtype, bool masked);
// Writes lanes of register `reg` to elements [start, start + n), rounded and wrapped to the type.
void Store(State& state, int reg, DType dtype, void* data, int64_t start, int n);

void SplatImmD(State& s, const Inst& in, int n);  // dst = fimm
void SplatImmI(State& s, const Inst& in, int n);  // dst = imm
void SplatD(State& s, const Inst& in, int n);     // dst = a[0]
void SplatI(State& s, const Inst& in, int n);
void MoveD(State& s, const Inst& in, int n);  // dst = a
void MoveI(State& s, const Inst& in, int n);
void SelectD(State& s, const Inst& in, int n);  // dst = c ? a : b
void SelectI(State& s, const Inst& in, int n);
void AddMul(State& s, const Inst& in, int n);       // dst = a + b·imm
void AddUniform(State& s, const Inst& in, int n);   // dst = a + b[0] + imm
void FloorDivImm(State& s, const Inst& in, int n);  // dst = ⌊a / imm⌋
void ModImm(State& s, const Inst& in, int n);       // dst = a − imm·⌊a / imm⌋
LaneKernel CompareZeroKernel(Cmp cmp);              // dst = a (cmp) 0
void And(State& s, const Inst& in, int n);          // dst = a & b, both 0 or 1
void AndNot(State& s, const Inst& in, int n);       // dst = a & !b
// dst = c & (0 <= a + b[0] + imm < imm2)
void InBox(State& s, const Inst& in, int n);
// Fails where c holds and 0 <= a + b[0] + imm < imm2 does not.
void CheckBox(State& s, const Inst& in, int n);
// dst = a where it lies in [imm, imm2], else imm; fails where c holds and a lies outside.
void CheckValue(State& s, const Inst& in, int n);

}  // namespace fusion::te::lanes

#endif  // FUSION_COMPILER_TE_INTERPRETER_LANES_H_
