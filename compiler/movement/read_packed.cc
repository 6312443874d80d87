#include "compiler/movement/read_packed.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "compiler/movement/pack_constant.h"
#include "compiler/movement/vector_form.h"

namespace fusion::movement {
namespace {

struct Digit {
  int axis = -1;
  int64_t stride = 0, extent = 0;  // in the source
  int64_t packed_stride = 0;
};

// The limit of the number that the digits from `first` on make together, if the pack's condition is exactly that: an
// axis that was rounded up. Else nullopt.
std::optional<int64_t> LimitOf(const Pack& pack, const std::vector<Digit>& digits, size_t first) {
  if (pack.pred.size() != 1 || pack.pred[0].cmp != te::Cmp::kLt || !pack.pred[0].rhs.IsConstant()) return std::nullopt;
  te::Index rest = pack.pred[0].lhs;
  for (const te::Axis& axis : pack.axes) {
    int64_t c = 0;
    if (!rest.AffineIn(axis.id, &c)) return std::nullopt;
    const auto digit = std::find_if(digits.begin(), digits.end(), [&](const Digit& d) { return d.axis == axis.id; });
    const bool of_number = digit != digits.end() && digit - digits.begin() >= static_cast<int64_t>(first);
    if (axis.extent > 1 && c != (of_number ? digit->stride : 0)) return std::nullopt;
    rest = rest - te::Index(axis) * c;
  }
  if (!rest.IsConstant()) return std::nullopt;
  return pack.pred[0].rhs.constant() - rest.constant();
}

// The axes as digits of a source address, largest stride first. All smaller digits together stay below the stride of
// each one, so that division and remainder find them.
std::optional<std::vector<Digit>> DigitsOf(const Pack& pack) {
  if (!pack.transform.by_dimension.empty()) return std::nullopt;
  std::vector<Digit> digits;
  int64_t packed_stride = 1;
  te::Index rest = pack.address;
  for (size_t a = pack.axes.size(); a-- > 0;) {
    const te::Axis& axis = pack.axes[a];
    Digit digit{axis.id, 0, axis.extent, packed_stride};
    packed_stride *= axis.extent;
    if (!pack.address.AffineIn(axis.id, &digit.stride)) return std::nullopt;
    rest = rest - te::Index(axis) * digit.stride;
    if (axis.extent > 1) digits.push_back(digit);
  }
  if (!rest.IsConstant() || rest.constant() != 0) return std::nullopt;
  std::sort(digits.begin(), digits.end(), [](const Digit& a, const Digit& b) { return a.stride > b.stride; });
  int64_t below = 1;  // the first number that the smaller digits cannot reach
  for (size_t d = digits.size(); d-- > 0;) {
    if (digits[d].stride < below) return std::nullopt;
    below += digits[d].stride * (digits[d].extent - 1);
    if (const std::optional<int64_t> limit = LimitOf(pack, digits, d)) below = std::min(below, *limit);
  }
  if (digits.empty() || digits.back().stride != 1) return std::nullopt;
  return digits;
}

}  // namespace

std::optional<PackedPlace> PackedPlaceOf(const Pack& pack, int64_t source_elements) {
  const std::optional<std::vector<Digit>> digits = DigitsOf(pack);
  // Distinct places have distinct addresses: if as many are held as there are elements, all elements are held.
  if (!digits || ConstantPacker(pack, source_elements).held() != source_elements) return std::nullopt;
  return [digits = *digits](const te::Index& address) {
    te::Index rest = address, packed;
    for (const Digit& digit : digits) {
      packed = packed + te::FloorDiv(rest, digit.stride) * digit.packed_stride;
      rest = te::Mod(rest, digit.stride);
    }
    return packed;
  };
}

std::optional<te::Index> PackedAddress(const Pack& pack, int64_t source_elements, const te::Index& address) {
  const std::optional<PackedPlace> place = PackedPlaceOf(pack, source_elements);
  if (!place) return std::nullopt;
  return (*place)(address);
}

std::optional<Kernel> ReadPacked(const Kernel& kernel, int buffer, const Pack& pack, int64_t packed_elements,
                                 int64_t lanes) {
  const Buffer& plain = kernel.buffers[buffer];
  if (!plain.is_constant || plain.packed_from >= 0) return std::nullopt;
  const std::optional<PackedPlace> place = PackedPlaceOf(pack, plain.elements);
  if (!place) return std::nullopt;
  Kernel result = kernel;
  Buffer& packed = result.buffers[buffer];
  packed.packed_from = static_cast<int>(result.packs.size());
  packed.elements = packed_elements;
  result.packs.push_back(pack);
  result.packs.back().source_tensor = plain.tensor;
  // A tensor without a buffer stands for the packed constant until nothing else reads the plain one.
  const int stand_in = static_cast<int>(kernel.buffers.size());
  const auto rewrite = [&](const te::Scalar& s) {
    return te::MapLoads(s, [&](const te::Scalar& load) -> te::Scalar {
      if (load->tensor != buffer || load->pad != nullptr) return nullptr;
      auto moved = std::make_shared<te::ScalarNode>(*load);
      moved->tensor = stand_in;
      moved->indices[0] = (*place)(load->indices[0]);
      return moved;
    });
  };
  const auto name = [&](te::TensorId tensor) { return tensor == stand_in ? buffer : tensor; };
  bool can = true;
  for (Phase& phase : result.phases) {
    VisitSteps(&phase, [&](Step* step) {
      const auto reads = [&] {
        bool found = false;
        VisitBuffers(*step, [&](int b) { found = found || b == buffer; });
        return found;
      };
      if (!can || !reads()) return;
      // Steps of other strategies have loads of a form that their printers rely on, or walk the plain constant.
      auto* const vectors = step->lane_limit ? nullptr : step->As<VectorMap>();
      const bool row = step->Is<RowReduction>() && step->reduction->kind != te::ReductionKind::kGeneral;
      can = vectors != nullptr || row || step->Is<ScalarLoops>();
      if (!can) return;
      for (te::Scalar& s : step->body) s = rewrite(s);
      for (te::Scalar& s : step->then) s = rewrite(s);
      can = !reads();  // still read: in an index, or padded
      for (te::Scalar& s : step->body) s = te::MapTensors(s, name);
      for (te::Scalar& s : step->then) s = te::MapTensors(s, name);
      if (vectors == nullptr && !row) return;
      if (vectors != nullptr) std::erase(vectors->read_next.buffers, buffer);
      const te::Axis& lane = row ? step->reduction->axes.back() : step->loops.back().axis;
      for (const te::Scalar& s : step->body) can = can && AlongAxisOf(s, lane, lanes).gatherable;
    });
  }
  if (!can) return std::nullopt;
  return result;
}

}  // namespace fusion::movement
