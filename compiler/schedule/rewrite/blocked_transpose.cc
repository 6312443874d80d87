#include "compiler/schedule/rewrite/blocked_transpose.h"

#include <algorithm>
#include <utility>

#include "compiler/cost/caches.h"
#include "compiler/schedule/stitch/task_size.h"
#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;

// Elements of the result that are written together: at least a quarter of a page where the loops allow it.
constexpr int64_t kRunElements = 1024;
// Rows of the operand that a tile reads side by side, each from a page of its own.
constexpr int64_t kMostRows = 64;

// The share of the nearest cache that a tile may fill with lines that it reads again and again.
constexpr double kNearShare = 0.5;

// Positions among the nest's axes. A load moves further along `inner` than along `outer`, the loop around it.
struct Turned {
  size_t outer = 0, inner = 0;
  int64_t stride = 0;  // stride of the load along `inner`; 0: no such pair was found
};

Turned FindTurned(const Nest& nest) {
  Turned found;
  for (const te::Scalar& s : nest.body) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad) return;
      std::vector<int64_t> strides;
      for (const Axis& axis : nest.axes) {
        int64_t stride = 0;
        if (!node.indices[0].AffineIn(axis.id, &stride)) return;
        strides.push_back(std::abs(stride));
      }
      for (size_t outer = 0; outer < strides.size(); ++outer) {
        for (size_t inner = outer + 1; inner < strides.size(); ++inner) {
          if (strides[outer] == 0 || strides[inner] <= strides[outer] || strides[inner] <= found.stride) continue;
          found = {outer, inner, strides[inner]};
        }
      }
    });
  }
  return found;
}

}  // namespace

void TransposeInTiles(const DeviceModel& device, AxisSource* axes, ChoiceLog* choices, Nest* nest) {
  if (nest->reduction || !StrategyOf(device).turned_loads || !nest->limits.empty() || nest->mask_limit >= 0) return;
  const int64_t size = nest->store_types.size() == 1 ? DTypeBytes(nest->store_types[0]) : 4;
  double bytes = static_cast<double>(size);
  for (const Axis& axis : nest->axes) bytes *= static_cast<double>(axis.extent);
  const bool near = bytes < static_cast<double>(LargestPrivateBytes(device));
  if (near && bytes < static_cast<double>(NearestCacheBytes(device))) return;
  const Turned turned = FindTurned(*nest);
  if (turned.stride == 0) return;
  int64_t run = 1;  // elements of the result inside the inner axis
  for (size_t a = turned.inner + 1; a < nest->axes.size(); ++a) run *= nest->axes[a].extent;
  const Axis whole = nest->axes[turned.inner];
  const bool lanes = turned.inner + 1 == nest->axes.size();
  const int64_t vector = device.vector_bytes / 4;
  int64_t block = std::clamp<int64_t>(kRunElements / run, 1, kMostRows);
  if (near) {
    // Each line of the operand has elements of several rows of the result. If the line stays in the cache, it is read
    // once.
    if (!lanes || 2 * turned.stride * size > device.line_bytes) return;
    block = static_cast<int64_t>(kNearShare * static_cast<double>(NearestCacheBytes(device))) / (turned.stride * size);
  }
  if (lanes) block = block / vector * vector;
  if (block == 0 || whole.extent < 2 * block) return;
  const int choice = choices->Pick(
      "transpose", lanes && !near ? Alternatives{"lines", "elements", "blocks"} : Alternatives{"blocks", "elements"});
  if (choice == 1) return;
  if (lanes && !near && choice == 0) {
    // Storing half a line past the caches costs as much as storing the whole line.
    block = std::max(vector, device.line_bytes / size);
    nest->streaming_stores = FillsCaches(bytes, device);
  }
  const Axis around = axes->New((whole.extent + block - 1) / block), within = axes->New(block);
  const Index split = Index(around) * block + Index(within);
  if (whole.extent % block != 0) nest->limits[within.id] = Index(whole.extent) - Index(around) * block;
  nest->Substitute([&](const Axis& axis) { return axis.id == whole.id ? &split : nullptr; });
  nest->axes[turned.inner] = within;
  nest->axes.insert(nest->axes.begin() + static_cast<std::ptrdiff_t>(turned.outer), around);
}

}  // namespace fusion
