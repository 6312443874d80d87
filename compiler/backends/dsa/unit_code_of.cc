#include "compiler/backends/dsa/unit_code_of.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/te/interpreter/lane_numbers.h"
#include "compiler/te/interpreter/lanes.h"
#include "compiler/te/interpreter/te_code.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/unit_op.h"

namespace fusion::dsa {
namespace {

using te::lanes::LaneKernel;

// Names of the interpreter's kernels. Where a compiler has made one function of two that do the same, either name will
// do.
class KernelNames {
 public:
  KernelNames() {
    namespace lanes = te::lanes;
    for (int op = 0; op <= static_cast<int>(te::Op::kSelect); ++op) {
      const std::string name = te::GetOpInfo(static_cast<te::Op>(op)).name;
      Add(lanes::OpKernel(static_cast<te::Op>(op), DType::kF64), name + ".f");
      Add(lanes::OpKernel(static_cast<te::Op>(op), DType::kI64), name + ".i");
      Add(lanes::OpKernel(static_cast<te::Op>(op), DType::kU64), name + ".u");
    }
    for (int d = 0; d < kNumDTypes; ++d) {
      const auto dtype = static_cast<DType>(d);
      const bool is_float = IsFloat(dtype);
      if (is_float) Add(lanes::RoundKernel(dtype), absl::StrCat("round_", DTypeName(dtype)));
      if (!is_float) Add(lanes::WrapKernel(dtype), absl::StrCat("wrap_", DTypeName(dtype)));
      Add(lanes::LoadKernel(dtype, false), is_float ? "load.f" : "load.i");
      Add(lanes::LoadKernel(dtype, true), is_float ? "load_masked.f" : "load_masked.i");
    }
    Add(lanes::DoubleToIntKernel(DType::kI64), "to_int");
    Add(lanes::DoubleToIntKernel(DType::kU64), "to_uint");
    Add(lanes::DoubleToIntKernel(DType::kBool), "to_bool");
    Add(lanes::IntToFloatKernel(DType::kI64, DType::kF64), "from_int");
    Add(lanes::IntToFloatKernel(DType::kU64, DType::kF64), "from_uint");
    Add(lanes::IntToFloatKernel(DType::kI64, DType::kF32), "from_int_f32");
    Add(lanes::IntToFloatKernel(DType::kU64, DType::kF32), "from_uint_f32");
    Add(lanes::SplatImmD, "splat_imm.f");
    Add(lanes::SplatImmI, "splat_imm.i");
    Add(lanes::SplatD, "splat.f");
    Add(lanes::SplatI, "splat.i");
    Add(lanes::MoveD, "move.f");
    Add(lanes::MoveI, "move.i");
    Add(lanes::SelectD, "select.f");
    Add(lanes::SelectI, "select.i");
    Add(lanes::AddMul, "add_mul");
    Add(lanes::AddUniform, "add_uniform");
    Add(lanes::FloorDivImm, "floor_div");
    Add(lanes::ModImm, "floor_mod");
    Add(lanes::CompareZeroKernel(te::Cmp::kLt), "below_zero");
    Add(lanes::CompareZeroKernel(te::Cmp::kGe), "from_zero");
    Add(lanes::CompareZeroKernel(te::Cmp::kEq), "zero");
    Add(lanes::CompareZeroKernel(te::Cmp::kNe), "not_zero");
    Add(lanes::And, "mask_and");
    Add(lanes::AndNot, "mask_and_not");
    Add(lanes::InBox, "in_box");
    Add(lanes::CheckBox, "check_box");
    Add(lanes::CheckValue, "check_value");
  }

  const UnitOp* Find(LaneKernel kernel) const {
    const auto it = names_.find(kernel);
    return it == names_.end() ? nullptr : FindUnitOp(it->second);
  }
  const std::vector<std::string>& all() const { return all_; }

 private:
  void Add(LaneKernel kernel, const std::string& name) {
    if (kernel == nullptr) return;  // the operation is not defined on the type
    names_.emplace(kernel, name);
    all_.push_back(name);
  }

  std::unordered_map<LaneKernel, std::string> names_;
  std::vector<std::string> all_;
};

const KernelNames& Names() {
  static const auto* const kNames = new KernelNames();
  return *kNames;
}

absl::Status Translate(const std::vector<te::lanes::Inst>& from, std::vector<UnitInstruction>* to) {
  constexpr uint8_t kLane = 1;  // of the levels of te_code.cc
  for (const te::lanes::Inst& inst : from) {
    UnitInstruction& made = to->emplace_back();
    made.op = Names().Find(inst.run);
    if (made.op == nullptr) return absl::InternalError("an instruction of the interpreter has no name in unit code");
    made.width = inst.level & kLane ? UnitWidth::kLanes : inst.level == 0 ? UnitWidth::kConstant : UnitWidth::kOne;
    made.dst = inst.dst, made.a = inst.a, made.b = inst.b, made.c = inst.c;
    made.imm = inst.imm, made.imm2 = inst.imm2, made.fimm = inst.fimm;
    made.tensor = inst.tensor;
  }
  return absl::OkStatus();
}

std::vector<UnitAxis> AxesOf(const std::vector<te::TeCode::AxisRegister>& axes) {
  std::vector<UnitAxis> made;
  for (const te::TeCode::AxisRegister& axis : axes) made.push_back({axis.reg, axis.extent});
  return made;
}

}  // namespace

absl::StatusOr<UnitCode> UnitCodeOf(const te::Program& part) {
  UnitCode code;
  for (const te::TensorInfo& info : part.tensors) code.tensors.push_back({info.dtype, info.shape});
  for (const te::Te& te : part.tes) {
    if (te.routine) {
      return absl::UnimplementedError(
          absl::StrCat("the routine '", te.routine->name,
                       "' is no tensor expression, and the units of target dsa compute nothing else"));
    }
    ASSIGN_OR_RETURN(const te::TeCode made, te::CompileTe(part, te));
    UnitStep& step = code.steps.emplace_back();
    step.doubles = made.num_doubles;
    step.integers = made.num_ints;
    step.axes = AxesOf(made.axes);
    step.reduction = AxesOf(made.reduction_axes);
    RETURN_IF_ERROR(Translate(made.once, &step.lists[UnitStep::kOnce]));
    RETURN_IF_ERROR(Translate(made.pre, &step.lists[UnitStep::kPre]));
    RETURN_IF_ERROR(Translate(made.init, &step.lists[UnitStep::kInit]));
    RETURN_IF_ERROR(Translate(made.step, &step.lists[UnitStep::kEach]));
    RETURN_IF_ERROR(Translate(made.post, &step.lists[UnitStep::kPost]));
    for (const te::TeCode::Output& output : made.outputs) step.stores.push_back({output.tensor, output.reg});
  }
  return code;
}

std::vector<std::string> NamedUnitOps() {
  std::vector<std::string> names = Names().all();
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

}  // namespace fusion::dsa
