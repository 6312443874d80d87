#include "compiler/te/interpreter/interpreter.h"

#include <cmath>
#include <limits>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion::te {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Idx = Builder::Idx;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::vector<double> Values(const Tensor& t) {
  std::vector<double> values;
  for (int64_t i = 0; i < t.num_elements(); ++i) values.push_back(IsFloat(t.dtype()) ? t.GetDouble(i) : t.GetInt(i));
  return values;
}

Tensor F32(const Shape& shape, const std::vector<double>& values) { return Tensor::From(DType::kF32, shape, values); }

Tensor Wave(const Shape& shape) {
  Tensor t(DType::kF32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.SetDouble(i, std::sin(0.37 * static_cast<double>(i)) * 2);
  return t;
}

class InterpreterTest : public ::testing::Test {
 protected:
  TensorId Input(DType dtype, Shape shape) { return program_.AddTensor("x", dtype, std::move(shape), Role::kInput); }
  std::vector<Tensor> Run(const std::vector<Tensor>& inputs) {
    EXPECT_TRUE(Verify(program_).ok()) << Verify(program_);
    auto outputs = Interpret(program_, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? *outputs : std::vector<Tensor>(program_.outputs.size(), Tensor(DType::kF32, {0}));
  }
  // Applies one scalar function to one input.
  std::vector<double> Apply(DType in, DType out, const std::vector<double>& values,
                            const std::function<Scalar(Scalar)>& f) {
    program_ = Program();
    const Shape shape = {static_cast<int64_t>(values.size())};
    const TensorId x = Input(in, shape);
    program_.MarkOutput(b_.Map("y", out, shape, [&](const Idx& i) { return f(b_.At(x, i)); }));
    return Values(Run({Tensor::From(in, shape, values)})[0]);
  }

  Program program_;
  Builder b_{&program_};
};

TEST_F(InterpreterTest, MapWithBroadcast) {
  const TensorId x = Input(DType::kF32, {2, 3}), y = Input(DType::kF32, {3});
  program_.MarkOutput(b_.Map("z", DType::kF32, {2, 3}, [&](const Idx& i) { return b_.At(x, i) + b_.At(y, {i[1]}); }));
  EXPECT_THAT(Values(Run({F32({2, 3}, {1, 2, 3, 4, 5, 6}), F32({3}, {10, 20, 30})})[0]),
              ElementsAre(11, 22, 33, 14, 25, 36));
}

TEST_F(InterpreterTest, MatMulOverManyStrips) {
  const int64_t m = 37, n = 61, k = 29;
  const TensorId a = Input(DType::kF32, {m, k}), w = Input(DType::kF32, {k, n});
  program_.MarkOutput(
      b_.Reduce("c", ReductionKind::kSum, DType::kF32, DType::kF32, {m, n}, {k}, [&](const Idx& i, const Idx& r) {
        return b_.At(a, {i[0], r[0]}) * b_.At(w, {r[0], i[1]});
      }));
  const Tensor ta = Wave({m, k}), tw = Wave({k, n});
  const Tensor c = Run({ta, tw})[0];
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum += ta.GetDouble(i * k + p) * tw.GetDouble(p * n + j);
      ASSERT_FLOAT_EQ(c.GetDouble(i * n + j), sum) << i << "," << j;
    }
  }
}

TEST_F(InterpreterTest, ConvolutionWithPaddingStrideAndDilation) {
  const int64_t c = 3, h = 7, w = 9, o = 4, oh = 4, ow = 5;
  const TensorId x = Input(DType::kF32, {1, c, h, w}), f = Input(DType::kF32, {o, c, 3, 3});
  program_.MarkOutput(b_.Reduce("y", ReductionKind::kSum, DType::kF32, DType::kF32, {1, o, oh, ow}, {c, 3, 3},
                                [&](const Idx& i, const Idx& r) {
                                  return b_.AtOr(x, {i[0], r[0], i[2] * 2 + r[1] * 2 - 2, i[3] * 2 + r[2] - 1}, 0) *
                                         b_.At(f, {i[1], r[0], r[1], r[2]});
                                }));
  const Tensor tx = Wave({1, c, h, w}), tf = Wave({o, c, 3, 3});
  const Tensor y = Run({tx, tf})[0];
  int64_t at = 0;
  for (int64_t oc = 0; oc < o; ++oc) {
    for (int64_t yy = 0; yy < oh; ++yy) {
      for (int64_t xx = 0; xx < ow; ++xx) {
        double sum = 0;
        for (int64_t ic = 0; ic < c; ++ic) {
          for (int64_t kh = 0; kh < 3; ++kh) {
            for (int64_t kw = 0; kw < 3; ++kw) {
              const int64_t iy = yy * 2 + kh * 2 - 2, ix = xx * 2 + kw - 1;
              if (iy < 0 || iy >= h || ix < 0 || ix >= w) continue;
              sum += tx.GetDouble((ic * h + iy) * w + ix) * tf.GetDouble(((oc * c + ic) * 3 + kh) * 3 + kw);
            }
          }
        }
        ASSERT_NEAR(y.GetDouble(at++), sum, 1e-5);
      }
    }
  }
}

TEST_F(InterpreterTest, SoftmaxRows) {
  const TensorId x = Input(DType::kF32, {2, 3});
  const TensorId m =
      b_.Reduce("m", ReductionKind::kMax, DType::kF32, DType::kF32, {2}, {3}, [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      });
  const TensorId e =
      b_.Map("e", DType::kF32, {2, 3}, [&](const Idx& i) { return Call(Op::kExp, {b_.At(x, i) - b_.At(m, {i[0]})}); });
  const TensorId s =
      b_.Reduce("s", ReductionKind::kSum, DType::kF32, DType::kF32, {2}, {3}, [&](const Idx& i, const Idx& r) {
        return b_.At(e, {i[0], r[0]});
      });
  program_.MarkOutput(b_.Map("y", DType::kF32, {2, 3}, [&](const Idx& i) { return b_.At(e, i) / b_.At(s, {i[0]}); }));
  const Tensor y = Run({F32({2, 3}, {0, 1, 2, 5, 5, 5})})[0];
  const double z = 1 + std::exp(1) + std::exp(2);
  EXPECT_NEAR(y.GetDouble(0), 1 / z, 1e-7);
  EXPECT_NEAR(y.GetDouble(2), std::exp(2) / z, 1e-7);
  EXPECT_NEAR(y.GetDouble(4), 1.0 / 3, 1e-7);
}

TEST_F(InterpreterTest, ThenIsAppliedAfterTheReduction) {
  const TensorId x = Input(DType::kF32, {2, 4}), scale = Input(DType::kF32, {2});
  program_.MarkOutput(b_.Reduce(
      "mean", ReductionKind::kSum, DType::kF32, DType::kF32, {2}, {4},
      [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      },
      [&](const Idx& i, const Scalar& acc) { return acc / Imm(DType::kF32, 4) * b_.At(scale, i); }));
  EXPECT_THAT(Values(Run({F32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}), F32({2}, {1, 10})})[0]), ElementsAre(2.5, 65));
}

TEST_F(InterpreterTest, ArgMaxKeepsTheFirstAndSeesBothAccumulators) {
  const TensorId x = Input(DType::kF32, {2, 4});
  const auto outputs = b_.GeneralReduction(
      "argmax", {DType::kF32, DType::kI64}, {2}, {4}, {Imm(DType::kF32, -kInf), ImmInt(DType::kI64, 0)},
      [&](const Idx& i, const Idx& r, const std::vector<Scalar>& acc) {
        const Scalar value = b_.At(x, {i[0], r[0]});
        const Scalar better = Call(Op::kGt, {value, acc[0]});
        return std::vector<Scalar>{Select(better, value, acc[0]), Select(better, FromIndex(r[0]), acc[1])};
      });
  for (TensorId output : outputs) program_.MarkOutput(output);
  const auto result = Run({F32({2, 4}, {1, 7, 7, 3, -2, -3, -1, -9})});
  EXPECT_THAT(Values(result[0]), ElementsAre(7, -1));
  EXPECT_THAT(Values(result[1]), ElementsAre(1, 2));
}

TEST_F(InterpreterTest, GeneralReductionIsSequentialAndSimultaneous) {  // (a, b) -> (b, a + b)
  const auto outputs =
      b_.GeneralReduction("fib", {DType::kI64, DType::kI64}, {}, {10}, {ImmInt(DType::kI64, 0), ImmInt(DType::kI64, 1)},
                          [&](const Idx&, const Idx&, const std::vector<Scalar>& acc) {
                            return std::vector<Scalar>{acc[1], acc[0] + acc[1]};
                          });
  for (TensorId output : outputs) program_.MarkOutput(output);
  const auto result = Run({});
  EXPECT_THAT(Values(result[0]), ElementsAre(55));
  EXPECT_THAT(Values(result[1]), ElementsAre(89));
}

TEST_F(InterpreterTest, ThenAfterAGeneralReductionReadsFinalAccumulators) {
  // The same expression occurs in the update and in `then`: the second must see the last value.
  const auto twice = [](const Scalar& s) { return s * Imm(DType::kF32, 2); };
  const auto outputs = b_.GeneralReduction(
      "p", {DType::kF32}, {1}, {3}, {Imm(DType::kF32, 1)},
      [&](const Idx&, const Idx&, const std::vector<Scalar>& acc) { return std::vector<Scalar>{twice(acc[0])}; },
      [&](const Idx&, const std::vector<Scalar>& acc) { return std::vector<Scalar>{twice(acc[0])}; });
  program_.MarkOutput(outputs[0]);
  EXPECT_THAT(Values(Run({})[0]), ElementsAre(16));
}

TEST_F(InterpreterTest, EmptyReductionGivesTheIdentity) {
  const TensorId x = Input(DType::kF32, {2, 0}), k = Input(DType::kI8, {2, 0});
  for (ReductionKind kind : {ReductionKind::kSum, ReductionKind::kProd, ReductionKind::kMax, ReductionKind::kMin}) {
    program_.MarkOutput(b_.Reduce("f", kind, DType::kF32, DType::kF32, {2}, {0}, [&](const Idx& i, const Idx& r) {
      return b_.At(x, {i[0], r[0]});
    }));
    program_.MarkOutput(b_.Reduce("i", kind, DType::kI8, DType::kI8, {2}, {0}, [&](const Idx& i, const Idx& r) {
      return b_.At(k, {i[0], r[0]});
    }));
  }
  const auto result = Run({Tensor(DType::kF32, {2, 0}), Tensor(DType::kI8, {2, 0})});
  EXPECT_THAT(Values(result[0]), ElementsAre(0, 0));
  EXPECT_THAT(Values(result[1]), ElementsAre(0, 0));
  EXPECT_THAT(Values(result[2]), ElementsAre(1, 1));
  EXPECT_THAT(Values(result[4]), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(Values(result[5]), ElementsAre(-128, -128));
  EXPECT_THAT(Values(result[6]), ElementsAre(kInf, kInf));
  EXPECT_THAT(Values(result[7]), ElementsAre(127, 127));
}

TEST_F(InterpreterTest, EmptyDomain) {
  const TensorId x = Input(DType::kF32, {0, 4});
  program_.MarkOutput(b_.Map("y", DType::kF32, {0, 4}, [&](const Idx& i) { return b_.At(x, i); }));
  EXPECT_EQ(Run({Tensor(DType::kF32, {0, 4})})[0].shape(), (Shape{0, 4}));
}

TEST_F(InterpreterTest, ReductionPredicateSkips) {
  const TensorId x = Input(DType::kF32, {3, 3});
  const TensorId y =
      b_.Reduce("tril", ReductionKind::kMax, DType::kF32, DType::kF32, {3}, {3}, [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      });
  Te& te = program_.tes.back();
  te.reduction->pred = {{Index(te.reduction->axes[0]), Cmp::kLt, Index(te.axes[0]) + 1}};
  program_.MarkOutput(y);
  EXPECT_THAT(Values(Run({F32({3, 3}, {1, 9, 9, 4, 2, 9, 1, 2, 3})})[0]), ElementsAre(1, 4, 3));
}

TEST_F(InterpreterTest, IfIsLazyAndProvesBounds) {  // Concat
  const TensorId x = Input(DType::kF32, {2}), y = Input(DType::kF32, {3});
  program_.MarkOutput(b_.Map("z", DType::kF32, {5}, [&](const Idx& i) {
    return If({{i[0], Cmp::kLt, Index(2)}}, b_.At(x, i), b_.At(y, {i[0] - 2}));
  }));
  EXPECT_THAT(Values(Run({F32({2}, {1, 2}), F32({3}, {3, 4, 5})})[0]), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(InterpreterTest, NestedIfs) {  // Concat of three
  const TensorId x = Input(DType::kF32, {2}), y = Input(DType::kF32, {1}), z = Input(DType::kF32, {2});
  program_.MarkOutput(b_.Map("c", DType::kF32, {5}, [&](const Idx& i) {
    return If({{i[0], Cmp::kLt, Index(2)}}, b_.At(x, i),
              If({{i[0], Cmp::kLt, Index(3)}}, b_.At(y, {i[0] - 2}), b_.At(z, {i[0] - 3})));
  }));
  EXPECT_THAT(Values(Run({F32({2}, {1, 2}), F32({1}, {3}), F32({2}, {4, 5})})[0]), ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(InterpreterTest, GatherChecksItsIndices) {
  const TensorId x = program_.AddTensor("table", DType::kF32, {4, 2}, Role::kInput);
  const TensorId ids = program_.AddTensor("ids", DType::kI64, {3}, Role::kInput);
  program_.MarkOutput(b_.Map("y", DType::kF32, {3, 2}, [&](const Idx& i) {
    return b_.At(x, {Index::Load(ids, {i[0]}, {0, 3}), i[1]});
  }));
  const Tensor table = F32({4, 2}, {0, 1, 10, 11, 20, 21, 30, 31});
  EXPECT_THAT(Values(Run({table, Tensor::From<int64_t>(DType::kI64, {3}, {3, 0, 1})})[0]),
              ElementsAre(30, 31, 0, 1, 10, 11));
  const auto bad = Interpret(program_, {table, Tensor::From<int64_t>(DType::kI64, {3}, {3, 4, 1})});
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("index 4 read from %1 'ids' is outside [0, 3]"));
}

TEST_F(InterpreterTest, BranchNotTakenMayIndexAnywhere) {
  const TensorId x = Input(DType::kF32, {4}), ids = Input(DType::kI32, {3});
  program_.MarkOutput(b_.Map("y", DType::kF32, {3}, [&](const Idx& i) {
    return If({{i[0], Cmp::kLt, Index(2)}}, b_.At(x, {Index::Load(ids, i, {0, 3})}), Imm(DType::kF32, -1));
  }));
  EXPECT_THAT(Values(Run({F32({4}, {5, 6, 7, 8}), Tensor::From<int>(DType::kI32, {3}, {1, 2, 1 << 30})})[0]),
              ElementsAre(6, 7, -1));
}

TEST_F(InterpreterTest, LoadOutsideTheBoxIsAnErrorNotACrash) {
  const TensorId x = program_.AddTensor("x", DType::kF32, {4}, Role::kInput);
  program_.MarkOutput(b_.Map("y", DType::kF32, {4}, [&](const Idx& i) { return b_.At(x, {i[0] + 1}); }));
  EXPECT_EQ(Verify(program_).code(), absl::StatusCode::kInternal);
  const auto bad = Interpret(program_, {F32({4}, {1, 2, 3, 4})});
  EXPECT_EQ(bad.status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("index 4 in dimension 0 of %0 'x'"));
}

TEST_F(InterpreterTest, PadsWithTheGivenValue) {
  const TensorId x = Input(DType::kI32, {2});
  program_.MarkOutput(b_.Map("y", DType::kI32, {4}, [&](const Idx& i) { return b_.AtOr(x, {i[0] - 1}, -7); }));
  EXPECT_THAT(Values(Run({Tensor::From<int>(DType::kI32, {2}, {1, 2})})[0]), ElementsAre(-7, 1, 2, -7));
}

TEST_F(InterpreterTest, IndexArithmetic) {  // transpose through a reshape: (i) -> x[i % 3, i // 3]
  const TensorId x = Input(DType::kI32, {3, 2});
  program_.MarkOutput(b_.Map("y", DType::kI32, {6}, [&](const Idx& i) {
    return b_.At(x, {Mod(i[0], 3), FloorDiv(i[0], 3)});
  }));
  EXPECT_THAT(Values(Run({Tensor::From<int>(DType::kI32, {3, 2}, {0, 1, 2, 3, 4, 5})})[0]),
              ElementsAre(0, 2, 4, 1, 3, 5));
}

TEST_F(InterpreterTest, FloatOperations) {
  const auto unary = [&](Op op, double x) {
    return Apply(DType::kF64, DType::kF64, {x}, [&](const Scalar& s) { return Call(op, {s}); })[0];
  };
  EXPECT_EQ(unary(Op::kRound, 2.5), 2);
  EXPECT_EQ(unary(Op::kRound, -1.5), -2);
  EXPECT_EQ(unary(Op::kErf, 0.5), std::erf(0.5));
  EXPECT_EQ(unary(Op::kSign, -3), -1);
  EXPECT_EQ(unary(Op::kRsqrt, 4), 0.5);
  const auto binary = [&](Op op, double x, double y) {
    return Apply(DType::kF64, DType::kF64, {x}, [&](const Scalar& s) { return Call(op, {s, Imm(DType::kF64, y)}); })[0];
  };
  EXPECT_EQ(binary(Op::kMod, -5.5, 3), 0.5);
  EXPECT_EQ(binary(Op::kFMod, -5.5, 3), -2.5);
  EXPECT_TRUE(std::isnan(binary(Op::kMax, std::nan(""), 3)));
  EXPECT_TRUE(std::isnan(binary(Op::kMin, 3, std::nan(""))));
}

TEST_F(InterpreterTest, IntegersWrapToTheirType) {
  const auto plus = [](DType t, int64_t v) { return [=](const Scalar& s) { return s + ImmInt(t, v); }; };
  EXPECT_THAT(Apply(DType::kI8, DType::kI8, {127}, plus(DType::kI8, 1)), ElementsAre(-128));
  EXPECT_THAT(Apply(DType::kU8, DType::kU8, {250}, plus(DType::kU8, 10)), ElementsAre(4));
  // The result of each operation wraps, not only the stored value.
  EXPECT_THAT(Apply(DType::kU8, DType::kI64, {250},
                    [&](const Scalar& s) { return Cast(DType::kI64, s + ImmInt(DType::kU8, 10)); }),
              ElementsAre(4));
}

TEST_F(InterpreterTest, IntegerDivision) {
  const auto by = [](Op op, DType t, int64_t v) {
    return [=](const Scalar& s) { return Call(op, {s, ImmInt(t, v)}); };
  };
  EXPECT_THAT(Apply(DType::kI32, DType::kI32, {-7, 7}, by(Op::kDiv, DType::kI32, 2)), ElementsAre(-3, 3));
  EXPECT_THAT(Apply(DType::kI32, DType::kI32, {-7, 7}, by(Op::kDiv, DType::kI32, 0)), ElementsAre(0, 0));
  EXPECT_THAT(Apply(DType::kI32, DType::kI32, {-7, 7}, by(Op::kMod, DType::kI32, 3)), ElementsAre(2, 1));
  EXPECT_THAT(Apply(DType::kI32, DType::kI32, {-7, 7}, by(Op::kFMod, DType::kI32, 3)), ElementsAre(-1, 1));
  EXPECT_THAT(Apply(DType::kI32, DType::kI32, {-3, 2}, by(Op::kPow, DType::kI32, 3)), ElementsAre(-27, 8));
  EXPECT_THAT(Apply(DType::kI32, DType::kI32, {-7}, by(Op::kShl, DType::kI32, 40)), ElementsAre(0));
}

TEST_F(InterpreterTest, Unsigned64ComparesAndDividesUnsigned) {
  const auto big = [](const Scalar& s) { return Call(Op::kGt, {Call(Op::kBitNot, {s}), ImmInt(DType::kU64, 5)}); };
  EXPECT_THAT(Apply(DType::kU64, DType::kBool, {0}, big), ElementsAre(1));
  EXPECT_THAT(Apply(DType::kU64, DType::kF64, {0},
                    [](const Scalar& s) { return Cast(DType::kF64, Call(Op::kBitNot, {s}) / ImmInt(DType::kU64, 2)); }),
              ElementsAre(9223372036854775808.0));
}

TEST_F(InterpreterTest, Casts) {
  const auto to = [](DType t) { return [=](const Scalar& s) { return Cast(t, s); }; };
  EXPECT_THAT(Apply(DType::kF32, DType::kI32, {-1.7, 2.9}, to(DType::kI32)), ElementsAre(-1, 2));
  EXPECT_THAT(Apply(DType::kF32, DType::kBool, {0, 0.25}, to(DType::kBool)), ElementsAre(0, 1));
  EXPECT_THAT(Apply(DType::kI32, DType::kI8, {300}, to(DType::kI8)), ElementsAre(44));
  EXPECT_THAT(
      Apply(DType::kF64, DType::kF64, {0.1}, [](const Scalar& s) { return Cast(DType::kF64, Cast(DType::kF32, s)); }),
      ElementsAre(static_cast<double>(0.1f)));
  EXPECT_THAT(
      Apply(DType::kF32, DType::kF32, {2049}, [](const Scalar& s) { return Cast(DType::kF32, Cast(DType::kF16, s)); }),
      ElementsAre(2048));
}

// 2^54 + 2^30 + 1 lies above the middle of two f32, which f64 would make of it.
TEST_F(InterpreterTest, LongIntegersRoundOnceToFloats) {
  const int64_t above_a_tie = (int64_t{1} << 54) + (int64_t{1} << 30) + 1;
  Tensor x(DType::kI64, {2});
  x.SetInt(0, above_a_tie);
  x.SetInt(1, -above_a_tie);
  const TensorId in = Input(DType::kI64, {2});
  program_.MarkOutput(
      b_.Map("cast", DType::kF32, {2}, [&](const Idx& i) { return Cast(DType::kF32, b_.At(in, i)); }));
  const double next = std::ldexp(1, 54) + std::ldexp(1, 31);
  EXPECT_THAT(Values(Run({x})[0]), ElementsAre(next, -next));
}

TEST_F(InterpreterTest, HalfSumsInTheAccumulatorsType) {
  const TensorId x = Input(DType::kF16, {4096});
  program_.MarkOutput(b_.Reduce("s", ReductionKind::kSum, DType::kF16, DType::kF32, {}, {4096},
                                [&](const Idx&, const Idx& r) { return b_.At(x, {r[0]}); }));
  EXPECT_THAT(Values(Run({Tensor::From(DType::kF16, {4096}, std::vector<double>(4096, 1))})[0]), ElementsAre(4096));
}

TEST_F(InterpreterTest, ConstantsNeedNotBePassed) {
  const TensorId x = Input(DType::kF32, {2});
  const TensorId c = b_.Constant("c", F32({2}, {10, 20}));
  program_.MarkOutput(b_.Map("y", DType::kF32, {2}, [&](const Idx& i) { return b_.At(x, i) * b_.At(c, i); }));
  EXPECT_THAT(Values(Run({F32({2}, {1, 2}), Tensor()})[0]), ElementsAre(10, 40));
}

TEST_F(InterpreterTest, RejectsOtherTypesAndShapes) {
  const TensorId x = program_.AddTensor("x", DType::kF32, {2}, Role::kInput);
  program_.MarkOutput(b_.Map("y", DType::kF32, {2}, [&](const Idx& i) { return b_.At(x, i); }));
  EXPECT_EQ(Interpret(program_, {}).status().code(), absl::StatusCode::kInvalidArgument);
  const auto bad = Interpret(program_, {Tensor(DType::kF64, {2})});
  EXPECT_THAT(std::string(bad.status().message()), HasSubstr("input %0 'x' is f32[2], given f64[2]"));
}

TEST_F(InterpreterTest, SharedBodiesAreLinear) {  // 200 doublings; as a tree, 2^200 nodes
  const TensorId x = Input(DType::kF64, {1});
  program_.MarkOutput(b_.Map("y", DType::kF64, {1}, [&](const Idx& i) {
    Scalar s = b_.At(x, i);
    for (int k = 0; k < 200; ++k) s = s + s;
    return s;
  }));
  EXPECT_THAT(Values(Run({Tensor::From<double>(DType::kF64, {1}, {1})})[0]), ElementsAre(std::ldexp(1.0, 200)));
}

TEST_F(InterpreterTest, VerifyCatchesWrongTypesAndOrder) {
  const TensorId x = Input(DType::kF32, {2});
  const TensorId y = b_.Map("y", DType::kF32, {2}, [&](const Idx& i) { return b_.At(x, i); });
  program_.MarkOutput(y);
  ASSERT_TRUE(Verify(program_).ok()) << Verify(program_);
  Program wrong = program_;
  wrong.tensors[y].dtype = DType::kI32;
  EXPECT_THAT(std::string(Verify(wrong).message()), HasSubstr("a body is f32 where i32 is needed"));
  wrong = program_;
  wrong.tes.push_back(wrong.tes[0]);
  EXPECT_THAT(std::string(Verify(wrong).message()), HasSubstr("defined twice"));
  wrong = program_;
  wrong.inputs.clear();
  EXPECT_THAT(std::string(Verify(wrong).message()), HasSubstr("read before it is defined"));
}

// Perturbed runs show the digits that a difference of two nearly equal numbers loses. Sums of small integers do not
// move.
// A BitCast shows the bits of a NaN, whose sign no operator defines.
TEST(PerturbedRoutine, ReadsNansOfEitherSign) {
  const auto program = Parse(R"(te p(%0: f32[2]) {
  %1: u32[2] = routine bit_cast(%0) {2, 2} tasks 1 scratch 0
  return %1
})");
  ASSERT_TRUE(program.ok()) << program.status();
  std::set<int64_t> nans, numbers;
  const Tensor input = F32({2}, {std::nan(""), -2});
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    const auto outputs = Interpret(*program, {input}, {.perturb_seed = seed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    nans.insert((*outputs)[0].GetInt(0));
    numbers.insert((*outputs)[0].GetInt(1));
    EXPECT_FALSE(std::signbit(input.GetDouble(0))) << seed << ": the input keeps its NaN";
  }
  EXPECT_EQ(nans.size(), 2u);
  EXPECT_EQ(numbers.size(), 1u);
}

TEST_F(InterpreterTest, PerturbedRunsShowWhatRoundingDecides) {
  const TensorId x = Input(DType::kF32, {2});
  program_.MarkOutput(b_.Map("exact", DType::kF32, {2},
                             [&](const Idx& i) { return b_.At(x, i) * b_.At(x, i) + Imm(DType::kF32, 0.125); }));
  program_.MarkOutput(b_.Map("cancelled", DType::kF32, {2}, [&](const Idx& i) {
    const Scalar third = b_.At(x, i) / Imm(DType::kF32, 3);
    return (Imm(DType::kF32, 1000) + third) - Imm(DType::kF32, 1000);
  }));
  program_.MarkOutput(b_.Map("cast", DType::kI8, {2},
                             [&](const Idx& i) { return Cast(DType::kI8, b_.At(x, i) * Imm(DType::kF32, 50)); }));
  const std::vector<Tensor> inputs = {Tensor::From<double>(DType::kF32, {2}, {2, 5})};
  double spread = 0;
  bool anything = false;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto outputs = Interpret(program_, inputs, {.perturb_seed = seed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_THAT(Values((*outputs)[0]), ElementsAre(4.125, 25.125));
    spread = std::max(spread, std::fabs((*outputs)[1].GetDouble(0) - 2.0 / 3));
    EXPECT_EQ((*outputs)[2].GetInt(0), 100);
    anything |= (*outputs)[2].GetInt(1) != 127;  // 250 does not fit
  }
  EXPECT_GT(spread, 1e-5);
  EXPECT_LT(spread, 1e-3);
  EXPECT_TRUE(anything);
}

// 0.25 + 1e-30 is 0.25 to nearest, in every precision at hand. It is a rounded result all the same: in another order
// 1e-30 is left. 0.25 + 0.5 - 0.75 is 0 in any order.
TEST_F(InterpreterTest, ASumThatLosesAnOperandIsNotExact) {
  const TensorId x = Input(DType::kF32, {2, 3});
  const TensorId y = Input(DType::kF64, {2, 3});
  const auto at = [&](TensorId t, const Idx& i, int64_t k) { return b_.At(t, {i[0], te::Index(k)}); };
  for (const TensorId t : {x, y}) {
    const DType dtype = t == x ? DType::kF32 : DType::kF64;
    program_.MarkOutput(b_.Map("sum", dtype, {2}, [&](const Idx& i) { return at(t, i, 0) + at(t, i, 1) + at(t, i, 2); }));
    program_.MarkOutput(
        b_.Map("difference", dtype, {2}, [&](const Idx& i) { return at(t, i, 0) - at(t, i, 1) - at(t, i, 2); }));
    program_.MarkOutput(b_.Reduce("reduced", ReductionKind::kSum, dtype, dtype, {2}, {3},
                                  [&](const Idx& i, const Idx& r) { return b_.At(t, {i[0], r[0]}); }));
  }
  const std::vector<double> values = {1e-30, 0.25, -0.25, 0.25, 0.5, -0.75};
  const std::vector<Tensor> inputs = {Tensor::From<double>(DType::kF32, {2, 3}, values),
                                      Tensor::From<double>(DType::kF64, {2, 3}, values)};
  std::vector<double> spreads(6);
  for (uint64_t run = 1; run <= 8; ++run) {
    const auto outputs = Interpret(program_, inputs, {.perturb_seed = run * 0x9e3779b97f4a7c15u});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    for (size_t o = 0; o < outputs->size(); ++o) {
      spreads[o] = std::max(spreads[o], std::fabs((*outputs)[o].GetDouble(0)));
      EXPECT_EQ((*outputs)[o].GetDouble(1), o % 3 == 1 ? 0.5 : 0) << o;
    }
  }
  for (size_t o = 0; o < spreads.size(); ++o) {
    const double unit = o < 3 ? 0x1p-23 : 0x1p-52;
    EXPECT_GT(spreads[o], unit / 64) << o;
    EXPECT_LT(spreads[o], unit) << o;
  }
}

// A machine's function errs alike on equal operands. Drawn one by one, 64 saturated results would never all be below 1.
TEST_F(InterpreterTest, FunctionsErrAlikeInSomeRuns) {
  const TensorId x = Input(DType::kF32, {64});
  program_.MarkOutput(b_.Map("tanh", DType::kF32, {64}, [&](const Idx& i) { return Call(Op::kTanh, {b_.At(x, i)}); }));
  const std::vector<Tensor> inputs = {Tensor::From<double>(DType::kF32, {64}, std::vector<double>(64, 30))};
  int below = 0, mixed = 0;
  for (uint64_t run = 1; run <= 32; ++run) {
    const auto outputs = Interpret(program_, inputs, {.perturb_seed = run * 0x9e3779b97f4a7c15u});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    const std::vector<double> values = Values((*outputs)[0]);
    const auto less = std::count_if(values.begin(), values.end(), [](double value) { return value < 1; });
    below += less == 64 ? 1 : 0;
    mixed += less > 0 && less < 64 ? 1 : 0;
  }
  EXPECT_GT(below, 2);
  EXPECT_GT(mixed, 8);
}

// A cast of a number that does not fit often saturates, as machines do: the extreme of a wide type would hardly be
// drawn.
TEST_F(InterpreterTest, PerturbedCastsSaturateOften) {
  const TensorId x = Input(DType::kF64, {1});
  program_.MarkOutput(b_.Map("cast", DType::kU64, {1}, [&](const Idx& i) { return Cast(DType::kU64, b_.At(x, i)); }));
  const std::vector<Tensor> inputs = {Tensor::From<double>(DType::kF64, {1}, {1e30})};
  int saturated = 0, other = 0;
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const auto outputs = Interpret(program_, inputs, {.perturb_seed = seed * 0x9e3779b97f4a7c15u});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    ++((*outputs)[0].GetInt(0) == -1 ? saturated : other);
  }
  EXPECT_GT(saturated, 4);
  EXPECT_GT(other, 16);
}

// Each of 64 thirds is unmoved in some runs. All of them are unmoved at once only in runs in which few results move.
TEST_F(InterpreterTest, SparselyPerturbedRunsMoveFewResults) {
  const TensorId x = Input(DType::kF64, {64});
  program_.MarkOutput(
      b_.Map("third", DType::kF64, {64}, [&](const Idx& i) { return b_.At(x, i) / Imm(DType::kF64, 3); }));
  const std::vector<Tensor> inputs = {Tensor::From<double>(DType::kF64, {64}, std::vector<double>(64, 1))};
  const auto moved = [&](uint64_t seed, int sparsity) {
    const auto outputs = Interpret(program_, inputs, {.perturb_seed = seed, .perturb_sparsity = sparsity});
    const std::vector<double> thirds = Values((*outputs)[0]);
    return std::count_if(thirds.begin(), thirds.end(), [](double third) { return third != 1.0 / 3; });
  };
  bool none = false, some = false;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    EXPECT_GT(moved(seed, 0), 16);
    EXPECT_LT(moved(seed, 6), 16);
    none |= moved(seed, 6) == 0;
    some |= moved(seed, 6) > 0;
  }
  EXPECT_TRUE(none);
  EXPECT_TRUE(some);
}

// The second element is the product of NaN and padding, which a kernel may leave out.
TEST_F(InterpreterTest, PerturbedRunsMayLeaveOutPadding) {
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    program_ = Program();
    const TensorId x = Input(dtype, {1}), w = Input(dtype, {1});
    const auto wide = [](const Scalar& s) { return Cast(DType::kF32, s); };
    program_.MarkOutput(b_.Map("y", DType::kF32, {2},
                               [&](const Idx& i) { return wide(b_.AtOr(x, i, 0)) * wide(b_.At(w, {Index(0)})); }));
    const std::vector<Tensor> inputs = {Tensor::From<double>(dtype, {1}, {1}), Tensor::From<double>(dtype, {1}, {NAN})};
    int left_out = 0;
    for (uint64_t seed = 1; seed <= 8; ++seed) {
      const auto outputs = Interpret(program_, inputs, {.perturb_seed = seed});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      EXPECT_TRUE(std::isnan((*outputs)[0].GetDouble(0)));
      left_out += (*outputs)[0].GetDouble(1) == 0;
    }
    EXPECT_GT(left_out, 0) << DTypeName(dtype);
    EXPECT_LT(left_out, 8) << DTypeName(dtype);
  }
}

// Products of -6e38 and 12e38 are infinities of both signs, and their sum is NaN. A fused multiply-add that has the
// first infinity adds a finite product to it.
TEST_F(InterpreterTest, PerturbedRunsMayFuseProductsAndSums) {
  const TensorId x = Input(DType::kF32, {2}), w = Input(DType::kF32, {2});
  program_.MarkOutput(b_.Map("y", DType::kF32, {}, [&](const Idx&) {
    const auto product = [&](int64_t k) { return b_.At(x, {Index(k)}) * b_.At(w, {Index(k)}); };
    return (product(0) + Imm(DType::kF32, 0)) + product(1);
  }));
  bool nan = false, infinite = false;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const auto outputs = Interpret(program_, {F32({2}, {-2, 4}), F32({2}, {3e38, 3e38})}, {.perturb_seed = seed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    nan |= std::isnan((*outputs)[0].GetDouble(0));
    infinite |= (*outputs)[0].GetDouble(0) == -kInf;
  }
  EXPECT_TRUE(nan);
  EXPECT_TRUE(infinite);
}

// 1e30 * 1e-30 * 1e30 * 1e-30 overflows in another order.
TEST_F(InterpreterTest, PerturbedRunsShowProductsThatMayOverflow) {
  const TensorId x = Input(DType::kF32, {2, 4});
  program_.MarkOutput(
      b_.Reduce("product", ReductionKind::kProd, DType::kF32, DType::kF32, {2}, {4}, [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      }));
  const std::vector<Tensor> inputs = {
      Tensor::From<double>(DType::kF32, {2, 4}, {1e30, 1e-30, 1e30, 1e-30, 2, 4, 0.5, 1})};
  bool anything = false;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    const auto outputs = Interpret(program_, inputs, {.perturb_seed = seed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    anything |= std::isnan((*outputs)[0].GetDouble(0));
    EXPECT_EQ((*outputs)[0].GetDouble(1), 4);
  }
  EXPECT_TRUE(anything);
}

// 1e30 * 1e30 * 0 is NaN where the infinity meets the zero, and 0 where the zero comes first. A factor that is NaN
// leaves nothing open.
TEST_F(InterpreterTest, PerturbedRunsShowProductsThatNeedNotOverflow) {
  const TensorId x = Input(DType::kF32, {2, 12});
  program_.MarkOutput(
      b_.Reduce("product", ReductionKind::kProd, DType::kF32, DType::kF32, {2}, {12}, [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      }));
  std::vector<double> factors(24, 1e38);
  factors[11] = 0;
  factors[23] = NAN;
  bool zero = false, nan = false;
  for (uint64_t seed = 1; seed <= 16; ++seed) {
    const auto outputs = Interpret(program_, {F32({2, 12}, factors)}, {.perturb_seed = seed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    zero |= (*outputs)[0].GetDouble(0) == 0;
    nan |= std::isnan((*outputs)[0].GetDouble(0));
    EXPECT_TRUE(std::isnan((*outputs)[0].GetDouble(1)));
  }
  EXPECT_TRUE(zero);
  EXPECT_TRUE(nan);
}

// If finite summands leave the range as +infinity, they meet a -infinity among the summands in some orders, which gives
// NaN. Finite summands alone may end as an infinity of either sign.
TEST_F(InterpreterTest, PerturbedRunsShowSumsThatMayOverflow) {
  const double kInfinity = std::numeric_limits<double>::infinity();
  const TensorId x = Input(DType::kF32, {3, 4});
  program_.MarkOutput(
      b_.Reduce("sum", ReductionKind::kSum, DType::kF32, DType::kF32, {3}, {4}, [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      }));
  const std::vector<Tensor> inputs = {Tensor::From<double>(
      DType::kF32, {3, 4}, {-kInfinity, 3e38, 3e38, 1, -kInfinity, 3e38, 2, 1, 3e38, 3e38, -3e38, -3e38})};
  bool may_be_nan[3] = {}, above[3] = {}, below[3] = {};
  for (uint64_t seed = 1; seed <= 64; ++seed) {
    const auto outputs = Interpret(program_, inputs, {.perturb_seed = seed});
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    for (int row = 0; row < 3; ++row) {
      const double sum = (*outputs)[0].GetDouble(row);
      may_be_nan[row] |= std::isnan(sum);
      above[row] |= sum == kInfinity;
      below[row] |= sum == -kInfinity;
    }
  }
  EXPECT_TRUE(may_be_nan[0]);
  EXPECT_FALSE(may_be_nan[1]) << "nothing finite leaves the range here";
  EXPECT_TRUE(may_be_nan[2]);
  EXPECT_FALSE(above[0] || above[1]) << "an infinity among the summands keeps its sign";
  EXPECT_TRUE(above[2] && below[2]);
}

// 2^30 absorbs the ones that are added before -2^30 is, and another sum may hold them.
TEST_F(InterpreterTest, PerturbedRunsTakeSumsInAnyOrder) {
  const TensorId x = Input(DType::kF32, {2, 6});
  program_.MarkOutput(
      b_.Reduce("sum", ReductionKind::kSum, DType::kF32, DType::kF32, {2}, {6}, [&](const Idx& i, const Idx& r) {
        return b_.At(x, {i[0], r[0]});
      }));
  const std::vector<Tensor> inputs = {
      Tensor::From<double>(DType::kF32, {2, 6}, {1, 0x1p30, 1, 1, -0x1p30, 1, 1, 2, 3, 4, 5, 6})};
  std::set<double> sums, sums_in_order;
  for (uint64_t seed = 1; seed <= 256; ++seed) {
    for (const bool in_order : {false, true}) {
      const auto outputs =
          Interpret(program_, inputs, {.perturb_seed = seed, .perturb_sparsity = 63, .in_order = in_order});
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      (in_order ? sums_in_order : sums).insert((*outputs)[0].GetDouble(0));
      EXPECT_EQ((*outputs)[0].GetDouble(1), 21);
    }
  }
  EXPECT_EQ(sums_in_order, std::set<double>({1}));
  EXPECT_EQ(sums, std::set<double>({0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace fusion::te
