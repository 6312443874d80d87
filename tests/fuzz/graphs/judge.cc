#include "tests/fuzz/graphs/judge.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ecg/interpret.h"
#include "runtime/base/epsilon.h"
#include "runtime/base/status_macros.h"

namespace fusion::fuzz {
namespace {

// Runs draw errors as large as a machine makes them, but few runs miss the extremes, and vector kernels sum in another
// order. Defects move results by far more.
constexpr double kSpreads = 8;
constexpr double kUnits = 4;  // of an inexact result, where the runs happen to agree
// Of runs in turn. Most runs move everything and measure the spread; the others meet what needs few errors at once.
constexpr int kSparsities[] = {0, 0, 3, 0, 0, 6};

bool Tame(const Tensor& tensor) {
  if (!IsFloat(tensor.dtype())) return true;
  const double most = tensor.dtype() == DType::kF16 ? 1e3 : 1e9;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double x = std::fabs(tensor.GetDouble(i));
    if (!(x < most) || (x != 0 && x < 1 / most)) return false;
  }
  return true;
}

enum class Verdict { kExact, kRounded, kUncertain, kDifferent };

Verdict JudgeFloat(double expected, const std::vector<double>& runs, double actual, double epsilon) {
  bool same = true;
  double spread = 0;
  for (const double run : runs) {
    if (std::isnan(run) != std::isnan(expected)) return Verdict::kUncertain;
    if (std::isnan(run)) continue;
    if (std::isinf(run) || std::isinf(expected)) {
      if (run != expected) return Verdict::kUncertain;
      continue;
    }
    same = same && run == expected;
    spread = std::max(spread, std::fabs(run - expected));
  }
  if (std::isnan(expected)) return std::isnan(actual) ? Verdict::kExact : Verdict::kDifferent;
  if (std::isinf(expected)) return actual == expected ? Verdict::kExact : Verdict::kDifferent;
  if (same && actual == expected) return Verdict::kExact;
  if (same) {
    // Exact arithmetic gives numbers of few bits; a result of more bits was rounded, if always alike.
    int exponent = 0;
    const double mantissa = std::ldexp(std::frexp(expected, &exponent), 8);
    if (mantissa == std::nearbyint(mantissa)) return Verdict::kDifferent;
  }
  const double tolerance = kSpreads * spread + kUnits * epsilon * std::fabs(expected);
  return std::fabs(actual - expected) <= tolerance ? Verdict::kRounded : Verdict::kDifferent;
}

Verdict JudgeInteger(int64_t expected, const std::vector<int64_t>& runs, int64_t actual) {
  for (const int64_t run : runs) {
    if (run != expected) return Verdict::kUncertain;
  }
  return actual == expected ? Verdict::kExact : Verdict::kDifferent;
}

}  // namespace

absl::StatusOr<Expectation> Expect(const ecg::Graph& graph, const std::vector<Tensor>& inputs, int runs) {
  ecg::Graph open = graph;  // every value is an output
  for (const ecg::Node& node : graph.nodes()) {
    for (ecg::ValueId id : node.outputs) {
      if (!open.IsOutput(id)) open.AddOutput(id, "");
    }
  }
  Expectation result;
  ASSIGN_OR_RETURN(result.outputs, ecg::Interpret(open, inputs));
  result.tame = std::all_of(inputs.begin(), inputs.end(), Tame) &&
                std::all_of(result.outputs.begin(), result.outputs.end(), Tame);
  result.outputs.resize(graph.outputs().size());
  for (int run = 1; run <= runs; ++run) {
    te::InterpretOptions options;
    options.perturb_seed = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(run);
    options.perturb_sparsity = kSparsities[static_cast<size_t>(run) % std::size(kSparsities)];
    ASSIGN_OR_RETURN(std::vector<Tensor> outputs, ecg::Interpret(graph, inputs, options));
    result.perturbed.push_back(std::move(outputs));
  }
  return result;
}

absl::Status Agree(const Expectation& expected, const std::vector<Tensor>& actual, Coverage* coverage) {
  if (actual.size() != expected.outputs.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(actual.size(), " outputs, ", expected.outputs.size(), " are expected"));
  }
  for (size_t o = 0; o < actual.size(); ++o) {
    const Tensor& want = expected.outputs[o];
    if (actual[o].dtype() != want.dtype() || actual[o].shape() != want.shape()) {
      return absl::FailedPreconditionError(absl::StrCat("output ", o, " is ", DTypeName(actual[o].dtype()),
                                                        ShapeToString(actual[o].shape()), ", ", DTypeName(want.dtype()),
                                                        ShapeToString(want.shape()), " is expected"));
    }
    const bool is_float = IsFloat(want.dtype());
    std::vector<double> doubles(expected.perturbed.size());
    std::vector<int64_t> ints(expected.perturbed.size());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      Verdict verdict;
      if (is_float) {
        for (size_t r = 0; r < doubles.size(); ++r) doubles[r] = expected.perturbed[r][o].GetDouble(i);
        verdict = JudgeFloat(want.GetDouble(i), doubles, actual[o].GetDouble(i), Epsilon(want.dtype()));
      } else {
        for (size_t r = 0; r < ints.size(); ++r) ints[r] = expected.perturbed[r][o].GetInt(i);
        verdict = JudgeInteger(want.GetInt(i), ints, actual[o].GetInt(i));
      }
      if (verdict == Verdict::kDifferent) {
        return absl::FailedPreconditionError(absl::StrCat(
            "output ", o, " ", DTypeName(want.dtype()), ShapeToString(want.shape()), " at ", i, ": expected ",
            is_float ? absl::StrFormat("%.9g", want.GetDouble(i)) : absl::StrCat(want.GetInt(i)), ", got ",
            is_float ? absl::StrFormat("%.9g", actual[o].GetDouble(i)) : absl::StrCat(actual[o].GetInt(i))));
      }
      ++(verdict == Verdict::kExact     ? coverage->exact
         : verdict == Verdict::kRounded ? coverage->rounded
                                        : coverage->uncertain);
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion::fuzz
