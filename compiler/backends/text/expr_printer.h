// Prints scalar bodies as statements in C, with one temporary for each shared node, either for one element or for a
// vector of elements along the lanes. Values that do not move with the lanes stay scalars and are broadcast where they
// meet a vector.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_EXPR_PRINTER_H_
#define FUSION_COMPILER_BACKENDS_TEXT_EXPR_PRINTER_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/movement/vector_form.h"

namespace fusion::text {

// Collects statement text with indentation.
class CodeWriter {
 public:
  void Line(const std::string& text);
  void Open(const std::string& text) {
    Line(text + " {");
    ++depth_;
  }
  void Close(const std::string& suffix = "") {
    --depth_;
    Line("}" + suffix);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  int depth_ = 0;
};

using AxisName = std::function<std::string(int axis_id)>;

const char* CType(DType dtype);        // type of a value in a register: f16 and bf16 are float
const char* StorageType(DType dtype);  // type of an element in memory

// C expression of an index. `name` names the axes; buffers are b<number>.
std::string IndexText(const te::Index& index, const AxisName& name, const movement::Kernel& kernel);
std::string PredText(const te::Pred& pred, const AxisName& name, const movement::Kernel& kernel);
// Text that loads an element, or stores a value, of the buffer's type.
std::string LoadText(const movement::Buffer& buffer, const std::string& place);
std::string StoreText(const movement::Buffer& buffer, const std::string& place, const std::string& value);
// Text of a scalar's low bits, as i4, u4, i2 or u2 keeps them.
std::string KeptBits(DType dtype, const std::string& x);

std::string ImmText(const te::ScalarNode& imm);
// Name of the helper for values of a type: "smax_i64"; f16 and bf16 are computed in f32.
std::string TypedName(const std::string& name, DType dtype);
// Type of a pointer to elements of the buffer: "GLOBAL const float*", "SCRATCH u16*".
std::string PointerType(const movement::Buffer& buffer, bool read_only);
// Text of an operation on vectors, for every node with a vector form (compiler/movement/vector_form.h); "" for others.
std::string VectorOpText(const te::ScalarNode& s, const std::vector<std::string>& args);

// Vectors: lanes of f32 ("vf") or of i32 and masks ("vi"), see compiler/movement/vector_form.h.
const char* VectorType(DType dtype);
std::string VectorZero(DType dtype);
std::string BroadcastText(DType dtype, const std::string& scalar);
// Text that loads or stores as many elements as there are lanes, beginning at the address `place`.
std::string VectorLoadText(DType dtype, const std::string& place);
// The same for the first `count` lanes only, where the language has such accesses (TaskShape::parts).
std::string PartLoadText(DType dtype, const std::string& place, const std::string& count);
std::string PartStoreText(DType dtype, const std::string& place, const std::string& value, const std::string& count);
// Text of one lane; it may be assigned to.
std::string LaneText(DType dtype, const std::string& vector, const std::string& lane);
std::string VectorStoreText(DType dtype, const std::string& place, const std::string& value);
// Text of an operation or a cast on vectors.
std::string VectorOpText(const te::ScalarNode& s, const std::vector<std::string>& args);
std::string VectorCastText(const te::ScalarNode& cast, const std::string& x);
// FoldIdentity: the start value of a named reduction, as a scalar of the accumulator's type. VectorCombine: the
// statement that combines vector `x` into `acc`.
std::string FoldIdentity(te::FoldKind kind, DType dtype);
std::string VectorCombine(const te::Fold& fold, const std::string& acc, const std::string& x);

struct Value {
  std::string text;
  bool varying = false;  // true: a vector
};

class ExprPrinter {
 public:
  struct Options {
    const movement::Kernel* kernel = nullptr;
    AxisName axis_name;
    int lane_axis = -1;  // -1: scalar mode
    int64_t lanes = 1;
    std::string valid_lanes;  // gathers and stepped loads touch only lanes below this; empty: all
    std::vector<Value> accs;  // values of Acc(i)
    int* next_temp = nullptr;
    std::map<const te::ScalarNode*, std::string> loaded = {};  // loads whose vectors exist already
    bool part = false;  // no load touches anything but the valid lanes; the others hold any value
  };
  ExprPrinter(CodeWriter* out, Options options) : out_(out), options_(std::move(options)) {}

  Value Emit(const te::Scalar& s);
  // Emits the value, and broadcasts it if it is not a vector.
  std::string EmitVector(const te::Scalar& s);

 private:
  Value Compute(const te::Scalar& s);
  Value EmitIf(const te::Scalar& s);
  Value EmitStepped(const movement::SteppedLoad& stepped);
  Value EmitOp(const te::Scalar& s);
  Value EmitLoad(const te::Scalar& s);
  Value EmitLaneByLane(const te::Scalar& s);
  bool MovesWithLanes(const te::Scalar& s) const;
  std::string AsVector(const Value& value, DType dtype);
  std::string Temp(const std::string& type, const std::string& expression);

  CodeWriter* out_;
  Options options_;
  std::map<const te::ScalarNode*, Value> memo_;
  std::vector<const te::ScalarNode*> order_;  // order of insertions into memo_, to forget a branch's temporaries
};

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_EXPR_PRINTER_H_
