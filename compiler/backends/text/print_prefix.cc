#include "compiler/backends/text/print_prefix.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/text/nest_printer.h"
#include "compiler/te/program/prefix_reduction.h"

namespace fusion::text {
namespace {

using te::Axis;

// Vectors of a row that one pass over its columns keeps: a few thousand bytes, which stay in the nearest cache.
constexpr int64_t kStripVectors = 64;

class PrefixPrinter : public NestPrinter {
 public:
  using NestPrinter::NestPrinter;

  // Prints one pass along the innermost loop. Vectors of another loop are taken a strip at a time, so that rows are
  // read in runs.
  void Print() {
    const auto& pass = *step_.As<movement::PrefixPass>();
    std::vector<Axis> axes;
    for (const movement::Loop& loop : step_.loops) axes.push_back(loop.axis);
    const te::PrefixReduction prefix = *te::PrefixReductionOf(*step_.reduction, step_.body, axes);
    std::vector<movement::Loop> around(step_.loops.begin(), step_.loops.end() - 1);
    if (pass.vector_axis < 0) {
      const int depth = OpenPoints(around, kernel_, work_group_size_, out_, unroll_, item_);
      PrintPrefixOfOne(prefix);
      for (int d = 0; d < depth; ++d) out_->Close();
      return;
    }
    const movement::Loop columns = around.back();
    around.pop_back();
    for (const movement::Loop& loop : around) OpenLoop(loop);
    const te::Reduction& reduction = *step_.reduction;
    const std::string c = AxisText(columns.axis.id), tag = absl::StrCat((*next_temp_)++);
    const std::string first = absl::StrCat("s", tag), acc = absl::StrCat("v", tag), n = absl::StrCat("n", tag);
    const int64_t strip = std::min<int64_t>(kStripVectors, (columns.axis.extent + lanes_ - 1) / lanes_);
    out_->Line(absl::StrCat("const ix e_", c, " = ", LimitText(columns, kernel_), ";"));
    out_->Line(absl::StrCat("ix ", first, " = 0;"));
    out_->Open(absl::StrCat("while (", first, " + ", lanes_, " <= e_", c, ")"));
    out_->Line(absl::StrCat("const ix ", n, " = smin_i64(", strip, ", (e_", c, " - ", first, ") / ", lanes_, ");"));
    out_->Line(absl::StrCat(VectorType(reduction.acc), " ", acc, "[", strip, "];"));
    out_->Line(absl::StrCat("for (ix q = 0; q < ", n, "; ++q) ", acc, "[q] = ",
                            BroadcastText(reduction.acc, ReductionIdentity(reduction.kind, reduction.acc)), ";"));
    OpenPrefix(prefix);
    out_->Open(absl::StrCat("for (ix q = 0; q < ", n, "; ++q)"));
    out_->Line(absl::StrCat("const ix ", c, " = ", first, " + q * ", lanes_, ";"));
    const std::string own = absl::StrCat(acc, "[q]");
    const auto take = [&] {
      ExprPrinter printer(out_, {&kernel_, PrefixName(prefix), columns.axis.id, lanes_, "", {}, next_temp_});
      out_->Line(VectorCombine(reduction, own, printer.EmitVector(prefix.value)));
    };
    if (!prefix.exclusive) take();
    ExprPrinter printer(out_, {&kernel_, AxisText, columns.axis.id, lanes_, "", {{own, true}}, next_temp_});
    const std::string value = step_.then.empty() ? own : printer.EmitVector(step_.then[0]);
    out_->Line(VectorStoreText(
        step_.store_types[0],
        absl::StrCat("b", step_.stores[0].buffer, " + ", IndexText(step_.stores[0].address, AxisText, kernel_)),
        value));
    if (prefix.exclusive) take();
    out_->Close();
    out_->Close();
    out_->Line(absl::StrCat(first, " += ", n, " * ", lanes_, ";"));
    out_->Close();
    out_->Open(absl::StrCat("for (ix ", c, " = ", first, "; ", c, " < e_", c, "; ++", c, ")"));
    PrintPrefixOfOne(prefix);
    out_->Close();
    for (size_t l = 0; l < around.size(); ++l) out_->Close();
  }

 private:
  // Names the reduction's axis by the variable of the loop along it.
  AxisName PrefixName(const te::PrefixReduction& prefix) const {
    const int k = step_.reduction->axes[0].id;
    return [k, axis = prefix.axis](int id) { return AxisText(id == k ? axis : id); };
  }

  void OpenPrefix(const te::PrefixReduction& prefix) {
    const std::string i = AxisText(prefix.axis);
    const int64_t extent = step_.reduction->axes[0].extent;
    out_->Open(prefix.reverse ? absl::StrCat("for (ix ", i, " = ", extent - 1, "; ", i, " >= 0; --", i, ")")
                              : absl::StrCat("for (ix ", i, " = 0; ", i, " < ", extent, "; ++", i, ")"));
  }

  void PrintPrefixOfOne(const te::PrefixReduction& prefix) {
    const te::Reduction& reduction = *step_.reduction;
    const std::string acc = absl::StrCat("a", (*next_temp_)++);
    out_->Line(
        absl::StrCat(CType(reduction.acc), " ", acc, " = ", ReductionIdentity(reduction.kind, reduction.acc), ";"));
    OpenPrefix(prefix);
    const auto take = [&] {
      ExprPrinter::Options options = ScalarOptions();
      options.axis_name = PrefixName(prefix);
      ExprPrinter printer(out_, options);
      out_->Line(Combine(reduction.kind, acc, printer.Emit(prefix.value).text, reduction.acc));
    };
    if (!prefix.exclusive) take();
    out_->Open("");
    StoreScalars(step_.then, {{acc, false}});
    out_->Close();
    if (prefix.exclusive) take();
    out_->Close();
  }
};

}  // namespace

void PrintPrefix(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                 CodeWriter* out) {
  PrefixPrinter(kernel, step, shape, next_temp, out).Print();
}

}  // namespace fusion::text
