#include "compiler/schedule/library/library_stage.h"

#include <map>
#include <utility>
#include <vector>

#include "compiler/schedule/library/library_convolution.h"
#include "compiler/schedule/library/library_product.h"
#include "compiler/schedule/tile/products.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;
using te::ScalarKind;

// The type to which every use of the sum rounds it first.
std::optional<DType> RoundedTo(const Scalar& then) {
  std::optional<DType> type;
  bool same = true;
  te::Visit(then, [&](const te::ScalarNode& node) {
    for (const Scalar& arg : node.args) {
      if (arg->kind != ScalarKind::kAcc) continue;
      same = same && node.kind == ScalarKind::kCast && type.value_or(node.dtype) == node.dtype;
      type = node.dtype;
    }
  });
  return same ? type : std::nullopt;
}

}  // namespace

absl::StatusOr<movement::Phase> LibraryPhase(const Nest& nest, const DeviceModel& device, movement::Kernel* kernel,
                                             AxisSource* axes) {
  Nest fused = nest;
  FuseAxes(&fused, axes);
  absl::StatusOr<movement::Phase> phase = LibraryProductPhase(fused, device, *kernel);
  if (phase.ok() && device.product_library.empty()) {
    return absl::FailedPreconditionError("the device model names no library of products");
  }
  if (phase.ok() || device.convolution_library.empty()) return phase;
  // Libraries expect rows and columns as separate axes, so this is tried first; then the fused nest is.
  for (Nest convolution : {nest, fused}) {
    SplitSpatialAxes(&convolution, axes, 2);  // 2: also splits channels into groups
    phase = LibraryConvolutionPhase(std::move(convolution), device, kernel);
    if (phase.ok()) return phase;
  }
  return phase;
}

int OnlyProduct(const te::Program& program, const DeviceModel& device) {
  int product = -1;
  for (size_t t = 0; t < program.tes.size(); ++t) {
    if (!WantsRegisterTile(program, program.tes[t], device)) continue;
    if (product >= 0) return -1;
    product = static_cast<int>(t);
  }
  return product;
}

std::optional<te::Program> WithBareProduct(te::Program program, int product, bool rounded) {
  te::Te& te = program.tes[product];
  if (te.then.size() != 1 || te.outputs.size() != 1 || te.then[0]->kind == ScalarKind::kAcc) return std::nullopt;
  DType type = te.reduction->acc;
  if (rounded) {
    const std::optional<DType> to = RoundedTo(te.then[0]);
    if (!to || *to == type) return std::nullopt;
    type = *to;
  }
  te::Te after;
  after.outputs = te.outputs;
  after.origins = te.origins;
  Shape shape;
  std::vector<Index> here;
  std::map<int, Index> renamed;
  for (const Axis& axis : te.axes) {
    const Axis fresh = program.NewAxis(axis.extent);
    after.axes.push_back(fresh);
    shape.push_back(axis.extent);
    here.push_back(Index(fresh));
    renamed[axis.id] = Index(fresh);
  }
  const te::TensorId sum = program.AddTensor("sum", type, shape, te::Role::kIntermediate);
  Scalar then = te::Substitute(te.then[0], [&](const Axis& axis) -> const Index* {
    const auto it = renamed.find(axis.id);
    return it == renamed.end() ? nullptr : &it->second;
  });
  then = te::MapAccs(then, [&](const Scalar& acc) {
    const Scalar load = te::Load(sum, type, here);
    return type == acc->dtype ? load : te::Cast(acc->dtype, load);
  });
  after.body = {then};
  te.outputs = {sum};
  te.then.clear();
  program.tes.insert(program.tes.begin() + product + 1, std::move(after));
  return program;
}

}  // namespace fusion
