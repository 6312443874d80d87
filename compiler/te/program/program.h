// Tensor expressions (Souffle §3). A program is a list of expressions over tensors; one expression (te) computes one or
// more tensors over one domain. The lowering of every operator is such a list, and the interpreter over it
// (compiler/te/interpreter/interpreter.h) is the reference semantics of the project.
//
//   %y[m<128, n<768]            = %x[m, n] + %b[n]                                     map
//   %c[m<128, n<768]            = sum(k<768) %x[m, k] * %w[k, n]                       named reduction
//   %v, %i [m<4]                = reduce(j<9) (a0 = -inf, a1 = 0) -> (max(a0, %x[m,j]), if …)    general, sequential
#ifndef FUSION_COMPILER_TE_PROGRAM_PROGRAM_H_
#define FUSION_COMPILER_TE_PROGRAM_PROGRAM_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/te/scalar/scalar.h"
#include "runtime/base/tensor.h"

namespace fusion::te {

enum class ReductionKind : uint8_t { kSum, kProd, kMax, kMin, kGeneral };

struct Reduction {
  ReductionKind kind = ReductionKind::kSum;
  std::vector<Axis> axes;    // reduction axes, outermost first; an extent of 0 gives the identity
  Pred pred;                 // elements outside are skipped
  DType acc = DType::kF32;   // accumulator type of a named reduction (f16 sums in f32; integers in their own type)
  std::vector<Scalar> init;  // kGeneral: one per accumulator
};

// A computation that no expression can describe (sorting, compaction): an algorithm of routine.h over whole row-major
// tensors.
struct Routine {
  std::string name;
  std::vector<TensorId> inputs;
  std::vector<int64_t> params;  // documented in routines/<name>.inc
  int64_t tasks = 1;            // independent parts of the work
  int64_t scratch_bytes = 0;    // of one task
};

struct Te {
  std::vector<Axis> axes;  // spatial domain; outputs have exactly these extents
  std::vector<TensorId> outputs;
  std::optional<Reduction> reduction;
  std::optional<Routine> routine;  // if set, only outputs are used besides, each of its own shape
  // Map: one body per output. Named reduction: body[0] is the element (type reduction.acc). General reduction: the next
  // value of each accumulator, which reads the current ones as Acc(i).
  std::vector<Scalar> body;
  // Optional, only with a reduction: one per output, over Acc(i) and loads, applied after the reduction. If empty,
  // output i is accumulator i (cast to the output's type).
  std::vector<Scalar> then;
  // The nodes for which this expression computes, ascending: their positions in their fusion block. Transforms keep
  // them: an expression that absorbs another one has the origins of both. Not part of the text form.
  std::vector<int> origins;

  bool IsMap() const { return !reduction.has_value() && !routine.has_value(); }
};

enum class Role : uint8_t { kInput, kConstant, kIntermediate, kOutput };

struct TensorInfo {
  std::string name;  // for people; the printer numbers tensors %0, %1, …
  DType dtype = DType::kF32;
  Shape shape;
  Role role = Role::kIntermediate;
  std::optional<Tensor> constant;  // kConstant, when the program knows the value (index tables, small tables)
};

class Program {
 public:
  std::vector<TensorInfo> tensors;
  std::vector<Te> tes;           // topological order; each tensor defined once
  std::vector<TensorId> inputs;  // roles kInput and kConstant, in binding order
  std::vector<TensorId> outputs;
  int next_axis = 0;

  // Appends the id to `inputs` (kInput, kConstant) or `outputs` (kOutput) by its role.
  TensorId AddTensor(std::string name, DType dtype, Shape shape, Role role);
  // Appends the tensor to `outputs`; an intermediate becomes kOutput, an input that is passed through keeps its role.
  void MarkOutput(TensorId tensor);
  Axis NewAxis(int64_t extent) { return Axis{next_axis++, extent}; }
  // Returns the te that defines `tensor`, or -1.
  int DefiningTe(TensorId tensor) const;
};

// Adds the origins of `from` to those of `te`.
void AddOrigins(const Te& from, Te* te);

// Visits every scalar of the te: the initial values of a reduction, body, then.
void VisitScalars(const Te& te, const std::function<void(const Scalar&)>& f);
// Visits every tensor that the te reads in loads, indices and predicates; a tensor may come several times.
void VisitTensors(const Te& te, const std::function<void(TensorId)>& f);

// Checks ids, order, shapes and types, and that every load without `?` is in bounds: by Index::Range, or by the path
// conditions around it (`if i0 < 4 then %0[i0] else %1[i0 - 4]`). INTERNAL with the te's text. Lowerings must pass with
// kRequired. Inlining keeps bounds but may compose indices for which the prover is too weak, so later stages check with
// kInherited.
enum class BoundsProof : uint8_t { kRequired, kInherited };
absl::Status Verify(const Program& program, BoundsProof bounds = BoundsProof::kRequired);

// Checks whether Call(op, args) is allowed: arity and types. INVALID_ARGUMENT naming the operation.
absl::Status CheckCall(Op op, const std::vector<Scalar>& args);

// Prints `te name(%0: f32[8], %1: f32[8] const) { %2[i0<8]: f32 = …  return %2 }`; Parse(Print(p)) prints the same
// again. The grammar is in compiler/te/README.md. Names are dropped; constants print their values up to
// kMaxPrintedConstant elements.
inline constexpr int64_t kMaxPrintedConstant = 256;
std::string Print(const Program& program, const std::string& name = "p");
// Prints one te of the program as Print does.
std::string PrintTe(const Program& program, const Te& te);
// Parses and verifies a program. INVALID_ARGUMENT "line 3: expected …".
absl::StatusOr<Program> Parse(const std::string& text);

// Constructs programs for lowerings. Axes are made from the output's shape. A body (update, then) whose type differs
// from the tensor's (accumulator's) is cast.
class Builder {
 public:
  explicit Builder(Program* program) : program_(program) {}
  using Idx = std::vector<Index>;

  const TensorInfo& info(TensorId id) const { return program_->tensors[id]; }
  // Adds a constant that the lowering needs (for example Resize's tables).
  TensorId Constant(const std::string& name, Tensor value);
  // Return an in-bounds load and a padded load of a tensor.
  Scalar At(TensorId tensor, Idx indices) const;
  Scalar AtOr(TensorId tensor, Idx indices, double pad) const;

  TensorId Map(const std::string& name, DType dtype, const Shape& shape,
               const std::function<Scalar(const Idx& i)>& body);
  // `reduction_shape` are the reduced extents; body gets (spatial, reduced) indices. `acc` is the accumulator type.
  TensorId Reduce(const std::string& name, ReductionKind kind, DType dtype, DType acc, const Shape& shape,
                  const Shape& reduction_shape, const std::function<Scalar(const Idx& i, const Idx& r)>& body,
                  const std::function<Scalar(const Idx& i, const Scalar& acc)>& then = {});
  // A general reduction with several accumulators and outputs (all of `shape`). `update` returns one scalar per
  // accumulator, `then` one per output.
  std::vector<TensorId> GeneralReduction(
      const std::string& name, const std::vector<DType>& dtypes, const Shape& shape, const Shape& reduction_shape,
      const std::vector<Scalar>& init,
      const std::function<std::vector<Scalar>(const Idx& i, const Idx& r, const std::vector<Scalar>& acc)>& update,
      const std::function<std::vector<Scalar>(const Idx& i, const std::vector<Scalar>& acc)>& then = {});
  // The outputs have the types of `outputs`, which must be those that routine.h asks for.
  std::vector<TensorId> Call(Routine routine, const std::vector<std::pair<DType, Shape>>& outputs);
  Program* program() { return program_; }

 private:
  Program* program_;
};

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_PROGRAM_PROGRAM_H_
