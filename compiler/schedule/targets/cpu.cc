#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {

const TargetStrategy& CpuStrategy() {
  static constexpr TargetStrategy kStrategy = {
      .name = "cpu",
      .threadgroup_tiles = false,
      .k_blocking = true,
      .split_k = false,
      .minimal_filtering = true,
      .blocked_layouts = true,
      .window_copies = true,
      .turned_loads = true,
      .loops_for_ranges = true,
      .partial_vectors = true,
      .vector_reductions = true,
      .tasks_of_columns = true,
      .column_sums = true,
      .prefetches = true,
      .streaming_stores = true,
      .product_scratch_caches = 4,  // the outer caches serve what the core's own does not hold
      .left_for_operands = 4,
      .filtering_leaves_room = false,
      .items_of_a_row = 1,
      .points_of_an_item = 0,
      .tiles_before_tasks = false,
      .halos_by_price = false,
      .sliding_windows = true,
      .phases_are_launches = false,
      .phases_beside = false,  // launches run at the same time (compiler/launch/concurrent_launches)
  };
  return kStrategy;
}

}  // namespace fusion
