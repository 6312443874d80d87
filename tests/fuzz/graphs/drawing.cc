#include "tests/fuzz/graphs/drawing.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

using ops::InputRole;

Tensor Ints(const std::vector<int64_t>& values) {
  return Tensor::From(DType::kI64, {static_cast<int64_t>(values.size())}, values);
}

}  // namespace

GraphLimits LargeLimits(GraphLimits limits) {
  limits.max_nodes = std::min(limits.max_nodes, 8);
  limits.max_elements = 1 << 19;
  limits.max_flops = 3e7;
  limits.max_work = 2e7;
  limits.large = true;
  return limits;
}

Drawing::Drawing(uint64_t seed, const GraphLimits& limits) : random_(seed), limits_(limits) {
  static constexpr int64_t kExtents[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 17, 19, 31, 32, 33, 47, 64};
  static constexpr int64_t kLarge[] = {65, 100, 127, 128, 192, 257, 512, 1000, 1023, 2048, 4099};
  for (int i = 0; i < 3; ++i) {
    extents_.push_back(limits_.large ? kLarge[Below(std::size(kLarge))] : kExtents[Below(std::size(kExtents))]);
  }
  extents_.push_back(1);
  const DType common[] = {DType::kF32, DType::kF32, DType::kF32, DType::kF32, AnyType()};
  dtypes_ = {common[Below(5)], common[Below(5)], AnyType()};
}

int Drawing::NodeCount() {
  const int span = limits_.max_nodes - limits_.min_nodes + 1;
  return limits_.min_nodes + std::min(Below(span), Below(span));
}

Shape Drawing::AnyShape() {
  Shape shape(Chance(0.4) ? 4 : Below(6));
  for (int64_t& extent : shape) extent = Extent();
  Limit(&shape);
  return shape;
}

Shape Drawing::RelatedShape(const Shape& first) {
  Shape shape = first;
  switch (Below(8)) {
    case 0:
      return shape;
    case 1:  // broadcasts to `first`
      for (int64_t& extent : shape) extent = Chance(0.4) ? 1 : extent;
      shape.erase(shape.begin(), shape.begin() + Below(static_cast<int64_t>(shape.size()) + 1));
      return shape;
    case 2:
      return {};
    case 3:
      return {shape.empty() ? Extent() : OneOf(shape)};
    case 4:  // lacks one axis
      if (!shape.empty()) shape.erase(shape.begin() + Below(static_cast<int64_t>(shape.size())));
      return shape;
    case 5:  // differs in one extent
      if (!shape.empty()) shape[Below(static_cast<int64_t>(shape.size()))] = Extent();
      return shape;
    case 6:  // has a few of the extents of `first`
      shape.resize(Between(1, 4));
      break;
    default:
      break;
  }
  for (int64_t& extent : shape) {
    extent = first.empty() || Chance(0.4) ? Between(1, 4) : OneOf(first) / (Chance(0.1) ? 2 : 1);
  }
  return shape;
}

void Drawing::Limit(Shape* shape) {
  while (NumElements(*shape) > limits_.max_elements) *std::max_element(shape->begin(), shape->end()) = Between(1, 4);
}

std::vector<int64_t> Drawing::SomeAxes(int64_t rank, int64_t count) {
  std::vector<int64_t> axes(std::max<int64_t>(rank, 1));
  std::iota(axes.begin(), axes.end(), 0);
  std::shuffle(axes.begin(), axes.end(), random_);
  axes.resize(std::min<int64_t>(count, static_cast<int64_t>(axes.size())));
  for (int64_t& axis : axes) axis -= Chance(0.3) ? rank : 0;
  return axes;
}

std::vector<int64_t> Drawing::SomeExtents(Shape shape) {
  const int64_t elements = NumElements(shape);
  switch (Below(4)) {
    case 0: {  // the same elements in another shape
      shape.clear();
      for (int64_t left = elements; static_cast<int>(shape.size()) < limits_.max_rank;) {
        if (left <= 1 && Chance(0.7)) break;
        int64_t factor = left;
        if (left > 1 && Chance(0.7)) {
          do {
            factor = Between(1, left);
          } while (left % factor != 0);
        }
        shape.push_back(factor);
        left /= std::max<int64_t>(factor, 1);
      }
      if (!shape.empty() && Chance(0.3)) shape[Below(static_cast<int64_t>(shape.size()))] = -1;
      return shape;
    }
    case 1:  // a shape that it broadcasts to
      for (int64_t& extent : shape) extent = extent == 1 && Chance(0.6) ? Extent() : Chance(0.2) ? 1 : extent;
      while (shape.size() < 5 && Chance(0.3)) shape.insert(shape.begin(), Extent());
      return shape;
    case 2:  // slightly larger or smaller
      for (int64_t& extent : shape) extent = std::max<int64_t>(0, extent + Between(-2, 3));
      return shape;
    default:
      return AnyShape();
  }
}

std::optional<ecg::Attribute> Drawing::DrawAttribute(const ops::AttrSpec& spec, int64_t rank) {
  switch (spec.kind) {
    case ops::AttrKind::kInt:
      return Chance(0.5) ? int64_t{Below(2)} : Chance(0.6) ? Between(-rank, rank) : Between(-1, 16);
    case ops::AttrKind::kFloat: {
      static constexpr double kFloats[] = {0.5, 1, 2, -1, 0.25, 0.01, 1e-5, 3};
      return kFloats[Below(std::size(kFloats))];
    }
    case ops::AttrKind::kString: {
      const std::vector<std::string>& texts = spec.choices.empty() ? spec.examples : spec.choices;
      if (texts.empty()) return std::nullopt;
      return OneOf(texts);
    }
    case ops::AttrKind::kInts: {
      // Draws a permutation, axes, or one or two small numbers for each spatial dimension.
      if (Chance(0.35)) return SomeAxes(rank, Chance(0.7) ? rank : Between(1, std::max<int64_t>(rank, 1)));
      const bool twice = Chance(0.3);
      std::vector<int64_t> values(std::max<int64_t>(rank - 2, 1) * (twice ? 2 : 1));
      for (int64_t& value : values) value = twice ? Below(3) : Between(1, 3);
      return values;
    }
    case ops::AttrKind::kTensor:
      return DrawTensor(DrawType(), {1}, random_());
    case ops::AttrKind::kFloats:
    case ops::AttrKind::kStrings:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Tensor> Drawing::RoleValue(InputRole role, const Shape& shape, int64_t count, DType scalar_type) {
  const auto rank = static_cast<int64_t>(shape.size());
  std::vector<int64_t> values;
  switch (role) {
    case InputRole::kData:
    case InputRole::kIndices:
      break;
    case InputRole::kAxes:
      return Ints(SomeAxes(rank, count));
    case InputRole::kExtents:
      return Ints(SomeExtents(shape));
    case InputRole::kCounts:
      for (int64_t d = 0; d < rank; ++d) values.push_back(Between(1, 3));
      return Ints(values);
    case InputRole::kPads:
      for (int64_t k = 0; k < 2 * count; ++k) values.push_back(Chance(0.15) ? -1 : Below(4));
      return Ints(values);
    case InputRole::kPositions:
      for (int64_t k = 0; k < count; ++k) {
        const int64_t most = shape.empty() ? 1 : *std::max_element(shape.begin(), shape.end());
        values.push_back(Chance(0.1) ? INT64_MAX : Between(-most - 1, most + 1));
      }
      return Ints(values);
    case InputRole::kSteps:
      for (int64_t k = 0; k < count; ++k)
        values.push_back(Chance(0.6) ? 1 : Chance(0.5) ? Between(2, 3) : -Between(1, 2));
      return Ints(values);
    case InputRole::kParts:
      for (int64_t left = shape.empty() ? 1 : OneOf(shape); left > 0; left -= values.back()) {
        values.push_back(Between(1, left));
      }
      return Ints(values);
    case InputRole::kScales: {
      Tensor scales(DType::kF32, {rank});
      for (int64_t d = 0; d < rank; ++d) {
        static constexpr double kScales[] = {1, 1, 2, 0.5, 1.5, 3};
        scales.SetDouble(d, kScales[Below(std::size(kScales))]);
      }
      return scales;
    }
    case InputRole::kScalar: {
      Tensor scalar(scalar_type, Chance(0.7) ? Shape{} : Shape{1});
      scalar.SetInt(0, Between(IsSigned(scalar_type) ? -3 : 0, 9));
      return scalar;
    }
  }
  return std::nullopt;
}

}  // namespace fusion::fuzz
