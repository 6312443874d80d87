// The movement graph of one kernel (PowerFusion's GIR, §4-5): buffers with scopes, phases of independent tasks, and in
// each task a list of steps. A step is one loop nest that loads slices, computes and stores. Every address is an
// explicit quasi-affine Index into a flat buffer, so that bytes, operations and synchronisation can be counted here.
// Every backend prints this and adds nothing that changes them.
//
// A step's tensors are flat: a Load in its body has exactly one index, the element offset, and its `tensor` is a buffer
// number of the kernel.
#ifndef FUSION_COMPILER_MOVEMENT_KERNEL_H_
#define FUSION_COMPILER_MOVEMENT_KERNEL_H_

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "compiler/movement/constant_transform.h"
#include "compiler/plan/scope.h"
#include "compiler/te/program/program.h"
#include "runtime/bundle/library_call.h"

namespace fusion::movement {

// A circular buffer of rows: of a tensor with `of` rows, row r lies at place r % rows of each plane. A plane has `rows`
// places of `pitch` elements, one after another; a buffer holds one or more planes (channels).
struct Ring {
  int64_t rows = 0;
  int64_t of = 0;
  int64_t pitch = 0;
};

// A buffer lives in global memory as an argument (kKernel), in global memory as part of the kernel, passed from one
// phase to the next (kDevice), in the scratch of one task (kBlock), or in registers for one row of a row nest (kWarp):
// one element, which every lane of the vector, or every work-item of the row's team, has. Its address is 0. A value
// that single lanes keep for themselves (kLane) has no buffer.
struct Buffer {
  Scope scope = Scope::kKernel;
  DType dtype = DType::kF32;
  int64_t elements = 0;
  bool is_constant = false;  // kKernel: weights
  int tensor = -1;           // the te tensor it holds, -1: made by the scheduler (packed operand)
  int packed_from = -1;  // kKernel constants: index into Kernel::packs when the bytes are a packed copy of a constant
  std::optional<Ring> ring = std::nullopt;  // kBlock: keeps its rows from one iteration of a task loop to the next
  // kKernel: the phase loop with whose iterations it moves. Its argument is a table, which says for each iteration
  // where it lies then. -1: it stays where it is.
  int moves_with = -1;
};

// Does the buffer outlive a task? Then it is an argument of the kernel's functions.
inline bool IsArgument(const Buffer& buffer) { return buffer.scope >= Scope::kDevice; }

inline int64_t SizeBytes(const Buffer& buffer) { return buffer.elements * DTypeBytes(buffer.dtype); }

// A constant operand reordered at compile time so that the innermost loops read it contiguously: element `p` of the
// packed box (extents of `axes`, row-major) is source[address] when `pred` holds, else 0.
struct Pack {
  int source_tensor = -1;  // te tensor of the original constant
  std::vector<te::Axis> axes;
  te::Index address;  // flat element offset in the plain source
  te::Pred pred;
  ConstantTransform transform;  // applied to the source before packing
};

// A loop over an axis. Iterations at or past `limit` are skipped (in the last task of a grid that does not divide).
struct Loop {
  te::Axis axis;
  std::optional<te::Index> limit;
};

struct Store {
  int buffer = -1;
  te::Index address;
};

// The condition index < limit, under which an element exists.
struct Bound {
  te::Index index;
  int64_t limit = 0;
};

// Software prefetch of what is read next. While a step computes on vectors of `buffers`, those `distance` further along
// `axis` are brought into the first-level cache: vectors of the next task, along the grid's innermost axis, or of the
// same loop. These are hints.
struct ReadNext {
  int axis = -1;  // -1: none
  int64_t distance = 1;
  std::vector<int> buffers;
};

// Plain loops, one element at a time.
struct ScalarLoops {};

// A map with its innermost loop in vectors.
struct VectorMap {
  int axis = -1;  // axis id of that loop
  // The rest of a row, shorter than a vector, is computed as a vector, too, and only the row's elements are stored. All
  // loads that move with the lanes must be able to leave out elements (SteppedLoadOf).
  bool rest_in_vector = false;
  bool streaming_stores = false;  // whole lines are written, neither read nor kept
  ReadNext read_next = {};
};

// A map in vectors whose loads lie along another loop: tiles transposed in registers (transpose.h).
struct BlockedTranspose {
  int axis = -1;         // axis id of the innermost loop, along which the stores lie
  int across_axis = -1;  // axis id of the loop along which the loads lie
  bool streaming_stores = false;
};

// A reduction over a contiguous innermost reduction axis: vector accumulators, one horizontal step.
struct RowReduction {
  int axis = -1;  // id of that reduction axis
};

// A reduction over what is before each element (prefix_reduction.h): all of them in one pass.
struct PrefixPass {
  int vector_axis = -1;  // axis id of the loop in vectors, -1: none
};

// Software prefetch of an operand that register tiles stream through. The panel of a packed one is the contiguous run
// that a tile reads. These are hints; numbers never depend on them.
struct Prefetch {
  int buffer = -1;
  int64_t ahead = 0;  // elements: each vector load brings the line this far ahead into the first-level cache; 0: none
  int64_t panel = 0;  // elements of a panel: the next one is brought into the second-level cache meanwhile; 0: none
  int64_t tiles = 1;  // register tiles that read the same panel: each brings its share of the next
  te::Index first;    // number of the task's first tile among them, over grid axes
  // The operand of the rows, which is not packed: in each step of the reduction's outer axes, what the next tile of
  // rows reads in that step is brought into the second-level cache.
  bool next_rows = false;
};

// A reduction with a register tile: row_axis × (outer_axis × lanes) accumulators, reduction loops inside (examples of
// shapes: 8 rows × 3 vectors for a matrix product, 14 pixels × 2 vectors for a convolution). One text serves products,
// convolutions, depthwise convolutions and pooling: a load that does not use row_axis is shared by the rows, and one
// that does not use the lanes is broadcast.
struct RegisterTile {
  int lane_axis = -1;   // axis id, extent = lanes (one vector)
  int outer_axis = -1;  // axis id of the adjacent vectors, -1: one vector
  int outer_count = 1;  // vectors
  int row_axis = -1;    // axis id of the rows, -1: one
  int row_count = 1;    // rows
  int unroll = 1;       // of the innermost reduction axis
  // Reduction axis along which a row reads what its neighbours read (a window's taps), -1: none. It is innermost and
  // unrolled completely; each vector of the operand that moves with the rows is loaded once for all of them.
  int slide_axis = -1;
  std::vector<Prefetch> prefetch = {};
  // Reduction axis of extent 4, innermost in both 8-bit operands of an i32 sum of products: a lane takes the four
  // products of a step at once (vpdpbusd). -1: none.
  int dot_axis = -1;
  std::optional<Bound> store_limit = std::nullopt;  // lanes are stored only within it (the tail of a plain row)
};
inline constexpr int64_t kDotLength = 4;

// The elements that are multiplied at once: one work-item multiplies two elements, or several work-items together
// multiply two fragments (tensor cores), whose elements the backend distributes over them.
struct FragmentProduct {
  int rows = 1, columns = 1, depth = 1;  // of a fragment; depth is along the K-slice
  int work_items = 1;                    // that hold the fragment together
  // The operands are read where they lie in shared memory. A K-slice then consists of layout blocks of kBlockRows rows
  // by kBlockBytes along the reduction; blocks that are neighbours along the reduction come first.
  bool from_memory = false;
  static constexpr int kBlockRows = 8, kBlockBytes = 16;
  bool fragments() const { return work_items > 1; }
};

struct Step;

// A sum of products by a work-group, through K-slices of both operands in block scope (threadgroup tile). The step's
// last two loops are the results of a tile, and the loops around them are the task's tiles. Its body is a product of
// one operand that moves with the rows and one that moves with the columns.
//
// Work-item (i, j), or each team of work-items that hold a fragment together, has in registers the fragments of results
// i + r·item_rows and j + c·item_columns, or as many vectors of results, so that neighbours store neighbours.
//
// The last reduction axis is the K-slice. For each iteration of the other reduction axes the work-group runs
// `shared_copies`, if there are any. With one buffer, these have a barrier on either side. With two,
// K-slices alternate between them by the parity of their number, which is in the addresses: one slice is copied while
// the one before is multiplied, with one barrier between two slices.
struct ThreadgroupTile {
  int row_axis = -1, column_axis = -1;  // axis ids of the loops
  int item_rows = 1, item_columns = 1;  // work-items or teams along each; the work-group has their product
  int rows = 1, columns = 1;            // fragments of each work-item or team along each
  FragmentProduct product;
  int buffers = 1;                  // K-slices of an operand in block scope: 1 or 2
  std::vector<Step> shared_copies;  // maps into block-scope buffers that the body reads
  // Results are stored only within it (the last task of a grid that does not divide).
  std::optional<Bound> store_limit = std::nullopt;
};

// A routine (compiler/te/routines/routine.h) instead of a loop nest: its tasks are the phase's, and its outputs the
// step's stores.
struct RoutineCall {
  std::string name;
  DType element = DType::kF32;  // of the first input
  std::vector<int> inputs;      // buffers
  std::vector<int64_t> params;
};

// How a step's nest runs. A LibraryCall computes what loops, reduction, body and store say by a library of the target;
// its arguments are buffers, and its step is alone in a phase without a grid and has no text.
using Strategy = std::variant<ScalarLoops, VectorMap, BlockedTranspose, RowReduction, PrefixPass, RegisterTile,
                              ThreadgroupTile, LibraryCall, RoutineCall>;

// Rows [first, first + rows) of a ring. `first` is an index over the turn's axis alone; rows outside of the ring's
// tensor are none (a window at a border).
struct RingRows {
  int buffer = -1;
  te::Index first;
  int64_t rows = 0;
};

// A step's part in a task loop: it runs in iterations [first, first + axis.extent), which `axis` numbers from 0, so
// that its addresses stay exact. An address says at which place of a ring it lies, not which row it means, so the rows
// that each iteration reads and writes are listed.
struct Turn {
  te::Axis axis;
  int64_t first = 0;
  std::vector<RingRows> reads = {}, writes = {};
};

// The element into which a step puts 0 where all sums that it makes are finite, and NaN where one of them is not. (An
// overflow of several finite sums together may count as well.)
using Look = Store;

// Which of two steps that compute the same results runs: one where the element (a look) is finite, the other where it
// is not. The latter is for inputs that hardly occur, so it has no price
// (docs/decisions/0078-what-is-not-finite-stays-in-its-place.md).
struct Condition {
  int buffer = -1;  // its element 0
  bool finite = true;
};

struct Step {
  std::string label;        // name of the te output that it computes, for people
  int stage = -1;           // number of the expression that it is part of, in the program that was scheduled
  std::vector<Loop> loops;  // spatial, outermost first; the grid's axes are not among them
  std::optional<te::Reduction> reduction;  // axes outermost first
  std::vector<te::Scalar> body;            // as Te::body, flat loads
  std::vector<te::Scalar> then;            // as Te::then, flat loads
  std::vector<Store> stores;               // one per output
  std::vector<DType> store_types;
  // Lanes outside it are stored as zero (pad=zero of a blocked layout).
  std::optional<Bound> lane_limit;
  Strategy strategy;
  std::optional<Turn> turn = std::nullopt;  // of a step inside a task loop
  std::optional<Look> look = std::nullopt;  // at f32 sums, of a register tile or plain loops
  std::optional<Condition> runs_if = std::nullopt;

  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(strategy);
  }
  // The parameters of the step's strategy; null where it has another one.
  template <typename T>
  const T* As() const {
    return std::get_if<T>(&strategy);
  }
  template <typename T>
  T* As() {
    return std::get_if<T>(&strategy);
  }
};

// Does the step run for infinities and NaN alone?
inline bool IsRare(const Step& step) { return step.runs_if && !step.runs_if->finite; }
// Do the steps compute the same results, one of them in each task?
bool AreAlternatives(const Step& a, const Step& b);
const char* StrategyName(const Step& step);  // "tile"
// Id of the loop or reduction axis in vectors, where the strategy is a map, a transpose, a row reduction or a prefix
// pass; else -1.
int VectorAxisOf(const Step& step);
bool HasStreamingStores(const Step& step);
const std::vector<Step>& SharedCopiesOf(const Step& step);  // empty where the step is no threadgroup tile
const Bound* StoreLimitOf(const Step& step);                // null: all results are stored

// Steps [first, first + count) of a phase run row by row: their first `loops` loops are the same, and inside them the
// steps run one after another. One core, in vectors, or one team of work-items that run in step computes a row from end
// to end, so what one step hands to another may stay in registers (Scope::kWarp). Where `loops` is 0, the task is one
// row. row_nest.h says which steps may do so.
struct RowNest {
  int first = 0, count = 0;
  int loops = 0;
  int team = 1;  // work-items that compute a row: a power of two, 1 where a task has one work-item
};

// Steps [first, first + count) of a phase stand in a sequential loop inside each task: an iteration runs those of them
// whose turn it is, in order. Between iterations, rings alone keep what they hold. task_loop.h says what a loop may do.
struct TaskLoop {
  int first = 0, count = 0;
  int64_t iterations = 0;
};

struct Phase {
  std::vector<te::Axis> grid;  // tasks: row-major over these axes
  std::vector<Step> steps;
  std::vector<RowNest> row_nests = {};    // in order; they share no step
  std::vector<TaskLoop> task_loops = {};  // in order; they share no step with each other or with a row nest
  // No barrier stands in front of it: its tasks may run at the same time as those of the phase in front. The phases
  // that run beside each other touch nothing that one of them writes.
  bool beside = false;
  int64_t tasks() const;
};

// Phases [first, end) of a persistent kernel run `trips` times, one iteration after another, with a barrier between two
// iterations: a loop of launches as a part of one launch (join_kernels.h).
struct PhaseLoop {
  size_t first = 0, end = 0;
  int64_t trips = 1;
};

// Numbers [first, end) of phases that run beside each other.
struct PhaseRange {
  size_t first = 0, end = 0;
};

// The library call of this phase; null where the phase is text.
const LibraryCall* LibraryCallOf(const Phase& phase);

// The nest that begins with this step, or that holds it; null where it runs by itself.
const RowNest* RowNestAt(const Phase& phase, int first);
const RowNest* RowNestOf(const Phase& phase, int step);
// The task loop that holds this step; null where it runs once in a task.
const TaskLoop* TaskLoopOf(const Phase& phase, int step);
// How often the step runs in a task: once, or in so many iterations of its task loop.
int64_t TurnsOf(const Step& step);

// Replaces axes in every index of the step, without its shared-memory copies. Its loops and the axes of its strategy
// stay.
void SubstituteAxes(Step* step, const std::function<const te::Index*(const te::Axis&)>& map);

// Visits each step, and its shared-memory copies before it.
void VisitSteps(const Phase& phase, const std::function<void(const Step&)>& f);
void VisitSteps(Phase* phase, const std::function<void(Step*)>& f);
// Visits every buffer that a step without its shared-memory copies reads or writes, in values, indices, store
// addresses, limits and conditions; some several times.
void VisitBuffers(const Step& step, const std::function<void(int)>& f);

struct Kernel {
  std::vector<Buffer> buffers;  // kernel scope first, in argument order, then device, then block and warp scope
  std::vector<Pack> packs;
  std::vector<Phase> phases;  // a barrier (sync device) between phases that do not run beside each other
  // Persistent kernel, on devices whose launches are grids of work-groups: all phases are one launch of no more
  // work-groups than the device keeps at the same time. They share out each phase's tasks and wait for each other at
  // the barriers between phases (grid barrier). False: each phase is a launch.
  bool persistent = false;
  std::vector<PhaseLoop> phase_loops = {};  // ascending and disjoint
  int64_t scratch_bytes = 0;  // per thread, for the block-scope buffers
  int num_args() const;       // kernel- and device-scope buffers
  // Offset of each buffer, 64-byte aligned; -1 where its scope is not kBlock. Buffers that no step needs at the same
  // time overlap.
  std::vector<int64_t> scratch_offset_bytes() const;
  int64_t PlannedScratchBytes() const;              // by these offsets: the value for `scratch_bytes`
  int next_axis = 0;                                // first unused axis id
  std::vector<PhaseRange> BetweenBarriers() const;  // all phases, in order
  int64_t TripsOf(size_t phase) const;              // how often a launch runs the phase
};

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_KERNEL_H_
