#include "compiler/onnx/propagate_extents.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/te/scalar/scalar_fold.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using ecg::kNone;
using ecg::ValueId;
using Dims = std::vector<ValueId>;  // an extent for each dimension

// Returns the same node with every dynamic dimension one larger.
absl::StatusOr<ecg::Graph> Enlarged(const ecg::Graph& alone, const std::vector<Dims>& extents) {
  const ecg::Node& node = alone.node(0);
  ecg::Graph larger;
  std::vector<ValueId> inputs;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) {
      inputs.push_back(kNone);
      continue;
    }
    const ecg::Value& value = alone.value(node.inputs[i]);
    if (value.constant) {
      inputs.push_back(larger.AddConstant("", *value.constant));
      continue;
    }
    ecg::ValueType type = value.type;
    for (size_t d = 0; d < extents[i].size(); ++d) type.shape[d] += extents[i][d] != kNone;
    inputs.push_back(larger.AddInput("", type));
  }
  std::vector<const ecg::Value*> values;
  values.reserve(inputs.size());
  for (ValueId id : inputs) values.push_back(id == kNone ? nullptr : &larger.value(id));
  const ops::OpContext context(node.op, node.name, node.attrs, std::move(values));
  ASSIGN_OR_RETURN(std::vector<ecg::ValueType> types, ops::InferTypes(context, static_cast<int>(node.outputs.size())));
  larger.AddNode(node.op, node.name, inputs, node.attrs, std::move(types));
  return larger;
}

// Returns a te's text without the extents of its axes ("i0<4").
std::string WithoutExtents(const te::Program& program, const te::Te& te) {
  const std::string text = te::PrintTe(program, te);
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    result += text[i];
    if (text[i] != '<' || i == 0 || !absl::ascii_isdigit(text[i - 1])) continue;
    while (i + 1 < text.size() && absl::ascii_isdigit(text[i + 1])) ++i;
  }
  return result;
}

bool SameConstant(const te::TensorInfo& a, const te::TensorInfo& b) {
  if (a.constant.has_value() != b.constant.has_value()) return false;
  if (!a.constant) return true;
  return a.constant->shape() == b.constant->shape() && a.constant->dtype() == b.constant->dtype() &&
         std::memcmp(a.constant->data(), b.constant->data(), static_cast<size_t>(a.constant->size_bytes())) == 0;
}

// The value of an element past an extent, while inputs hold the mask there.
struct Masked {
  enum class Kind { kUnknown, kNumber, kAcc } kind = Kind::kUnknown;
  double number = 0;
  int acc = 0;
  static Masked Number(double x) { return {std::isnan(x) ? Kind::kUnknown : Kind::kNumber, x, 0}; }
  bool Is(double x) const { return kind == Kind::kNumber && number == x; }
};

double Identity(te::ReductionKind kind, DType dtype) {
  const bool is_float = IsFloat(dtype);
  const double infinity = std::numeric_limits<double>::infinity();
  const int bits = DTypeBits(dtype) - (IsSigned(dtype) ? 1 : 0);
  const double highest = is_float ? infinity : dtype == DType::kBool ? 1 : std::ldexp(1.0, bits) - 1;
  const double lowest = is_float ? -infinity : IsSigned(dtype) ? -std::ldexp(1.0, bits) : 0;
  switch (kind) {
    case te::ReductionKind::kSum:
      return 0;
    case te::ReductionKind::kProd:
      return 1;
    case te::ReductionKind::kMax:
      return lowest;
    case te::ReductionKind::kMin:
      return highest;
    case te::ReductionKind::kGeneral:
      break;
  }
  return NAN;
}

// For integers, an infinite mask stands for the least or greatest value of the type.
double MaskOf(double mask, DType dtype) {
  if (IsFloat(dtype) || !std::isinf(mask)) return mask;
  return Identity(mask < 0 ? te::ReductionKind::kMax : te::ReductionKind::kMin, dtype);
}

class Propagation {
 public:
  Propagation(const ecg::Graph& alone, const ops::LoweredFusionBlock& lowered, const te::Program& larger,
              const std::vector<Dims>& extents)
      : alone_(alone), program_(lowered.program), larger_(larger), dims_(program_.tensors.size()) {
    const ecg::Node& node = alone.node(0);
    for (te::TensorId t = 0; t < static_cast<int>(lowered.value_of_tensor.size()); ++t) {
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNone || lowered.value_of_tensor[t] != node.inputs[i]) continue;
        dims_[t] = extents[i];
        is_input_[t] = true;
      }
      for (size_t o = 0; o < node.outputs.size(); ++o) {
        if (lowered.value_of_tensor[t] == node.outputs[o]) tensor_of_output_[static_cast<int>(o)] = t;
      }
    }
  }

  absl::StatusOr<Propagated> Run() {
    if (program_.tes.size() != larger_.tes.size() || program_.tensors.size() != larger_.tensors.size()) {
      return Refuse("its lowering depends on them");
    }
    for (size_t t = 0; t < program_.tensors.size(); ++t) {
      if (!SameConstant(program_.tensors[t], larger_.tensors[t])) return Refuse("they enter its result as numbers");
    }
    for (size_t t = 0; t < program_.tes.size(); ++t) {
      if (WithoutExtents(program_, program_.tes[t]) != WithoutExtents(larger_, larger_.tes[t])) {
        return Refuse("they enter its result as numbers");
      }
      RETURN_IF_ERROR(Visit(program_.tes[t], larger_.tes[t]));
    }
    Propagated result;
    for (size_t o = 0; o < alone_.node(0).outputs.size(); ++o) {
      Dims dims = dims_[tensor_of_output_.at(static_cast<int>(o))];
      dims.resize(alone_.value(alone_.node(0).outputs[o]).type.shape.size(), kNone);
      result.outputs.push_back(std::move(dims));
    }
    result.masks.resize(alone_.node(0).inputs.size());
    if (!reductions_) return result;
    ASSIGN_OR_RETURN(const double mask, FindMask());
    for (size_t i = 0; i < result.masks.size(); ++i) {
      const ValueId input = alone_.node(0).inputs[i];
      if (input == kNone) continue;
      const DType dtype = alone_.value(input).type.dtype;
      result.masks[i] = Tensor(dtype, {});
      result.masks[i].SetDouble(0, MaskOf(mask, dtype));
    }
    return result;
  }

 private:
  absl::Status Refuse(const std::string& why) const {
    const ecg::Node& node = alone_.node(0);
    return ops::OpContext(node.op, node.name, node.attrs, {})
        .Unsupported(absl::StrCat("input dimensions whose extents depend on data are not supported here: ", why));
  }

  // Records which axes have which extents, over all reads of the te.
  absl::Status Visit(const te::Te& te, const te::Te& larger) {
    std::map<int, ValueId> of_axis;
    absl::Status status;
    const std::function<void(const te::Index&)> in_index = [&](const te::Index& x) {
      for (const te::Index::Part& part : x.parts()) {
        if (part.term.inner) in_index(*part.term.inner);
        if (part.term.kind == te::TermKind::kLoad) Read(part.term.tensor, part.term.indices, &of_axis, &status);
        for (const te::Index& inner : part.term.indices) in_index(inner);
      }
    };
    const auto in_pred = [&](const te::Pred& pred) {
      for (const te::Comparison& c : pred) {
        in_index(c.lhs);
        in_index(c.rhs);
      }
    };
    te::VisitScalars(te, [&](const te::Scalar& s) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (node.kind == te::ScalarKind::kLoad) Read(node.tensor, node.indices, &of_axis, &status);
        for (const te::Index& index : node.indices) in_index(index);
        in_index(node.index);
        in_pred(node.pred);
      });
    });
    if (te.reduction) in_pred(te.reduction->pred);
    RETURN_IF_ERROR(status);
    Dims dims;
    for (size_t a = 0; a < te.axes.size(); ++a) {
      auto it = of_axis.find(te.axes[a].id);
      dims.push_back(it == of_axis.end() ? kNone : it->second);
      if (dims.back() == kNone && te.axes[a].extent != larger.axes[a].extent) {
        return Refuse(absl::StrCat("dimension ", a, " of its result depends on them in a way of its own"));
      }
      // The result keeps its length, for example because it is cut at the bound; then it would not follow the extent.
      if (dims.back() != kNone && te.axes[a].extent == larger.axes[a].extent) {
        return Refuse(
            absl::StrCat("dimension ", a, " of its result has ", te.axes[a].extent, " elements all the same"));
      }
    }
    if (te.reduction) {
      for (size_t a = 0; a < te.reduction->axes.size(); ++a) {
        const bool dynamic = of_axis.count(te.reduction->axes[a].id) > 0;
        reductions_ = reductions_ || dynamic;
        if (dynamic == (te.reduction->axes[a].extent == larger.reduction->axes[a].extent)) {
          return Refuse("it reduces over them in a way of its own");
        }
      }
    }
    for (te::TensorId output : te.outputs) dims_[output] = dims;
    axes_.push_back(std::move(of_axis));
    return absl::OkStatus();
  }

  void Read(te::TensorId tensor, const std::vector<te::Index>& indices, std::map<int, ValueId>* of_axis,
            absl::Status* status) const {
    for (size_t d = 0; d < dims_[tensor].size(); ++d) {
      const ValueId extent = dims_[tensor][d];
      if (extent == kNone || indices[d].IsConstant()) continue;
      const std::vector<te::Index::Part>& parts = indices[d].parts();
      const bool plain = parts.size() == 1 && indices[d].constant() == 0 && parts[0].coefficient == 1 &&
                         parts[0].term.kind == te::TermKind::kAxis &&
                         parts[0].term.axis.extent == program_.tensors[tensor].shape[d];
      if (!plain) {
        *status = Refuse(absl::StrCat("it reads dimension ", d, " at ", te::ToString(indices[d])));
        return;
      }
      auto [it, fresh] = of_axis->emplace(parts[0].term.axis.id, extent);
      if (!fresh && it->second != extent) {
        *status = Refuse("two of them meet, and whether they are equal is not known");
        return;
      }
    }
  }

  // Returns a value for input elements past their extents that is the identity of every reduction over them.
  absl::StatusOr<double> FindMask() {
    for (double candidate :
         {0.0, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity(), 1.0}) {
      if (Works(candidate)) return candidate;
    }
    return Refuse("no value is neutral in its reductions");
  }

  bool Works(double mask) {
    // For each tensor and extent, the value that its elements past this extent hold.
    std::map<std::pair<te::TensorId, ValueId>, Masked> masked;
    for (const auto& [tensor, unused] : is_input_) {
      const Masked value = Masked::Number(MaskOf(mask, program_.tensors[tensor].dtype));
      for (ValueId extent : dims_[tensor]) {
        if (extent != kNone) masked[{tensor, extent}] = value;
      }
    }
    for (size_t t = 0; t < program_.tes.size(); ++t) {
      const te::Te& te = program_.tes[t];
      for (const auto& bounded : axes_[t]) {
        const int axis = bounded.first;
        const ValueId extent = bounded.second;
        const bool folded = te.reduction && std::any_of(te.reduction->axes.begin(), te.reduction->axes.end(),
                                                        [axis](const te::Axis& a) { return a.id == axis; });
        std::unordered_map<const te::ScalarNode*, Masked> known;
        const std::function<Masked(const te::Scalar&)> at = [&](const te::Scalar& s) {
          auto it = known.find(s.get());
          if (it == known.end()) it = known.emplace(s.get(), Evaluate(*s, axis, extent, masked, at)).first;
          return it->second;
        };
        if (folded) {
          for (size_t b = 0; b < te.body.size(); ++b) {
            const Masked element = at(te.body[b]);
            const bool neutral = te.reduction->kind == te::ReductionKind::kGeneral
                                     ? element.kind == Masked::Kind::kAcc && element.acc == static_cast<int>(b)
                                     : element.Is(Identity(te.reduction->kind, te.reduction->acc));
            if (!neutral) return false;
          }
        } else if (te.IsMap()) {
          for (size_t o = 0; o < te.outputs.size(); ++o) masked[{te.outputs[o], extent}] = at(te.body[o]);
        }
      }
    }
    return true;
  }

  // Evaluates a scalar at a point where `axis` lies past `extent`. Elements before their extents may be any finite
  // number.
  Masked Evaluate(const te::ScalarNode& s, int axis, ValueId extent,
                  const std::map<std::pair<te::TensorId, ValueId>, Masked>& masked,
                  const std::function<Masked(const te::Scalar&)>& at) const {
    switch (s.kind) {
      case te::ScalarKind::kImm:
        return Masked::Number(IsFloat(s.dtype) ? s.fvalue : static_cast<double>(s.ivalue));
      case te::ScalarKind::kLoad: {
        const bool past = std::any_of(s.indices.begin(), s.indices.end(),
                                      [&](const te::Index& index) { return index.UsesAxis(axis); });
        auto it = masked.find({s.tensor, extent});
        return past && it != masked.end() ? it->second : Masked();
      }
      case te::ScalarKind::kAcc:
        return {Masked::Kind::kAcc, 0, s.acc};
      case te::ScalarKind::kCast: {
        const Masked x = at(s.args[0]);
        if (x.kind == Masked::Kind::kNumber && IsFloat(s.dtype)) return x;
        const bool whole = x.kind == Masked::Kind::kNumber && (s.dtype == DType::kBool || std::fabs(x.number) <= 1);
        return whole ? Masked::Number(s.dtype == DType::kBool ? x.number != 0 : std::trunc(x.number)) : Masked();
      }
      case te::ScalarKind::kIf: {
        const Masked a = at(s.args[0]), b = at(s.args[1]);
        return Same(a, b) ? a : Masked();
      }
      case te::ScalarKind::kFromIndex:
        return {};
      case te::ScalarKind::kOp:
        break;
    }
    std::vector<Masked> args;
    for (const te::Scalar& arg : s.args) args.push_back(at(arg));
    if (s.op == te::Op::kSelect) {
      if (IsNumber(args[0])) return args[args[0].number != 0 ? 1 : 2];
      return Same(args[1], args[2]) ? args[1] : Masked();
    }
    const DType dtype = s.args[0]->dtype;
    if (std::all_of(args.begin(), args.end(), IsNumber)) {
      const std::optional<double> value =
          te::ExactValue(s.op, dtype, args[0].number, args.size() > 1 ? args[1].number : 0);
      return value ? Masked::Number(*value) : Masked();
    }
    return args.size() == 2 ? OfOneNumber(s.op, dtype, args[0], args[1]) : Masked();
  }

  static bool IsNumber(const Masked& x) { return x.kind == Masked::Kind::kNumber; }
  static bool Same(const Masked& a, const Masked& b) {
    return a.kind == b.kind && a.number == b.number && a.acc == b.acc;
  }

  // Operations of which at most one operand is a number: what that number decides alone.
  static Masked OfOneNumber(te::Op op, DType dtype, const Masked& a, const Masked& b) {
    const double least = Identity(te::ReductionKind::kMax, dtype), greatest = Identity(te::ReductionKind::kMin, dtype);
    switch (op) {
      case te::Op::kAdd:
      case te::Op::kSub:
        return IsNumber(a) && std::isinf(a.number) ? a : Masked();
      // No value is less than the least value.
      case te::Op::kGt:
        return a.Is(least) || b.Is(greatest) ? Masked::Number(0) : Masked();
      case te::Op::kLt:
        return a.Is(greatest) || b.Is(least) ? Masked::Number(0) : Masked();
      case te::Op::kMax:
        return AccBeside(least, a, b);
      case te::Op::kMin:
        return AccBeside(greatest, a, b);
      case te::Op::kAnd:
        return a.Is(0) || b.Is(0) ? Masked::Number(0) : Masked();
      case te::Op::kOr:
        return AccBeside(0, a, b);
      default:
        return {};
    }
  }

  // Returns the accumulator among the two where the other is `neutral`.
  static Masked AccBeside(double neutral, const Masked& a, const Masked& b) {
    if (a.kind == Masked::Kind::kAcc && b.Is(neutral)) return a;
    return b.kind == Masked::Kind::kAcc && a.Is(neutral) ? b : Masked();
  }

  const ecg::Graph& alone_;
  const te::Program& program_;
  const te::Program& larger_;
  std::vector<Dims> dims_;  // of each tensor so far
  std::map<te::TensorId, bool> is_input_;
  std::map<int, te::TensorId> tensor_of_output_;
  std::vector<std::map<int, ValueId>> axes_;  // of each te: axis → extent
  bool reductions_ = false;
};

}  // namespace

absl::StatusOr<Propagated> PropagateExtents(const ecg::Graph& alone, const std::vector<Dims>& extents) {
  const ecg::Node& node = alone.node(0);
  const auto larger = Enlarged(alone, extents);
  if (!larger.ok()) {
    return ops::OpContext(node.op, node.name, node.attrs, {})
        .Unsupported(absl::StrCat("an input dimension whose extent depends on data meets one that does not: ",
                                  larger.status().message()));
  }
  ASSIGN_OR_RETURN(const ops::LoweredFusionBlock lowered, ops::LowerNodes(alone, {0}, node.outputs));
  ASSIGN_OR_RETURN(const ops::LoweredFusionBlock enlarged, ops::LowerNodes(*larger, {0}, larger->node(0).outputs));
  return Propagation(alone, lowered, enlarged.program, extents).Run();
}

}  // namespace fusion::onnx_import
