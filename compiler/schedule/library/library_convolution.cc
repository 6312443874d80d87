#include "compiler/schedule/library/library_convolution.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/cost/matrix_products.h"
#include "compiler/schedule/library/library_nest.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;
using te::ScalarKind;

// Dimensions of images and results, in the order of LibraryConvolution's pitches.
enum Dimension : size_t { kImage, kChannel, kRow, kColumn };
constexpr std::array<Dimension, 4> kInnerFirst[] = {{kColumn, kRow, kChannel, kImage},   // [n, c, h, w]
                                                    {kChannel, kColumn, kRow, kImage}};  // [n, h, w, c]

bool Exists(const Axis& axis) { return axis.id >= 0; }

// The load of an image, possibly widened from f16. Where a condition of `inside` does not hold, the value is zero.
struct ImageLoad {
  const te::ScalarNode* load = nullptr;
  te::Pred inside;
};
ImageLoad ImageLoadOf(const Scalar& value) {
  ImageLoad image;
  const Scalar* s = &value;
  for (;; s = &(*s)->args[0]) {
    const te::ScalarNode& node = **s;
    if (node.kind == ScalarKind::kIf && te::IsImm(node.args[1], 0)) {
      image.inside.insert(image.inside.end(), node.pred.begin(), node.pred.end());
    } else if (node.kind != ScalarKind::kCast || node.dtype != DType::kF32 || node.args[0]->dtype != DType::kF16) {
      break;
    }
  }
  image.load = PlainLoad(*s);
  return image;
}

// The rows or the columns of a convolution. Result `position` and tap `tap` read position · stride + tap · dilation −
// before of the image.
struct Window {
  Axis position{-1, 1}, tap{-1, 1};
  int64_t stride = 0, dilation = 0, before = 0;  // stride and dilation are 0 until the address gives them
  std::optional<int64_t> extent;                 // of the image, where a condition gives it
};

// The axes by their roles. A role that the stage lacks has id -1.
struct Roles {
  Axis image{-1, 1}, group{-1, 1}, result{-1, 1}, channel{-1, 1};
  std::array<Window, 2> windows;  // rows, then columns
};

// The axes of a nest by the operands that move with them.
struct Axes {
  std::vector<Axis> moving, reduction;  // spatial axes that move the image alone; reduction axes
  Axis group{-1, 1}, result{-1, 1};
};
std::optional<Axes> AxesOf(const Nest& nest, const Index& image, const Index& filter) {
  Axes axes;
  for (const Axis& axis : nest.axes) {
    const bool in_image = image.UsesAxis(axis.id), in_filter = filter.UsesAxis(axis.id);
    if (in_image && !in_filter) {
      axes.moving.push_back(axis);
    } else if (in_filter) {
      Axis& role = in_image ? axes.group : axes.result;
      if (Exists(role)) return std::nullopt;
      role = axis;
    } else {
      return std::nullopt;
    }
  }
  for (const Axis& axis : nest.reduction->axes) {
    if (!image.UsesAxis(axis.id) || !filter.UsesAxis(axis.id)) return std::nullopt;
    axes.reduction.push_back(axis);
  }
  return axes;
}

bool Contains(const std::vector<Axis>& axes, const Axis& axis) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& other) { return other.id == axis.id; });
}

// Finds the windows whose borders the conditions test, and removes their axes from `axes`.
std::optional<std::vector<Window>> BorderedWindows(const te::Pred& inside, Axes* axes) {
  struct Border {
    Index shape;  // without its constant
    std::optional<int64_t> at_least, below;
  };
  std::vector<Border> borders;
  for (const te::Comparison& c : inside) {
    const Index difference = c.lhs - c.rhs;
    const Index shape = difference - Index(difference.constant());
    auto border = std::find_if(borders.begin(), borders.end(), [&](const Border& b) { return b.shape == shape; });
    if (border == borders.end()) border = borders.insert(borders.end(), {shape, {}, {}});
    if (c.cmp == te::Cmp::kGe) {
      border->at_least = std::max(-difference.constant(), border->at_least.value_or(-difference.constant()));
    } else if (c.cmp == te::Cmp::kLt) {
      border->below = std::min(-difference.constant(), border->below.value_or(-difference.constant()));
    } else {
      return std::nullopt;
    }
  }
  std::vector<Window> windows;
  for (const Border& border : borders) {
    Window window;
    Index sum;
    std::vector<Axis> used;
    te::CollectAxes(border.shape, &used);
    for (const Axis& axis : used) {
      const bool position = Contains(axes->moving, axis);
      Axis& role = position ? window.position : window.tap;
      int64_t& step = position ? window.stride : window.dilation;
      if (Exists(role) || (!position && !Contains(axes->reduction, axis)) || !border.shape.AffineIn(axis.id, &step) ||
          step <= 0) {
        return std::nullopt;
      }
      role = axis;
      sum = sum + Index(axis) * step;
      std::erase_if(axes->moving, [&](const Axis& other) { return other.id == axis.id; });
      std::erase_if(axes->reduction, [&](const Axis& other) { return other.id == axis.id; });
    }
    if (!(sum == border.shape)) return std::nullopt;
    window.before = border.at_least.value_or(0);
    if (border.below) window.extent = *border.below - window.before;
    if (window.before < 0 || (window.extent && *window.extent < 1)) return std::nullopt;
    windows.push_back(window);
  }
  if (windows.size() > 2) return std::nullopt;
  return windows;
}

// Every way to assign the axes that no border has assigned. A reading with a single image comes first, since models
// mostly run with one.
std::vector<Roles> RolesOf(const Axes& axes, const std::vector<Window>& bordered) {
  const auto with_none = [](const std::vector<Axis>& list) {
    std::vector<Axis> result = {{-1, 1}};
    result.insert(result.end(), list.begin(), list.end());
    return result;
  };
  const auto without = [](std::vector<Axis> list, const Axis& axis) {
    std::erase_if(list, [&](const Axis& other) { return other.id == axis.id; });
    return list;
  };
  const size_t free = 2 - bordered.size();
  std::vector<Roles> all;
  for (const Axis& channel : with_none(axes.reduction)) {
    std::vector<Axis> taps = without(axes.reduction, channel);
    if (taps.size() > free) continue;
    taps.resize(free, {-1, 1});
    for (const Axis& image : with_none(axes.moving)) {
      std::vector<Axis> positions = without(axes.moving, image);
      if (positions.size() > free) continue;
      positions.resize(free, {-1, 1});
      for (const bool swapped : {false, true}) {
        if (swapped && free < 2) continue;
        std::vector<Window> windows = bordered;
        for (size_t d = 0; d < free; ++d) {
          windows.emplace_back();
          windows.back().position = positions[d];
          windows.back().tap = taps[swapped ? 1 - d : d];
        }
        all.push_back({image, axes.group, axes.result, channel, {windows[0], windows[1]}});
      }
    }
  }
  return all;
}

// An address as a sum of multiples of axes and a constant.
class Address {
 public:
  explicit Address(Index address) : rest_(std::move(address)) {}

  // Removes the axis's term and returns its coefficient, 0 where it has none. Rest() then no longer sees this term.
  int64_t Take(const Axis& axis) {
    int64_t coefficient = 0;
    if (!Exists(axis) || !rest_.AffineIn(axis.id, &coefficient)) return 0;
    rest_ = rest_ - Index(axis) * coefficient;
    return coefficient;
  }
  // The part that no Take removed, if it is a constant; else nullopt.
  std::optional<int64_t> Rest() const {
    if (!rest_.IsConstant()) return std::nullopt;
    return rest_.constant();
  }

 private:
  Index rest_;
};

// The pitch of a coordinate made of `outer` and `inner` together; 0 where nothing moves with it.
std::optional<int64_t> PitchOf(const Axis& outer, int64_t outer_step, const Axis& inner, int64_t inner_step) {
  if (Exists(outer) && Exists(inner) && outer_step != inner.extent * inner_step) return std::nullopt;
  return Exists(inner) ? inner_step : outer_step;
}

// The address of an element in a row-major box of these axes.
Index PlaceIn(const std::vector<Axis>& axes) {
  std::vector<Index> coordinates;
  std::vector<int64_t> extents;
  for (const Axis& axis : axes) coordinates.push_back(Index(axis)), extents.push_back(axis.extent);
  return te::Linearize(coordinates, extents);
}

bool Fits(const LibraryConvolution& c, size_t d, int64_t in) {
  LibraryConvolution with = c;
  with.in[d] = in;
  return in + 2 * c.pad[d] > c.dilation[d] * (c.taps[d] - 1) && with.OutOf(d) == c.out[d];
}

// The image's rows or columns where no condition gives them: as many as the memory suggests, else as many as are read.
std::optional<int64_t> GuessExtent(const LibraryConvolution& c, size_t d, int64_t in_memory) {
  const int64_t read = (c.out[d] - 1) * c.stride[d] + (c.taps[d] - 1) * c.dilation[d] + 1 - c.pad[d];
  for (const int64_t extent : {in_memory, read}) {
    if (extent >= read && Fits(c, d, extent)) return extent;
  }
  return std::nullopt;
}

// Does each dimension lie inside the next one in this order? Fills in the pitches of dimensions of extent 1, which are
// 0. `extent_of(dimension, neighbours)` returns the dimension's extent; memory has room for so many neighbours before
// the next dimension moves.
template <typename ExtentOf>
bool Nested(const std::array<Dimension, 4>& inner_first, int64_t elements, std::array<int64_t, 4>* pitch,
            const ExtentOf& extent_of) {
  int64_t reach = 1;
  for (size_t i = 0; i < inner_first.size(); ++i) {
    int64_t& own = (*pitch)[inner_first[i]];
    const bool moves = own > 0;
    if (!moves) own = reach;
    if (own < reach) return false;
    int64_t next = elements;
    for (size_t j = inner_first.size(); j-- > i + 1;) {
      if ((*pitch)[inner_first[j]] > 0) next = (*pitch)[inner_first[j]];
    }
    const std::optional<int64_t> extent = extent_of(inner_first[i], next / own);
    if (!extent || (*extent > 1 && !moves)) return false;
    reach = own * *extent;
  }
  return true;
}

struct Found {
  LibraryConvolution convolution;
  std::vector<Axis> filter_axes;  // in the order in which the filter must lie
  bool packed = false;            // the filter does not lie in that order yet
  int score = 0;                  // rank of this reading: a sum over channels is also one over distant taps
};

class Reader {
 public:
  Reader(const Nest& nest, const te::ScalarNode& image, const te::ScalarNode& filter, const movement::Kernel& kernel)
      : nest_(nest), image_(image), filter_(filter), kernel_(kernel) {}

  std::optional<Found> Read(Roles roles) const {
    Address image(image_.indices[0]);
    std::array<int64_t, 2> window_pitch;
    int64_t before = 0;
    for (size_t d : {0, 1}) {
      Window& window = roles.windows[d];
      const std::optional<int64_t> pitch = WindowPitch(&window, &image);
      if (!pitch) return std::nullopt;
      window_pitch[d] = *pitch;
      before += window.before * *pitch;
    }
    const auto farther = [](int64_t pitch) { return pitch == 0 ? INT64_MAX : pitch; };
    if (farther(window_pitch[0]) < farther(window_pitch[1])) {
      std::swap(roles.windows[0], roles.windows[1]);
      std::swap(window_pitch[0], window_pitch[1]);
    }
    const int64_t group_step = image.Take(roles.group), channel_step = image.Take(roles.channel);
    const std::optional<int64_t> channel_pitch = PitchOf(roles.group, group_step, roles.channel, channel_step);
    if (!channel_pitch) return std::nullopt;
    Found found;
    LibraryConvolution& c = found.convolution;
    c.x_pitch = {image.Take(roles.image), *channel_pitch, window_pitch[0], window_pitch[1]};
    if (image.Rest() != -before) return std::nullopt;

    Address result(nest_.stores[0].address);
    const int64_t result_group_step = result.Take(roles.group), result_step = result.Take(roles.result);
    const std::optional<int64_t> result_pitch = PitchOf(roles.group, result_group_step, roles.result, result_step);
    if (!result_pitch) return std::nullopt;
    c.y_pitch = {result.Take(roles.image), *result_pitch, result.Take(roles.windows[0].position),
                 result.Take(roles.windows[1].position)};
    if (result.Rest() != 0) return std::nullopt;
    for (const auto* pitches : {&c.x_pitch, &c.y_pitch}) {
      if (*std::min_element(pitches->begin(), pitches->end()) < 0) return std::nullopt;
    }

    c.x = image_.tensor, c.w = filter_.tensor, c.y = nest_.stores[0].buffer;
    c.images = roles.image.extent, c.groups = roles.group.extent;
    c.channels = c.groups * roles.channel.extent, c.results = c.groups * roles.result.extent;
    for (size_t d : {0, 1}) {
      const Window& window = roles.windows[d];
      c.taps[d] = window.tap.extent, c.out[d] = window.position.extent;
      c.stride[d] = window.stride, c.dilation[d] = window.dilation, c.pad[d] = window.before;
      found.score += Exists(window.position) && Exists(window.tap);
    }
    if (Exists(roles.channel)) found.score += 2;
    if (!Place(roles, &c) || !ReadFilter(roles, &found)) return std::nullopt;
    return found;
  }

 private:
  // The pitch of rows or columns in the image; 0 where nothing moves with them. Reads off the stride and dilation that
  // no border has given.
  static std::optional<int64_t> WindowPitch(Window* window, Address* image) {
    const bool position = Exists(window->position), tap = Exists(window->tap);
    const int64_t by_position = image->Take(window->position), by_tap = image->Take(window->tap);
    if ((position && by_position <= 0) || (tap && by_tap <= 0)) return std::nullopt;
    int64_t pitch = std::gcd(by_position, by_tap);
    if (window->stride > 0 || window->dilation > 0) {  // a border has given them
      pitch = window->stride > 0 ? by_position / window->stride : by_tap / window->dilation;
      if (by_position != window->stride * pitch || by_tap != window->dilation * pitch) return std::nullopt;
      if (pitch == 0) return std::nullopt;
    } else if (pitch > 0) {
      window->stride = by_position / pitch, window->dilation = by_tap / pitch;
    }
    if (!position) window->stride = 1;
    if (!tap) window->dilation = 1;
    return pitch;
  }

  // Places image and result in memory, both as [n, c, h, w] or both as [n, h, w, c].
  bool Place(const Roles& roles, LibraryConvolution* c) const {
    for (const bool channels_last : {false, true}) {
      LibraryConvolution placed = *c;
      placed.channels_last = channels_last;
      const auto in = [&](Dimension dimension, int64_t in_memory) -> std::optional<int64_t> {
        if (dimension < kRow) return placed.x_extents()[dimension];
        const size_t d = dimension - kRow;
        std::optional<int64_t> extent = roles.windows[d].extent;
        if (!extent) extent = GuessExtent(placed, d, in_memory);
        if (!extent || !Fits(placed, d, *extent)) return std::nullopt;
        placed.in[d] = *extent;
        return extent;
      };
      const auto out = [&](Dimension dimension, int64_t) { return std::optional(placed.y_extents()[dimension]); };
      const int64_t x_elements = kernel_.buffers[placed.x].elements, y_elements = kernel_.buffers[placed.y].elements;
      if (Nested(kInnerFirst[channels_last], x_elements, &placed.x_pitch, in) && placed.x_elements() <= x_elements &&
          Nested(kInnerFirst[channels_last], y_elements, &placed.y_pitch, out) && placed.y_elements() <= y_elements &&
          std::max(placed.x_elements(), placed.y_elements()) <= INT32_MAX) {
        *c = placed;
        return true;
      }
    }
    return false;
  }

  bool ReadFilter(const Roles& roles, Found* found) const {
    const auto axes = [&](bool channels_last) {
      std::vector<Axis> order = {roles.group, roles.result};
      if (!channels_last) order.push_back(roles.channel);
      order.insert(order.end(), {roles.windows[0].tap, roles.windows[1].tap});
      if (channels_last) order.push_back(roles.channel);
      std::erase_if(order, [](const Axis& axis) { return !Exists(axis); });
      return order;
    };
    const auto lies = [&](bool channels_last) { return PlaceIn(axes(channels_last)) == filter_.indices[0]; };
    LibraryConvolution& c = found->convolution;
    found->filter_axes = axes(c.channels_last);
    found->packed = !lies(c.channels_last);
    if (!found->packed || lies(!c.channels_last)) found->score += 4;
    const movement::Buffer& filter = kernel_.buffers[filter_.tensor];
    return !found->packed || (filter.is_constant && filter.packed_from < 0);
  }

  const Nest& nest_;
  const te::ScalarNode& image_;
  const te::ScalarNode& filter_;
  const movement::Kernel& kernel_;
};

// Does nothing follow the sum but its rounding to the result's type?
bool IsBare(const Nest& nest) {
  if (nest.then.empty()) return true;
  Scalar value = nest.then[0];
  if (value->kind == ScalarKind::kCast && value->dtype == nest.store_types[0]) value = value->args[0];
  return value->kind == ScalarKind::kAcc;
}

void PackFilter(const Found& found, const te::ScalarNode& filter, Nest* nest, movement::Kernel* kernel) {
  const movement::Buffer source = kernel->buffers[filter.tensor];
  movement::Buffer packed;
  packed.dtype = source.dtype;
  packed.elements = found.convolution.w_elements();
  packed.is_constant = true;
  packed.packed_from = static_cast<int>(kernel->packs.size());
  kernel->packs.push_back({source.tensor, found.filter_axes, filter.indices[0], {}, {}});
  const Scalar load = te::Load(static_cast<int>(kernel->buffers.size()), source.dtype, {PlaceIn(found.filter_axes)});
  kernel->buffers.push_back(packed);
  nest->body[0] = ReplaceLoad(nest->body[0], &filter, load);
}

}  // namespace

absl::StatusOr<movement::Phase> LibraryConvolutionPhase(Nest nest, const DeviceModel& device,
                                                        movement::Kernel* kernel) {
  const auto refuse = [](const char* why) { return absl::FailedPreconditionError(why); };
  if (!IsPlainSumOfProducts(nest)) return refuse("the stage is not a plain sum of f32 products");
  if (!IsBare(nest)) return refuse("the library cannot compute the epilogue behind the sum");
  const Scalar product = nest.body[0];  // keeps the loads alive
  std::optional<Found> best;
  const te::ScalarNode* best_filter = nullptr;
  const char* why = "an operand is computed on the way and does not lie in memory";
  for (const int side : {0, 1}) {
    const ImageLoad image = ImageLoadOf(product->args[side]), filter = ImageLoadOf(product->args[1 - side]);
    if (image.load == nullptr || filter.load == nullptr || !filter.inside.empty()) continue;
    if (image.load->dtype != filter.load->dtype || image.load->dtype != nest.store_types[0] ||
        (image.load->dtype != DType::kF32 && image.load->dtype != DType::kF16)) {
      return refuse("operands and result differ in type");
    }
    why = "the addresses are not those of windows over an image";
    std::optional<Axes> axes = AxesOf(nest, image.load->indices[0], filter.load->indices[0]);
    if (!axes) continue;
    const std::optional<std::vector<Window>> bordered = BorderedWindows(image.inside, &*axes);
    if (!bordered) continue;
    const Reader reader(nest, *image.load, *filter.load, *kernel);
    for (const Roles& roles : RolesOf(*axes, *bordered)) {
      std::optional<Found> found = reader.Read(roles);
      if (!found || (best && best->score >= found->score)) continue;
      best = std::move(found);
      best_filter = filter.load;
    }
  }
  if (!best) return refuse(why);
  LibraryConvolution& convolution = best->convolution;
  if (convolution.taps[0] * convolution.taps[1] == 1)
    return refuse("the window has one tap, so it is a product of matrices");
  for (const int buffer : {convolution.x, convolution.w, convolution.y}) {
    if (kernel->buffers[buffer].scope == Scope::kBlock) {
      return refuse("an operand lies in the shared memory of a work-group");
    }
  }
  convolution.tf32 = nest.store_types[0] == DType::kF32 && FindMatrixProduct(device, DType::kF32) != nullptr;
  if (best->packed) {
    convolution.w = static_cast<int>(kernel->buffers.size());
    PackFilter(*best, *best_filter, &nest, kernel);
  }
  return PhaseOf(nest, convolution);
}

}  // namespace fusion
