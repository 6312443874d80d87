#include "tests/fuzz/graphs/judge.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compiler/analysis/interpret.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ecg/text.h"
#include "compiler/te/program/transform.h"
#include "runtime/base/epsilon.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/cpu/subnormals.h"
#include "tests/conformance/cut_to_extents.h"
#include "tests/fuzz/graphs/values.h"
#include "tests/fuzz/graphs/wide_range.h"

namespace fusion::fuzz {
namespace {

// The runs draw errors as large as a machine makes them, but a few runs miss the extremes, and vector kernels sum in
// another order. Defects move results by far more.
constexpr double kSpreads = 8;
constexpr double kUnits = 4;  // for an inexact result on which all runs happen to agree
// The most that rewriting or minimal filtering may add, in units of the largest element of the output.
constexpr double kMostWidenedUnits = 64;
// In place of a tolerance, where the runs of a rewritten graph differ in kind.
constexpr double kKindIsUncertain = std::numeric_limits<double>::quiet_NaN();

// The sizes of minimal filtering's tiles that kernels use.
constexpr int64_t kFilteredOutputs[] = {2, 4};
// Sparsities that the runs use in turn. Most runs perturb everything and measure the spread; the others find
// differences that need few errors at once, or none but those of another order of summands.
constexpr int kSparsities[] = {0, 0, 3, 0, 0, 6, 63};

// One run in so many computes what several expressions read once for each of them.
constexpr int kRunsForOneApart = 3;

// Returns the smallest normal number. Kernels compute f16 in f32, where f16's subnormal numbers are normal.
double LeastNormal(DType dtype) { return dtype == DType::kF64 ? 0x1p-1022 : 0x1p-126; }

using Outputs = absl::StatusOr<std::vector<Tensor>>;

// A graph to judge: lowered before any run, since a compiler infers in the ordinary mode whatever the run's mode is.
struct Subject {
  Subject(const ecg::Graph& graph, const ecg::LoweredGraph& lowered) : Subject(graph, lowered, lowered.program()) {}
  // `program`: what a pass has made of the lowered graph's.
  Subject(const ecg::Graph& graph, const ecg::LoweredGraph& lowered, const te::Program& program)
      : graph(graph), lowered(lowered), program(program) {}

  const ecg::Graph& graph;
  const ecg::LoweredGraph& lowered;
  const te::Program& program;
};

Outputs InterpretAndCut(const Subject& subject, const std::vector<Tensor>& inputs,
                        const te::InterpretOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> all, subject.lowered.RunAs(subject.program, inputs, options));
  return conformance::CutToExtents(subject.graph, all);
}

// Numbers of f32, as rules or a producer might as well have rounded them: each is moved by a unit in its last place, or
// by none.
Tensor Moved(const Tensor& tensor, std::mt19937_64& random) {
  Tensor moved(DType::kF32, tensor.shape());
  for (int64_t i = 0; i < moved.num_elements(); ++i) {
    const auto x = static_cast<float>(tensor.GetDouble(i));
    const float towards[] = {x, -std::numeric_limits<float>::infinity(), std::numeric_limits<float>::infinity()};
    moved.SetDouble(i, std::isfinite(x) && x != 0 ? std::nextafter(x, towards[random() % 3]) : x);
  }
  return moved;
}

// The graph with its constants of f32 moved, but for the given ones, by digest.
ecg::Graph WithMadeConstantsMoved(const ecg::Graph& graph, const std::set<uint64_t>& given, int seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  ecg::Rewriter rewriter(graph);
  for (ecg::ValueId id = 0; id < static_cast<int>(graph.values().size()); ++id) {
    const ecg::Value& value = graph.value(id);
    if (!value.constant || value.type.dtype != DType::kF32 || given.count(ecg::ConstantDigest(*value.constant)) > 0) {
      continue;
    }
    rewriter.Bind(id, rewriter.graph()->AddConstant(value.name, Moved(*value.constant, random)));
  }
  for (const ecg::Node& node : graph.nodes()) rewriter.Copy(node);
  return rewriter.Finish();
}

// Computes as a machine does: each operation is rounded to nearest in its own type, in the program's order. Subnormal
// operands and results are kept, or count as zero by this processor's own setting, inside operators and routines too.
Outputs InterpretRounded(const Subject& subject, const std::vector<Tensor>& inputs, Subnormals subnormals) {
  const ScopedSubnormals mode(subnormals);
  return InterpretAndCut(subject, inputs, {.perturb_seed = 4, .perturb_sparsity = 63, .in_order = true});
}

// Returns the options of a run in Monte Carlo arithmetic, numbered from 1.
te::InterpretOptions Perturbed(int run) {
  te::InterpretOptions options;
  options.perturb_seed = 0x9e3779b97f4a7c15u * static_cast<uint64_t>(run);
  options.perturb_sparsity = kSparsities[static_cast<size_t>(run) % std::size(kSparsities)];
  return options;
}

// The program in which each reader of a map's result but the first has the map to itself: kernels that need a value
// may each compute it, in vectors or not, and round it differently.
te::Program WithMapsOfEachReader(const te::Program& program) {
  te::Program result = program;
  result.tes.clear();
  std::vector<int> maps(program.tensors.size(), -1);  // which map makes the tensor
  std::set<int> read;                                 // maps that have a reader; an output is one
  for (size_t t = 0; t < program.tes.size(); ++t) {
    const te::Te& te = program.tes[t];
    std::map<te::TensorId, te::TensorId> own;
    std::set<int> operands;
    if (!te.routine) {
      te::VisitTensors(te, [&](te::TensorId tensor) {
        if (maps[static_cast<size_t>(tensor)] >= 0) operands.insert(maps[static_cast<size_t>(tensor)]);
      });
    }
    for (const int operand : operands) {
      if (read.insert(operand).second) continue;
      const te::Te& map = program.tes[static_cast<size_t>(operand)];
      te::Te copy = te::CopyTe(
          map, [](te::TensorId tensor) { return tensor; }, &result);
      for (te::TensorId& output : copy.outputs) {
        const te::TensorInfo info = result.tensors[static_cast<size_t>(output)];
        const te::TensorId made = result.AddTensor(info.name, info.dtype, info.shape, te::Role::kIntermediate);
        own.emplace(output, made);
        output = made;
      }
      result.tes.push_back(std::move(copy));
    }
    const auto own_or_shared = [&](te::TensorId tensor) {
      const auto it = own.find(tensor);
      return it == own.end() ? tensor : it->second;
    };
    result.tes.push_back(own.empty() ? te : te::CopyTe(te, own_or_shared, &result));
    if (!te.IsMap()) continue;
    for (const te::TensorId output : te.outputs) {
      maps[static_cast<size_t>(output)] = static_cast<int>(t);
      if (program.tensors[static_cast<size_t>(output)].role == te::Role::kOutput) read.insert(static_cast<int>(t));
    }
  }
  return result;
}

// Returns nothing if another rounding, or zero in place of a subnormal number, leads to an error that the reference
// does not have: an index or an extent out of range, or extents that do not broadcast.
absl::StatusOr<std::optional<std::vector<Tensor>>> UnlessImpossible(Outputs run) {
  if (absl::IsOutOfRange(run.status()) || absl::IsInvalidArgument(run.status())) return std::nullopt;
  RETURN_IF_ERROR(run.status());
  return *std::move(run);
}

// The magnitude of the largest finite element; 0 where elements are no floats.
double Largest(const Tensor& tensor) {
  double largest = 0;
  for (int64_t i = 0; IsFloat(tensor.dtype()) && i < tensor.num_elements(); ++i) {
    const double size = std::fabs(tensor.GetDouble(i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

// Whether `moved` is `wanted` but for rounding. Where one of two is no finite number, nothing is said.
bool IsRoundingOf(const Tensor& wanted, const Tensor& moved) {
  const double most = kMostWidenedUnits * Epsilon(wanted.dtype()) * Largest(wanted);
  for (int64_t i = 0; i < wanted.num_elements(); ++i) {
    const double distance = std::fabs(wanted.GetDouble(i) - moved.GetDouble(i));
    if (std::isfinite(distance) && distance > most) return false;
  }
  return true;
}

// As kernels do it: where a sum of filtering is no finite number, the plain sum stands in its place.
te::Program WithPlainSums(const FilteredProgram& filtered) {
  te::Program program = filtered.program;
  const int last = program.DefiningTe(filtered.result);
  te::Te whole = program.tes[last];
  std::vector<te::Index> here;
  for (const te::Axis& axis : whole.axes) here.emplace_back(axis);
  const auto sums = [&](te::Te te) {
    te.then.clear();
    te.outputs = {
        program.AddTensor("sums", DType::kF32, program.tensors[filtered.result].shape, te::Role::kIntermediate)};
    return te;
  };
  const std::vector<te::Te> both = {sums(whole), sums(filtered.plain.te)};
  const te::Scalar moved = te::Load(both[0].outputs[0], DType::kF32, here);
  const te::Scalar plain = te::Load(both[1].outputs[0], DType::kF32, here);
  const te::Scalar finite = te::Call(te::Op::kEq, {moved - moved, te::Imm(DType::kF32, 0)});
  whole.reduction->axes = {program.NewAxis(1)};
  whole.body = {te::Call(te::Op::kSelect, {finite, moved, plain})};
  program.tes[last] = std::move(whole);
  program.tes.insert(program.tes.begin() + last, both.begin(), both.end());
  return program;
}

// The graph's program with every window that qualifies computed by minimal filtering; nullopt if none does. Each window
// is judged where it is filtered: its result before and after, from the same inputs, since what comes after it may make
// the difference as large (1 / x) or as small (a sigmoid) as it likes.
absl::StatusOr<std::optional<te::Program>> Filtered(const ecg::LoweredGraph& lowered, int64_t outputs,
                                                    const std::vector<Tensor>& inputs, const FilterPass& filter) {
  te::Program program = lowered.program();
  bool filtered = false;
  while (std::optional<FilteredProgram> next = filter(program, outputs)) {
    const Tensor* source = lowered.ConstantOf(next->source);
    if (source == nullptr) return std::nullopt;
    next->program.tensors[next->filter].constant = movement::Transformed(next->transform, *source);
    ASSIGN_OR_RETURN(const Tensor wanted, lowered.ValueIn(program, next->result, inputs));
    ASSIGN_OR_RETURN(const Tensor moved, lowered.ValueIn(next->program, next->result, inputs));
    if (!IsRoundingOf(wanted, moved)) {
      return absl::FailedPreconditionError(absl::StrCat("filtering ", program.tensors[next->result].name,
                                                        " with tiles of ", outputs, " is no rounding"));
    }
    program = WithPlainSums(*next);
    filtered = true;
  }
  if (!filtered) return std::nullopt;
  return program;
}

bool SameNumber(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Are both numbers, NaN, or the same infinity?
bool SameKind(double a, double b) { return (std::isfinite(a) && std::isfinite(b)) || SameNumber(a, b); }

enum class Verdict { kExact, kRounded, kLoose, kSpecial, kUncertain, kDifferent };

// `least`: numbers of a smaller magnitude may be zero instead. `widened`: what rewriting adds to the tolerance; NaN:
// rounding decides the kind of what it computes.
Verdict JudgeFloat(double expected, const std::vector<double>& runs, double actual, double epsilon, double least,
                   double widened) {
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
  if (std::isnan(widened) && !SameNumber(expected, actual)) return Verdict::kUncertain;
  if (std::isnan(expected)) return std::isnan(actual) ? Verdict::kSpecial : Verdict::kDifferent;
  if (std::isinf(expected)) return actual == expected ? Verdict::kSpecial : Verdict::kDifferent;
  if (same && actual == expected) return Verdict::kExact;
  if (same && widened == 0 && !(std::fabs(expected) < least)) {
    // Exact arithmetic gives numbers of few bits. A result of more bits was rounded, although alike in all runs.
    int exponent = 0;
    const double mantissa = std::ldexp(std::frexp(expected, &exponent), 8);
    if (mantissa == std::nearbyint(mantissa)) return Verdict::kDifferent;
  }
  const double tolerance = kSpreads * spread + kUnits * epsilon * std::fabs(expected) + least + widened;
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

std::vector<Tensor> NoSpreads(const std::vector<Tensor>& outputs) {
  std::vector<Tensor> spreads;
  for (const Tensor& output : outputs) spreads.emplace_back(DType::kF64, output.shape());
  return spreads;
}

// Enlarges `spreads`, one tensor for each output, by how far `moved` lies from `centre`.
void Widen(const std::vector<Tensor>& moved, const std::vector<Tensor>& centre, std::vector<Tensor>* spreads) {
  for (size_t o = 0; o < spreads->size(); ++o) {
    Tensor& spread = (*spreads)[o];
    const bool comparable =
        IsFloat(centre[o].dtype()) && centre[o].shape() == spread.shape() && moved[o].shape() == spread.shape();
    for (int64_t i = 0; comparable && i < spread.num_elements(); ++i) {
      const double from = centre[o].GetDouble(i), to = moved[o].GetDouble(i), before = spread.GetDouble(i);
      if (std::isnan(before) || SameNumber(from, to)) continue;
      spread.SetDouble(i, SameKind(from, to) ? std::max(before, std::fabs(to - from)) : kKindIsUncertain);
    }
  }
}

// How far the source's own results move when its inputs and constants do, by a unit in the last place.
absl::StatusOr<std::vector<Tensor>> SpreadsOfSource(const ecg::Graph& source, const std::vector<Tensor>& inputs,
                                                    int runs, const Expectation& expectation) {
  std::vector<Tensor> spreads = NoSpreads(expectation.outputs);
  for (int run = 1; run <= runs; ++run) {
    std::mt19937_64 random(static_cast<uint64_t>(run));
    std::vector<Tensor> moved_inputs;
    for (const Tensor& input : inputs) {
      moved_inputs.push_back(input.dtype() == DType::kF32 ? Moved(input, random) : input);
    }
    const ecg::Graph graph = WithMadeConstantsMoved(source, {}, run);
    ASSIGN_OR_RETURN(const ecg::LoweredGraph lowered, ecg::LoweredGraph::Make(graph));
    ASSIGN_OR_RETURN(const auto moved, UnlessImpossible(InterpretAndCut(Subject(graph, lowered), moved_inputs, {})));
    if (moved) Widen(*moved, expectation.outputs, &spreads);
  }
  return spreads;
}

std::string Element(const Tensor& tensor, int64_t i) {
  return IsFloat(tensor.dtype()) ? absl::StrFormat("%.9g", tensor.GetDouble(i)) : absl::StrCat(tensor.GetInt(i));
}

}  // namespace

absl::StatusOr<Expectation> Expect(const ecg::Graph& graph, const std::vector<Tensor>& inputs, int runs) {
  Expectation result;
  ASSIGN_OR_RETURN(const ecg::LoweredGraph lowered, ecg::LoweredGraph::Make(graph));
  const Subject subject(graph, lowered);
  const te::Program apart = WithMapsOfEachReader(lowered.program());
  const Subject subject_apart(graph, lowered, apart);
  ASSIGN_OR_RETURN(result.outputs, InterpretAndCut(subject, inputs, {}));
  for (int run = 1; run <= runs; ++run) {
    const Subject& computed = run % kRunsForOneApart == 0 ? subject_apart : subject;
    ASSIGN_OR_RETURN(auto moved, UnlessImpossible(InterpretAndCut(computed, inputs, Perturbed(run))));
    if (moved) result.perturbed.push_back(*std::move(moved));
    result.undecided = result.undecided || !moved;
  }
  ASSIGN_OR_RETURN(auto kept, UnlessImpossible(InterpretRounded(subject, inputs, Subnormals::kKept)));
  ASSIGN_OR_RETURN(auto flushed, UnlessImpossible(InterpretRounded(subject, inputs, Subnormals::kZero)));
  result.undecided = result.undecided || !kept;
  result.undecided_if_zero = !flushed;
  if (kept && flushed && !SameTensors(*kept, *flushed)) {
    result.kept = *std::move(kept);
    result.flushed = *std::move(flushed);
  }
  return result;
}

absl::Status WidenByRewriting(const ecg::Graph& source, const ecg::Graph& rewritten, const std::vector<Tensor>& inputs,
                              int runs, Expectation* expectation) {
  ASSIGN_OR_RETURN(const ecg::LoweredGraph lowered, ecg::LoweredGraph::Make(rewritten));
  ASSIGN_OR_RETURN(const std::vector<Tensor> centre, InterpretAndCut(Subject(rewritten, lowered), inputs, {}));
  std::set<uint64_t> given;
  for (const ecg::Value& value : source.values()) {
    if (value.constant) given.insert(ecg::ConstantDigest(*value.constant));
  }
  std::vector<Tensor> widened = NoSpreads(expectation->outputs);
  for (int run = 1; run <= runs; ++run) {
    const ecg::Graph graph = WithMadeConstantsMoved(rewritten, given, run);
    ASSIGN_OR_RETURN(const ecg::LoweredGraph rounded, ecg::LoweredGraph::Make(graph));
    ASSIGN_OR_RETURN(const auto moved,
                     UnlessImpossible(InterpretAndCut(Subject(graph, rounded), inputs, Perturbed(run))));
    if (moved) Widen(*moved, centre, &widened);
  }
  std::vector<Tensor> of_source;
  for (size_t o = 0; o < widened.size(); ++o) {
    const Tensor& want = expectation->outputs[o];
    const double most = kMostWidenedUnits * Epsilon(want.dtype()) * Largest(want);
    for (int64_t i = 0; i < widened[o].num_elements(); ++i) {
      const double spread = kSpreads * widened[o].GetDouble(i);
      if (std::isnan(spread)) continue;
      if (spread > most && of_source.empty()) {
        ASSIGN_OR_RETURN(of_source, SpreadsOfSource(source, inputs, runs, *expectation));
      }
      const double excused = spread > most ? kSpreads * of_source[o].GetDouble(i) : 0;
      widened[o].SetDouble(i, std::isnan(excused) ? spread : std::min(spread, std::max(most, excused)));
    }
  }
  expectation->widened = std::move(widened);
  return absl::OkStatus();
}

absl::Status AllowForRange(const ecg::Graph& source, const std::vector<Tensor>& inputs, Expectation* expectation) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> wide, RunInWideRange(source, inputs));
  if (expectation->widened.empty()) expectation->widened = NoSpreads(expectation->outputs);
  for (size_t o = 0; o < wide.size(); ++o) {
    const Tensor& want = expectation->outputs[o];
    if (want.dtype() != DType::kF32 || wide[o].shape() != want.shape()) continue;
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      if (!SameKind(want.GetDouble(i), wide[o].GetDouble(i))) expectation->widened[o].SetDouble(i, kKindIsUncertain);
    }
  }
  return absl::OkStatus();
}

absl::Status AddFilteredRuns(const ecg::Graph& rewritten, const std::vector<Tensor>& inputs, int runs,
                             Expectation* expectation, const FilterPass& filter) {
  ASSIGN_OR_RETURN(const ecg::LoweredGraph lowered, ecg::LoweredGraph::Make(rewritten));
  bool any = false;
  for (const int64_t outputs : kFilteredOutputs) {
    ASSIGN_OR_RETURN(const std::optional<te::Program> program, Filtered(lowered, outputs, inputs, filter));
    if (!program) continue;
    any = true;
    const Subject subject(rewritten, lowered, *program);
    for (int r = 1; r <= runs; ++r) {
      ASSIGN_OR_RETURN(auto moved, UnlessImpossible(InterpretAndCut(subject, inputs, Perturbed(r))));
      if (moved) expectation->perturbed.push_back(*std::move(moved));
      expectation->undecided = expectation->undecided || !moved;
    }
  }
  return any ? absl::OkStatus() : absl::FailedPreconditionError("no window is filtered minimally");
}

Coverage& Coverage::operator+=(const Coverage& other) {
  exact += other.exact;
  rounded += other.rounded;
  loose += other.loose;
  special += other.special;
  uncertain += other.uncertain;
  return *this;
}

absl::Status AgreeOnError(const Expectation& expected, const absl::Status& error, Subnormal subnormal,
                          Coverage* coverage) {
  const bool refused = absl::IsInvalidArgument(error) || absl::IsOutOfRange(error);
  const bool differs = absl::IsAborted(error);  // from run to run
  if (!expected.Undecided(subnormal) || (!refused && !differs)) return error;
  for (const Tensor& output : expected.outputs) {
    Count(Verdict::kUncertain, std::max<int64_t>(1, output.num_elements()), coverage);
  }
  return absl::OkStatus();
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
    const bool may_be_zero = subnormal == Subnormal::kMayBeZero;
    const bool flushes = may_be_zero && !expected.flushed.empty();
    const Tensor* kept = flushes ? &expected.kept[o] : nullptr;
    const Tensor* flushed = flushes ? &expected.flushed[o] : nullptr;
    const auto other_shape = [&](const Tensor* run) { return run->shape() != want.shape(); };
    if (expected.Undecided(subnormal) || std::any_of(runs.begin(), runs.end(), other_shape) ||
        (flushes && (other_shape(kept) || other_shape(flushed)))) {
      // Counts at least one element: an output that may be empty was not compared either.
      Count(Verdict::kUncertain, std::max<int64_t>(1, want.num_elements()), coverage);
      continue;
    }
    if (actual[o].dtype() != want.dtype() || actual[o].shape() != want.shape()) {
      return absl::FailedPreconditionError(absl::StrCat("output ", o, " is ", DTypeName(actual[o].dtype()),
                                                        ShapeToString(actual[o].shape()), ", ", DTypeName(want.dtype()),
                                                        ShapeToString(want.shape()), " is expected"));
    }
    const bool is_float = IsFloat(want.dtype());
    const double least = may_be_zero && is_float ? LeastNormal(want.dtype()) : 0;
    std::vector<double> doubles(runs.size());
    std::vector<int64_t> ints(runs.size());
    for (int64_t i = 0; i < want.num_elements(); ++i) {
      Verdict verdict;
      if (is_float) {
        for (size_t r = 0; r < doubles.size(); ++r) doubles[r] = runs[r]->GetDouble(i);
        const double epsilon = Epsilon(want.dtype());
        const double widened = expected.widened.empty() ? 0 : expected.widened[o].GetDouble(i);
        verdict = JudgeFloat(want.GetDouble(i), doubles, actual[o].GetDouble(i), epsilon, least, widened);
        // If the element changes when subnormal numbers become zero, that result is right, too. So are results between
        // the two, if only some of the numbers become zero.
        if (verdict == Verdict::kDifferent && flushes && !SameNumber(flushed->GetDouble(i), kept->GetDouble(i))) {
          verdict = Verdict::kUncertain;
        }
      } else {
        for (size_t r = 0; r < ints.size(); ++r) ints[r] = runs[r]->GetInt(i);
        verdict = JudgeInteger(want.GetInt(i), ints, actual[o].GetInt(i));
        if (flushes && flushed->GetInt(i) != kept->GetInt(i)) verdict = Verdict::kUncertain;
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
