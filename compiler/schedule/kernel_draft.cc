#include "compiler/schedule/kernel_draft.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/schedule/nest/flatten.h"
#include "compiler/schedule/nest/form_stages.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::TensorId;

// Past the end of a reduction axis of this extent, are all elements that the load reads the zeros that pad its
// tensor's layout blocks?
bool ReadsPadding(const te::ScalarNode& load, int64_t extent, const KernelDraft& draft) {
  const TensorId tensor = draft.kernel.buffers[load.tensor].tensor;
  if (tensor < 0) return false;
  const Layout layout = draft.LayoutOfTensor(tensor);
  return !layout.plain() && !layout.axis_last() && draft.program.tensors[tensor].shape[layout.axis] == extent;
}

// Rounding a product's reduction up is free where a constant operand moves with the axis, because it is packed with
// zeros. The other operand has zeros there too if its layout pads the axis; elements of a window do not end with it.
PastEnd ProductsPastEnd(const Nest& nest, const Axis& axis, const KernelDraft& draft) {
  const std::vector<movement::Buffer>& buffers = draft.kernel.buffers;
  if (nest.reduction->kind != te::ReductionKind::kSum || nest.body[0]->kind != te::ScalarKind::kOp ||
      nest.body[0]->op != te::Op::kMul) {
    return PastEnd::kNotRounded;
  }
  // A constant at an address that data decide is read where it lies.
  const auto is_packed = [&](const te::ScalarNode& load) {
    return buffers[load.tensor].is_constant && !load.indices[0].HasLoad();
  };
  const bool packed = std::any_of(nest.body[0]->args.begin(), nest.body[0]->args.end(), [&](const te::Scalar& arg) {
    return arg->kind == te::ScalarKind::kLoad && is_packed(*arg) && arg->indices[0].UsesAxis(axis.id);
  });
  if (!packed) return PastEnd::kNotRounded;
  bool zero = true;
  te::Visit(nest.body[0], [&](const te::ScalarNode& node) {
    if (node.kind != te::ScalarKind::kLoad || is_packed(node)) return;
    zero = zero && (!node.indices[0].UsesAxis(axis.id) || ReadsPadding(node, axis.extent, draft));
  });
  return zero ? PastEnd::kZero : PastEnd::kSkipped;
}

}  // namespace

KernelDraft::KernelDraft(const te::Program& of, const std::map<TensorId, Layout>& its_layouts, const DeviceModel& on,
                         ChoiceLog* log)
    : program(of),
      layouts(its_layouts),
      device(on),
      target(StrategyOf(on)),
      choices(log),
      axes(of.next_axis),
      buffer_of(of.tensors.size(), -1) {
  for (TensorId tensor : program.inputs) AddBuffer(tensor, Scope::kKernel);
  for (TensorId tensor : program.outputs) {
    if (buffer_of[tensor] < 0) AddBuffer(tensor, Scope::kKernel);
  }
}

Layout KernelDraft::LayoutOfTensor(TensorId tensor) const {
  auto it = layouts.find(tensor);
  return it == layouts.end() ? Layout() : it->second;
}

int KernelDraft::AddBuffer(TensorId tensor, Scope scope) {
  const te::TensorInfo& info = program.tensors[tensor];
  movement::Buffer buffer;
  buffer.scope = scope;
  buffer.dtype = info.dtype;
  buffer.tensor = tensor;
  buffer.is_constant = info.role == te::Role::kConstant;
  buffer.elements = NumElements(LayoutOfTensor(tensor).PhysicalShape(info.shape));
  buffer_of[tensor] = static_cast<int>(kernel.buffers.size());
  kernel.buffers.push_back(buffer);
  return buffer_of[tensor];
}

void KernelDraft::AddDeviceBuffers(const std::set<TensorId>& tensors) {
  for (TensorId t : tensors) {
    if (buffer_of[t] < 0) AddBuffer(t, Scope::kDevice);
  }
}

movement::Store KernelDraft::AddressOf(TensorId tensor, const std::vector<Index>& indices) const {
  const int buffer = buffer_of[tensor];
  auto it = scratch_boxes.find(tensor);
  if (it != scratch_boxes.end()) {
    const std::vector<Index> physical = LayoutOfTensor(tensor).Apply(indices);
    std::vector<Index> relative;
    std::vector<int64_t> extents;
    const std::optional<movement::Ring>& ring = kernel.buffers[buffer].ring;
    for (size_t d = 0; d < physical.size(); ++d) {
      relative.push_back(physical[d] - it->second[d].origin);
      extents.push_back(it->second[d].length);
      const bool wraps = ring && ring->rows < ring->of && ring_dimensions.at(tensor) == d;
      if (wraps) relative.back() = te::Mod(relative.back(), ring->rows);
    }
    return {buffer, te::Linearize(relative, extents)};
  }
  const Layout layout = LayoutOfTensor(tensor);
  return {buffer, te::Linearize(layout.Apply(indices), layout.PhysicalShape(program.tensors[tensor].shape))};
}

absl::StatusOr<PhysicalTe> KernelDraft::Physical(const te::Te& te) {
  return MakePhysical(
      te, [this](TensorId t) { return LayoutOfTensor(t); }, &axes);
}

absl::StatusOr<Nest> KernelDraft::MakeNest(const PhysicalTe& physical) const {
  std::set<TensorId> touched = TensorsRead(physical.te);
  touched.insert(physical.te.outputs.begin(), physical.te.outputs.end());
  for (TensorId tensor : touched) {
    if (buffer_of[tensor] < 0) {
      return absl::InternalError(absl::StrCat("'", program.tensors[tensor].name, "' has no buffer"));
    }
  }
  Nest nest = Flatten(program, physical, [this](TensorId t, const std::vector<Index>& i) { return AddressOf(t, i); });
  DropUnitAxes(&nest);
  return nest;
}

void KernelDraft::Restore(const Saved& saved) {
  kernel = saved.kernel;
  axes = saved.axes;
  *choices = saved.choices;
}

bool StraightenNest(Nest* nest, KernelDraft* draft, bool in_task) {
  FuseAxes(nest, &draft->axes);
  // A reduction is worth straight addresses whatever the divisor is; a map only if whole vectors stay contiguous.
  SplitSpatialAxes(nest, &draft->axes, nest->reduction ? 2 : draft->device.vector_bytes / 4,
                   in_task && nest->reduction);
  return SplitReductionAxes(nest, &draft->axes, [&](const Axis& axis) { return ProductsPastEnd(*nest, axis, *draft); });
}

void StraightenForGroup(Nest* nest, KernelDraft* draft) {
  FuseAxes(nest, &draft->axes);
  SplitSpatialAxes(nest, &draft->axes, 2);  // groups of channels become batches of products
}

}  // namespace fusion
