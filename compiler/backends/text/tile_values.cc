#include "compiler/backends/text/tile_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace fusion::text {
namespace {

using te::Scalar;
using te::ScalarKind;

bool DependsOn(const Scalar& s, int axis) {
  if (axis < 0) return false;
  if (s->kind == ScalarKind::kLoad) return s->indices[0].UsesAxis(axis);
  if (s->kind == ScalarKind::kFromIndex) return s->index.UsesAxis(axis);
  const bool tested = std::any_of(s->pred.begin(), s->pred.end(), [&](const te::Comparison& c) {
    return c.lhs.UsesAxis(axis) || c.rhs.UsesAxis(axis);
  });
  return tested || std::any_of(s->args.begin(), s->args.end(), [&](const Scalar& arg) { return DependsOn(arg, axis); });
}

}  // namespace

AxisName TileValues::NameAt(int row, int vector) const {
  return [this, row, vector](int axis) -> std::string {
    const auto fixed = point_.at.find(axis);
    if (fixed != point_.at.end()) return absl::StrCat(fixed->second, "L");
    if (axis == tile_.row_axis) return absl::StrCat("(", point_.first_row, " + ", std::max(row, 0), ")");
    if (axis == tile_.outer_axis) return absl::StrCat(std::max(vector, 0), "L");
    if (point_.rolled_axis >= 0 && axis == point_.rolled_axis) {
      return absl::StrCat("(", AxisText(axis), " + ", point_.copy, ")");
    }
    return AxisText(axis);
  };
}

std::string TileValues::PlaceOf(const TileOperand& operand, int row, int vector) {
  const te::ScalarNode& load = *operand.node;
  if (!operand.affine) {
    return absl::StrCat("b", load.tensor, " + ", IndexText(load.indices[0], NameAt(row, vector), kernel_));
  }
  int64_t offset = operand.row * std::max(row, 0) + operand.vector * std::max(vector, 0);
  for (const auto& [axis, c] : operand.unrolled) offset += c * point_.at.at(axis);
  const auto step = operand.step.find(point_.rolled_axis);
  if (point_.rolled_axis >= 0 && step != operand.step.end()) offset += step->second * point_.copy;
  if (operand.prefetch != nullptr && operand.prefetch->ahead > 0) {
    out_->Line(absl::StrCat("PREFETCH_L1(", operand.pointer, " + ", offset + operand.prefetch->ahead, ");"));
  }
  return absl::StrCat(operand.pointer, " + ", offset);
}

std::string TileValues::LoadedText(const te::ScalarNode& load, int row, int vector) {
  const TileOperand& operand =
      *std::find_if(operands_.begin(), operands_.end(), [&](const TileOperand& o) { return o.node == &load; });
  const std::string place = PlaceOf(operand, row, vector);
  if (tile_.dot_axis >= 0) return absl::StrCat(operand.by_lane ? "ld4(" : "bc4(", place, ")");
  const movement::Buffer& buffer = kernel_.buffers[load.tensor];
  return operand.by_lane ? VectorLoadText(buffer.dtype, place)
                         : BroadcastText(buffer.dtype, LoadText(buffer, absl::StrCat("*(", place, ")")));
}

// The loads of both branches are in bounds only where the test says so: this must be a statement, not a select.
std::string TileValues::EmitIf(const Scalar& s, const Key& key, int row, int vector) {
  const AxisName name = NameAt(std::get<1>(key), std::get<2>(key));
  const std::string result = absl::StrCat("t", (*next_temp_)++);
  out_->Line(absl::StrCat(VectorType(s->dtype), " ", result, ";"));
  out_->Open(absl::StrCat("if (", PredText(s->pred, name, kernel_), ")"));
  const std::map<Key, std::string> before = values_;
  out_->Line(absl::StrCat(result, " = ", Emit(s->args[0], row, vector), ";"));
  values_ = before;
  out_->Close();
  out_->Open("else");
  out_->Line(absl::StrCat(result, " = ", Emit(s->args[1], row, vector), ";"));
  values_ = before;
  out_->Close();
  values_[key] = result;
  return result;
}

std::string TileValues::Emit(const Scalar& s, int row, int vector) {
  if (s->kind == ScalarKind::kImm) return BroadcastText(s->dtype, ImmText(*s));
  const int own_row = DependsOn(s, tile_.row_axis) ? row : -1;
  const int own_vector = DependsOn(s, tile_.outer_axis) ? vector : -1;
  const Key key{s.get(), own_row, own_vector};
  if (const auto known = values_.find(key); known != values_.end()) return known->second;
  if (s->kind == ScalarKind::kIf) return EmitIf(s, key, row, vector);
  std::string text;
  if (s->kind == ScalarKind::kLoad) {
    text = LoadedText(*s, own_row, own_vector);
  } else if (s->kind == ScalarKind::kOp) {
    std::vector<std::string> args;
    args.reserve(s->args.size());
    for (const Scalar& arg : s->args) args.push_back(Emit(arg, row, vector));
    text = VectorOpText(*s, args);
  } else if (s->kind == ScalarKind::kCast) {
    text = VectorCastText(*s, Emit(s->args[0], row, vector));
  }
  const std::string result = absl::StrCat("t", (*next_temp_)++);
  out_->Line(absl::StrCat("const ", VectorType(s->dtype), " ", result, " = ", text, ";"));
  values_[key] = result;
  return result;
}

}  // namespace fusion::text
