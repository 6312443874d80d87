#include "compiler/schedule/targets/target_strategy.h"

namespace fusion {

const TargetStrategy& WorkGroupStrategy() {
  static constexpr TargetStrategy kStrategy = {
      .name = "work-groups",
      .threadgroup_tiles = true,
      .k_blocking = false,  // threadgroup tiles cut their operands into slices themselves
      .split_k = true,
      .minimal_filtering = false,  // its many products with constant matrices are too small for threadgroup tiles
      .blocked_layouts = false,
      .window_copies = false,
      .turned_loads = false,
      .loops_for_ranges = false,
      .partial_vectors = false,
      .vector_reductions = false,
      .tasks_of_columns = false,
      .column_sums = false,
      .prefetches = false,
      .streaming_stores = false,
      .product_scratch_caches = 1,  // shared memory cannot be exceeded
      .left_for_operands = 2,       // K-slices of the products' operands need room there, too (threadgroup_tile.cc)
      .filtering_leaves_room = true,
      .items_of_a_row = 32,
      .points_of_an_item = 4,
      .tiles_before_tasks = true,
      .halos_by_price = false,
      .sliding_windows = false,
      .phases_are_launches = true,
      .phases_beside = true,
  };
  return kStrategy;
}

const TargetStrategy& SingleItemStrategy() {
  static const TargetStrategy kStrategy = [] {
    TargetStrategy strategy = CpuStrategy();
    strategy.name = "single work-items";
    // Scratch is a memory of fixed size, and nothing is known of the caches around it.
    strategy.column_sums = false;
    strategy.prefetches = false;
    strategy.streaming_stores = false;
    strategy.product_scratch_caches = 1;
    strategy.halos_by_price = false;
    strategy.sliding_windows = false;
    strategy.phases_beside = true;
    return strategy;
  }();
  return kStrategy;
}

}  // namespace fusion
