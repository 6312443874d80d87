#include "compiler/schedule/rewrite/separate_windows.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace fusion {
namespace {

using te::Axis;
using te::Index;

// The least factor of steps saved; below it the intermediate rows cost more than they save.
constexpr double kLeastSaving = 1.3;

bool UsesAny(const Index& index, const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return index.UsesAxis(axis.id); });
}

// How a reduction is split: its last axis is reduced first, the others around it.
struct Separation {
  std::vector<bool> around;  // for each dimension of the load: do the axes that stay walk it?
  std::vector<Axis> axes;    // axes of the te that the rows have, too
};

std::optional<Separation> FindSeparation(const te::Te& te) {
  if (te.IsMap() || te.routine || te.reduction->kind == te::ReductionKind::kGeneral ||
      te.reduction->kind == te::ReductionKind::kProd || !te.reduction->pred.empty() ||
      te.reduction->acc != DType::kF32 || te.reduction->axes.size() < 2 || te.outputs.size() != 1) {
    return std::nullopt;
  }
  const te::ScalarNode& load = *te.body[0];
  if (load.kind != te::ScalarKind::kLoad || load.dtype != DType::kF32) return std::nullopt;
  const Axis& inside = te.reduction->axes.back();
  const std::vector<Axis> outside(te.reduction->axes.begin(), te.reduction->axes.end() - 1);
  Separation found;
  double rows = 1, results = 1;
  for (const Index& index : load.indices) {
    if (index.HasLoad()) return std::nullopt;
    const bool around = UsesAny(index, outside);
    if (around && index.UsesAxis(inside.id)) return std::nullopt;
    found.around.push_back(around);
    if (around) {
      const te::Interval range = index.Range();
      rows *= static_cast<double>(range.hi - range.lo + 1);
      continue;
    }
    for (const Axis& axis : te.axes) {
      const bool known = std::any_of(found.axes.begin(), found.axes.end(),
                                     [&](const Axis& other) { return other.id == axis.id; });
      if (known || !index.UsesAxis(axis.id)) continue;
      found.axes.push_back(axis);
      rows *= static_cast<double>(axis.extent);
    }
  }
  double steps = 1;
  for (const Axis& axis : te.axes) results *= static_cast<double>(axis.extent);
  for (const Axis& axis : outside) steps *= static_cast<double>(axis.extent);
  const auto inner = static_cast<double>(inside.extent);
  if (results * steps * inner < kLeastSaving * (rows * inner + results * steps)) return std::nullopt;
  return found;
}

}  // namespace

std::optional<SeparatedProgram> SeparateWindows(te::Program program, std::map<te::TensorId, Layout> layouts) {
  bool separated = false;
  std::vector<te::Te> pending = std::exchange(program.tes, {});
  for (te::Te& te : pending) {
    while (const std::optional<Separation> found = FindSeparation(te)) {
      separated = true;
      const te::Scalar load = te.body[0];
      te::Te rows;
      rows.origins = te.origins;
      rows.reduction = te.reduction;
      const Axis inside = program.NewAxis(te.reduction->axes.back().extent);
      std::map<int, Index> renamed = {{te.reduction->axes.back().id, Index(inside)}};
      rows.reduction->axes = {inside};
      // `from`: where the rows read, with their axes in the order of the dimensions that they walk; `at`: where the
      // remaining reduction reads the rows.
      std::vector<Index> from, at;
      Shape shape;
      const auto walk = [&](int64_t extent, const Index& read) {
        rows.axes.push_back(program.NewAxis(extent));
        shape.push_back(extent);
        at.push_back(read);
        return Index(rows.axes.back());
      };
      const auto map = [&](const Axis& axis) -> const Index* {
        const auto it = renamed.find(axis.id);
        return it == renamed.end() ? nullptr : &it->second;
      };
      bool in_order = load->indices.size() == te.axes.size();
      for (size_t d = 0; d < load->indices.size(); ++d) {
        const Index& index = load->indices[d];
        if (found->around[d]) {
          const te::Interval range = index.Range();
          from.push_back(walk(range.hi - range.lo + 1, index - Index(range.lo)) + Index(range.lo));
          continue;
        }
        for (const Axis& axis : te.axes) {
          if (index.UsesAxis(axis.id) && renamed.count(axis.id) == 0) renamed[axis.id] = walk(axis.extent, Index(axis));
        }
        from.push_back(te::Substitute(index, map));
        in_order = in_order && rows.axes.size() == d + 1;
      }
      const te::TensorId row = program.AddTensor("rows", DType::kF32, shape, te::Role::kIntermediate);
      const auto layout = layouts.find(te.outputs[0]);
      if (layout != layouts.end() && in_order && shape.size() == te.axes.size()) layouts[row] = layout->second;
      rows.outputs = {row};
      rows.body = {te::Load(load->tensor, load->dtype, from, load->pad)};
      te.reduction->axes.pop_back();
      te.body = {te::Load(row, DType::kF32, at)};
      program.tes.push_back(std::move(rows));
    }
    program.tes.push_back(std::move(te));
  }
  if (!separated) return std::nullopt;
  return SeparatedProgram{std::move(program), std::move(layouts)};
}

}  // namespace fusion
