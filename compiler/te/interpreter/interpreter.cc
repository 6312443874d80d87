#include "compiler/te/interpreter/interpreter.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/te/interpreter/te_code.h"
#include "compiler/te/program/split_prefixes.h"
#include "compiler/te/routines/routine.h"
#include "runtime/base/status_macros.h"

namespace fusion::te {
namespace {

using lanes::Inst;
using lanes::kLanes;

bool RunList(const std::vector<Inst>& list, lanes::State& state, int n) {
  for (const Inst& inst : list) {
    constexpr uint8_t kLane = 1;
    inst.run(state, inst, inst.level & kLane ? n : inst.level == 0 ? kLanes : 1);
    if (state.failed != nullptr) return false;
  }
  return true;
}

void FillAxis(const TeCode::AxisRegister& axis, int64_t start, int n, int64_t* lanes) {
  int64_t coordinate = start / axis.stride % axis.extent;
  int64_t left = axis.stride - start % axis.stride;  // lanes before the coordinate changes
  for (int l = 0; l < n; ++l) {
    lanes[l] = coordinate;
    if (--left == 0) {
      left = axis.stride;
      if (++coordinate == axis.extent) coordinate = 0;
    }
  }
}

bool RunReduction(const TeCode& code, int64_t points, int n, lanes::State& state) {
  std::vector<int64_t> coordinates(code.reduction_axes.size(), 0);
  for (const auto& axis : code.reduction_axes) {
    if (axis.reg != lanes::kZeroRegister) state.I(axis.reg)[0] = 0;
  }
  for (int64_t p = 0; p < points; ++p) {
    if (!RunList(code.step, state, n)) return false;
    for (int a = static_cast<int>(coordinates.size()) - 1; a >= 0; --a) {
      const bool carry = ++coordinates[a] == code.reduction_axes[a].extent;
      if (carry) coordinates[a] = 0;
      if (code.reduction_axes[a].reg != lanes::kZeroRegister) state.I(code.reduction_axes[a].reg)[0] = coordinates[a];
      if (!carry) break;
    }
  }
  return true;
}

bool RunTe(const TeCode& code, int64_t elements, std::vector<Tensor>& tensors, lanes::State& state) {
  int64_t reduction_points = 1;
  for (const auto& axis : code.reduction_axes) reduction_points *= axis.extent;
  if (elements == 0) return true;
  if (!RunList(code.once, state, kLanes)) return false;
  for (int64_t start = 0; start < elements; start += kLanes) {
    const int n = static_cast<int>(std::min<int64_t>(kLanes, elements - start));
    for (const auto& axis : code.axes) {
      if (axis.reg != lanes::kZeroRegister) FillAxis(axis, start, n, state.I(axis.reg));
    }
    if (!RunList(code.pre, state, n) || !RunList(code.init, state, n)) return false;
    if (!code.step.empty() && !RunReduction(code, reduction_points, n, state)) return false;
    if (!RunList(code.post, state, n)) return false;
    for (const TeCode::Output& output : code.outputs) {
      Tensor& tensor = tensors[output.tensor];
      lanes::Store(state, output.reg, tensor.dtype(), tensor.mutable_data(), start, n);
    }
  }
  return true;
}

// A copy of the tensor with each NaN of the other sign, which says nothing.
Tensor WithOtherNans(const Tensor& tensor) {
  Tensor other(tensor.dtype(), tensor.shape());
  std::memcpy(other.mutable_data(), tensor.data(), static_cast<size_t>(tensor.size_bytes()));
  const int64_t bytes = DTypeBytes(tensor.dtype());
  auto* const data = static_cast<uint8_t*>(other.mutable_data());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    if (std::isnan(tensor.GetDouble(i))) data[(i + 1) * bytes - 1] ^= 0x80;
  }
  return other;
}

// `flips_nans`: the routine gets the NaNs of wide floats with the other sign.
void InterpretRoutine(const Program& program, const Te& te, bool flips_nans, std::vector<Tensor>& tensors) {
  std::vector<void*> args;
  std::vector<Tensor> flipped;
  flipped.reserve(te.routine->inputs.size());
  for (TensorId input : te.routine->inputs) {
    const Tensor& tensor = tensors[input];
    const bool flips = flips_nans && IsFloat(tensor.dtype()) && DTypeBytes(tensor.dtype()) >= 2;
    const Tensor& read = flips ? flipped.emplace_back(WithOtherNans(tensor)) : tensor;
    args.push_back(const_cast<void*>(read.data()));
  }
  for (TensorId output : te.outputs) args.push_back(tensors[output].mutable_data());
  std::vector<int64_t> scratch(static_cast<size_t>(te.routine->scratch_bytes / 8 + 1));
  RoutineFunctionOf(program, te)(args.data(), scratch.data(), 0, te.routine->tasks, te.routine->params.data());
}

std::string Describe(const Program& program, TensorId tensor) {
  const TensorInfo& info = program.tensors[tensor];
  return info.name.empty() ? absl::StrCat("%", tensor) : absl::StrCat("%", tensor, " '", info.name, "'");
}

absl::Status OutOfRange(const Program& program, const lanes::State& state) {
  const Inst& check = *state.failed;
  if (check.dimension < 0) {
    return absl::OutOfRangeError(absl::StrCat("index ", state.failed_value, " read from ",
                                              Describe(program, check.tensor), " is outside [", check.imm, ", ",
                                              check.imm2, "]"));
  }
  return absl::OutOfRangeError(absl::StrCat("index ", state.failed_value, " in dimension ", check.dimension, " of ",
                                            Describe(program, check.tensor), " is outside its shape ",
                                            ShapeToString(program.tensors[check.tensor].shape)));
}

absl::Status BindInputs(const Program& program, const std::vector<Tensor>& inputs, std::vector<Tensor>* tensors) {
  if (inputs.size() != program.inputs.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the program takes ", program.inputs.size(), " inputs, given ", inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorId id = program.inputs[i];
    const TensorInfo& info = program.tensors[id];
    Tensor value = inputs[i];
    if (info.constant.has_value() && value.num_elements() == 0) value = *info.constant;
    if (value.dtype() != info.dtype || value.shape() != info.shape) {
      return absl::InvalidArgumentError(absl::StrCat("input ", Describe(program, id), " is ", DTypeName(info.dtype),
                                                     ShapeToString(info.shape), ", given ", DTypeName(value.dtype()),
                                                     ShapeToString(value.shape())));
    }
    (*tensors)[id] = std::move(value);
  }
  return absl::OkStatus();
}

// Returns the last te that reads each tensor, so that intermediates are freed early.
std::vector<int> LastReaders(const Program& program) {
  std::vector<int> last(program.tensors.size(), -1);
  for (size_t t = 0; t < program.tes.size(); ++t) {
    VisitTensors(program.tes[t], [&](TensorId tensor) { last[tensor] = static_cast<int>(t); });
  }
  for (TensorId output : program.outputs) last[output] = static_cast<int>(program.tes.size());
  return last;
}

}  // namespace

absl::StatusOr<std::vector<Tensor>> Interpret(const Program& given, const std::vector<Tensor>& inputs,
                                              const InterpretOptions& options) {
  const std::optional<Program> split = SplitPrefixes(given);
  const Program& program = split ? *split : given;
  std::vector<Tensor> tensors(program.tensors.size());
  RETURN_IF_ERROR(BindInputs(program, inputs, &tensors));
  const std::vector<int> last = LastReaders(program);
  lanes::State state;
  const bool perturb = options.perturb_seed != 0;
  if (perturb) state.random = options.perturb_seed;
  state.still = (uint64_t{1} << options.perturb_sparsity) - 1;
  state.skips_padding = options.perturb_seed % 2 == 1;
  state.fuses = options.perturb_seed / 2 % 2 == 1;
  state.infinite_overflows = options.perturb_seed / 16 % 2 == 1;
  const TeCodeOptions code_options = {
      .perturb = perturb, .in_order = options.in_order, .two_sums = options.perturb_seed / 32 % 2 == 1};
  state.alike = options.perturb_seed / 4 % 2 == 1 ? options.perturb_seed : 0;
  state.data.assign(program.tensors.size(), nullptr);
  for (TensorId input : program.inputs) state.data[input] = tensors[input].data();
  for (size_t t = 0; t < program.tes.size(); ++t) {
    const Te& te = program.tes[t];
    for (TensorId output : te.outputs) {
      const TensorInfo& info = program.tensors[output];
      RETURN_IF_ERROR(Annotate(CheckedSizeBytes(info.shape, info.dtype).status(), Describe(program, output)));
      tensors[output] = Tensor(info.dtype, info.shape);
      state.data[output] = tensors[output].data();
    }
    if (te.routine) {
      RETURN_IF_ERROR(CheckRoutine(program, te));
      InterpretRoutine(program, te, /*flips_nans=*/options.perturb_seed / 8 % 2 == 1, tensors);
    } else {
      ASSIGN_OR_RETURN(const TeCode code, CompileTe(program, te, code_options));
      state.doubles.assign(static_cast<size_t>(code.num_doubles) * kLanes, 0.0);
      state.ints.assign(static_cast<size_t>(code.num_ints) * kLanes, 0);
      if (!RunTe(code, tensors[te.outputs[0]].num_elements(), tensors, state)) return OutOfRange(program, state);
    }
    const auto release = [&](TensorId tensor) {
      if (last[tensor] <= static_cast<int>(t)) tensors[tensor] = Tensor();
    };
    VisitTensors(te, release);
    for (TensorId output : te.outputs) release(output);
  }
  std::vector<Tensor> outputs;
  for (TensorId output : program.outputs) outputs.push_back(tensors[output]);
  return outputs;
}

}  // namespace fusion::te
