// Products of one operator that another operator adds to something, with operands near the end of the range: a kernel
// gives the kind of number that the operators give one after another, fused or not, on every kind of device.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/analysis/interpret.h"
#include "compiler/pipeline/testing/run_fusion_block.h"
#include "compiler/rewrite/round_products.h"

namespace fusion::testing {
namespace {

using G = GraphMaker;
using V = ecg::ValueId;
using Ints = std::vector<int64_t>;

constexpr int64_t kRows = 24, kColumns = 37;
constexpr double kEnd = 0x1p128;  // products from here on are infinities
constexpr double kLargest = std::numeric_limits<float>::max();

class Draw {
 public:
  double Sign() { return random_() % 2 == 0 ? 1 : -1; }
  double Between(double lo, double hi) { return std::uniform_real_distribution<double>(lo, hi)(random_); }
  // A factor of kEnd to both sides of 1, and not so near that rounding decides (of an exponential, too).
  double NearOne() {
    const double factor = std::exp2(Between(-1.5, 1));
    return std::fabs(factor - 1) < 2e-3 ? 1.25 : factor;
  }
  uint64_t Below(uint64_t bound) { return random_() % bound; }

 private:
  std::mt19937_64 random_{11};
};

Tensor Filled(const Shape& shape, const std::function<double(int64_t)>& f) {
  Tensor tensor(DType::kF32, shape);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, f(i));
  return tensor;
}

// Inputs whose product is about kEnd, element by element.
struct Factors {
  Tensor x, y;
};
Factors DrawFactors(Draw* draw, const std::function<double(int64_t)>& product, int64_t columns = kColumns) {
  Factors factors{Tensor(DType::kF32, {kRows, columns}), Tensor(DType::kF32, {kRows, columns})};
  for (int64_t i = 0; i < kRows * columns; ++i) {
    const double x = std::exp2(draw->Between(20, 100)) * draw->Sign();
    factors.x.SetDouble(i, x);
    factors.y.SetDouble(i, product(i) / x);
  }
  return factors;
}

struct Product {
  const char* name;
  std::function<V(G*, Draw*)> make;
};
std::vector<Product> Products() {
  const Shape shape{kRows, kColumns};
  const auto near_end = [](Draw* draw) {
    return Filled({kRows, kColumns}, [draw](int64_t) { return draw->Sign() * draw->NearOne() * 0x1p126; });
  };
  const auto mul = [](G* g, Draw* draw) {
    const Factors f = DrawFactors(draw, [draw](int64_t) { return draw->Sign() * draw->NearOne() * kEnd; });
    return g->Op("Mul", {g->In(f.x), g->In(f.y)});
  };
  const auto roots = [](Draw* draw) {
    return Filled({kRows, kColumns}, [draw](int64_t) { return draw->Sign() * std::sqrt(draw->NearOne() * kEnd); });
  };
  return {
      {"Mul", mul},
      {"Neg", [=](G* g, Draw* draw) { return g->Op("Neg", {mul(g, draw)}); }},
      {"Reshape",
       [=](G* g, Draw* draw) {
         const V turned = g->Op("Transpose", {mul(g, draw)}, {{"perm", Ints{1, 0}}});
         return g->Op("Reshape", {turned, g->Ints({kRows, kColumns})});
       }},
      {"Where",
       [=](G* g, Draw* draw) {
         const V product = mul(g, draw);
         return g->Op("Where", {g->Op("Greater", {g->In(near_end(draw)), g->Scalar(0)}), product, g->Scalar(1)});
       }},
      {"Mul by 4",
       [=](G* g, Draw* draw) {
         return g->Op("Mul", {g->In(near_end(draw)), g->Scalar(4)});
       }},
      {"Div by 1/4",
       [=](G* g, Draw* draw) {
         return g->Op("Div", {g->In(near_end(draw)), g->Scalar(0.25)});
       }},
      {"square",
       [=](G* g, Draw* draw) {
         const V x = g->In(roots(draw));
         return g->Op("Mul", {x, x});
       }},
      {"Pow",
       [=](G* g, Draw* draw) {
         return g->Op("Pow", {g->In(roots(draw)), g->Scalar(2)});
       }},
      {"Exp",
       [=](G* g, Draw* draw) {
         return g->Op(
             "Exp",
             {g->In(Filled(shape, [draw](int64_t) { return std::log(draw->NearOne()) + 128 * std::log(2.0); }))});
       }},
      {"ReduceProd",
       [=](G* g, Draw* draw) {
         double other = 1;
         const Tensor factors = Filled({kRows, kColumns, 2}, [&](int64_t i) {
           if (i % 2 == 1) return other;
           other = draw->Sign() * draw->NearOne() * 0x1p68;
           return draw->Sign() * 0x1p60;
         });
         return g->Op("ReduceProd", {g->In(factors), g->Ints({2})}, {{"keepdims", int64_t{0}}});
       }},
      {"MatMul of one term",
       [=](G* g, Draw* draw) {
         const auto root = [draw](int64_t) { return draw->Sign() * std::sqrt(draw->NearOne()) * 0x1p64; };
         return g->Op("MatMul", {g->In(Filled({kRows, 1}, root)), g->In(Filled({1, kColumns}, root))});
       }},
  };
}

struct Sum {
  const char* name;
  std::function<V(G*, Draw*, V product, V other_product)> make;
};
std::vector<Sum> Sums() {
  const auto z = [](G* g, Draw* draw) {
    return g->In(
        Filled({kRows, kColumns}, [draw](int64_t) { return draw->Sign() * draw->Between(0.02, 1) * kLargest; }));
  };
  return {
      {"p + z",
       [=](G* g, Draw* draw, V p, V) {
         return g->Op("Add", {p, z(g, draw)});
       }},
      {"z + p",
       [=](G* g, Draw* draw, V p, V) {
         return g->Op("Add", {z(g, draw), p});
       }},
      {"p - z",
       [=](G* g, Draw* draw, V p, V) {
         return g->Op("Sub", {p, z(g, draw)});
       }},
      {"z - p",
       [=](G* g, Draw* draw, V p, V) {
         return g->Op("Sub", {z(g, draw), p});
       }},
      {"p + q",
       [=](G* g, Draw*, V p, V q) {
         return g->Op("Add", {p, q});
       }},
      {"z + |p|",
       [=](G* g, Draw* draw, V p, V) {
         return g->Op("Add", {z(g, draw), g->Op("Abs", {p})});
       }},
  };
}

// Two terms of a row are not 0, of opposite signs, so that no order of the sum overflows where another one does not.
FusionCase SumOfRow(const std::string& op, Draw* draw) {
  // Their distance is a multiple of all partial sums, so that one of these takes both.
  std::vector<int64_t> first, second;
  for (int64_t row = 0; row < kRows; ++row) {
    second.push_back(static_cast<int64_t>(draw->Below(128)));
    first.push_back(second.back() + 128 * (1 + static_cast<int64_t>(draw->Below(6))));
  }
  std::vector<double> sign(kRows, 0);
  for (double& s : sign) s = draw->Sign();
  constexpr int64_t kLong = 1024;
  const auto product = [&](int64_t i) {
    const auto row = static_cast<size_t>(i / kLong);
    if (i % kLong == first[row]) return sign[row] * draw->NearOne() * kEnd;
    return i % kLong == second[row] ? -sign[row] * draw->Between(0.1, 0.9) * kEnd : 0.0;
  };
  const Factors f = DrawFactors(draw, product, kLong);
  G g;
  g.Out(g.Op(op, {g.Op("Mul", {g.In(f.x), g.In(f.y)}), op == "CumSum" ? g.Scalar(1, DType::kI64) : g.Ints({1})}));
  return FusionCase(op, g);
}

std::vector<FusionCase> Cases() {
  Draw draw;
  std::vector<FusionCase> cases;
  for (const Product& product : Products()) {
    for (const Sum& sum : Sums()) {
      G g;
      const V p = product.make(&g, &draw), q = product.make(&g, &draw);
      g.Out(sum.make(&g, &draw, p, q));
      cases.emplace_back(absl::StrCat(product.name, ", ", sum.name), g);
    }
  }
  for (const char* op : {"ReduceSum", "ReduceMean", "CumSum"}) cases.push_back(SumOfRow(op, &draw));
  return cases;
}

// The case with its products rounded where they have to be.
FusionCase Rounded(const FusionCase& plain) {
  FusionCase rounded = plain;
  rounded.graph = rewrite::RoundProducts(plain.graph);
  rounded.inputs.clear();
  for (size_t i = 0; i < plain.graph.inputs().size(); ++i) {
    const auto input = plain.inputs.find(plain.graph.inputs()[i]);
    if (input != plain.inputs.end()) rounded.inputs.emplace(rounded.graph.inputs()[i], input->second);
  }
  return rounded;
}

std::vector<Tensor> OneAfterAnother(const FusionCase& one) {
  std::vector<Tensor> inputs;
  for (const V input : one.graph.inputs()) inputs.push_back(one.inputs.at(input));
  return ecg::Interpret(one.graph, inputs).value();
}

int KindOf(double x) { return std::isnan(x) ? 3 : !std::isinf(x) ? 0 : x > 0 ? 1 : 2; }

struct Differences {
  int compared = 0, different = 0, at_the_end = 0;
  std::string first;
};
// Counts the elements of another kind. Sums within a rounding of the largest float may be either.
Differences Compare(const std::string& name, const Tensor& expected, const Tensor& actual) {
  Differences found;
  for (int64_t i = 0; i < expected.num_elements(); ++i) {
    const double want = expected.GetDouble(i), got = actual.GetDouble(i);
    const auto at_end = [](double x) { return std::isfinite(x) && std::fabs(x) > kLargest * (1 - 1e-6); };
    if (at_end(want) || at_end(got)) {
      ++found.at_the_end;
      continue;
    }
    ++found.compared;
    if (KindOf(want) == KindOf(got)) continue;
    if (found.different++ == 0) found.first = absl::StrCat(name, "[", i, "]: ", got, ", not ", want);
  }
  return found;
}

DeviceModel Device(const std::string& name) {
  if (name == "Avx512") return Avx512Device();
  if (name == "Avx2") return Avx2Device();
  if (name == "Neon") return NeonDevice();
  if (name == "Cuda") return CudaTestDevice(8);
  return name == "OpenCl" ? OpenClTestDevice(16, 1) : OpenClTestDevice(4, 8);
}

class Contraction : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const absl::Status can_run = CanRun(Device(GetParam()));
    if (!can_run.ok()) GTEST_SKIP() << GetParam() << ": kernels are not run: " << can_run.message();
  }
};

INSTANTIATE_TEST_SUITE_P(, Contraction, ::testing::Values("Avx512", "Avx2", "Neon", "OpenCl", "OpenClGroups", "Cuda"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Contraction, OperandsNearTheEndOfTheRange) {
  const std::vector<FusionCase> plain = Cases();
  std::vector<FusionCase> rounded;
  for (const FusionCase& one : plain) rounded.push_back(Rounded(one));
  const std::vector<RunOptions> options = {{Device(GetParam()), LayoutMode::kPlain, false},
                                           {Device(GetParam()), LayoutMode::kPlain, true}};
  const std::vector<FusionResult> results = RunCases(rounded, options);
  ASSERT_EQ(results.size(), rounded.size() * options.size());
  int compared = 0, at_the_end = 0;
  for (size_t r = 0; r < results.size(); ++r) {
    const FusionCase& of = plain[r / options.size()];
    ASSERT_FALSE(results[r].outputs.empty()) << results[r].name << ": " << results[r].status;
    const Differences found = Compare(results[r].name, OneAfterAnother(of)[0], results[r].outputs[0]);
    EXPECT_EQ(found.different, 0) << found.first;
    compared += found.compared;
    at_the_end += found.at_the_end;
  }
  EXPECT_GT(compared, 100 * at_the_end);
}

// The operands above would show a multiply-add.
TEST(ContractionOfOperators, ShowsWithoutTheRounding) {
  const DeviceModel device = Avx2Device();
  if (!CanRun(device).ok()) GTEST_SKIP() << CanRun(device);
  const std::vector<FusionCase> plain = Cases();
  const std::vector<FusionResult> results = RunCases(plain, {{device, LayoutMode::kPlain, false}});
  int different = 0;
  for (size_t r = 0; r < results.size(); ++r) {
    ASSERT_FALSE(results[r].outputs.empty()) << results[r].name << ": " << results[r].status;
    const Differences found = Compare(results[r].name, OneAfterAnother(plain[r])[0], results[r].outputs[0]);
    different += found.different > 0;
    const bool always = plain[r].name == "Mul, p + z";
    EXPECT_GE(found.different, always ? 1 : 0) << plain[r].name;
  }
  EXPECT_GT(different, 20);
}

}  // namespace
}  // namespace fusion::testing
