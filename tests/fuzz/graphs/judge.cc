#include "tests/fuzz/graphs/judge.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/ecg/interpret.h"
#include "runtime/base/epsilon.h"
#include "runtime/base/status_macros.h"
#include "tests/conformance/cut_to_extents.h"

namespace fusion::fuzz {
namespace {

// Runs draw errors as large as a machine makes them, but few runs miss the extremes, and vector kernels sum in another
// order. Defects move results by far more.
constexpr double kSpreads = 8;
constexpr double kUnits = 4;  // of an inexact result, where the runs happen to agree
// Of runs in turn. Most runs move everything and measure the spread; the others meet what needs few errors at once.
constexpr int kSparsities[] = {0, 0, 3, 0, 0, 6};

// The smallest normal number. Kernels compute halves in f32, where half's subnormal numbers are normal.
double LeastNormal(DType dtype) { return dtype == DType::kF64 ? 0x1p-1022 : 0x1p-126; }

bool IsSubnormal(double x, DType dtype) { return x != 0 && std::fabs(x) < LeastNormal(dtype); }

bool HasSubnormal(const Tensor& tensor) {
  for (int64_t i = 0; IsFloat(tensor.dtype()) && i < tensor.num_elements(); ++i) {
    if (IsSubnormal(tensor.GetDouble(i), tensor.dtype())) return true;
  }
  return false;
}

Tensor Flushed(const Tensor& tensor) {
  if (!HasSubnormal(tensor)) return tensor;
  Tensor flushed(tensor.dtype(), tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    const double x = tensor.GetDouble(i);
    flushed.SetDouble(i, IsSubnormal(x, tensor.dtype()) ? std::copysign(0.0, x) : x);
  }
  return flushed;
}

// One operator after another, so that what lies between them can be flushed.
absl::StatusOr<std::vector<Tensor>> InterpretFlushed(const ecg::Graph& graph, const std::vector<Tensor>& inputs) {
  std::map<ecg::ValueId, Tensor> known;
  for (size_t i = 0; i < inputs.size(); ++i) known[graph.inputs()[i]] = Flushed(inputs[i]);
  for (const ecg::Node& node : graph.nodes()) {
    ecg::Graph alone;
    std::map<ecg::ValueId, ecg::ValueId> map{{ecg::kNone, ecg::kNone}};
    std::vector<ecg::ValueId> operands;
    std::vector<Tensor> arguments;
    for (ecg::ValueId id : node.inputs) {
      if (map.count(id) == 0) {
        const ecg::Value& value = graph.value(id);
        if (value.constant.has_value()) {
          map[id] = value.opaque ? alone.AddOpaqueConstant("", Flushed(*value.constant))
                                 : alone.AddConstant("", Flushed(*value.constant));
        } else {
          map[id] = alone.AddInput("", value.type);
          arguments.push_back(known.at(id));
        }
      }
      operands.push_back(map[id]);
    }
    std::vector<ecg::ValueType> types;
    for (ecg::ValueId id : node.outputs) types.push_back(graph.value(id).type);
    const ecg::NodeId copy = alone.AddNode(node.op, "", operands, node.attrs, types);
    const std::vector<ecg::ValueId> results = alone.node(copy).outputs;
    for (ecg::ValueId id : results) alone.AddOutput(id, "");
    ASSIGN_OR_RETURN(const std::vector<Tensor> values, ecg::Interpret(alone, arguments));
    for (size_t o = 0; o < values.size(); ++o) known[node.outputs[o]] = Flushed(values[o]);
  }
  std::vector<Tensor> outputs;
  for (ecg::ValueId id : graph.outputs()) {
    const ecg::Value& value = graph.value(id);
    outputs.push_back(value.constant.has_value() ? *value.constant : known.at(id));
  }
  return conformance::CutToExtents(graph, outputs);
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

enum class Verdict { kExact, kRounded, kLoose, kSpecial, kUncertain, kDifferent };

// `least`: what may be zero instead.
Verdict JudgeFloat(double expected, const std::vector<double>& runs, double actual, double epsilon, double least) {
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
  if (std::isnan(expected)) return std::isnan(actual) ? Verdict::kSpecial : Verdict::kDifferent;
  if (std::isinf(expected)) return actual == expected ? Verdict::kSpecial : Verdict::kDifferent;
  if (same && actual == expected) return Verdict::kExact;
  if (same && !(std::fabs(expected) < least)) {
    // Exact arithmetic gives numbers of few bits; a result of more bits was rounded, if always alike.
    int exponent = 0;
    const double mantissa = std::ldexp(std::frexp(expected, &exponent), 8);
    if (mantissa == std::nearbyint(mantissa)) return Verdict::kDifferent;
  }
  const double tolerance = kSpreads * spread + kUnits * epsilon * std::fabs(expected) + least;
  if (!(std::fabs(actual - expected) <= tolerance)) return Verdict::kDifferent;
  return tolerance > std::fabs(expected) ? Verdict::kLoose : Verdict::kRounded;
}

Verdict JudgeInteger(int64_t expected, const std::vector<int64_t>& runs, int64_t actual) {
  for (const int64_t run : runs) {
    if (run != expected) return Verdict::kUncertain;
  }
  return actual == expected ? Verdict::kExact : Verdict::kDifferent;
}

void Count(Verdict verdict, int64_t elements, Coverage* coverage) {
  switch (verdict) {
    case Verdict::kExact:
      coverage->exact += elements;
      break;
    case Verdict::kRounded:
      coverage->rounded += elements;
      break;
    case Verdict::kLoose:
      coverage->loose += elements;
      break;
    case Verdict::kSpecial:
      coverage->special += elements;
      break;
    case Verdict::kUncertain:
    case Verdict::kDifferent:
      coverage->uncertain += elements;
  }
}

std::string Element(const Tensor& tensor, int64_t i) {
  return IsFloat(tensor.dtype()) ? absl::StrFormat("%.9g", tensor.GetDouble(i)) : absl::StrCat(tensor.GetInt(i));
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
  ASSIGN_OR_RETURN(std::vector<Tensor> all, ecg::Interpret(open, inputs));
  const bool subnormal =
      std::any_of(inputs.begin(), inputs.end(), HasSubnormal) || std::any_of(all.begin(), all.end(), HasSubnormal);
  all.resize(graph.outputs().size());
  ASSIGN_OR_RETURN(result.outputs, conformance::CutToExtents(graph, all));
  for (int run = 1; run <= runs; ++run) {
    te::InterpretOptions options;
    options.perturb_seed = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(run);
    options.perturb_sparsity = kSparsities[static_cast<size_t>(run) % std::size(kSparsities)];
    const auto moved = ecg::Interpret(graph, inputs, options);
    absl::StatusOr<std::vector<Tensor>> outputs =
        moved.ok() ? conformance::CutToExtents(graph, *moved) : absl::StatusOr<std::vector<Tensor>>(moved.status());
    if (absl::IsOutOfRange(outputs.status())) {
      result.undecided = true;
      continue;
    }
    RETURN_IF_ERROR(outputs.status());
    result.perturbed.push_back(*std::move(outputs));
  }
  if (subnormal) {
    const auto flushed = InterpretFlushed(graph, inputs);
    if (flushed.ok()) {
      result.flushed = *flushed;
    } else if (absl::IsOutOfRange(flushed.status())) {
      result.undecided = true;
    } else {
      return flushed.status();
    }
  }
  return result;
}

absl::Status Agree(const Expectation& expected, const std::vector<Tensor>& actual, Subnormal subnormal,
                   Coverage* coverage) {
  if (actual.size() != expected.outputs.size()) {
    return absl::FailedPreconditionError(
        absl::StrCat(actual.size(), " outputs, ", expected.outputs.size(), " are expected"));
  }
  for (size_t o = 0; o < actual.size(); ++o) {
    const Tensor& want = expected.outputs[o];
    std::vector<const Tensor*> runs;
    for (const std::vector<Tensor>& run : expected.perturbed) runs.push_back(&run[o]);
    const Tensor* flushed =
        subnormal == Subnormal::kMayBeZero && !expected.flushed.empty() ? &expected.flushed[o] : nullptr;
    const auto other_shape = [&](const Tensor* run) { return run->shape() != want.shape(); };
    if (expected.undecided || std::any_of(runs.begin(), runs.end(), other_shape) ||
        (flushed != nullptr && other_shape(flushed))) {
      // At least one element: an output that may be empty is not compared either.
      Count(Verdict::kUncertain, std::max<int64_t>(1, want.num_elements()), coverage);
      continue;
    }
    if (actual[o].dtype() != want.dtype() || actual[o].shape() != want.shape()) {
      return absl::FailedPreconditionError(absl::StrCat("output ", o, " is ", DTypeName(actual[o].dtype()),
                                                        ShapeToString(actual[o].shape()), ", ", DTypeName(want.dtype()),
                                                        ShapeToString(want.shape()), " is expected"));
    }
    const bool is_float = IsFloat(want.dtype());
    const double least = subnormal == Subnormal::kMayBeZero && is_float ? LeastNormal(want.dtype()) : 0;
    std::vector<double> doubles(runs.size());
    std::vector<int64_t> ints(runs.size());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      Verdict verdict;
      if (is_float) {
        for (size_t r = 0; r < doubles.size(); ++r) doubles[r] = runs[r]->GetDouble(i);
        const double epsilon = Epsilon(want.dtype());
        verdict = JudgeFloat(want.GetDouble(i), doubles, actual[o].GetDouble(i), epsilon, least);
        // Right is what follows from zero, too, and with some of them zero what lies between.
        if (verdict == Verdict::kDifferent && flushed != nullptr &&
            !SameNumber(flushed->GetDouble(i), want.GetDouble(i))) {
          verdict = Verdict::kUncertain;
        }
      } else {
        for (size_t r = 0; r < ints.size(); ++r) ints[r] = runs[r]->GetInt(i);
        verdict = JudgeInteger(want.GetInt(i), ints, actual[o].GetInt(i));
        if (flushed != nullptr && flushed->GetInt(i) != want.GetInt(i)) verdict = Verdict::kUncertain;
      }
      if (verdict == Verdict::kDifferent) {
        return absl::FailedPreconditionError(absl::StrCat("output ", o, " ", DTypeName(want.dtype()),
                                                          ShapeToString(want.shape()), " at ", i, ": expected ",
                                                          Element(want, i), ", got ", Element(actual[o], i)));
      }
      Count(verdict, 1, coverage);
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion::fuzz
