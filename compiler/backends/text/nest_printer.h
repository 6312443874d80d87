// The common part of the printers of nests: loops, the code of one element, its stores, and the text that combines two
// values of a reduction. A printer of one strategy derives from this class and stands in a source of its own.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_NEST_PRINTER_H_
#define FUSION_COMPILER_BACKENDS_TEXT_NEST_PRINTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

class NestPrinter {
 public:
  // The references and pointers must outlive the printer. `next_temp` numbers the text's temporaries.
  NestPrinter(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
              CodeWriter* out)
      : kernel_(kernel),
        step_(step),
        lanes_(shape.lanes),
        work_group_size_(shape.work_group_size),
        item_(shape.item),
        parts_(shape.parts),
        unroll_(shape.unroll),
        next_temp_(next_temp),
        out_(out) {}

  // Prints and stores the results of a reduction at the point where the step's loops are: `then` of the accumulator.
  void PrintResult(const std::string& acc);

 protected:
  void OpenLoop(const movement::Loop& loop);
  std::string Place(const movement::Store& store) const;
  ExprPrinter::Options ScalarOptions(std::vector<PrintedValue> accs = {});

  // Opens the code for real lanes. Lanes past a blocked layout's logical extent get zero, and nothing is loaded for
  // them.
  void OpenUnmasked();

  // Stores one element of every output.
  void StoreScalars(const std::vector<te::Scalar>& values, const std::vector<PrintedValue>& accs);

  // Statement that combines `x` into `acc`; not for general reductions.
  static std::string Combine(te::ReductionKind kind, const std::string& acc, const std::string& x, DType dtype);
  // Text that reduces the lanes of a vector of partial results; not for products.
  static std::string Horizontal(const te::Reduction& reduction, const std::string& v);

  const movement::Kernel& kernel_;
  const movement::Step& step_;
  const int64_t lanes_;
  const int work_group_size_;
  const std::string item_;
  const bool parts_;
  const int unroll_;
  AxisName axis_name_ = AxisText;  // of the axes in values and in the places where they are stored
  int* next_temp_;
  CodeWriter* out_;
};

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_NEST_PRINTER_H_
