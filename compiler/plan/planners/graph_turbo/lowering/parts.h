// Results of steps while a program is made: where their pieces are.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_PARTS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_PARTS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/plan/planners/graph_turbo/lowering/emitter.h"

namespace fusion::graph_turbo {

// The part of a tensor that one step makes. The pieces are disjoint, in one level, and cover the region.
struct Part {
  Region region;
  std::vector<Held> pieces;
  dsa::Level level = dsa::Level::kLocal;
  int birth = 0, death = 0;  // the step that makes it, the last one that reads it
};

// The box that both hold; `nothing` where they share no element.
Region Intersect(const Region& a, const Region& b);
bool Contains(const Region& whole, const Region& part);

// Copies `region` of what the pieces hold to `to`, each element from the first piece that holds it.
void Gather(Emitter* emitter, const std::vector<const Held*>& pieces, const Held& to, const Region& region);

// Copies pieces of LBs or of the GB to DDR: through the GB where it has room, so that one transfer takes all.
void CopyToDdr(Emitter* emitter, const std::vector<Held>& pieces, const Held& to, const Region& region);

// Moves a part one level out (section 4.3): to the GB, or to a new block of DDR named `name` where `level` is that or
// the GB has no room. Blocks of the GB and of the LBs are freed.
void MoveOut(Emitter* emitter, const std::string& name, dsa::Level level, Part* part);

// The part at `level` that lives longest, of those for which `may` holds; nullptr if there is none.
Part* LongestLived(const std::vector<Part*>& parts, dsa::Level level, const std::function<bool(const Part&)>& may);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_LOWERING_PARTS_H_
