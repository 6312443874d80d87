#include "compiler/schedule/rewrite/k_blocking.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// Share of the cache that a slice may take, to leave room for the weights' panel beside it.
constexpr double kCacheShare = 0.5;
// The least extent of a slice: a shorter one spends its time on the partial results.
constexpr int64_t kMinSlice = 384;
// A panel of the weights has so many adjacent vectors. Where no slice keeps all rows of the operand in the cache, a
// slice of such a panel should stay within this share of it, beside the rows of a task.
constexpr int kPanelVectors = 2;
constexpr double kPanelShare = 0.25;
// The fewest columns; with fewer the operand is read too few times to matter.
constexpr double kMinColumns = 192;
// The most numbers of slices that tuning may try.
constexpr size_t kMostChoices = 4;

// The number of slices along the reduction, or 1.
int64_t Slices(const te::Program& program, const te::Te& te, const DeviceModel& device, ChoiceLog* choices) {
  if (!te.reduction || te.reduction->kind != te::ReductionKind::kSum || te.reduction->axes.size() != 1 ||
      !te.reduction->pred.empty())
    return 1;
  if (te.reduction->acc != DType::kF32 || te.outputs.size() != 1 || te.body.size() != 1) return 1;
  const Scalar& product = te.body[0];
  if (product->kind != te::ScalarKind::kOp || product->op != te::Op::kMul) return 1;
  const Axis k = te.reduction->axes[0];
  bool has_weights = false;
  double rows = 0, columns = 1;
  for (const Scalar& operand : product->args) {
    if (operand->kind != te::ScalarKind::kLoad || operand->dtype != DType::kF32 || operand->pad != nullptr) return 1;
    const bool weights = program.tensors[operand->tensor].role == te::Role::kConstant;
    bool uses_k = false;
    double points = 1;
    for (const Index& index : operand->indices) {
      if (index.HasLoad()) return 1;
      uses_k = uses_k || index.UsesAxis(k.id);
    }
    if (!uses_k) return 1;
    for (const Axis& axis : te.axes) {
      for (const Index& index : operand->indices) {
        if (!index.UsesAxis(axis.id)) continue;
        points *= static_cast<double>(axis.extent);
        break;
      }
    }
    has_weights = has_weights || weights;
    (weights ? columns : rows) = points;
  }
  if (!has_weights || rows < 16 || columns < kMinColumns) return 1;
  const double cache = static_cast<double>(PrivateCacheBytes(device)), budget = kCacheShare * cache;
  const double row_bytes = 4 * rows;
  std::vector<int64_t> possible = {1};
  for (int64_t slices = 2; k.extent / slices >= kMinSlice; ++slices) {
    if (k.extent % slices == 0) possible.push_back(slices);
  }
  // The fewest slices that stay within `share`, at `bytes` for each step of the reduction.
  const auto fewest = [&](double bytes, double share) {
    return std::find_if(possible.begin(), possible.end(),
                        [&](int64_t slices) { return bytes * static_cast<double>(k.extent / slices) <= share; });
  };
  auto own = possible.begin();
  if (row_bytes * static_cast<double>(k.extent) > cache) {
    own = fewest(row_bytes, budget);
    if (own == possible.end()) own = fewest(kPanelVectors * device.vector_bytes, kPanelShare * cache);
    if (own == possible.end()) own = possible.begin();
  }
  std::vector<int64_t> all = {*own};  // the model's own choice first
  for (const int64_t slices : possible) {
    if (slices != all[0] && all.size() < kMostChoices) all.push_back(slices);
  }
  return all[choices->Pick("k_blocking", all, NumberLabel)];
}

// The te over fresh axes, with k replaced by `offset` + a new, shorter axis.
te::Te Slice(te::Program* program, const te::Te& te, int64_t extent, int64_t offset) {
  te::Te slice = te;
  std::map<int, Index> renamed;
  for (Axis& axis : slice.axes) {
    const Axis fresh = program->NewAxis(axis.extent);
    renamed[axis.id] = Index(fresh);
    axis = fresh;
  }
  Axis& k = slice.reduction->axes[0];
  const Axis fresh = program->NewAxis(extent);
  renamed[k.id] = Index(fresh) + Index(offset);
  k = fresh;
  auto map = [&](const Axis& axis) -> const Index* {
    auto it = renamed.find(axis.id);
    return it == renamed.end() ? nullptr : &it->second;
  };
  for (Scalar& s : slice.body) s = te::Substitute(s, map);
  for (Scalar& s : slice.then) s = te::Substitute(s, map);
  return slice;
}

}  // namespace

te::Program BlockAlongK(te::Program program, const DeviceModel& device, ChoiceLog* choices) {
  if (!StrategyOf(device).k_blocking) return program;
  std::vector<te::Te> tes = std::exchange(program.tes, {});
  for (te::Te& te : tes) {
    const int64_t slices = Slices(program, te, device, choices);
    if (slices == 1) {
      program.tes.push_back(std::move(te));
      continue;
    }
    const int64_t extent = te.reduction->axes[0].extent / slices;
    Shape shape;
    for (const Axis& axis : te.axes) shape.push_back(axis.extent);
    te::TensorId sum = -1;  // the sum of the slices so far
    for (int64_t s = 0; s < slices; ++s) {
      const bool last = s + 1 == slices;
      te::Te slice = Slice(&program, te, extent, s * extent);
      if (!last || slice.then.empty()) slice.then = {te::Acc(0, te.reduction->acc)};
      if (sum >= 0) {
        std::vector<Index> here;
        for (const Axis& axis : slice.axes) here.push_back(Index(axis));
        const Scalar before = te::Load(sum, te.reduction->acc, here);
        for (Scalar& then : slice.then) {
          then = te::MapAccs(then, [&](const Scalar& acc) { return before + acc; });
        }
      }
      if (!last) {
        sum = program.AddTensor("partial", te.reduction->acc, shape, te::Role::kIntermediate);
        slice.outputs = {sum};
      }
      program.tes.push_back(std::move(slice));
    }
  }
  return program;
}

}  // namespace fusion
