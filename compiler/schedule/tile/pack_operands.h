// Packing: copies operands of a register tile so that what one tile reads is one contiguous run. Constants are packed
// at compile time (movement::Pack), others by a step in front of the tile, into the task's own memory.
#ifndef FUSION_COMPILER_SCHEDULE_TILE_PACK_OPERANDS_H_
#define FUSION_COMPILER_SCHEDULE_TILE_PACK_OPERANDS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/schedule/nest/nest.h"
#include "compiler/schedule/tile/tile_operands.h"

namespace fusion {

// The axes of a nest in their roles in a register tile. id -1: there is none.
struct TileAxes {
  te::Axis lane{-1, 1};         // one vector
  te::Axis vector_tile{-1, 1};  // which tile of adjacent vectors,
  te::Axis vector_in{-1, 1};    // and which vector of that tile
  te::Axis row{-1, 1};
  te::Axis dot{-1, 1};               // movement::RegisterTile::dot_axis
  std::vector<te::Axis> others;      // spatial, without a role
  std::vector<te::Axis> outside;     // axes of the grid around the task
  std::vector<te::Axis> reduction_order;  // outermost first, without `dot`
  te::Index store_index;             // results with store_index >= store_limit do not exist
  int64_t store_limit = -1;          // -1: all do
  bool in_task = false;              // the tile's loops run inside a task, beside other steps
  // An axis of `outside` along which tasks continue the tile's columns (PanelAxis), if panels of constants are to lie in
  // the order of all columns, whichever task reads them.
  te::Axis across{-1, 1};
  int64_t panel_vectors = 1;  // with `across`: the width of a panel, a multiple or a divisor of the tile's
};

struct PackedOperands {
  struct Panel {
    int buffer;
    int64_t elements;  // contiguous elements that one register tile reads
    int64_t panels;    // number of panels, one after another
  };
  std::vector<Panel> panels;          // of constants that rows share
  std::vector<movement::Step> steps;  // the steps that pack at run time
};

// The axis of the tile's `outside` along which tasks continue the tile's columns, so that several tiles could share a
// panel. nullopt where there is none, where some operand has no such panels, or where columns end inside a vector or a
// tile.
std::optional<te::Axis> PanelAxis(const TileAxes& tile, const std::vector<Operand>& loads, const Nest& nest,
                                  const movement::Kernel& kernel);

// Replaces loads of the nest's body by loads of packed buffers, which are added to the kernel. Refuses operands that
// cannot be packed, and constants that packing would repeat many times over. `loads`: BodyLoads(*nest).
absl::StatusOr<PackedOperands> PackOperands(const TileAxes& tile, const std::vector<Operand>& loads,
                                            const DeviceModel& device, movement::Kernel* kernel, AxisSource* axes,
                                            Nest* nest);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TILE_PACK_OPERANDS_H_
