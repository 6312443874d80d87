// TargetStrategy: what the scheduler does differently from one kind of target to another. Every such decision is a
// field here and has a value for each kind (cpu.cc, gpu.cc), so the passes of this folder ask for decisions and never
// for the kind of device. Sizes and rates of a machine are not decisions; they stand in the device model.
#ifndef FUSION_COMPILER_SCHEDULE_TARGETS_TARGET_STRATEGY_H_
#define FUSION_COMPILER_SCHEDULE_TARGETS_TARGET_STRATEGY_H_

#include <cstdint>

#include "compiler/cost/device_model.h"

namespace fusion {

struct TargetStrategy {
  const char* name;  // for tests and people

  // Products.
  bool threadgroup_tiles;  // a work-group's tile through K-slices in shared memory; else a core's register tile
  bool k_blocking;         // long reductions are cut, so that a slice of the operand stays in the cache
  bool split_k;            // parts of a reduction run in parallel where there are few results
  bool minimal_filtering;  // convolutions may take fewer products (Winograd)

  // Vectors. Work-items of a work-group are lanes themselves: neighbours run in step whatever each of them does, so
  // nothing is rearranged to fill vectors.
  bool blocked_layouts;    // values may lie in layout blocks of a vector's channels
  bool window_copies;      // windows may be read from a copy that has their border around it
  bool turned_loads;       // loads along another loop are transposed in registers, gathered or walked in tiles
  bool loops_for_ranges;   // a row that conditions cut becomes a loop for each range
  bool partial_vectors;    // a vector is worthwhile where part of it is empty
  bool vector_reductions;  // prefix sums, extremes and products of one row run in vectors of their own form
  bool tasks_of_columns;   // tasks of a stitched map may take whole vectors of columns

  // Memory.
  bool column_sums;                // a task keeps the sums of its columns in the nearest cache while rows stream past
  bool prefetches;                 // far operands are prefetched for the next task, or further on in a row
  bool streaming_stores;           // large results may be written past the caches
  int64_t product_scratch_caches;  // a task with products may keep this many times the core's own cache as scratch
  // One part in this many of that scratch is left for the operands of products: packed panels, or K-slices.
  int64_t left_for_operands;
  bool filtering_leaves_room;  // forms of minimal filtering leave that part, too

  // Tasks.
  int items_of_a_row;        // work-items that reduce one row together; 1: tasks take whole cache lines
  double points_of_an_item;  // points of the last stage that keep a work-item busy between two barriers; 0: any
  bool tiles_before_tasks;   // a product's tile needs rows more than the device needs tasks
  bool halos_by_price;       // tasks may compute halos where the model finds that cheaper; else only where a plan asks
  bool sliding_windows;      // a task may walk down rows in a loop (slide_windows.h), where a directive asks
  bool phases_are_launches;  // where the device keeps no resident work-groups
  bool phases_beside;        // a kernel may have phases that run at the same time, each in a range of a launch's tasks
};

const TargetStrategy& CpuStrategy();         // the cores of a processor, whose scratch is memory in their caches
const TargetStrategy& WorkGroupStrategy();   // tasks are work-groups with shared memory of a fixed size
const TargetStrategy& SingleItemStrategy();  // a task is one work-item, which computes in vectors as a core does

const TargetStrategy& StrategyOf(const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_TARGETS_TARGET_STRATEGY_H_
