#include "tests/fuzz/graphs/values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ecg/text.h"

namespace fusion::fuzz {
namespace {

using Random = std::mt19937_64;

int64_t Between(Random* random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>((*random)() % static_cast<uint64_t>(high - low + 1));
}

constexpr int kFar = 5;
constexpr int kPositive = 2;

double DrawFloat(int kind, Random* random) {
  switch (kind) {
    case 0:
      return static_cast<double>(Between(random, -4, 4));
    case 1:
      return static_cast<double>(Between(random, -32, 32)) / 8;
    case 2:  // positive: lies in the domain of more operators
      return static_cast<double>(Between(random, 1, 24)) / 8;
    case 3: {  // some extreme values
      const double far[] = {0.0, -0.0, 1000, -1000, 0x1p-12, INFINITY, -INFINITY, NAN};
      return Between(random, 0, 7) == 0 ? far[Between(random, 0, 7)] : static_cast<double>(Between(random, -8, 8)) / 4;
    }
    case kFar: {  // products, squares and sums exceed f32 or are subnormal in it
      const double far[] = {1e30, -1e30, 1e-30, -1e-30, 3e38, -3e38, 1e-40, 0.0};
      return Between(random, 0, 3) == 0 ? far[Between(random, 0, 7)] : static_cast<double>(Between(random, -8, 8)) / 4;
    }
    default:
      return static_cast<double>(Between(random, 0, 1));
  }
}

int64_t DrawInt(DType dtype, int kind, Random* random) {
  if (kind == 3 && Between(random, 0, 7) == 0) return static_cast<int64_t>((*random)());  // wraps to the type
  return Between(random, IsSigned(dtype) && kind != 2 ? -3 : 0, 4);
}

}  // namespace

Tensor DrawTensor(DType dtype, const Shape& shape, uint64_t seed) {
  Random random(seed);
  Tensor tensor(dtype, shape);
  static constexpr int kKinds[] = {0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 4};
  int kind = kKinds[random() % std::size(kKinds)];
  // The seed decides, not one more draw, so that regressions keep their data.
  if (seed % 32 == 7) kind = kFar;
  const bool constant = random() % 16 == 0;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (constant) random.seed(seed);
    if (dtype == DType::kBool) {
      tensor.SetInt(i, Between(&random, 0, 1));
    } else if (IsFloat(dtype)) {
      tensor.SetDouble(i, DrawFloat(kind, &random));
    } else {
      tensor.SetInt(i, DrawInt(dtype, kind, &random));
    }
  }
  return tensor;
}

Tensor FilledTensor(DType dtype, const Shape& shape, uint64_t seed) {
  if (dtype == DType::kBool) seed &= 0x0101010101010101;
  Tensor tensor(dtype, shape);
  auto* bytes = static_cast<char*>(tensor.mutable_data());
  for (int64_t i = 0; i < tensor.size_bytes(); ++i) bytes[i] = static_cast<char>(seed >> (8 * (i % 8)));
  return tensor;
}

ecg::Graph Materialise(const ecg::Graph& graph) {
  ecg::Rewriter rewriter(graph);
  for (ecg::ValueId id = 0; id < static_cast<int>(graph.values().size()); ++id) {
    const ecg::Value& value = graph.value(id);
    if (!value.constant.has_value() || value.constant->num_elements() <= ecg::kMaxPrintedElements) continue;
    const uint64_t filling = ecg::ConstantDigest(*value.constant);
    rewriter.Bind(id,
                  rewriter.graph()->AddConstant(value.name, DrawTensor(value.type.dtype, value.type.shape, filling)));
  }
  for (const ecg::Node& node : graph.nodes()) rewriter.Copy(node);
  return rewriter.Finish();
}

Tensor DrawInput(const std::string& name, DType dtype, const Shape& shape) {
  uint64_t seed = 14695981039346656037u;  // FNV-1a hash
  for (const char c : name) seed = (seed ^ static_cast<unsigned char>(c)) * 1099511628211u;
  const size_t below = name.rfind("_below");
  int64_t limit = 0;
  if (below != std::string::npos && absl::SimpleAtoi(name.substr(below + 6), &limit) && limit > 0) {
    Random random(seed);
    Tensor tensor(dtype, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const int64_t value = Between(&random, 0, limit - 1);
      IsFloat(dtype) ? tensor.SetDouble(i, static_cast<double>(value)) : tensor.SetInt(i, value);
    }
    return tensor;
  }
  if (absl::EndsWith(name, "_positive")) {
    Random random(seed);
    Tensor tensor(dtype, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i) tensor.SetDouble(i, DrawFloat(kPositive, &random));
    return tensor;
  }
  return DrawTensor(dtype, shape, seed);
}

std::vector<Tensor> DrawInputs(const ecg::Graph& graph) {
  std::vector<Tensor> inputs;
  for (ecg::ValueId id : graph.inputs()) {
    const ecg::Value& value = graph.value(id);
    inputs.push_back(DrawInput(value.name, value.type.dtype, value.type.shape));
  }
  return inputs;
}

bool SameTensors(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Tensor& x, const Tensor& y) {
    const auto bytes = static_cast<size_t>(x.size_bytes());
    return x.shape() == y.shape() && (bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0);
  });
}

}  // namespace fusion::fuzz
