#include "compiler/te/program/strided_read.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace fusion::te {
namespace {

using Places = std::vector<int64_t>;  // where a piece begins, one for each dimension of the tensor

struct Pieces {
  std::optional<Axis> axis;   // by which they are chosen
  int64_t length = 0;         // of the first; 0: there is none yet
  int64_t end = 0;            // of the last
  std::vector<Scalar> loads;  // in order
};

// Adds the pieces of `node`, which is reached where the axis lies in [begin, end). Returns false where they are none,
// or not of one length.
bool Collect(const Scalar& node, int64_t begin, int64_t end, Pieces* pieces) {
  if (begin >= end) return true;
  if (node->kind == ScalarKind::kLoad) {
    const bool plain = node->pad == nullptr && std::none_of(node->indices.begin(), node->indices.end(),
                                                            [](const Index& index) { return index.HasLoad(); });
    if (pieces->length == 0) pieces->length = end - begin;
    if (!plain || begin != pieces->end || end - begin != pieces->length) return false;
    if (!pieces->loads.empty() && pieces->loads[0]->tensor != node->tensor) return false;
    pieces->end = end;
    pieces->loads.push_back(node);
    return true;
  }
  if (node->kind != ScalarKind::kIf) return false;
  const std::optional<AxisCut> cut = CutOf(node->pred);
  if (!cut) return false;
  if (!pieces->axis) pieces->axis = cut->axis;
  return pieces->axis->id == cut->axis.id && Collect(node->args[0], begin, std::min(cut->at, end), pieces) &&
         Collect(node->args[1], std::max(cut->at, begin), end, pieces);
}

// One digit of a piece's number, the lowest first: by how much the place advances, and how often.
struct Level {
  int64_t count = 1;
  Places step;
};

// Writes the places as sums over the digits of their numbers. Returns false where they do not advance so.
bool Decompose(const std::vector<Places>& places, std::vector<Level>* levels) {
  const auto n = static_cast<int64_t>(places.size());
  if (n == 1) return true;
  const size_t rank = places[0].size();
  const auto advanced = [&](const Places& from, const Places& step, int64_t times) {
    Places to = from;
    for (size_t d = 0; d < rank; ++d) to[d] += times * step[d];
    return to;
  };
  Level level;
  for (size_t d = 0; d < rank; ++d) level.step.push_back(places[1][d] - places[0][d]);
  while (level.count < n && places[level.count] == advanced(places[0], level.step, level.count)) ++level.count;
  if (n % level.count != 0 || levels->size() >= rank) return false;
  std::vector<Places> groups;
  for (int64_t p = 0; p < n; p += level.count) {
    for (int64_t i = 0; i < level.count; ++i) {
      if (places[p + i] != advanced(places[p], level.step, i)) return false;
    }
    groups.push_back(places[p]);
  }
  levels->push_back(std::move(level));
  return Decompose(groups, levels);
}

}  // namespace

Scalar AsStridedRead(const Scalar& body, const std::vector<Axis>& axes) {
  const std::optional<AxisCut> cut = body->kind == ScalarKind::kIf ? CutOf(body->pred) : std::nullopt;
  Pieces pieces;
  if (!cut || !Collect(body, 0, cut->axis.extent, &pieces)) return nullptr;
  const auto count = static_cast<int64_t>(pieces.loads.size());
  const Axis axis = *pieces.axis;
  if (count < kLeastPieces || pieces.end != axis.extent) return nullptr;
  int fresh = axis.id;
  for (const Axis& other : axes) fresh = std::max(fresh, other.id);
  const Axis inside{fresh + 1, pieces.length};
  std::vector<Index> first;
  std::vector<Places> places;
  for (int64_t p = 0; p < count; ++p) {
    const Index value = Index(inside) + p * pieces.length;
    Places& place = places.emplace_back();
    for (size_t d = 0; d < pieces.loads[p]->indices.size(); ++d) {
      const Index at =
          Substitute(pieces.loads[p]->indices[d], [&](const Axis& a) { return a.id == axis.id ? &value : nullptr; });
      if (p == 0) first.push_back(at);
      const Index advance = at - first[d];
      if (!advance.IsConstant()) return nullptr;
      place.push_back(advance.constant());
    }
  }
  std::vector<Level> levels;
  if (!Decompose(places, &levels)) return nullptr;
  const Index place_inside = Mod(axis, pieces.length);
  Index number = FloorDiv(axis, pieces.length);
  for (Index& at : first) {
    at = Substitute(at, [&](const Axis& a) { return a.id == inside.id ? &place_inside : nullptr; });
  }
  for (const Level& level : levels) {
    const Index digit = Mod(number, level.count);
    for (size_t d = 0; d < first.size(); ++d) first[d] = first[d] + digit * level.step[d];
    number = FloorDiv(number, level.count);
  }
  return Load(pieces.loads[0]->tensor, pieces.loads[0]->dtype, std::move(first));
}

}  // namespace fusion::te
