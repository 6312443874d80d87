#include "compiler/te/interpreter/te_code.h"

#include <bit>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/te/interpreter/lane_numbers.h"
#include "compiler/te/interpreter/perturbation.h"
#include "compiler/te/scalar/op_table.h"

namespace fusion::te {
namespace {

using lanes::Inst;
using lanes::kZeroRegister;
using lanes::LaneKernel;

// The set of things with which a value changes. It decides where an instruction runs and on how many lanes. 0: constant
// in the te.
enum Level : uint8_t { kLane = 1, kStep = 2, kAcc = 4 };

struct RegisterValue {
  int reg = kZeroRegister;
  uint8_t level = 0;
};
using Mask = std::optional<RegisterValue>;  // lanes in which a lazy branch is taken; nullopt: all

// An index as lane part + uniform part + constant, so that most indices cost nothing per reduction step.
struct LaneIndex {
  RegisterValue lane, uniform;
  int64_t constant = 0;
  uint8_t level() const { return lane.level | uniform.level; }
};

class TeCompiler {
 public:
  TeCompiler(const Program& program, const Te& te, const TeCodeOptions& options)
      : program_(program),
        te_(te),
        perturb_(options.perturb),
        any_order_(options.perturb && !options.in_order),
        two_sums_(any_order_ && options.two_sums) {}

  absl::StatusOr<TeCode> Compile() {
    int64_t stride = 1;
    code_.axes.resize(te_.axes.size());
    for (int a = static_cast<int>(te_.axes.size()) - 1; a >= 0; --a) {
      code_.axes[a] = {kZeroRegister, te_.axes[a].extent, stride};
      stride *= te_.axes[a].extent;
      spatial_[te_.axes[a].id] = a;
    }
    std::vector<RegisterValue> outputs;
    if (te_.IsMap()) {
      for (const Scalar& body : te_.body) outputs.push_back(Compile(body, {}));
    } else {
      CompileReduction(&outputs);
    }
    if (!status_.ok()) return status_;
    for (size_t o = 0; o < outputs.size(); ++o) code_.outputs.push_back({te_.outputs[o], outputs[o].reg});
    return std::move(code_);
  }

 private:
  // ---- instructions
  std::vector<Inst>& ListOf(uint8_t level) {
    return level & kAcc ? code_.post : level & kStep ? code_.step : level & kLane ? code_.pre : code_.once;
  }
  int NewRegister(bool is_float) { return is_float ? code_.num_doubles++ : code_.num_ints++; }

  // Appends `inst` at `level`, or returns the result of an equal instruction.
  RegisterValue Emit(Inst inst, bool is_float, uint8_t level) {
    inst.level = level;
    const auto key = std::make_tuple(reinterpret_cast<uintptr_t>(inst.run), level, inst.a, inst.b, inst.c, inst.imm,
                                     inst.imm2, std::bit_cast<int64_t>(inst.fimm), inst.tensor);
    auto [it, inserted] = known_.try_emplace(key, RegisterValue{0, level});
    if (inserted) {
      it->second.reg = inst.dst = NewRegister(is_float);
      ListOf(level).push_back(inst);
    }
    return it->second;
  }
  // Returns the register of `v` for an instruction at `level`; spreads a uniform value over the lanes where they are
  // needed.
  int Operand(RegisterValue v, bool is_float, uint8_t level) {
    if (!(level & kLane) || (v.level & kLane) || v.level == 0) return v.reg;
    return Emit({.run = is_float ? lanes::SplatD : lanes::SplatI, .a = v.reg}, is_float, v.level | kLane).reg;
  }
  RegisterValue ConstantInt(int64_t value) { return Emit({.run = lanes::SplatImmI, .imm = value}, false, 0); }
  RegisterValue ConstantDouble(double value) { return Emit({.run = lanes::SplatImmD, .fimm = value}, true, 0); }
  RegisterValue Constant(DType dtype, double fvalue, int64_t ivalue) {
    return IsFloat(dtype) ? ConstantDouble(fvalue) : ConstantInt(ivalue);
  }
  RegisterValue Unary(LaneKernel kernel, RegisterValue a, bool a_float, bool is_float, int64_t imm = 0) {
    return Emit({.run = kernel, .a = Operand(a, a_float, a.level), .imm = imm}, is_float, a.level);
  }
  RegisterValue Both(LaneKernel kernel, RegisterValue a, RegisterValue b) {  // both integers
    const uint8_t level = a.level | b.level;
    return Emit({.run = kernel, .a = Operand(a, false, level), .b = Operand(b, false, level)}, false, level);
  }
  uint8_t CheckLevel() const { return in_reduction_ ? kStep : 0; }  // a reduction over no elements must not fail

  // ---- indices
  RegisterValue AxisValue(const Axis& axis) {
    if (auto it = spatial_.find(axis.id); it != spatial_.end()) {
      TeCode::AxisRegister& r = code_.axes[it->second];
      if (r.reg == kZeroRegister) r.reg = NewRegister(false);
      return {r.reg, kLane};
    }
    if (auto it = reduced_.find(axis.id); it != reduced_.end() && in_reduction_) {
      TeCode::AxisRegister& r = code_.reduction_axes[it->second];
      if (r.reg == kZeroRegister) r.reg = NewRegister(false);
      return {r.reg, kStep};
    }
    return Fail(absl::StrCat("axis i", axis.id, " is not an axis of the expression"));
  }

  RegisterValue TermValue(const Term& term, const Mask& mask) {
    switch (term.kind) {
      case TermKind::kAxis:
        return AxisValue(term.axis);
      case TermKind::kFloorDiv:
      case TermKind::kMod:
        return Unary(term.kind == TermKind::kMod ? lanes::ModImm : lanes::FloorDivImm, IndexValue(*term.inner, mask),
                     false, false, term.divisor);
      case TermKind::kLoad: {
        const DType dtype = program_.tensors[term.tensor].dtype;
        const RegisterValue loaded = LoadValue(term.tensor, dtype, term.indices, nullptr, mask);
        const RegisterValue active = mask ? *mask : ConstantInt(1);
        const uint8_t level = loaded.level | active.level | CheckLevel();
        return Emit({.run = lanes::CheckValue,
                     .a = Operand(loaded, false, level),
                     .c = Operand(active, false, level),
                     .imm = term.load_range.lo,
                     .imm2 = term.load_range.hi,
                     .tensor = term.tensor},
                    false, level);
      }
    }
    return {};
  }

  void Accumulate(RegisterValue* sum, RegisterValue term, int64_t coefficient) {
    if (sum->reg == kZeroRegister && coefficient == 1) {
      *sum = term;
      return;
    }
    const uint8_t level = sum->level | term.level;
    *sum = Emit(
        {.run = lanes::AddMul, .a = Operand(*sum, false, level), .b = Operand(term, false, level), .imm = coefficient},
        false, level);
  }

  LaneIndex SplitIndex(const Index& x, const Mask& mask) {
    LaneIndex result;
    result.constant = x.constant();
    std::vector<std::pair<RegisterValue, int64_t>> stepping;
    for (const Index::Part& part : x.parts()) {
      const RegisterValue v = TermValue(part.term, mask);
      if ((v.level & kLane) == 0) {
        Accumulate(&result.uniform, v, part.coefficient);
      } else if (v.level & kStep) {
        stepping.emplace_back(v, part.coefficient);
      } else {
        Accumulate(&result.lane, v, part.coefficient);
      }
    }
    for (const auto& [v, coefficient] : stepping) Accumulate(&result.lane, v, coefficient);
    return result;
  }

  RegisterValue IndexValue(const Index& x, const Mask& mask) {
    const LaneIndex i = SplitIndex(x, mask);
    if (i.constant == 0 && i.uniform.reg == kZeroRegister) return i.lane;
    if (i.constant == 0 && i.lane.reg == kZeroRegister) return i.uniform;
    if (i.level() == 0 && i.uniform.reg == kZeroRegister) return ConstantInt(i.constant);
    return Emit({.run = lanes::AddUniform, .a = i.lane.reg, .b = i.uniform.reg, .imm = i.constant}, false, i.level());
  }

  static bool Inside(const Index& x, int64_t extent) {
    const Interval range = x.Range();
    return range.lo >= 0 && range.hi < extent;
  }

  RegisterValue PredValue(const Pred& pred, const Mask& mask) {
    RegisterValue result = ConstantInt(1);
    for (const Comparison& c : pred) {
      const RegisterValue difference = IndexValue(c.lhs - c.rhs, mask);
      result = Both(lanes::And, result, Unary(lanes::CompareZeroKernel(c.cmp), difference, false, false));
    }
    return result;
  }

  // ---- loads
  RegisterValue LoadValue(TensorId tensor, DType dtype, const std::vector<Index>& indices, const ScalarNode* pad,
                          const Mask& mask) {
    const Shape& shape = program_.tensors[tensor].shape;
    const bool is_float = IsFloat(dtype);
    std::optional<RegisterValue> ok;  // lanes that read memory
    if (!pad && mask) ok = mask;
    uint8_t level = 0;
    bool checked = false;
    for (size_t d = 0; d < indices.size(); ++d) {
      if (Inside(indices[d], shape[d])) continue;
      checked = true;
      const LaneIndex i = SplitIndex(indices[d], mask);
      const RegisterValue active = ok ? *ok : ConstantInt(1);
      Inst inst{.run = pad ? lanes::InBox : lanes::CheckBox,
                .a = i.lane.reg,
                .b = i.uniform.reg,
                .imm = i.constant,
                .imm2 = shape[d],
                .tensor = tensor,
                .dimension = static_cast<int>(d)};
      const uint8_t inst_level = i.level() | active.level | (pad ? 0 : CheckLevel());
      inst.a = Operand(i.lane, false, inst_level);
      inst.c = Operand(active, false, inst_level);
      const RegisterValue result = Emit(inst, false, inst_level);
      if (pad) ok = result;
      level |= inst_level;
    }
    if (!pad && !checked) ok.reset();
    const LaneIndex address = SplitIndex(Linearize(indices, shape), mask);
    level |= address.level();
    if (ok) level |= ok->level;
    Inst inst{.run = lanes::LoadKernel(dtype, ok.has_value()),
              .a = Operand(address.lane, false, level),
              .b = address.uniform.reg,
              .imm = address.constant,
              .tensor = tensor};
    if (ok) inst.c = Operand(*ok, false, level);
    if (pad) {
      inst.fimm = pad->fvalue;
      inst.imm2 = pad->ivalue;
    }
    return Emit(inst, is_float, level);
  }

  // ---- scalars
  // Returns whether evaluating the node in a lane that does not need it could fail.
  bool Risky(const ScalarNode& s) {
    auto it = risky_.find(&s);
    if (it != risky_.end()) return it->second;
    bool risky = s.kind == ScalarKind::kFromIndex && s.index.HasLoad();
    if (s.kind == ScalarKind::kLoad) {
      const Shape& shape = program_.tensors[s.tensor].shape;
      for (size_t d = 0; d < s.indices.size(); ++d) {
        risky |= s.indices[d].HasLoad() || (!s.pad && !Inside(s.indices[d], shape[d]));
      }
    }
    for (const Comparison& c : s.pred) risky |= c.lhs.HasLoad() || c.rhs.HasLoad();
    for (const Scalar& arg : s.args) risky |= Risky(*arg);
    return risky_[&s] = risky;
  }

  RegisterValue Compile(const Scalar& s, Mask mask) {
    if (!Risky(*s)) mask.reset();
    const std::pair<const ScalarNode*, int> key(s.get(), mask ? mask->reg : -1);
    if (auto it = values_.find(key); it != values_.end()) return it->second;
    return values_[key] = CompileNode(*s, mask);
  }

  RegisterValue CompileNode(const ScalarNode& s, const Mask& mask) {
    switch (s.kind) {
      case ScalarKind::kImm:
        // Uses the value that a machine holds: in double precision, a product of a sixth and six would seem to have few
        // bits.
        if (perturb_ && s.dtype != DType::kF64) return Constant(s.dtype, static_cast<float>(s.fvalue), s.ivalue);
        return Constant(s.dtype, s.fvalue, s.ivalue);
      case ScalarKind::kLoad:
        return LoadValue(s.tensor, s.dtype, s.indices, s.pad.get(), mask);
      case ScalarKind::kFromIndex:
        return IndexValue(s.index, mask);
      case ScalarKind::kAcc:
        return acc_[s.acc];
      case ScalarKind::kCast:
        return CastValue(Compile(s.args[0], mask), s.args[0]->dtype, s.dtype);
      case ScalarKind::kIf: {
        const RegisterValue condition = PredValue(s.pred, mask);
        RegisterValue yes = condition;
        const RegisterValue active = mask ? *mask : ConstantInt(1);
        if (mask) yes = Both(lanes::And, active, condition);
        const RegisterValue no = Both(lanes::AndNot, active, condition);
        return SelectValue(condition, Compile(s.args[0], yes), Compile(s.args[1], no), IsFloat(s.dtype));
      }
      case ScalarKind::kOp:
        return OpValue(s, mask);
    }
    return {};
  }

  RegisterValue SelectValue(RegisterValue condition, RegisterValue a, RegisterValue b, bool is_float) {
    const uint8_t level = condition.level | a.level | b.level;
    return Emit({.run = is_float ? lanes::SelectD : lanes::SelectI,
                 .a = Operand(a, is_float, level),
                 .b = Operand(b, is_float, level),
                 .c = Operand(condition, false, level)},
                is_float, level);
  }

  LaneKernel KernelOf(Op op, DType dtype) const {
    if (perturb_ && IsFloat(dtype) && (op == Op::kMin || op == Op::kMax)) return lanes::RandomZeroKernel(op);
    return lanes::OpKernel(op, dtype);
  }

  // Halves are widened before they are multiplied.
  static bool MayBePadding(const Scalar& s) {
    return s->kind == ScalarKind::kCast ? MayBePadding(s->args[0]) : s->pad != nullptr || s->kind == ScalarKind::kIf;
  }
  static bool IsPaddedProduct(const ScalarNode& s) {
    return s.op == Op::kMul && IsFloat(s.dtype) && std::any_of(s.args.begin(), s.args.end(), MayBePadding);
  }

  RegisterValue OpValue(const ScalarNode& s, const Mask& mask) {
    std::vector<RegisterValue> args;
    for (const Scalar& arg : s.args) args.push_back(Compile(arg, mask));
    const bool is_float = IsFloat(s.dtype);
    if (s.op == Op::kSelect) return SelectValue(args[0], args[1], args[2], is_float);
    const DType operand = s.args[0]->dtype;
    Inst inst{.run = perturb_ && IsPaddedProduct(s) ? lanes::PaddedProductKernel() : KernelOf(s.op, operand),
              .imm = DTypeBits(operand)};
    if (inst.run == nullptr) {
      return Fail(absl::StrCat(GetOpInfo(s.op).name, " is not defined on ", DTypeName(operand)));
    }
    uint8_t level = 0;
    for (const RegisterValue& arg : args) level |= arg.level;
    inst.a = Operand(args[0], IsFloat(operand), level);
    if (args.size() > 1) inst.b = Operand(args[1], IsFloat(operand), level);
    const RegisterValue result = Emit(inst, is_float, level);
    if (perturb_ && s.op == Op::kMul && s.dtype == DType::kF64) {
      return Emit({.run = lanes::PerturbProductKernel(), .a = result.reg, .b = inst.a, .c = inst.b}, true, level);
    }
    if (perturb_ && s.op == Op::kMul && is_float) {
      return Emit({.run = lanes::PerturbNarrowProductKernel(), .a = result.reg}, true, level);
    }
    if (perturb_ && is_float && (s.op == Op::kAdd || s.op == Op::kSub)) {
      const int64_t sign = s.op == Op::kSub ? -1 : 1;
      return Emit({.run = lanes::PerturbSumKernel(s.dtype), .a = result.reg, .b = inst.a, .c = inst.b, .imm = sign},
                  true, level);
    }
    const OpRow& row = RowOf(s.op);
    if (perturb_ && is_float && row.units > 0) {
      const double units = row.units;
      return Emit({.run = lanes::PerturbKernel(s.dtype), .a = result.reg, .fimm = units}, true, level);
    }
    const LaneKernel wrap = !is_float && row.wraps ? lanes::WrapKernel(s.dtype) : nullptr;
    return wrap ? Unary(wrap, result, false, false) : result;
  }

  RegisterValue CastValue(RegisterValue v, DType from, DType to) {
    if (IsFloat(from) && IsFloat(to)) {
      const LaneKernel round = perturb_ ? lanes::RandomRoundKernel(to) : lanes::RoundKernel(to);
      return round ? Unary(round, v, true, true) : v;
    }
    if (IsFloat(to)) {
      v = Unary(lanes::IntToFloatKernel(from, to), v, false, true);
      const LaneKernel round = to == DType::kF32 ? nullptr : lanes::RoundKernel(to);
      return round ? Unary(round, v, true, true) : v;
    }
    if (IsFloat(from)) {
      v = Unary(perturb_ ? lanes::RandomDoubleToIntKernel(to) : lanes::DoubleToIntKernel(to), v, true, false);
    }
    const LaneKernel wrap = lanes::WrapKernel(to);
    return wrap ? Unary(wrap, v, false, false) : v;
  }

  // ---- reductions
  RegisterValue Identity() {
    const DType t = te_.reduction->acc;
    switch (te_.reduction->kind) {
      case ReductionKind::kProd:
        return Constant(t, 1, 1);
      case ReductionKind::kMax:
      case ReductionKind::kMin: {
        const bool max = te_.reduction->kind == ReductionKind::kMax;
        const double inf = std::numeric_limits<double>::infinity();
        if (IsFloat(t)) return ConstantDouble(max ? -inf : inf);
        if (t == DType::kBool) return ConstantInt(max ? 0 : 1);
        const int bits = DTypeBits(t) - (IsSigned(t) ? 1 : 0);
        const int64_t highest = bits == 64 ? -1 : static_cast<int64_t>((uint64_t{1} << bits) - 1);
        return ConstantInt(max ? (IsSigned(t) ? -highest - 1 : 0) : highest);
      }
      default:
        return Constant(t, 0, 0);
    }
  }

  void Move(std::vector<Inst>* list, int dst, RegisterValue v, bool is_float) {
    list->push_back({.run = is_float ? lanes::MoveD : lanes::MoveI,
                     .dst = dst,
                     .a = Operand(v, is_float, kLane | kStep),
                     .level = kLane | kStep});
  }

  void CompileReduction(std::vector<RegisterValue>* outputs) {
    const Reduction& reduction = *te_.reduction;
    const bool general = reduction.kind == ReductionKind::kGeneral;
    for (const Axis& axis : reduction.axes) {
      reduced_[axis.id] = static_cast<int>(code_.reduction_axes.size());
      code_.reduction_axes.push_back({kZeroRegister, axis.extent, 1});
    }
    std::vector<DType> types;
    for (const Scalar& init : reduction.init) types.push_back(init->dtype);
    if (!general) types = {reduction.acc};
    for (size_t a = 0; a < types.size(); ++a) {
      const RegisterValue first = general ? Compile(reduction.init[a], {}) : Identity();
      acc_.push_back({NewRegister(IsFloat(types[a])), kLane | kStep});
      Move(&code_.init, acc_[a].reg, first, IsFloat(types[a]));
    }
    // The products of the factors above 1 and of those below 1.
    const bool any_order = any_order_ && reduction.kind == ReductionKind::kProd && IsFloat(reduction.acc);
    int partial[2] = {kZeroRegister, kZeroRegister};
    // The sum of all magnitudes.
    const bool any_order_sum =
        any_order_ && reduction.kind == ReductionKind::kSum && IsFloat(reduction.acc) && !general;
    const int magnitude = any_order_sum ? NewRegister(true) : kZeroRegister;
    if (any_order_sum) Move(&code_.init, magnitude, Constant(reduction.acc, 0, 0), true);
    const bool two_sums = any_order_sum && two_sums_;
    const int other_sum = two_sums ? NewRegister(true) : kZeroRegister;
    if (two_sums) Move(&code_.init, other_sum, Constant(reduction.acc, 0, 0), true);
    for (int k = 0; any_order && k < 2; ++k) {
      partial[k] = NewRegister(true);
      Move(&code_.init, partial[k], Identity(), true);
    }

    in_reduction_ = true;
    Mask mask;
    if (!reduction.pred.empty()) mask = PredValue(reduction.pred, {});
    if (general) {
      GeneralUpdate(types, mask);
    } else {
      const RegisterValue element = Compile(te_.body[0], mask);
      constexpr uint8_t kLevel = kLane | kStep;
      for (int k = 0; any_order && k < 2; ++k) {
        code_.step.push_back({.run = lanes::PartialProductKernel(k == 0),
                              .dst = partial[k],
                              .a = partial[k],
                              .b = Operand(element, true, kLevel),
                              .c = Operand(mask ? *mask : ConstantInt(1), false, kLevel),
                              .level = kLevel});
      }
      if (any_order_sum) {
        code_.step.push_back({.run = lanes::PartialSumKernel(),
                              .dst = magnitude,
                              .a = magnitude,
                              .b = Operand(element, true, kLevel),
                              .c = Operand(mask ? *mask : ConstantInt(1), false, kLevel),
                              .level = kLevel});
      }
      if (two_sums) {
        code_.step.push_back({.run = lanes::SwapAtRandom, .dst = acc_[0].reg, .a = other_sum, .level = kLevel});
      }
      NamedUpdate(reduction, element, mask);
    }

    in_reduction_ = false;
    values_.clear();
    for (RegisterValue& acc : acc_) acc.level = kLane | kAcc;
    if (any_order) {
      acc_[0] =
          Emit({.run = lanes::AnyOrderProductKernel(reduction.acc), .a = acc_[0].reg, .b = partial[0], .c = partial[1]},
               true, kLane | kAcc);
    }
    if (two_sums) {
      const RegisterValue sum = acc_[0];
      acc_[0] = Emit({.run = KernelOf(Op::kAdd, reduction.acc), .a = sum.reg, .b = other_sum}, true, kLane | kAcc);
      acc_[0] = Emit({.run = lanes::PerturbSumKernel(reduction.acc), .a = acc_[0].reg, .b = sum.reg, .c = other_sum},
                     true, kLane | kAcc);
    }
    if (any_order_sum) {
      acc_[0] =
          Emit({.run = lanes::AnyOrderSumKernel(reduction.acc), .a = acc_[0].reg, .b = magnitude}, true, kLane | kAcc);
    }
    for (size_t o = 0; o < te_.outputs.size(); ++o) {
      if (te_.then.empty()) {
        outputs->push_back(CastValue(acc_[o], types[o], program_.tensors[te_.outputs[o]].dtype));
      } else {
        outputs->push_back(Compile(te_.then[o], {}));
      }
    }
  }

  // Computes the next values of all accumulators before any of them changes.
  void GeneralUpdate(const std::vector<DType>& types, const Mask& mask) {
    std::vector<RegisterValue> next;
    for (size_t a = 0; a < types.size(); ++a) {
      RegisterValue v = Compile(te_.body[a], mask);
      if (mask) v = SelectValue(*mask, v, acc_[a], IsFloat(types[a]));
      for (size_t other = 0; other < types.size(); ++other) {  // saved before the accumulators change
        if (IsFloat(types[other]) == IsFloat(types[a]) && v.reg == acc_[other].reg && (v.level & kStep)) {
          v = Unary(IsFloat(types[a]) ? lanes::MoveD : lanes::MoveI, v, IsFloat(types[a]), IsFloat(types[a]));
          break;
        }
      }
      next.push_back(v);
    }
    for (size_t a = 0; a < types.size(); ++a) Move(&code_.step, acc_[a].reg, next[a], IsFloat(types[a]));
  }

  void NamedUpdate(const Reduction& reduction, RegisterValue element, const Mask& mask) {
    static constexpr Op kOps[] = {Op::kAdd, Op::kMul, Op::kMax, Op::kMin};
    const bool is_float = IsFloat(reduction.acc);
    constexpr uint8_t kLevel = kLane | kStep;
    const int acc = acc_[0].reg;
    const bool perturbed_sum = perturb_ && is_float && reduction.kind == ReductionKind::kSum;
    const int result = mask || perturbed_sum ? NewRegister(is_float) : acc;
    const int operand = Operand(element, is_float, kLevel);
    code_.step.push_back({.run = KernelOf(kOps[static_cast<int>(reduction.kind)], reduction.acc),
                          .dst = result,
                          .a = acc,
                          .b = operand,
                          .level = kLevel});
    if (perturbed_sum) {
      code_.step.push_back({.run = lanes::PerturbSumKernel(reduction.acc),
                            .dst = result,
                            .a = result,
                            .b = acc,
                            .c = operand,
                            .level = kLevel});
    }
    if (perturb_ && is_float && reduction.kind == ReductionKind::kProd) {
      code_.step.push_back(
          {.run = lanes::PerturbKernel(reduction.acc), .dst = result, .a = result, .fimm = 1, .level = kLevel});
    }
    if (const LaneKernel wrap = is_float ? nullptr : lanes::WrapKernel(reduction.acc)) {
      code_.step.push_back({.run = wrap, .dst = result, .a = result, .level = kLevel});
    }
    if (mask) {
      const int c = Operand(*mask, false, kLevel);
      code_.step.push_back({.run = is_float ? lanes::SelectD : lanes::SelectI,
                            .dst = acc,
                            .a = result,
                            .b = acc,
                            .c = c,
                            .level = kLevel});
    } else if (result != acc) {
      code_.step.push_back({.run = lanes::MoveD, .dst = acc, .a = result, .level = kLevel});
    }
  }

  RegisterValue Fail(const std::string& message) {
    if (status_.ok()) status_ = absl::InternalError(message);
    return {};
  }

  using Key = std::tuple<uintptr_t, uint8_t, int, int, int, int64_t, int64_t, int64_t, TensorId>;
  const Program& program_;
  const Te& te_;
  const bool perturb_, any_order_, two_sums_;
  TeCode code_;
  absl::Status status_;
  bool in_reduction_ = false;
  std::unordered_map<int, int> spatial_, reduced_;  // axis id -> position
  std::vector<RegisterValue> acc_;
  std::map<Key, RegisterValue> known_;
  std::map<std::pair<const ScalarNode*, int>, RegisterValue> values_;
  std::unordered_map<const ScalarNode*, bool> risky_;
};

}  // namespace

absl::StatusOr<TeCode> CompileTe(const Program& program, const Te& te, const TeCodeOptions& options) {
  return TeCompiler(program, te, options).Compile();
}

}  // namespace fusion::te
