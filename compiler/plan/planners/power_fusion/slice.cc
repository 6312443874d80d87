#include "compiler/plan/planners/power_fusion/slice.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/cost/caches.h"

namespace fusion::power_fusion {
namespace {

// No axis of an operator's expression has such a number.
constexpr int kUnitAxis = 1 << 24, kBlockAxis = kUnitAxis + 1, kInnerAxis = kUnitAxis + 2;

// One purpose may use this part of a memory (DeviceModel::CopyBandwidth).
constexpr double kServedShare = 0.75;

bool Within(const te::Box& inner, const te::Box& outer) {
  if (inner.size() != outer.size()) return false;
  for (size_t d = 0; d < inner.size(); ++d) {
    const te::Interval distance = (inner[d].origin - outer[d].origin).Range();
    if (distance.lo < 0 || distance.hi + inner[d].length > outer[d].length) return false;
  }
  return true;
}

std::vector<te::Index> Origins(const te::Box& box) {
  std::vector<te::Index> origins;
  for (const te::Span& span : box) origins.push_back(span.origin);
  return origins;
}

// The elements between the first and the last of the box, the last one excluded.
int64_t Beyond(const te::Box& box, const Shape& shape) {
  int64_t beyond = 0, stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) beyond += (box[d].length - 1) * stride;
  return beyond;
}

// The elements of a unit, if unit u writes the u-th of equal contiguous pieces; else 0.
int64_t PieceOf(const Pattern& written, const Shape& shape, int64_t units) {
  const int64_t elements = NumElements(shape);
  if (units == 0 || elements % units != 0) return 0;
  const int64_t piece = elements / units;
  int64_t own = 1;
  for (const te::Span& span : written.box) own *= span.length;
  const te::Index first = te::Linearize(Origins(written.box), shape);
  if (own != piece || Beyond(written.box, shape) + 1 != piece) return 0;
  return first == te::Index(UnitAxis(units)) * piece ? piece : 0;
}

// Do the units whose numbers are the same, divided by `together`, read nothing but what they wrote?
bool WithinPieces(const Pattern& read, int64_t piece, const Shape& shape, int64_t units, int64_t together) {
  if (piece == 0 || units % together != 0) return false;
  const te::Axis block{kBlockAxis, units / together}, inner{kInnerAxis, together};
  const te::Index unit = te::Index(block) * together + te::Index(inner);
  const te::Index first = te::Substitute(te::Linearize(Origins(read.box), shape),
                                         [&](const te::Axis& axis) { return axis.id == kUnitAxis ? &unit : nullptr; });
  const te::Interval offset = (first - te::Index(block) * (together * piece)).Range();
  return offset.lo >= 0 && offset.hi + Beyond(read.box, shape) < together * piece;
}

}  // namespace

bool SameBox(const te::Box& a, const te::Box& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const te::Span& x, const te::Span& y) { return x.length == y.length && x.origin == y.origin; });
}

te::Axis UnitAxis(int64_t units) { return {kUnitAxis, units}; }

Units UnitsOf(const DeviceModel& device) {
  Units units;
  units.memory_bytes = kServedShare * static_cast<double>(LargestPrivateBytes(device));
  if (!device.WorkItemsAreLanes()) return units;
  // Work-items that hold a fragment together run in step; a fragment that is read from memory may have several warps.
  int in_step = std::max(1, device.vector_bytes / 4);
  for (const MatrixProduct& product : device.matrix_products) {
    if (!product.from_memory) in_step = std::max(in_step, product.work_items);
  }
  units.per_block = std::max(1, device.work_group_size / in_step);
  units.memory_bytes /= static_cast<double>(units.per_block);
  return units;
}

Pattern PatternOf(te::Box box, const Shape& shape, bool in_order) {
  Pattern pattern;
  pattern.in_order = in_order;
  size_t d = shape.size();
  int64_t stride = 1;
  bool whole = true;  // so far, all elements of the inner axes
  for (; d > 0 && whole; --d) {
    pattern.width *= box[d - 1].length;
    whole = box[d - 1].length == shape[d - 1];
    stride *= shape[d - 1];
  }
  for (; d > 0; --d) {
    if (box[d - 1].length != 1 && pattern.stride == 0) pattern.stride = stride;
    pattern.num *= box[d - 1].length;
    stride *= shape[d - 1];
  }
  pattern.box = std::move(box);
  return pattern;
}

std::string ToString(const Pattern& pattern) {
  return absl::StrCat(pattern.num, " x ", pattern.width, " / ", pattern.stride);
}

Scope SyncScope(const Pattern& written, const Pattern& read, const Shape& shape, int64_t units,
                int64_t units_per_block) {
  if (read.in_order && SameBox(written.box, read.box)) return Scope::kLane;
  const int64_t piece = PieceOf(written, shape, units);
  if (Within(read.box, written.box) || WithinPieces(read, piece, shape, units, 1)) return Scope::kWarp;
  if (units_per_block > 1 && WithinPieces(read, piece, shape, units, units_per_block)) return Scope::kBlock;
  return Scope::kDevice;
}

}  // namespace fusion::power_fusion
