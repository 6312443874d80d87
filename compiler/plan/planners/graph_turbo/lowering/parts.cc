#include "compiler/plan/planners/graph_turbo/lowering/parts.h"

#include <algorithm>
#include <utility>

namespace fusion::graph_turbo {

Region Intersect(const Region& a, const Region& b) {
  if (a.nothing || b.nothing) return {};
  Region both = a;
  for (size_t d = 0; d < both.ranges.size(); ++d) {
    both.ranges[d].begin = std::max(a.ranges[d].begin, b.ranges[d].begin);
    both.ranges[d].end = std::min(a.ranges[d].end, b.ranges[d].end);
    if (both.ranges[d].begin >= both.ranges[d].end) return {};
  }
  return both;
}

bool Contains(const Region& whole, const Region& part) {
  if (part.nothing) return true;
  if (whole.nothing) return false;
  for (size_t d = 0; d < part.ranges.size(); ++d) {
    const Range &outer = whole.ranges[d], &inner = part.ranges[d];
    if (inner.begin < outer.begin || inner.end > outer.end || inner.begin >= inner.end) return false;
  }
  return true;
}

void Gather(Emitter* emitter, const std::vector<const Held*>& pieces, const Held& to, const Region& region) {
  for (const Held* piece : pieces) {
    if (!Contains(piece->box, region)) continue;
    emitter->Copy(*piece, to, region);
    return;
  }
  for (const Held* piece : pieces) {
    const Region shared = Intersect(piece->box, region);
    if (!shared.nothing) emitter->Copy(*piece, to, shared);
  }
}

void CopyToDdr(Emitter* emitter, const std::vector<Held>& pieces, const Held& to, const Region& region) {
  Block* const block = pieces.size() > 1 ? emitter->NewGlobal(region.elements()) : nullptr;
  for (const Held& piece : pieces) emitter->Copy(piece, block != nullptr ? Held{block, region} : to, piece.box);
  if (block == nullptr) return;
  emitter->Copy({block, region}, to, region);
  emitter->Free(block);
}

void MoveOut(Emitter* emitter, const std::string& name, dsa::Level level, Part* part) {
  Held to{level == dsa::Level::kGlobal ? emitter->NewGlobal(part->region.elements()) : nullptr, part->region};
  part->level = dsa::Level::kGlobal;
  if (to.block == nullptr) {
    to.block = emitter->NewDdr(name, part->region.elements(), false, false);
    part->level = dsa::Level::kDdr;
  }
  if (part->level == dsa::Level::kDdr) {
    CopyToDdr(emitter, part->pieces, to, part->region);
  } else {
    for (const Held& piece : part->pieces) emitter->Copy(piece, to, piece.box);
  }
  for (const Held& piece : part->pieces) emitter->Free(piece.block);
  part->pieces = {to};
}

Part* LongestLived(const std::vector<Part*>& parts, dsa::Level level, const std::function<bool(const Part&)>& may) {
  Part* longest = nullptr;
  for (Part* part : parts) {
    if (part->level != level || part->pieces.empty() || !may(*part)) continue;
    if (longest == nullptr || part->death - part->birth > longest->death - longest->birth) longest = part;
  }
  return longest;
}

}  // namespace fusion::graph_turbo
