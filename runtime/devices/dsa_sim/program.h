// A program for an accelerator of machine.h: buffers at explicit places and explicit instructions. A backend prints it
// from a movement graph whose buffers have levels: each buffer of the graph is a buffer here, each load, store and move
// a transfer, each computation an instruction of a unit.
//
// Meaning. Each engine runs its instructions one after the other, in the order of the list: an instruction starts when
// the one before it on its engine has completed. Different engines run in parallel. An instruction also waits for those
// in `after` and for each earlier sync of its cluster. The engines are: one DMA engine a cluster (loads and stores);
// in each core a mover (between GB and LB), a link (to the LB of another core) and the compute units.
//
// Text, which Parse(Print(p)) prints the same again:
//   program scale for stcp920 {
//     buffer x ddr 0 f32[64] input
//     buffer a lb 0.1 0 f32[64]              # in the LB of core 1 of cluster 0, at byte 0
//     buffer y ddr 256 f32[64] output
//     0: load a[0 + 64:1] = x[0 + 64:1]      # first element + count:stride, outermost first
//     1: vector vme 0.1 relu a[0 + 64:1] = a[0 + 64:1] after 0
//     2: store y[0 + 64:1] = a[0 + 64:1] after 1
//   }
//
// A unit may also compute a part of a tensor expression, whose text the program carries and the simulator hands to an
// evaluator (evaluator.h) without reading it. Each slice is then a box of one of the expression's tensors: its strides
// are the box's extents, and `at` gives the box's origin in the tensor. `work` is what the unit has to do; `reduce`
// limits the first reduction axis. A load with an expression gathers: it reads a tensor in DDR at addresses that an
// operand in the destination's memory holds.
//   program scale for stcp920 {
//     expression twice
//       te twice(%0: f32[8]) { … }
//     end
//     …
//     1: vector vme 0.1 expr twice work 4 b[0 + 4:1] at (4) = a[0 + 4:1] at (4) as 0 after 0
//   }
#ifndef FUSION_RUNTIME_DEVICES_DSA_SIM_PROGRAM_H_
#define FUSION_RUNTIME_DEVICES_DSA_SIM_PROGRAM_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/devices/dsa_sim/vector_op.h"

namespace fusion::dsa {

enum class Level : uint8_t { kDdr, kGlobal, kLocal };

// A core of the machine.
struct Place {
  int cluster = 0, core = 0;
  bool operator==(const Place&) const = default;
};

struct Memory {
  Level level = Level::kDdr;
  Place place;  // kGlobal: the core is 0; kDdr: both are 0
  bool operator==(const Memory&) const = default;
};

// Elements at consecutive addresses of one memory. Buffers may overlap, which is how memory is reused.
struct Buffer {
  std::string name;  // unique; letters, digits and _
  Memory memory;
  int64_t offset_bytes = 0;
  DType dtype = DType::kF32;  // f32, f16 or bf16
  int64_t elements = 0;
  bool input = false;   // in DDR, written before the program starts
  bool output = false;  // in DDR, read after it ends

  int64_t size_bytes() const { return elements * DTypeBytes(dtype); }
};

struct Stride {
  int64_t count = 1, stride = 1;  // elements
  bool operator==(const Stride&) const = default;
};

// The elements first + Σ i_k · stride_k of a buffer, 0 ≤ i_k < count_k; the last index runs fastest.
struct Slice {
  int buffer = -1;
  int64_t first = 0;
  std::vector<Stride> strides;
  bool operator==(const Slice&) const = default;

  int64_t elements() const;
};

enum class Kind : uint8_t {
  kLoad,          // DDR → GB or LB
  kStore,         // GB or LB → DDR
  kMove,          // GB → LB or LB → GB of the same cluster
  kRedistribute,  // LB → LB of another core of the same cluster
  kMatrix,  // to[m…, n] (+)= Σ_k from0[m…, k] · from1[k, n]: the last index of `to` is n, that of from0 is k
  kVector,  // to = op(from…), element by element; a reduction reduces the last index of its operand
  kSync,    // waits for all earlier instructions of a cluster, and later ones of it wait
};

// The part of a tensor expression that an instruction computes.
struct ExpressionPart {
  int expression = -1;  // of Program::expressions; -1: the instruction computes its `op` or a product
  double work = 0;      // multiply-adds of a matrix unit, scalar operations of a vector unit
  // The origins of the boxes in their tensors: of `to`, of each of `also`, of each operand.
  std::vector<std::vector<int64_t>> origins;
  std::vector<int>
      inputs;  // of the expression, parallel to the operands; an input that the part does not need is absent
  // The outputs of the expression that `to` and `also` are, ascending; empty: all of them. A part may need only some.
  std::vector<int> outputs;
  int64_t reduce_begin = 0, reduce_end = 0;  // of the first reduction axis, half-open; both 0: all of it

  bool present() const { return expression >= 0; }
};

struct Instruction {
  Kind kind = Kind::kSync;
  Place place;       // kMatrix, kVector
  std::string unit;  // kMatrix, kVector
  VectorOp op = VectorOp::kFill;
  double immediate = 0;     // kFill
  bool accumulate = false;  // kMatrix: adds to what `to` holds
  ExpressionPart part;      // kMatrix, kVector, kLoad
  Slice to;
  std::vector<Slice> also;  // further results of an expression
  std::vector<Slice> from;
  int cluster = 0;         // kSync; -1: all clusters
  std::vector<int> after;  // earlier instructions, ascending
};

struct Expression {
  std::string name;  // as names of buffers
  std::string text;  // whole lines
};

struct Program {
  std::string name;
  std::string machine;
  std::vector<Expression> expressions;
  std::vector<Buffer> buffers;
  std::vector<Instruction> instructions;
};

std::string Print(const Program& program);
std::string PrintInstruction(const Program& program, int index);  // one line, without its number
std::string PrintMemory(const Memory& memory);                    // "lb 0.1", "gb 0", "ddr"

// INVALID_ARGUMENT "line 3: expected …". Checks the grammar and names only; check.h checks the rest.
absl::StatusOr<Program> Parse(const std::string& text);

}  // namespace fusion::dsa

#endif  // FUSION_RUNTIME_DEVICES_DSA_SIM_PROGRAM_H_
