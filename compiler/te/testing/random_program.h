// Random programs of maps and reductions over tensors of 4 x 6, with padded loads, transposed reads and branches.
#ifndef FUSION_COMPILER_TE_TESTING_RANDOM_PROGRAM_H_
#define FUSION_COMPILER_TE_TESTING_RANDOM_PROGRAM_H_

#include <random>
#include <vector>

#include "compiler/te/program/program.h"
#include "compiler/te/program/transform.h"

namespace fusion::te::testing {

class RandomProgram {
 public:
  using Idx = Builder::Idx;

  explicit RandomProgram(int seed) : random_(seed), b_(&program_) {}

  Program Make() {
    for (int k = 0; k < 2; ++k) tensors_.push_back(program_.AddTensor("x", DType::kF32, {4, 6}, Role::kInput));
    const int64_t n = 3 + Below(8);
    for (int k = 0; k < n; ++k) tensors_.push_back(Below(5) == 0 ? AddReduction() : AddMap());
    program_.MarkOutput(tensors_.back());
    if (Below(2) == 0) program_.MarkOutput(tensors_[tensors_.size() / 2 + 1]);
    RemoveDead(&program_);
    return program_;
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % n); }

  Scalar Read(const Idx& i) {
    const TensorId t = tensors_[Below(static_cast<int64_t>(tensors_.size()))];
    switch (Below(6)) {
      case 0:
        return b_.AtOr(t, {i[0] + 1, i[1] - 2}, 0.5);
      case 1:  // transposes the flattened tensor
        return b_.At(t, Delinearize(Linearize({i[1], i[0]}, {6, 4}), {4, 6}));
      case 2:
        return If({{i[1], Cmp::kLt, Index(4)}}, b_.At(t, {i[0], i[1] + 2}), b_.At(t, {i[0], i[1] - 4}));
      case 3:
        return b_.At(t, {i[0] * -1 + 3, FloorDiv(i[1], 2) + 3 * (Below(2) == 0 ? 1 : 0)});
      default:
        return b_.At(t, i);
    }
  }

  Scalar Body(const Idx& i, int depth) {
    static constexpr Op kBinary[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMax, Op::kMin};
    if (depth == 0 || Below(4) == 0)
      return Below(4) == 0 ? Imm(DType::kF32, 0.25 * static_cast<double>(Below(9))) : Read(i);
    if (Below(3) == 0) return Call(Below(2) == 0 ? Op::kTanh : Op::kErf, {Body(i, depth - 1)});
    const Scalar a = Body(i, depth - 1);
    return Call(kBinary[Below(5)], {a, Below(4) == 0 ? a : Body(i, depth - 1)});
  }

  TensorId AddMap() {
    return b_.Map("m", DType::kF32, {4, 6}, [&](const Idx& i) { return Body(i, 2); });
  }
  TensorId AddReduction() {
    const ReductionKind kind = Below(2) == 0 ? ReductionKind::kSum : ReductionKind::kMax;
    return b_.Reduce(
        "f", kind, DType::kF32, DType::kF32, {4, 6}, {3},
        [&](const Idx& i, const Idx& r) {
          return Body({i[0], Mod(i[1] + r[0], 6)}, 1);
        },
        [&](const Idx& i, const Scalar& acc) { return Call(Op::kTanh, {acc + Read(i)}); });
  }

  std::mt19937 random_;
  Program program_;
  Builder b_;
  std::vector<TensorId> tensors_;
};

}  // namespace fusion::te::testing

#endif  // FUSION_COMPILER_TE_TESTING_RANDOM_PROGRAM_H_
