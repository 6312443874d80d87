// Random programs: every transform keeps their numbers, and every program round-trips through text.
#include <cmath>
#include <random>

#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/program/transform.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

using Idx = Builder::Idx;

class Generator {
 public:
  explicit Generator(int seed) : random_(seed), b_(&program_) {}

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

std::vector<double> Evaluate(const Program& program, const std::vector<Tensor>& inputs) {
  std::vector<double> values;
  const auto outputs = Interpret(program, inputs);
  EXPECT_TRUE(outputs.ok()) << outputs.status() << "\n" << Print(program);
  if (!outputs.ok()) return values;
  for (const Tensor& t : *outputs) {
    for (int64_t i = 0; i < t.num_elements(); ++i) values.push_back(t.GetDouble(i));
  }
  return values;
}

class RandomProgramTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomProgramTest, TransformsKeepTheNumbers) {
  const Program program = Generator(GetParam()).Make();
  ASSERT_TRUE(Verify(program).ok()) << Verify(program);
  std::vector<Tensor> inputs(2, Tensor(DType::kF32, {4, 6}));
  for (int64_t i = 0; i < 48; ++i) inputs[i / 24].SetDouble(i % 24, std::sin(0.71 * static_cast<double>(i + 1)));
  const std::vector<double> expected = Evaluate(program, inputs);

  const std::string text = Print(program);
  const auto parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(Print(*parsed), text);
  EXPECT_EQ(Evaluate(*parsed, inputs), expected);

  Program inlined = program;
  for (size_t t = 0; t < inlined.tes.size();) {
    const TensorId output = inlined.tes[t].outputs[0];
    const bool keep = !inlined.tes[t].IsMap() || inlined.tensors[output].role == Role::kOutput;
    if (keep) {
      ++t;
      continue;
    }
    ASSERT_TRUE(Inline(&inlined, output).ok());
    t = 0;
  }
  ASSERT_TRUE(Verify(inlined, BoundsProof::kInherited).ok()) << Verify(inlined, BoundsProof::kInherited);
  const std::vector<double> actual = Evaluate(inlined, inputs);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], 1e-4 * (1 + std::fabs(expected[i]))) << text << Print(inlined);
  }

  for (const Program* p : {&program, static_cast<const Program*>(&inlined)}) {
    const Program canonical = Canonicalize(*p);
    ASSERT_TRUE(Verify(canonical, BoundsProof::kInherited).ok()) << Verify(canonical, BoundsProof::kInherited);
    EXPECT_EQ(Print(Canonicalize(canonical)), Print(canonical));
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgramTest, ::testing::Range(0, 300));

}  // namespace
}  // namespace fusion::te
