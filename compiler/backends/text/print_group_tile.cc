#include "compiler/backends/text/print_group_tile.h"

#include "absl/strings/str_cat.h"

namespace fusion::text {
namespace {

// Elements that a work-item brings in at once. Left to itself a compiler repeats the loops around them as well, and
// keeps the addresses and border tests of all of them in registers.
constexpr int kLoadsAtOnce = 4;

// `for (int i = 0; i < count; ++i)`, unrolled.
std::string Unrolled(const std::string& i, int count) {
  return absl::StrCat("UNROLL for (int ", i, " = 0; ", i, " < ", count, "; ++", i, ")");
}

// The element of the slice that a factor of the product is.
std::string Factor(const te::ScalarNode& load, const movement::Kernel& kernel) {
  return LoadText(kernel.buffers[load.tensor],
                  absl::StrCat("b", load.tensor, "[", IndexText(load.indices[0], AxisText, kernel), "]"));
}

}  // namespace

void PrintGroupTile(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                    CodeWriter* out) {
  const movement::GroupTile& tile = step.group;
  const std::string row = AxisText(tile.row_axis), column = AxisText(tile.column_axis);
  const te::ScalarNode& first = *step.body[0]->args[0];
  const te::ScalarNode& by_row = first.indices[0].UsesAxis(tile.row_axis) ? first : *step.body[0]->args[1];
  const te::ScalarNode& by_column = &by_row == &first ? *step.body[0]->args[1] : first;
  const std::string row_of = absl::StrCat("const int ", row, " = item_row + r * ", tile.item_rows, ";");
  const std::string column_of = absl::StrCat("const int ", column, " = item_column + c * ", tile.item_columns, ";");
  const std::string results = absl::StrCat(Unrolled("r", tile.rows), " ", Unrolled("c", tile.columns));
  out->Line(
      absl::StrCat("const int item_row = lid / ", tile.item_columns, ", item_column = lid % ", tile.item_columns, ";"));
  const std::vector<movement::Loop> tiles(step.loops.begin(), step.loops.end() - 2);
  const int around = OpenPoints(tiles, kernel, 1, out, /*unroll=*/1);
  out->Line(absl::StrCat("float acc[", tile.rows, "][", tile.columns, "];"));
  out->Line(absl::StrCat(results, " acc[r][c] = 0.f;"));

  std::vector<movement::Loop> slices;
  for (size_t a = 0; a + 1 < step.fold->axes.size(); ++a) slices.push_back({step.fold->axes[a], std::nullopt});
  const int depth = OpenPoints(slices, kernel, 1, out, /*unroll=*/1);
  if (!step.staging.empty()) out->Line("BARRIER");  // the slices before have been read
  TaskShape staged = shape;
  staged.unroll = kLoadsAtOnce;
  for (const movement::Step& staging : step.staging) PrintStep(kernel, staging, staged, next_temp, out);
  if (!step.staging.empty()) out->Line("BARRIER");
  const te::Axis& slice = step.fold->axes.back();
  const std::string k = AxisText(slice.id);
  out->Open(absl::StrCat("for (int ", k, " = 0; ", k, " < ", slice.extent, "; ++", k, ")"));
  out->Line(absl::StrCat("float by_row[", tile.rows, "], by_column[", tile.columns, "];"));
  out->Line(absl::StrCat(Unrolled("r", tile.rows), " { ", row_of, " by_row[r] = ", Factor(by_row, kernel), "; }"));
  out->Line(absl::StrCat(Unrolled("c", tile.columns), " { ", column_of, " by_column[c] = ", Factor(by_column, kernel),
                         "; }"));
  out->Line(absl::StrCat(results, " acc[r][c] += by_row[r] * by_column[c];"));
  out->Close();
  for (int i = 0; i < depth; ++i) out->Close();

  out->Open(results);
  out->Line(row_of);
  out->Line(column_of);
  te::Pred inside;
  for (const movement::Loop& loop : {step.loops[tiles.size()], step.loops.back()}) {
    if (loop.limit) inside.push_back({te::Index(loop.axis), te::Cmp::kLt, *loop.limit});
  }
  if (step.store_limit >= 0) {
    inside.push_back({step.store_limit_index, te::Cmp::kLt, te::Index(step.store_limit)});
  }
  out->Open(inside.empty() ? "" : absl::StrCat("if (", PredText(inside, AxisText, kernel), ")"));
  PrintResult(kernel, step, "acc[r][c]", next_temp, out);
  out->Close();
  out->Close();
  for (int i = 0; i < around; ++i) out->Close();
}

}  // namespace fusion::text
