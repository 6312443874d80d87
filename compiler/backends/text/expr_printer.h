// Prints scalar bodies as statements in C, with one temporary for each shared node, either for one element or for a
// vector of elements along the lanes. Values that do not move with the lanes stay scalars and are broadcast where they
// meet a vector.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_EXPR_PRINTER_H_
#define FUSION_COMPILER_BACKENDS_TEXT_EXPR_PRINTER_H_

#include <map>
#include <string>
#include <vector>

#include "compiler/backends/text/element_text.h"
#include "compiler/backends/text/op_text.h"
#include "compiler/backends/text/vector_text.h"
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

struct PrintedValue {
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
    std::vector<PrintedValue> accs;  // values of Acc(i)
    int* next_temp = nullptr;
    std::map<const te::ScalarNode*, std::string> loaded = {};  // loads whose vectors exist already
    bool part = false;  // no load touches anything but the valid lanes; the others hold any value
  };
  ExprPrinter(CodeWriter* out, Options options) : out_(out), options_(std::move(options)) {}

  PrintedValue Emit(const te::Scalar& s);
  // Emits the value, and broadcasts it if it is not a vector.
  std::string EmitVector(const te::Scalar& s);

 private:
  PrintedValue Compute(const te::Scalar& s);
  PrintedValue EmitIf(const te::Scalar& s);
  PrintedValue EmitStepped(const movement::SteppedLoad& stepped);
  PrintedValue EmitOp(const te::Scalar& s);
  PrintedValue EmitLoad(const te::Scalar& s);
  PrintedValue EmitLaneByLane(const te::Scalar& s);
  bool CastsRunOfI64(const te::ScalarNode& cast) const;
  bool MovesWithLanes(const te::Scalar& s) const;
  std::string AsVector(const PrintedValue& value, DType dtype);
  std::string Temp(const std::string& type, const std::string& expression);

  CodeWriter* out_;
  Options options_;
  std::map<const te::ScalarNode*, PrintedValue> memo_;
  std::vector<const te::ScalarNode*> order_;  // order of insertions into memo_, to forget a branch's temporaries
};

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_EXPR_PRINTER_H_
