#include "runtime/devices/dsa_sim/unit_evaluator.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/exact_integer.h"

namespace fusion::dsa {
namespace {

bool RunList(const std::vector<UnitInstruction>& list, UnitState& state, int lanes) {
  for (const UnitInstruction& one : list) {
    const int n = one.width == UnitWidth::kLanes ? lanes : one.width == UnitWidth::kOne ? 1 : kUnitLanes;
    one.op->run(state, one, n);
    if (one.op->dst == 'i') state.Forget(one.dst);
    if (state.failed != nullptr) return false;
  }
  return true;
}

// Fills a register with the axis' coordinate of consecutive points; `stride`: points between two coordinates.
void FillAxis(int64_t extent, int64_t stride, int64_t start, int n, int64_t* lanes) {
  int64_t coordinate = start / stride % extent;
  int64_t left = stride - start % stride;  // points before the coordinate changes
  for (int l = 0; l < n; ++l) {
    lanes[l] = coordinate;
    if (--left > 0) continue;
    left = stride;
    if (++coordinate == extent) coordinate = 0;
  }
}

bool RunReduction(const UnitStep& step, int n, UnitState& state) {
  int64_t points = 1;
  std::vector<int64_t> coordinates(step.reduction.size(), 0);
  for (const UnitAxis& axis : step.reduction) {
    points *= axis.extent;
    if (axis.reg == 0) continue;
    state.I(axis.reg)[0] = 0;
    state.Forget(axis.reg);
  }
  for (int64_t p = 0; p < points; ++p) {
    if (!RunList(step.lists[UnitStep::kEach], state, n)) return false;
    for (size_t a = coordinates.size(); a-- > 0;) {
      const bool carry = ++coordinates[a] == step.reduction[a].extent;
      if (carry) coordinates[a] = 0;
      if (step.reduction[a].reg != 0) {
        state.I(step.reduction[a].reg)[0] = coordinates[a];
        state.Forget(step.reduction[a].reg);
      }
      if (!carry) break;
    }
  }
  return true;
}

// Calls `visit(a, b, count)` for runs of elements that are consecutive both in the box and in its tensor: `a` counts
// the box's elements, `b` the tensor's.
template <typename Visit>
void VisitRows(const UnitBox& box, const UnitTensor& tensor, const Visit& visit) {
  const size_t rank = box.extents.size();
  int64_t count = 1;
  for (const int64_t extent : box.extents) count *= extent;
  if (count == 0) return;
  const int64_t row = rank == 0 ? 1 : box.extents.back();
  std::vector<int64_t> at = box.at;
  for (int64_t a = 0; a < count; a += row) {
    int64_t b = 0;
    for (size_t d = 0; d < rank; ++d) b = b * tensor.extents[d] + at[d];
    visit(a, b, row);
    for (size_t d = rank == 0 ? 0 : rank - 1; d-- > 0;) {
      if (++at[d] < box.at[d] + box.extents[d]) break;
      at[d] = box.at[d];
    }
  }
}

bool HaveExtents(const std::vector<UnitBox>& boxes, const std::vector<Slice>& slices) {
  if (boxes.size() != slices.size()) return false;
  for (size_t i = 0; i < boxes.size(); ++i) {
    std::vector<int64_t> counts;
    for (const Stride& stride : slices[i].strides) counts.push_back(stride.count);
    if (counts != boxes[i].extents) return false;
  }
  return true;
}

// Has the instruction the operands and results that its code computes with?
bool Fits(const Instruction& instruction, const UnitCode& code) {
  std::vector<Slice> results = {instruction.to};
  results.insert(results.end(), instruction.also.begin(), instruction.also.end());
  return HaveExtents(code.results, results) && HaveExtents(code.operands, instruction.from);
}

}  // namespace

absl::StatusOr<UnitEvaluator> UnitEvaluator::Create(const Program& program) {
  UnitEvaluator evaluator;
  for (const Expression& expression : program.expressions) {
    absl::StatusOr<UnitCode> code = ParseUnitCode(expression.text);
    if (!code.ok()) return Annotate(code.status(), absl::StrCat("expression ", expression.name));
    evaluator.codes_.push_back(*std::move(code));
    evaluator.names_.push_back(expression.name);
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (!instruction.part.present()) continue;
    if (Fits(instruction, evaluator.codes_[instruction.part.expression])) continue;
    return absl::InvalidArgumentError(absl::StrCat("instruction ", i, " has other operands or results than expression ",
                                                   evaluator.names_[instruction.part.expression], " computes with"));
  }
  return evaluator;
}

absl::Status UnitEvaluator::RunStep(const UnitCode& code, const UnitStep& step,
                                    std::vector<std::vector<float>>* arrays) {
  state_.doubles.assign(static_cast<size_t>(step.doubles) * kUnitLanes, 0.0);
  state_.integers.assign(static_cast<size_t>(step.integers) * kUnitLanes, 0);
  state_.facts.assign(static_cast<size_t>(step.integers), {});
  int64_t elements = 1;
  std::vector<int64_t> strides(step.axes.size());
  for (size_t a = step.axes.size(); a-- > 0;) {
    strides[a] = elements;
    elements *= step.axes[a].extent;
  }
  for (const UnitStep::Store& store : step.stores) {
    std::vector<float>& array = (*arrays)[store.tensor];
    array.assign(static_cast<size_t>(elements), 0.0F);
    state_.arrays[store.tensor] = {array.data(), elements};
  }
  bool ok = elements == 0 || RunList(step.lists[UnitStep::kOnce], state_, kUnitLanes);
  for (int64_t start = 0; ok && start < elements; start += kUnitLanes) {
    const int n = static_cast<int>(std::min<int64_t>(kUnitLanes, elements - start));
    for (size_t a = 0; a < step.axes.size(); ++a) {
      if (step.axes[a].reg == 0) continue;
      FillAxis(step.axes[a].extent, strides[a], start, n, state_.I(step.axes[a].reg));
      state_.Forget(step.axes[a].reg);
    }
    ok = RunList(step.lists[UnitStep::kPre], state_, n) && RunList(step.lists[UnitStep::kInit], state_, n) &&
         (step.lists[UnitStep::kEach].empty() || RunReduction(step, n, state_)) &&
         RunList(step.lists[UnitStep::kPost], state_, n);
    if (!ok) break;
    for (const UnitStep::Store& store : step.stores) {
      float* const to = (*arrays)[store.tensor].data() + start;
      switch (code.tensors[store.tensor].dtype) {
        case DType::kF16:
          for (int l = 0; l < n; ++l) to[l] = HalfToFloat(FloatToHalf(static_cast<float>(state_.D(store.reg)[l])));
          break;
        case DType::kBF16:
          for (int l = 0; l < n; ++l) {
            to[l] = BFloat16ToFloat(FloatToBFloat16(static_cast<float>(state_.D(store.reg)[l])));
          }
          break;
        default:
          if (IsFloat(code.tensors[store.tensor].dtype)) {
            for (int l = 0; l < n; ++l) to[l] = static_cast<float>(state_.D(store.reg)[l]);
          } else {
            const int64_t* const from = state_.I(store.reg);
            for (int l = 0; l < n; ++l) {
              if (!IsExactAsFloat(from[l])) {
                return absl::UnimplementedError(absl::StrCat("a result is ", InexactInWords(from[l])));
              }
              to[l] = static_cast<float>(from[l]);
            }
          }
      }
    }
  }
  if (ok) return absl::OkStatus();
  const UnitInstruction& failed = *std::exchange(state_.failed, nullptr);
  const bool element = failed.op->reads_tensor;
  return absl::OutOfRangeError(
      absl::StrCat(element ? "element " : "the address ", state_.failed_value, " lies outside of ",
                   element ? absl::StrCat("a tensor of ", state_.arrays[failed.tensor].elements, " elements")
                           : absl::StrCat("its range, which ends at ", failed.imm2)));
}

bool UnitEvaluator::MakesIntegers(int expression, size_t result) const {
  const UnitCode& code = codes_[expression];
  return !IsFloat(code.tensors[code.results[result].tensor].dtype);
}

absl::StatusOr<std::vector<std::vector<float>>> UnitEvaluator::Evaluate(const EvaluationRequest& request) {
  const UnitCode& code = codes_[request.expression];
  std::vector<std::vector<float>>& arrays = arrays_;
  arrays.resize(std::max(arrays.size(), code.tensors.size()));
  state_.arrays.assign(code.tensors.size(), {});
  for (size_t o = 0; o < code.operands.size(); ++o) {
    const UnitBox& box = code.operands[o];
    const UnitTensor& tensor = code.tensors[box.tensor];
    const std::vector<float>& values = request.values[o];
    if (box.IsWhole(tensor)) {
      state_.arrays[box.tensor] = {values.data(), static_cast<int64_t>(values.size())};
      continue;
    }
    std::vector<float>& array = arrays[box.tensor];
    array.assign(static_cast<size_t>(tensor.elements()), 0.0F);
    VisitRows(box, tensor,
              [&](int64_t a, int64_t b, int64_t count) { std::copy_n(values.data() + a, count, array.data() + b); });
    state_.arrays[box.tensor] = {array.data(), tensor.elements()};
  }
  // An input that no operand is for is loaded by no lane that counts; one without elements is loaded as one zero.
  std::vector<bool> made(code.tensors.size(), false);
  for (const UnitStep& step : code.steps) {
    for (const UnitStep::Store& store : step.stores) made[store.tensor] = true;
  }
  for (size_t t = 0; t < code.tensors.size(); ++t) {
    if (made[t] || state_.arrays[t].data != nullptr) continue;
    arrays[t].assign(static_cast<size_t>(std::max<int64_t>(1, code.tensors[t].elements())), 0.0F);
    state_.arrays[t] = {arrays[t].data(), static_cast<int64_t>(arrays[t].size())};
  }
  for (const UnitStep& step : code.steps) {
    RETURN_IF_ERROR(Annotate(RunStep(code, step, &arrays), names_[request.expression]));
  }
  std::vector<std::vector<float>> results;
  for (const UnitBox& box : code.results) {
    const UnitTensor& tensor = code.tensors[box.tensor];
    const UnitState::Array& from = state_.arrays[box.tensor];
    if (from.elements != tensor.elements()) return absl::InternalError("no step computes a result");
    std::vector<float>& result = results.emplace_back();
    if (box.IsWhole(tensor)) {
      result.assign(from.data, from.data + from.elements);
      continue;
    }
    VisitRows(box, tensor, [&](int64_t, int64_t b, int64_t count) {
      result.insert(result.end(), from.data + b, from.data + b + count);
    });
  }
  return results;
}

}  // namespace fusion::dsa
