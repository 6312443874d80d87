#include "compiler/backends/text/print_row_reduction.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/text/nest_printer.h"
#include "compiler/movement/extreme_reduction.h"
#include "compiler/movement/row_ranges.h"
#include "compiler/movement/vector_form.h"

namespace fusion::text {
namespace {

using te::Axis;

// The most copies of a short reduction's text, which use the vector accumulators in turn.
constexpr int64_t kMostUnrolled = 8;

class RowReductionPrinter : public NestPrinter {
 public:
  using NestPrinter::NestPrinter;

  void Print() { step_.reduction->kind == te::ReductionKind::kGeneral ? PrintRowExtreme() : PrintRow(); }

 private:
  // Reduces into four vector accumulators along the contiguous reduction axis, then single vectors, then single
  // elements; one horizontal step follows.
  void PrintRow() {
    const int depth = OpenPoints(step_.loops, kernel_, work_group_size_, out_, unroll_, item_);
    OpenUnmasked();
    const te::Reduction& reduction = *step_.reduction;
    const std::string init = BroadcastText(reduction.acc, ReductionIdentity(reduction.kind, reduction.acc));
    const std::string tag = absl::StrCat((*next_temp_)++);
    const std::string v = absl::StrCat("v", tag, "_");
    const int64_t wide = 4 * lanes_;
    for (int a = 0; a < 4; ++a) out_->Line(absl::StrCat(VectorType(reduction.acc), " ", v, a, " = ", init, ";"));
    // Maxima and minima look for NaN beside the comparisons: in each of them it would lengthen the chain in which one
    // waits for the one before. One instruction looks at two vectors.
    const bool extreme = reduction.kind == te::ReductionKind::kMax || reduction.kind == te::ReductionKind::kMin;
    const bool numbers = parts_ && extreme && reduction.acc == DType::kF32;
    const std::string nan = absl::StrCat("n", tag);
    if (numbers) out_->Line(absl::StrCat("vi ", nan, " = bi(0);"));
    const auto combine = [&](const std::string& into, const std::string& x) {
      const char* const better = reduction.kind == te::ReductionKind::kMax ? " > " : " < ";
      out_->Line(numbers ? absl::StrCat(into, " = vsel(", x, better, into, ", ", x, ", ", into, ");")
                         : VectorCombine(reduction, into, x));
    };
    std::vector<std::string> unseen;  // vectors that no instruction has looked at yet
    const auto look = [&] {
      std::vector<std::string> tests;
      tests.reserve(unseen.size());
      for (const std::string& x : unseen) tests.push_back(absl::StrCat("(", x, " != ", x, ")"));
      if (numbers) out_->Line(absl::StrCat(nan, " |= ", absl::StrJoin(tests, " | "), ";"));
      unseen.clear();
    };
    const std::string acc = absl::StrCat("a", tag);
    out_->Line(
        absl::StrCat(CType(reduction.acc), " ", acc, " = ", ReductionIdentity(reduction.kind, reduction.acc), ";"));
    // A reduction that is no longer than a vector or two unrolls the axis outside it, to keep the four accumulators
    // busy.
    const size_t outer_axes = reduction.axes.size() - 1;
    const bool unrolled =
        outer_axes > 0 && reduction.axes.back().extent < wide && reduction.axes[outer_axes - 1].extent <= kMostUnrolled;
    const size_t loops = outer_axes - (unrolled ? 1 : 0);
    for (size_t f = 0; f < loops; ++f) OpenLoop({reduction.axes[f], std::nullopt});
    const std::vector<movement::RowRange> ranges = movement::RowRangesOf(step_.body[0], reduction.axes.back());
    const int64_t copies = unrolled ? reduction.axes[loops].extent : 1;
    for (int64_t part = 0; part < copies * static_cast<int64_t>(ranges.size()); ++part) {
      const int64_t copy = part / static_cast<int64_t>(ranges.size());
      const auto& [inner, body] = ranges[part % ranges.size()];
      const std::string i = AxisText(inner.id);
      const int row = inner.id;
      auto name = [&, row](int axis, int64_t offset) {
        if (unrolled && axis == reduction.axes[loops].id) return absl::StrCat(copy, "L");
        return axis == row && offset != 0 ? absl::StrCat("(", i, " + ", offset, ")") : AxisText(axis);
      };
      const te::Scalar& value = body;
      auto vector_body = [&](int64_t offset, int64_t a) {
        ExprPrinter printer(
            out_, {&kernel_, [&](int axis) { return name(axis, offset); }, row, lanes_, "", {}, next_temp_});
        unseen.push_back(printer.EmitVector(value));
        combine(absl::StrCat(v, a), unseen.back());
      };
      out_->Open("");
      out_->Line(absl::StrCat("ix ", i, " = 0;"));
      if (inner.extent >= wide) {
        out_->Open(absl::StrCat("for (; ", i, " + ", wide, " <= ", inner.extent, "; ", i, " += ", wide, ")"));
        for (int a = 0; a < 4; ++a) {
          vector_body(a * lanes_, a);
          if (a % 2 != 0) look();
        }
        out_->Close();
      }
      if (inner.extent % wide >= lanes_) {
        out_->Open(absl::StrCat("for (; ", i, " + ", lanes_, " <= ", inner.extent, "; ", i, " += ", lanes_, ")"));
        vector_body(0, copy % 4);
        look();
        out_->Close();
      }
      if (inner.extent % lanes_ != 0 && parts_ && movement::CallsLibrary({body})) {
        const std::string count = absl::StrCat(inner.extent % lanes_);
        ExprPrinter::Options options{&kernel_,  [&](int axis) { return name(axis, 0); }, inner.id, lanes_, count, {},
                                     next_temp_};
        options.part = true;
        ExprPrinter printer(out_, options);
        const std::string x = printer.EmitVector(body);
        const std::string t = absl::StrCat("t", (*next_temp_)++);
        out_->Line(absl::StrCat("const ", VectorType(reduction.acc), " ", t, " = vsel(iota() < bi(", count, "), ", x,
                                ", ", init, ");"));
        combine(absl::StrCat(v, copy % 4), t);
        unseen.push_back(t);
        look();
      } else if (inner.extent % lanes_ != 0) {
        out_->Open(absl::StrCat("for (; ", i, " < ", inner.extent, "; ++", i, ")"));
        ExprPrinter::Options options = ScalarOptions();
        options.axis_name = [&](int axis) { return name(axis, 0); };
        ExprPrinter printer(out_, options);
        out_->Line(Combine(reduction.kind, acc, printer.Emit(body).text, reduction.acc));
        out_->Close();
      }
      out_->Close();
    }
    for (size_t f = 0; f < loops; ++f) out_->Close();
    // Combines the four vectors into one, and its lanes into one element.
    for (const auto& [into, from] : {std::pair(0, 1), std::pair(2, 3), std::pair(0, 2)}) {
      combine(absl::StrCat(v, into), absl::StrCat(v, from));
    }
    if (numbers) {
      const char* const across = reduction.kind == te::ReductionKind::kMax ? "hmax_beside(" : "hmin_beside(";
      out_->Line(Combine(reduction.kind, acc, absl::StrCat(across, v, "0, ", nan, ")"), reduction.acc));
    } else if (reduction.kind == te::ReductionKind::kProd) {
      out_->Line(absl::StrCat(
          "for (int l = 0; l < ", lanes_, "; ++l) ",
          Combine(reduction.kind, acc, LaneText(reduction.acc, absl::StrCat(v, "0"), "l"), reduction.acc)));
    } else {
      out_->Line(Combine(reduction.kind, acc, Horizontal(reduction, absl::StrCat(v, "0")), reduction.acc));
    }
    StoreScalars(step_.then, {{acc, false}});
    out_->Close();
    for (int i = 0; i < depth; ++i) out_->Close();
  }

  // Finds the best element along the row and its index:
  // - Each lane of four vectors keeps its own best, with the first index of the vector that it was in.
  // - The best of all lanes wins; of equal ones the first or the last.
  // - Single elements follow; they lie behind all others.
  void PrintRowExtreme() {
    const int depth = OpenPoints(step_.loops, kernel_, work_group_size_, out_, unroll_, item_);
    OpenUnmasked();
    const te::Reduction& reduction = *step_.reduction;
    const movement::ExtremeReduction extreme = *movement::ExtremeReductionOf(reduction, step_.body);
    const DType dtype = extreme.value->dtype;
    const bool is_float = IsFloat(dtype);
    const Axis row = reduction.axes[0];
    const std::string i = AxisText(row.id), tag = absl::StrCat((*next_temp_)++), type = VectorType(dtype);
    const std::string best = absl::StrCat("v", tag, "_"), at = absl::StrCat("k", tag, "_");
    const char* const op = extreme.max ? (extreme.last ? " >= " : " > ") : (extreme.last ? " <= " : " < ");
    const std::string worst = BroadcastText(dtype, ImmText(*reduction.init[0]));
    const int64_t wide = 4 * lanes_;
    const int vectors = row.extent >= wide ? 4 : 1;
    for (int a = 0; a < vectors; ++a) {
      out_->Line(absl::StrCat(type, " ", best, a, " = ", worst, "; vi ", at, a, " = bi(0);"));
    }
    const auto take = [&](int64_t offset, int a) {
      const auto name = [&](int axis) {
        return axis == row.id && offset != 0 ? absl::StrCat("(", i, " + ", offset, ")") : AxisText(axis);
      };
      const std::string v = absl::StrCat(best, a), k = absl::StrCat(at, a);
      out_->Open("");
      ExprPrinter printer(out_, {&kernel_, name, row.id, lanes_, "", {}, next_temp_});
      const std::string x = printer.EmitVector(extreme.value);
      const std::string nan = !is_float      ? ""
                              : extreme.last ? absl::StrCat(" | (", x, " != ", x, ")")
                                             : absl::StrCat(" | ((", x, " != ", x, ") & (", v, " == ", v, "))");
      out_->Line(absl::StrCat("const vi take = (", x, op, v, ")", nan, ";"));
      out_->Line(absl::StrCat(v, " = vsel(take, ", x, ", ", v, "); ", k, " = vsel(take, bi((int)", name(row.id), "), ",
                              k, ");"));
      out_->Close();
    };
    out_->Line(absl::StrCat("ix ", i, " = 0;"));
    if (vectors == 4) {
      out_->Open(absl::StrCat("for (; ", i, " + ", wide, " <= ", row.extent, "; ", i, " += ", wide, ")"));
      for (int a = 0; a < 4; ++a) take(a * lanes_, a);
      out_->Close();
    }
    if (row.extent % wide >= lanes_) {
      out_->Open(absl::StrCat("for (; ", i, " + ", lanes_, " <= ", row.extent, "; ", i, " += ", lanes_, ")"));
      take(0, 0);
      out_->Close();
    }
    // Takes the best value of all vectors and lanes, then the first or last place that has it.
    const te::Reduction extremes{extreme.max ? te::ReductionKind::kMax : te::ReductionKind::kMin,
                                 {},
                                 {},
                                 is_float ? DType::kF32 : DType::kI32,
                                 {}};
    out_->Line(absl::StrCat(type, " w", tag, " = ", best, "0;"));
    for (int a = 1; a < vectors; ++a) {
      out_->Line(VectorCombine(extremes, absl::StrCat("w", tag), absl::StrCat(best, a)));
    }
    const std::string value = absl::StrCat("a", tag), index = absl::StrCat("n", tag);
    out_->Line(absl::StrCat(CType(dtype), " ", value, " = ", Horizontal(extremes, absl::StrCat("w", tag)), ";"));
    const te::Reduction places{
        extreme.last ? te::ReductionKind::kMax : te::ReductionKind::kMin, {}, {}, DType::kI32, {}};
    const std::string none = absl::StrCat("bi(", extreme.last ? -1 : INT32_MAX, ")");
    out_->Line(absl::StrCat("vi p", tag, " = ", none, ";"));
    for (int a = 0; a < vectors; ++a) {
      const std::string v = absl::StrCat(best, a), all = BroadcastText(dtype, value);
      const std::string nan = is_float ? absl::StrCat(" | ((", v, " != ", v, ") & (", all, " != ", all, "))") : "";
      const std::string place =
          absl::StrCat("vsel((", v, " == ", all, ")", nan, ", iadd(", at, a, ", iota()), ", none, ")");
      out_->Line(VectorCombine(places, absl::StrCat("p", tag), place));
    }
    out_->Line(absl::StrCat("i64 ", index, " = ", Horizontal(places, absl::StrCat("p", tag)), ";"));
    const std::vector<PrintedValue> accs = {{value, false}, {index, false}};
    if (row.extent % lanes_ != 0) {
      out_->Open(absl::StrCat("for (; ", i, " < ", row.extent, "; ++", i, ")"));
      ExprPrinter printer(out_, ScalarOptions(accs));
      const std::string next = printer.Emit(step_.body[0]).text, place = printer.Emit(step_.body[1]).text;
      out_->Line(absl::StrCat(value, " = ", next, "; ", index, " = ", place, ";"));
      out_->Close();
    }
    StoreScalars(step_.then, accs);
    out_->Close();
    for (int d = 0; d < depth; ++d) out_->Close();
  }
};

}  // namespace

void PrintRowReduction(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape,
                       int* next_temp, CodeWriter* out) {
  RowReductionPrinter(kernel, step, shape, next_temp, out).Print();
}

}  // namespace fusion::text
