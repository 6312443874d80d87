// The movement graph of one kernel (PowerFusion's GIR, §4-5): buffers with scopes, phases of independent tasks, and in
// each task a list of steps. A step is one loop nest that loads slices, computes and stores; every address is an
// explicit quasi-affine Index into a flat buffer, so bytes, operations and synchronisation can be counted here, and
// every backend prints this and adds nothing that changes them.
//
// A step's tensors are flat: a Load in its body has exactly one index, the element offset, and its `tensor` is a buffer
// number of the kernel.
#ifndef FUSION_COMPILER_MOVEMENT_KERNEL_H_
#define FUSION_COMPILER_MOVEMENT_KERNEL_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/movement/constant_transform.h"
#include "compiler/te/program.h"
#include "runtime/bundle/library_call.h"

namespace fusion::movement {

// Where a buffer lives. kKernel: an argument (global memory). kDevice: global, but internal to the kernel, handed from
// one phase to the next. kBlock: scratch of one task.
enum class BufferScope : uint8_t { kKernel, kDevice, kBlock };

struct Buffer {
  BufferScope scope = BufferScope::kKernel;
  DType dtype = DType::kF32;
  int64_t elements = 0;
  bool is_constant = false;  // kKernel: weights
  int tensor = -1;           // the te tensor it holds, -1: made by the scheduler (packed operand)
  int packed_from = -1;  // kKernel constants: index into Kernel::packs when the bytes are a packed copy of a constant
};

inline int64_t SizeBytes(const Buffer& buffer) { return buffer.elements * DTypeBytes(buffer.dtype); }

// A constant operand reordered at compile time so that the innermost loops read it contiguously: element `p` of the
// packed box (extents of `axes`, row-major) is source[address] when `pred` holds, else 0.
struct Pack {
  int source_tensor = -1;  // te tensor of the original constant
  std::vector<te::Axis> axes;
  te::Index address;  // flat element offset in the plain source
  te::Pred pred;
  ConstantTransform transform;  // of the source, first
};

// A loop over an axis. `limit`: iterations at or past it are skipped (the last task of a grid that does not divide).
struct Loop {
  te::Axis axis;
  std::optional<te::Index> limit;
};

// How a step's nest is vectorised.
enum class Strategy : uint8_t {
  kScalar,     // plain loops, one element at a time
  kMapVec,     // map, innermost loop in vectors
  kTranspose,  // the same where loads lie along another loop: blocks transposed in registers (transpose.h)
  kRowFold,    // fold over a contiguous innermost fold axis: vector accumulators, one horizontal step
  kPrefix,     // fold over what is before each element (prefix_fold.h), all of them in one pass
  kTile,       // fold with a register tile: reg_axis × (vec_outer × lanes) accumulators, fold loops inside
  kGroupTile,  // sum of products by a group of work-items, through slices of both operands in block scope
  kLibrary,  // sum of products by a library of the target: alone in a phase without a grid, of which no text is printed
};
const char* StrategyName(Strategy strategy);

struct Store {
  int buffer = -1;
  te::Index address;
};

// Software prefetch of a packed operand that register tiles stream through: its panel is what one tile reads, one
// contiguous run. Hints; numbers never depend on them.
struct Prefetch {
  int buffer = -1;
  int64_t ahead = 0;  // elements: each vector load brings the line this far ahead into the first-level cache; 0: none
  int64_t panel = 0;  // elements of a panel: the next one is brought into the second-level cache meanwhile; 0: none
  int64_t tiles = 1;  // register tiles that read the same panel: each brings its share of the next
  te::Index first;    // which of them the task's first one is, over grid axes
};

// Register tile of a kTile step (EXAMPLES of shapes: 8 rows × 3 vectors for a matrix product, 14 pixels × 2 vectors for
// a convolution). One text serves products, convolutions, depthwise convolutions and pooling: a load that does not use
// reg_axis is shared by its rows, one that does not use the lanes is broadcast.
struct RegisterTile {
  int lane_axis = -1;   // axis id, extent = lanes (one vector)
  int outer_axis = -1;  // axis id of the vectors beside each other, -1: one
  int outer_count = 1;  // vectors
  int row_axis = -1;    // axis id of the rows, -1: one
  int row_count = 1;    // rows
  int unroll = 1;       // of the innermost fold axis
  // Fold axis along which a row reads what its neighbours read (a window's taps), -1: none. It is innermost and
  // unrolled completely; each vector of the operand that moves with the rows is loaded once for all of them.
  int slide_axis = -1;
  std::vector<Prefetch> prefetch;
  // Fold axis of extent 4, innermost in both 8-bit operands of an i32 sum of products: a lane takes the four products
  // of a step at once (vpdpbusd). -1: none.
  int dot_axis = -1;
};
inline constexpr int64_t kDotLength = 4;

// What is multiplied at once: by one work-item a product of two elements, or by several, together, one of fragments
// (tensor cores), whose elements the backend spreads over them.
struct FragmentProduct {
  int rows = 1, columns = 1, depth = 1;  // of a fragment; depth along the slice
  int work_items = 1;                    // that hold it together
  // Its operands are read where they lie in the group's memory: slices are blocks of kBlockRows rows by kBlockBytes
  // along the fold, those along the fold first.
  bool from_memory = false;
  static constexpr int kBlockRows = 8, kBlockBytes = 16;
  bool fragments() const { return work_items > 1; }
};

// A kGroupTile step: its last two loops are the results of a tile, those around them the task's tiles; its body is a
// product of one operand that moves with the rows and one that moves with the columns. Work-item (i, j), or each team
// of those that hold a fragment together, has the fragments of results i + r·item_rows along the rows and j +
// c·item_columns along the columns in registers: neighbours store neighbours. For each iteration of the fold's axes but
// the last the group runs the step's `staging`, if it has any; the last axis is the slice. With one buffer, staging has
// a barrier on either side. With two, slices alternate between them by their number's parity, which is in the
// addresses: a slice is brought in while the one before is multiplied, with one barrier between two slices.
struct GroupTile {
  int row_axis = -1, column_axis = -1;  // axis ids of the loops
  int item_rows = 1, item_columns = 1;  // work-items or teams along each; their product is the group's
  int rows = 1, columns = 1;            // fragments of each of them along each
  FragmentProduct product;
  int buffers = 1;  // slices of an operand in block scope: 1 or 2
};

// Software prefetch of what is read next: while a step computes on the vectors that it loads of `buffers`, those
// `distance` further along `axis` are brought into the first-level cache: of the next task, along the grid's innermost
// axis, or of the same loop. Hints.
struct ReadNext {
  int axis = -1;  // -1: none
  int64_t distance = 1;
  std::vector<int> buffers;
};

// A routine (compiler/te/routine.h) instead of a loop nest: its tasks are the phase's, its outputs the step's stores.
struct RoutineCall {
  std::string name;
  DType element = DType::kF32;  // of the first input
  std::vector<int> inputs;      // buffers
  std::vector<int64_t> params;
};

struct Step {
  std::string label;  // te output it computes, for people
  std::optional<RoutineCall> routine;
  std::vector<Loop> loops;       // spatial, outermost first; the grid's axes are not among them
  std::optional<te::Fold> fold;  // axes outermost first
  std::vector<te::Scalar> body;  // as Te::body, flat loads
  std::vector<te::Scalar> then;  // as Te::then, flat loads
  std::vector<Store> stores;     // one per output
  std::vector<DType> store_types;
  Strategy strategy = Strategy::kScalar;
  int vec_axis = -1;         // kMapVec, kTranspose: the innermost loop's axis id; kRowFold: the innermost fold axis id;
                             // kPrefix: the loop in vectors, -1: none
  int across_axis = -1;      // kTranspose: the loop along which the loads lie
  bool past_caches = false;  // kTranspose, kMapVec: whole lines are written without being read or kept first
  RegisterTile tile;         // kTile
  GroupTile group;           // kGroupTile
  // kMapVec: the rest of a row, shorter than a vector, is one too, of which the row's elements alone are stored. All
  // that moves with the lanes are such loads as may leave elements out (SteppedLoadOf).
  bool rest_in_vector = false;
  ReadNext read_next;                  // kMapVec
  std::vector<Step> staging;           // kGroupTile: maps into block buffers that the body reads
  std::optional<LibraryCall> library;  // kLibrary: what the loops, fold, body and store say, as the library is told;
                                       // arguments are buffers
  // Lanes at or past this logical limit are stored as zero (pad=zero of a blocked layout): value of lane_mask_index
  // must be < lane_limit. Unused when lane_limit < 0.
  te::Index lane_mask_index;
  int64_t lane_limit = -1;
  // kTile: lanes past `valid_lanes(outer)` are not stored at all: index < store_limit (the tail of a plain row).
  // kGroupTile: so are results past it (the last task of a grid that does not divide).
  te::Index store_limit_index;
  int64_t store_limit = -1;
};

struct Phase {
  std::vector<te::Axis> grid;  // tasks: row-major over these axes
  std::vector<Step> steps;
  int64_t tasks() const;
};

// What a library is to do in this phase; null: it is text.
const LibraryCall* LibraryCallOf(const Phase& phase);

// Each step, its staging before it.
void VisitSteps(const Phase& phase, const std::function<void(const Step&)>& f);
void VisitSteps(Phase* phase, const std::function<void(Step*)>& f);
// Every buffer that a step without its staging reads or writes, in values, indices and conditions; some several times.
void VisitBuffers(const Step& step, const std::function<void(int)>& f);

struct Kernel {
  std::vector<Buffer> buffers;  // kernel-scope ones first, in argument order, then device, then block
  std::vector<Pack> packs;
  std::vector<Phase> phases;  // a barrier (sync device) between phases
  // On devices whose launches are grids of groups: all phases are one launch of no more groups than the device keeps at
  // the same time, which share out each phase's tasks and wait for each other at the barriers. Otherwise a launch each.
  bool resident = false;
  int64_t scratch_bytes = 0;  // per thread, for the block-scope buffers
  int num_args() const;       // kernel- and device-scope buffers
  // Parallel to buffers, 64-byte aligned; -1 where not kBlock. Buffers that no step needs at the same time overlap.
  std::vector<int64_t> scratch_offset_bytes() const;
  int64_t PlannedScratchBytes() const;  // by these offsets: what `scratch_bytes` is to be
  int next_axis = 0;                    // first unused axis id
};

// Text, deterministic and free of names: two kernels that print equally compute the same and cost the same.
std::string Print(const Kernel& kernel);

// Every axis used by an address is a grid or loop axis, every buffer index valid, stores to distinct buffers or ranges,
// block buffers written before they are read. INTERNAL.
absl::Status Verify(const Kernel& kernel);

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_KERNEL_H_
