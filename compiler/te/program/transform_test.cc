#include "compiler/te/program/transform.h"

#include <cmath>
#include <set>

#include "compiler/te/interpreter/interpreter.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

using ::testing::HasSubstr;
using Idx = Builder::Idx;

Scalar F(double value) { return Imm(DType::kF32, value); }

Tensor Wave(DType dtype, const Shape& shape) {
  Tensor t(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.SetDouble(i, std::sin(0.37 * static_cast<double>(i)) * 2);
  return t;
}

int64_t CountNodes(const Te& te) {
  std::set<const ScalarNode*> nodes;
  VisitScalars(te, [&](const Scalar& s) { Visit(s, [&](const ScalarNode& n) { nodes.insert(&n); }); });
  return static_cast<int64_t>(nodes.size());
}

void ExpectSameResults(const Program& a, const Program& b, double tolerance = 1e-5) {
  ASSERT_TRUE(Verify(b).ok()) << Verify(b);
  std::vector<Tensor> inputs;
  for (TensorId id : a.inputs) inputs.push_back(Wave(a.tensors[id].dtype, a.tensors[id].shape));
  const auto x = Interpret(a, inputs), y = Interpret(b, inputs);
  ASSERT_TRUE(x.ok()) << x.status();
  ASSERT_TRUE(y.ok()) << y.status();
  for (size_t o = 0; o < x->size(); ++o) {
    for (int64_t i = 0; i < (*x)[o].num_elements(); ++i) {
      ASSERT_NEAR((*x)[o].GetDouble(i), (*y)[o].GetDouble(i), tolerance) << Print(b);
    }
  }
}

// Inlines every map that is not an output.
void InlineAll(Program* program) {
  for (bool changed = true; changed;) {
    changed = false;
    for (const Te& te : program->tes) {
      if (!te.IsMap() || program->tensors[te.outputs[0]].role == Role::kOutput) continue;
      ASSERT_TRUE(Inline(program, TensorId(te.outputs[0])).ok());
      changed = true;
      break;
    }
  }
}

class TransformTest : public ::testing::Test {
 protected:
  TensorId Input(Shape shape, DType dtype = DType::kF32) {
    return program_.AddTensor("x", dtype, std::move(shape), Role::kInput);
  }
  TensorId Unary(TensorId x, const std::function<Scalar(Scalar)>& f) {
    return b_.Map("u", b_.info(x).dtype, b_.info(x).shape, [&](const Idx& i) { return f(b_.At(x, i)); });
  }
  TensorId Binary(Op op, TensorId x, TensorId y) {
    return b_.Map("b", b_.info(x).dtype, b_.info(x).shape, [&](const Idx& i) {
      return Call(op, {b_.At(x, i), b_.At(y, i)});
    });
  }
  // x * 0.5 * (1 + erf(x / sqrt 2)), one te per operator.
  TensorId Gelu(TensorId x) {
    const TensorId d = Unary(x, [](const Scalar& s) { return s / F(std::sqrt(2.0)); });
    const TensorId e = Unary(d, [](const Scalar& s) { return Call(Op::kErf, {s}); });
    const TensorId p = Unary(e, [](const Scalar& s) { return s + F(1); });
    return Unary(Binary(Op::kMul, x, p), [](const Scalar& s) { return s * F(0.5); });
  }
  // Normalises the rows of a matrix. The variance is that of x - mean, which is read twice.
  TensorId LayerNorm(TensorId x) {
    const Shape shape = b_.info(x).shape;
    const auto mean = [&](TensorId v) {
      return b_.Reduce(
          "mean", ReductionKind::kSum, DType::kF32, DType::kF32, {shape[0]}, {shape[1]},
          [&](const Idx& i, const Idx& r) {
            return b_.At(v, {i[0], r[0]});
          },
          [&](const Idx&, const Scalar& acc) { return acc / F(static_cast<double>(shape[1])); });
    };
    const TensorId m = mean(x);
    const TensorId d = b_.Map("d", DType::kF32, shape, [&](const Idx& i) { return b_.At(x, i) - b_.At(m, {i[0]}); });
    const TensorId v = mean(Binary(Op::kMul, d, d));
    return b_.Map("y", DType::kF32, shape,
                  [&](const Idx& i) { return b_.At(d, i) * Call(Op::kRsqrt, {b_.At(v, {i[0]}) + F(1e-5)}); });
  }

  Program program_;
  Builder b_{&program_};
};

TEST_F(TransformTest, InlinesGeluIntoOneExpression) {
  const TensorId x = Input({5, 7});
  program_.MarkOutput(Gelu(x));
  const Program before = program_;
  InlineAll(&program_);
  EXPECT_EQ(program_.tes.size(), 1);
  EXPECT_LE(CountNodes(program_.tes[0]), 10);  // x is loaded once
  ExpectSameResults(before, program_);
}

TEST_F(TransformTest, InlinesLayerNormIntoThreeExpressions) {
  const TensorId x = Input({3, 8});
  program_.MarkOutput(LayerNorm(x));
  const Program before = program_;
  InlineAll(&program_);
  EXPECT_EQ(program_.tes.size(), 3);
  ExpectSameResults(before, program_);
}

TEST_F(TransformTest, LongChainsThatReadTwiceStayLinear) {
  TensorId x = Input({4});
  for (int k = 0; k < 100; ++k) {
    const TensorId y = x;  // y * y through two separate loads
    x = b_.Map("c", DType::kF32, {4},
               [&](const Idx& i) { return b_.At(y, i) * F(0.5) + Call(Op::kTanh, {b_.At(y, i)}); });
  }
  program_.MarkOutput(x);
  const Program before = program_;
  InlineAll(&program_);
  ASSERT_EQ(program_.tes.size(), 1);
  EXPECT_LE(CountNodes(program_.tes[0]), 500);
  ExpectSameResults(before, program_);
  EXPECT_LT(Print(program_).size(), 20000);
}

TEST_F(TransformTest, InlineThroughAnIndexMap) {
  const TensorId x = Input({4, 6});
  const TensorId r = b_.Map("r", DType::kF32, {6, 4}, [&](const Idx& i) {
    return Call(Op::kExp, {b_.At(x, {i[1], i[0]})});
  });
  const TensorId y = b_.Map("y", DType::kF32, {24}, [&](const Idx& i) {
    return b_.At(r, {FloorDiv(i[0], 4), Mod(i[0], 4)});
  });
  program_.MarkOutput(y);
  const Program before = program_;
  ASSERT_TRUE(Inline(&program_, r).ok());
  EXPECT_EQ(program_.tes.size(), 1);
  ExpectSameResults(before, program_);
}

TEST_F(TransformTest, PaddedLoadBecomesIf) {  // relu before a padded convolution: outside, the pad, not relu(pad)
  const TensorId x = Input({6});
  const TensorId s = Unary(x, [](const Scalar& v) { return v + F(3); });
  program_.MarkOutput(b_.Reduce("conv", ReductionKind::kSum, DType::kF32, DType::kF32, {6}, {3},
                                [&](const Idx& i, const Idx& r) { return b_.AtOr(s, {i[0] + r[0] - 1}, 0); }));
  const Program before = program_;
  ASSERT_TRUE(Inline(&program_, s).ok());
  EXPECT_EQ(program_.tes.size(), 1);
  EXPECT_THAT(Print(program_), HasSubstr("if "));
  ExpectSameResults(before, program_);
}

TEST_F(TransformTest, PaddedLoadThatNeverLeavesNeedsNoIf) {
  const TensorId x = Input({6});
  const TensorId s = Unary(x, [](const Scalar& v) { return v + F(3); });
  program_.MarkOutput(b_.Map("y", DType::kF32, {6}, [&](const Idx& i) { return b_.AtOr(s, i, 0); }));
  ASSERT_TRUE(Inline(&program_, s).ok());
  EXPECT_THAT(Print(program_), ::testing::Not(HasSubstr("if ")));
}

TEST_F(TransformTest, HalfRoundingIsKept) {
  const TensorId x = Input({8}, DType::kF16);
  const TensorId s = Unary(x, [](const Scalar& v) { return v * Imm(DType::kF16, 1.3330078125); });
  const TensorId t = Unary(s, [](const Scalar& v) { return v + Imm(DType::kF16, 1000); });
  program_.MarkOutput(b_.Map("y", DType::kF32, {8},
                             [&](const Idx& i) { return Cast(DType::kF32, b_.At(t, i) - Imm(DType::kF16, 1000)); }));
  const Program before = program_;
  InlineAll(&program_);
  EXPECT_EQ(program_.tes.size(), 1);
  ExpectSameResults(before, program_, 0);
}

TEST_F(TransformTest, OutputsStay) {
  const TensorId x = Input({6});
  const TensorId s = Unary(x, [](const Scalar& v) { return v + F(3); });
  program_.MarkOutput(s);
  program_.MarkOutput(Unary(s, [](const Scalar& v) { return v * v; }));
  const Program before = program_;
  ASSERT_TRUE(Inline(&program_, s).ok());
  EXPECT_EQ(program_.tes.size(), 2);
  ExpectSameResults(before, program_);
}

TEST_F(TransformTest, BoundsStayProvableThroughAChannelShuffle) {  // Concat, Reshape, Transpose, Reshape, Split
  const TensorId x = Input({4, 58}), y = Input({4, 58});
  const TensorId folded_x = b_.Map("fx", DType::kF32, {8, 29}, [&](const Idx& i) {
    const Idx at = Delinearize(Linearize(i, {8, 29}), {4, 58});
    return b_.At(x, at) * F(2);
  });
  const TensorId cat = b_.Map("cat", DType::kF32, {4, 116}, [&](const Idx& i) {
    return If({{i[1], Cmp::kLt, Index(58)}}, b_.At(folded_x, Delinearize(i[0] * 58 + i[1], {8, 29})),
              b_.At(y, {i[0], i[1] - 58}));
  });
  const TensorId shuffled = b_.Map("sh", DType::kF32, {4, 116}, [&](const Idx& i) {
    return b_.At(cat, {i[0], Mod(i[1], 2) * 58 + FloorDiv(i[1], 2)});
  });
  program_.MarkOutput(b_.Map("half", DType::kF32, {4, 58}, [&](const Idx& i) {
    return b_.At(shuffled, {i[0], i[1] + 58});
  }));
  const Program before = program_;
  EXPECT_TRUE(Verify(before).ok()) << Verify(before);
  InlineAll(&program_);
  EXPECT_EQ(program_.tes.size(), 1);
  ExpectSameResults(before, program_);
}

TEST_F(TransformTest, RefusesReductionsAndIndexTensors) {
  const TensorId x = Input({6}), ids = Input({3}, DType::kI64);
  const TensorId sum = b_.Reduce("s", ReductionKind::kSum, DType::kF32, DType::kF32, {}, {6},
                                 [&](const Idx&, const Idx& r) { return b_.At(x, {r[0]}); });
  program_.MarkOutput(b_.Map("y", DType::kF32, {6}, [&](const Idx& i) { return b_.At(x, i) / b_.At(sum, {}); }));
  EXPECT_EQ(Inline(&program_, sum).code(), absl::StatusCode::kFailedPrecondition);
  const TensorId clamped = Unary(ids, [](const Scalar& v) { return Max(v, ImmInt(DType::kI64, 0)); });
  program_.MarkOutput(b_.Map("g", DType::kF32, {3}, [&](const Idx& i) {
    return b_.At(x, {Index::Load(clamped, i, {0, 5})});
  }));
  const std::string before = Print(program_);
  EXPECT_EQ(Inline(&program_, clamped).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Print(program_), before);
  EXPECT_EQ(Inline(&program_, x).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(TransformTest, RemoveDeadKeepsWhatOutputsNeed) {
  const TensorId x = Input({6});
  const TensorId a = Unary(x, [](const Scalar& v) { return v + F(1); });
  Unary(a, [](const Scalar& v) { return v + F(2); });
  program_.MarkOutput(Unary(a, [](const Scalar& v) { return v + F(3); }));
  RemoveDead(&program_);
  EXPECT_EQ(program_.tes.size(), 2);
  EXPECT_TRUE(Verify(program_).ok());
}

TEST_F(TransformTest, CanonicalFormKeepsTheMeaning) {
  const TensorId x = Input({3, 8}), y = Input({3, 8});
  program_.MarkOutput(Binary(Op::kSub, LayerNorm(x), Gelu(y)));
  const Program canonical = Canonicalize(program_);
  ASSERT_EQ(canonical.inputs.size(), 2);
  Program renamed = canonical;  // the canonical binding order may differ
  const Tensor a = Wave(DType::kF32, {3, 8});
  const auto p = Interpret(program_, {a, a}), q = Interpret(canonical, {a, a});
  ASSERT_TRUE(p.ok() && q.ok()) << q.status();
  for (int64_t i = 0; i < 24; ++i) ASSERT_EQ((*p)[0].GetDouble(i), (*q)[0].GetDouble(i));
  EXPECT_EQ(Print(Canonicalize(canonical)), Print(canonical));
}

// Two independent chains meet. They are built in either order, with the operands of the sum in either order.
std::string TwoChains(bool swapped, bool swap_inputs, double scale) {
  Program program;
  Builder b(&program);
  if (swapped) program.AddTensor("unused", DType::kF32, {1}, Role::kInput);
  TensorId x = -1, w = -1;
  const auto add_x = [&] { x = program.AddTensor(swapped ? "a" : "b", DType::kF32, {4, 8}, Role::kInput); };
  const auto add_w = [&] { w = program.AddTensor(swapped ? "c" : "d", DType::kF32, {4, 8}, Role::kInput); };
  if (swap_inputs) {
    add_w();
    add_x();
  } else {
    add_x();
    add_w();
  }
  TensorId p = -1, q = -1;
  const auto make_p = [&] {
    p = b.Map("p", DType::kF32, {4, 8}, [&](const Idx& i) { return Call(Op::kExp, {b.At(x, i)}) * F(scale); });
  };
  const auto make_q = [&] {
    q = b.Map("q", DType::kF32, {4, 8}, [&](const Idx& i) { return Call(Op::kTanh, {b.At(w, i)}) * F(scale); });
  };
  if (swapped) {
    make_q();
    make_p();
  } else {
    make_p();
    make_q();
  }
  program.MarkOutput(b.Map("s", DType::kF32, {4, 8},
                           [&](const Idx& i) { return swapped ? b.At(q, i) + b.At(p, i) : b.At(p, i) + b.At(q, i); }));
  return Print(Canonicalize(program));
}

TEST(CanonicalizeTest, OrderNamesAndBindingDoNotMatter) {
  const std::string expected = TwoChains(false, false, 2);
  EXPECT_EQ(TwoChains(true, false, 2), expected);
  EXPECT_EQ(TwoChains(false, true, 2), expected);
  EXPECT_EQ(TwoChains(true, true, 2), expected);
  EXPECT_NE(TwoChains(false, false, 3), expected);
}

TEST(CanonicalizeTest, InputsOfOneTypeStayApart) {
  const auto build = [](bool same, bool swapped) {
    Program program;
    Builder b(&program);
    const TensorId x = program.AddTensor("x", DType::kF32, {4}, Role::kInput);
    const TensorId y = program.AddTensor("y", DType::kF32, {4}, Role::kInput);
    program.MarkOutput(b.Map("z", DType::kF32, {4}, [&](const Idx& i) {
      const Scalar l = b.At(swapped ? y : x, i), r = b.At(same ? x : swapped ? x : y, i);
      return l * l - r;
    }));
    return Print(Canonicalize(program));
  };
  EXPECT_NE(build(true, false), build(false, false));
  EXPECT_EQ(build(false, true), build(false, false));
}

TEST(CanonicalizeTest, WeightsDoNotMatterTypesDo) {
  const auto build = [](double value, DType dtype) {
    Program program;
    Builder b(&program);
    const TensorId x = program.AddTensor("x", dtype, {4}, Role::kInput);
    const TensorId c = b.Constant("c", Tensor::From<double>(dtype, {4}, {value, 1, 2, 3}));
    program.MarkOutput(b.Map("z", dtype, {4}, [&](const Idx& i) { return b.At(x, i) * b.At(c, i); }));
    return Print(Canonicalize(program));
  };
  EXPECT_EQ(build(1, DType::kF32), build(2, DType::kF32));
  EXPECT_NE(build(1, DType::kF32), build(1, DType::kF64));
}

TEST_F(TransformTest, Dependence) {
  const TensorId x = Input({4, 8}), bias = Input({4}), other = Input({4});
  b_.Reduce(
      "s", ReductionKind::kSum, DType::kF32, DType::kF32, {4}, {8},
      [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      },
      [&](const Idx& i, const Scalar& acc) { return acc + b_.At(bias, i); });
  EXPECT_EQ(DependenceOf(program_.tes[0], x), Dependence::kMany);
  EXPECT_EQ(DependenceOf(program_.tes[0], bias), Dependence::kOne);
  EXPECT_EQ(DependenceOf(program_.tes[0], other), Dependence::kNone);
}

TEST_F(TransformTest, WorkOfAMatMulIsItsMultiplyAdds) {
  const TensorId a = Input({4, 8}), w = Input({8, 16});
  b_.Reduce("c", ReductionKind::kSum, DType::kF32, DType::kF32, {4, 16}, {8}, [&](const Idx& i, const Idx& r) {
    return b_.At(a, {i[0], r[0]}) * b_.At(w, {r[0], i[1]});
  });
  const WorkCount work = CountWork(program_.tes[0]);
  EXPECT_EQ(work.elements, 512);
  EXPECT_EQ(work.fma, 512);
  EXPECT_EQ(work.special, 0);
}

TEST_F(TransformTest, WorkSeparatesSpecialFunctions) {
  const TensorId x = Input({10});
  Unary(x, [](const Scalar& s) { return Call(Op::kExp, {s}) + F(1.5); });
  const WorkCount work = CountWork(program_.tes[0]);
  EXPECT_EQ(work.fma, 10);
  EXPECT_EQ(work.special, 10 * GetOpInfo(Op::kExp).cost);
}

}  // namespace
}  // namespace fusion::te
