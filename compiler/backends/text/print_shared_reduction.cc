#include "compiler/backends/text/print_shared_reduction.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/text/nest_printer.h"
#include "compiler/backends/text/print_vector_map.h"
#include "compiler/movement/work_groups.h"

namespace fusion::text {
namespace {

using te::Axis;

class SharedReductionPrinter : public NestPrinter {
 public:
  using NestPrinter::NestPrinter;

  // Distributes the results over teams of work-items. Each work-item reduces points of its own, then the team combines
  // what its members have. All work-items run equally many iterations, since there are barriers in them.
  void Print() {
    const int team = ReductionTeam(step_, work_group_size_);
    const te::Reduction& reduction = *step_.reduction;
    const DType dtype = reduction.acc;
    const int64_t results = Points(step_.loops), at_once = work_group_size_ / team;
    const std::string rank = absl::StrCat("rank", (*next_temp_)++), acc = absl::StrCat("a", (*next_temp_)++);
    out_->Line(absl::StrCat("const int ", rank, " = lid % ", team, ";"));
    out_->Open(absl::StrCat("for (ix turn = 0; turn < ", (results + at_once - 1) / at_once, "; ++turn)"));
    out_->Line(absl::StrCat("const ix point = lid / ", team, " + turn * ", at_once, ";"));
    TakePointApart(step_.loops, out_);
    std::vector<std::string> conditions;
    if (results % at_once != 0) conditions.push_back(absl::StrCat("point < ", results));
    for (const movement::Loop& loop : step_.loops) {
      if (!loop.limit) continue;
      conditions.push_back(absl::StrCat(AxisText(loop.axis.id), " < ", IndexText(*loop.limit, AxisText, kernel_)));
    }
    const std::string stored = absl::StrJoin(conditions, " && ");
    if (step_.lane_limit) conditions.push_back(BoundText(*step_.lane_limit, AxisText, kernel_));
    out_->Line(absl::StrCat(CType(dtype), " ", acc, " = ", ReductionIdentity(reduction.kind, dtype), ";"));
    out_->Open(conditions.empty() ? "" : absl::StrCat("if (", absl::StrJoin(conditions, " && "), ")"));
    PrintTeamShare(team, rank, acc);
    out_->Close();
    out_->Line(absl::StrCat("REDUCE_TEAM(", CType(dtype), ", ", acc, ", ", work_group_size_, ", ", team, ", ",
                            Combine(reduction.kind, "x", "y", dtype), ")"));
    out_->Open(absl::StrCat("if (", rank, " == 0", stored.empty() ? "" : " && ", stored, ")"));
    PrintResult(acc);
    out_->Close();
    out_->Close();
  }

  // Prints the reduction of one row by a team that has it for itself.
  void PrintInRow(const TaskShape::Team& team) {
    const te::Reduction& reduction = *step_.reduction;
    const DType dtype = reduction.acc;
    const std::string acc = absl::StrCat("a", (*next_temp_)++);
    out_->Line(absl::StrCat(CType(dtype), " ", acc, " = ", ReductionIdentity(reduction.kind, dtype), ";"));
    OpenIf(team.row_exists);
    PrintTeamShare(work_group_size_, item_, acc);
    out_->Close();
    out_->Line(absl::StrCat("REDUCE_TEAM(", CType(dtype), ", ", acc, ", ", team.group, ", ", work_group_size_, ", ",
                            Combine(reduction.kind, "x", "y", dtype), ")"));
    const std::string one = StoresToRegisters() ? "" : absl::StrCat(item_, " == 0");
    OpenIf(absl::StrCat(team.row_exists, team.row_exists.empty() || one.empty() ? "" : " && ", one));
    PrintResult(acc);
    out_->Close();
  }

  // Prints a map of the row.
  void PrintMapInRow(const TaskShape& shape) {
    OpenIf(shape.team->row_exists);
    if (StoresToRegisters()) {
      StoreScalars(step_.body, {});
    } else if (step_.Is<movement::VectorMap>()) {
      PrintVectorMap(kernel_, step_, shape, next_temp_, out_);
    } else {
      const int depth = OpenPoints(step_.loops, kernel_, work_group_size_, out_, unroll_, item_);
      StoreScalars(step_.body, {});
      for (int d = 0; d < depth; ++d) out_->Close();
    }
    out_->Close();
  }

 private:
  bool StoresToRegisters() const {
    return std::all_of(step_.stores.begin(), step_.stores.end(), [&](const movement::Store& store) {
      return kernel_.buffers[store.buffer].scope == Scope::kWarp;
    });
  }
  void OpenIf(const std::string& condition) {
    out_->Open(condition.empty() ? "" : absl::StrCat("if (", condition, ")"));
  }

  // Prints what one work-item of a team reduces: vectors where the reduction runs along a row that has some for each
  // work-item, else elements.
  void PrintTeamShare(int team, const std::string& rank, const std::string& acc) {
    const te::Reduction& reduction = *step_.reduction;
    std::vector<movement::Loop> points;
    for (const Axis& axis : reduction.axes) points.push_back({axis, std::nullopt});
    const Axis inner = reduction.axes.back();
    if (step_.Is<movement::RowReduction>() && inner.extent % lanes_ == 0 && Points(points) >= lanes_ * team &&
        IsFloat(reduction.acc) && reduction.kind != te::ReductionKind::kProd) {
      const std::string v = absl::StrCat("v", (*next_temp_)++);
      out_->Line(absl::StrCat(VectorType(reduction.acc), " ", v, " = ",
                              BroadcastText(reduction.acc, ReductionIdentity(reduction.kind, reduction.acc)), ";"));
      const int number = kernel_.next_axis;  // number of the vector in its row: an axis of this text alone
      points.back() = {{number, inner.extent / lanes_}, std::nullopt};
      OpenPoints(points, kernel_, team, out_, unroll_, rank);
      out_->Line(absl::StrCat("const ix ", AxisText(inner.id), " = ", AxisText(number), " * ", lanes_, ";"));
      ExprPrinter printer(out_, {&kernel_, AxisText, inner.id, lanes_, "", {}, next_temp_});
      out_->Line(VectorCombine(reduction, v, printer.EmitVector(step_.body[0])));
      out_->Close();
      out_->Line(Combine(reduction.kind, acc, Horizontal(reduction, v), reduction.acc));
      return;
    }
    OpenPoints(points, kernel_, team, out_, unroll_, rank);
    out_->Open(reduction.pred.empty() ? "" : absl::StrCat("if (", PredText(reduction.pred, AxisText, kernel_), ")"));
    ExprPrinter printer(out_, ScalarOptions());
    out_->Line(Combine(reduction.kind, acc, printer.Emit(step_.body[0]).text, reduction.acc));
    out_->Close();
    out_->Close();
  }
};

}  // namespace

int ReductionTeam(const movement::Step& step, int work_group_size) {
  const bool tile =
      step.Is<movement::RegisterTile>() || step.Is<movement::ThreadgroupTile>() || step.Is<movement::PrefixPass>();
  if (work_group_size == 1 || !step.reduction || step.reduction->kind == te::ReductionKind::kGeneral || tile) return 1;
  const int64_t results = Points(step.loops);
  int64_t points = 1;
  for (const Axis& axis : step.reduction->axes) points *= axis.extent;
  int team = step.Is<movement::RowReduction>() ? std::min(work_group_size, movement::kRowTeam) : 1;
  while (2 * team <= work_group_size && 2 * team * results <= work_group_size) team *= 2;
  while (team > 1 && team > points) team /= 2;
  return team;
}

void PrintInRow(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                CodeWriter* out) {
  SharedReductionPrinter printer(kernel, step, shape, next_temp, out);
  step.reduction ? printer.PrintInRow(*shape.team) : printer.PrintMapInRow(shape);
}

void PrintSharedReduction(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape,
                          int* next_temp, CodeWriter* out) {
  SharedReductionPrinter(kernel, step, shape, next_temp, out).Print();
}

}  // namespace fusion::text
