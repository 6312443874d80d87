#include "compiler/backends/text/print_nest.h"

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/text/nest_printer.h"
#include "compiler/backends/text/print_prefix.h"
#include "compiler/backends/text/print_row_reduction.h"
#include "compiler/backends/text/print_shared_reduction.h"
#include "compiler/backends/text/print_vector_map.h"
#include "runtime/base/check.h"

namespace fusion::text {
namespace {

using te::Axis;
using te::Scalar;

class ScalarNestPrinter : public NestPrinter {
 public:
  using NestPrinter::NestPrinter;

  void Print() {
    if (const std::optional<size_t> loop = JammedLoop()) return PrintJammed(*loop);
    // Bits, because the compiler makes vectors of a union of bits, but not of a sum whose order counts.
    if (step_.look) out_->Line("u32 look = 0;");
    const int depth = OpenPoints(step_.loops, kernel_, work_group_size_, out_, unroll_, item_);
    OpenUnmasked();
    if (!step_.reduction) {
      StoreScalars(step_.body, {});
    } else {
      PrintScalarReduction();
    }
    out_->Close();
    for (int i = 0; i < depth; ++i) out_->Close();
    if (step_.look) out_->Line(absl::StrCat(Place(*step_.look), " = look ? __builtin_nanf(\"\") : 0.f;"));
  }

 private:
  static constexpr int kJam = 4;  // results beside each other; eight were not faster

  // The loop kJam iterations of which share what they read: a reduction reads elements at addresses that data decide
  // (of the taps of an interpolation), the same ones for every iteration but for an offset (a channel's).
  std::optional<size_t> JammedLoop() const {
    if (work_group_size_ > 1 || !step_.reduction || step_.reduction->kind == te::ReductionKind::kGeneral) return {};
    if (!step_.reduction->pred.empty() || step_.lane_limit || step_.look || movement::IsRare(step_)) return {};
    for (size_t l = 0; l < step_.loops.size(); ++l) {
      const movement::Loop& loop = step_.loops[l];
      if (loop.limit || loop.axis.extent % kJam != 0) continue;
      bool any = false, all = true;
      te::Visit(step_.body[0], [&](const te::ScalarNode& node) {
        if (node.kind != te::ScalarKind::kLoad || !node.indices[0].HasLoad()) return;
        int64_t offset = 0;
        any = true;
        all = all && node.indices[0].AffineIn(loop.axis.id, &offset) && offset != 0;
      });
      if (any && all) return l;
    }
    return {};
  }

  void PrintJammed(size_t jammed) {
    const te::Reduction& reduction = *step_.reduction;
    const movement::Loop& loop = step_.loops[jammed];
    const auto begin = step_.loops.begin(), at = begin + static_cast<std::ptrdiff_t>(jammed);
    int depth = OpenPoints({begin, at}, kernel_, 1, out_, unroll_);
    const std::string i = AxisText(loop.axis.id);
    out_->Open(absl::StrCat("for (ix ", i, " = 0; ", i, " < ", LimitText(loop, kernel_), "; ", i, " += ", kJam, ")"));
    depth += 1 + OpenPoints({at + 1, step_.loops.end()}, kernel_, 1, out_, unroll_);
    std::vector<std::string> accs;
    for (int n = 0; n < kJam; ++n) {
      accs.push_back(absl::StrCat("a", (*next_temp_)++));
      out_->Line(absl::StrCat(CType(reduction.acc), " ", accs[n], " = ",
                              ReductionIdentity(reduction.kind, reduction.acc), ";"));
    }
    const auto for_each = [&](const auto& print) {
      for (int n = 0; n < kJam; ++n) {
        axis_name_ = [&loop, n](int axis) {
          return axis == loop.axis.id ? absl::StrCat("(", AxisText(axis), " + ", n, ")") : AxisText(axis);
        };
        print(accs[n]);
      }
      axis_name_ = AxisText;
    };
    for (const Axis& axis : reduction.axes) OpenLoop({axis, std::nullopt});
    for_each([&](const std::string& acc) {
      const std::string x = ExprPrinter(out_, ScalarOptions({{acc, false}})).Emit(step_.body[0]).text;
      out_->Line(Combine(reduction.kind, acc, x, reduction.acc));
    });
    for (size_t a = 0; a < reduction.axes.size(); ++a) out_->Close();
    for_each([&](const std::string& acc) { StoreScalars(step_.then, {{acc, false}}); });
    for (int d = 0; d < depth; ++d) out_->Close();
  }

  void PrintScalarReduction() {
    const te::Reduction& reduction = *step_.reduction;
    const bool general = reduction.kind == te::ReductionKind::kGeneral;
    std::vector<PrintedValue> accs;
    const size_t count = general ? reduction.init.size() : 1;
    for (size_t a = 0; a < count; ++a) {
      const std::string acc = absl::StrCat("a", (*next_temp_)++);
      const DType dtype = general ? reduction.init[a]->dtype : reduction.acc;
      std::string init;
      if (general) {
        ExprPrinter printer(out_, ScalarOptions());
        init = printer.Emit(reduction.init[a]).text;
      } else {
        init = ReductionIdentity(reduction.kind, dtype);
      }
      out_->Line(absl::StrCat(CType(dtype), " ", acc, " = ", init, ";"));
      accs.push_back({acc, false});
    }
    for (const Axis& axis : reduction.axes) OpenLoop({axis, std::nullopt});
    out_->Open(reduction.pred.empty() ? "" : absl::StrCat("if (", PredText(reduction.pred, AxisText, kernel_), ")"));
    ExprPrinter printer(out_, ScalarOptions(accs));
    if (general) {
      std::vector<std::string> next;
      for (const Scalar& s : step_.body) next.push_back(printer.Emit(s).text);
      std::vector<std::string> fresh;
      for (size_t a = 0; a < count; ++a) {
        fresh.push_back(absl::StrCat("n", (*next_temp_)++));
        out_->Line(absl::StrCat("const ", CType(reduction.init[a]->dtype), " ", fresh[a], " = ", next[a], ";"));
      }
      for (size_t a = 0; a < count; ++a) out_->Line(absl::StrCat(accs[a].text, " = ", fresh[a], ";"));
    } else {
      out_->Line(Combine(reduction.kind, accs[0].text, printer.Emit(step_.body[0]).text, reduction.acc));
    }
    // Where a rare step has much to do, most of its sums are NaN, and stay so.
    const bool ends_early = movement::IsRare(step_) && !general && IsFloat(reduction.acc);
    const std::string end = ends_early ? absl::StrCat("end", (*next_temp_)++) : "";
    if (ends_early) out_->Line(absl::StrCat("if (", accs[0].text, " != ", accs[0].text, ") goto ", end, ";"));
    for (size_t i = 0; i < reduction.axes.size() + 1; ++i) out_->Close();
    if (ends_early) out_->Line(absl::StrCat(end, ":;"));
    if (step_.look) out_->Line(absl::StrCat("look |= not_finite(", accs[0].text, ");"));
    StoreScalars(step_.then, accs);
  }
};

// Calls the printer of a step's strategy.
struct StrategyPrinter {
  void operator()(const movement::ScalarLoops&) const {
    ScalarNestPrinter(kernel, step, shape, next_temp, out).Print();
  }
  void operator()(const movement::VectorMap&) const { PrintVectorMap(kernel, step, shape, next_temp, out); }
  void operator()(const movement::RowReduction&) const { PrintRowReduction(kernel, step, shape, next_temp, out); }
  void operator()(const movement::PrefixPass&) const { PrintPrefix(kernel, step, shape, next_temp, out); }
  void operator()(const LibraryCall&) const {}  // is no text
  template <typename Other>
  void operator()(const Other&) const {
    FUSION_CHECK(false, "tiles and routines have printers of their own");
  }

  const movement::Kernel& kernel;
  const movement::Step& step;
  const TaskShape& shape;
  int* next_temp;
  CodeWriter* out;
};

}  // namespace

void PrintNest(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out) {
  if (shape.team) {
    PrintInRow(kernel, step, shape, next_temp, out);
  } else if (ReductionTeam(step, shape.work_group_size) > 1) {
    PrintSharedReduction(kernel, step, shape, next_temp, out);
  } else {
    std::visit(StrategyPrinter{kernel, step, shape, next_temp, out}, step.strategy);
  }
}

void PrintResult(const movement::Kernel& kernel, const movement::Step& step, const std::string& acc, int* next_temp,
                 CodeWriter* out) {
  NestPrinter(kernel, step, {}, next_temp, out).PrintResult(acc);
}

}  // namespace fusion::text
