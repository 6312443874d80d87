#include "compiler/backends/text/print_threadgroup_tile.h"

#include <map>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/text/print_nest.h"

namespace fusion::text {
namespace {

// Elements that a work-item copies at once. Without this limit compilers unroll the loops around them as well, and keep
// the addresses and border tests of all of them in registers.
constexpr int kLoadsAtOnce = 4;

// Text of `for (int i = 0; i < count; ++i)`, unrolled.
std::string Unrolled(const std::string& i, int count) {
  return absl::StrCat("UNROLL for (int ", i, " = 0; ", i, " < ", count, "; ++", i, ")");
}

// Text of a factor of the product: an element of its K-slice.
std::string Factor(const te::ScalarNode& load, const movement::Kernel& kernel) {
  return LoadText(kernel.buffers[load.tensor],
                  absl::StrCat("b", load.tensor, "[", IndexText(load.indices[0], AxisText, kernel), "]"));
}

// Prints each axis as its coordinate in the row-major number.
void PrintCoordinates(const std::string& number, const std::vector<te::Axis>& axes, CodeWriter* out) {
  int64_t inner = 1;
  for (size_t a = axes.size(); a-- > 0; inner *= axes[a].extent) {
    out->Line(absl::StrCat("const ix ", AxisText(axes[a].id), " = ", number, " / ", inner, " % ", axes[a].extent, ";"));
  }
}

// Prints asynchronous copies, of elements or of aligned vectors, where the operand is an element of memory as it is, or
// zero outside a border. Returns false, and prints nothing, where more must be computed.
bool PrintCopy(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, CodeWriter* out) {
  te::Pred inside;
  const te::ScalarNode* value = step.body[0].get();
  for (; value->kind == te::ScalarKind::kIf && te::IsImm(value->args[1], 0); value = value->args[0].get()) {
    inside.insert(inside.end(), value->pred.begin(), value->pred.end());
  }
  const bool vectors = step.Is<movement::VectorMap>();
  const DType dtype = value->dtype;
  // Single f16 elements are excluded, because a copy has at least four bytes.
  if (value->kind != te::ScalarKind::kLoad || dtype != step.store_types[0] || step.lane_limit ||
      kernel.buffers[value->tensor].scope == Scope::kBlock ||
      !(dtype == DType::kF32 || (dtype == DType::kF16 && vectors))) {
    return false;
  }
  std::vector<movement::Loop> loops = step.loops;
  const te::Axis inner = loops.back().axis;
  const int number = kernel.next_axis;  // number of a vector in its row: an axis of this text alone
  if (vectors) loops.back() = {{number, inner.extent / shape.lanes}, std::nullopt};
  OpenPoints(loops, kernel, shape.work_group_size, out, shape.unroll);
  if (vectors)
    out->Line(absl::StrCat("const ix ", AxisText(inner.id), " = ", AxisText(number), " * ", shape.lanes, ";"));
  const std::string to =
      absl::StrCat("b", step.stores[0].buffer, " + ", IndexText(step.stores[0].address, AxisText, kernel));
  const std::string name = absl::StrCat(vectors ? "copyv_" : "copy_", DTypeName(dtype));
  const std::string copy =
      absl::StrCat(name, "(", to, ", b", value->tensor, " + ", IndexText(value->indices[0], AxisText, kernel), ");");
  if (inside.empty()) {
    out->Line(copy);
  } else {
    const std::string zero = vectors ? VectorStoreText(dtype, to, VectorZero(dtype)) : absl::StrCat("*(", to, ") = 0;");
    out->Line(absl::StrCat("if (", PredText(inside, AxisText, kernel), ") ", copy));
    out->Line(absl::StrCat("else ", zero));
  }
  out->Close();
  return true;
}

// A K-slice that is one unchanged run of memory, where source, destination and length are multiples of 16 bytes: its
// length in elements, and where it begins on both sides.
struct Run {
  int64_t elements = 1;
  te::Index to, from;
};

std::optional<Run> RunOf(const movement::Step& shared_copy) {
  const te::ScalarNode& value = *shared_copy.body[0];
  if (value.kind != te::ScalarKind::kLoad || value.dtype != shared_copy.store_types[0] || shared_copy.lane_limit) {
    return std::nullopt;
  }
  std::vector<te::Index> coordinates;
  std::vector<int64_t> extents;
  Run run;
  for (const movement::Loop& loop : shared_copy.loops) {
    coordinates.push_back(loop.axis);
    extents.push_back(loop.axis.extent);
    run.elements *= loop.axis.extent;
  }
  const te::Index along = te::Linearize(coordinates, extents);
  run.to = shared_copy.stores[0].address - along;
  run.from = value.indices[0] - along;
  for (const movement::Loop& loop : shared_copy.loops) {
    if (run.to.UsesAxis(loop.axis.id) || run.from.UsesAxis(loop.axis.id)) return std::nullopt;
  }
  const int64_t aligned = 16 / DTypeBytes(value.dtype);
  for (const te::Index& index : {run.to, run.from, te::Index(run.elements)}) {
    if (!(te::Mod(index, aligned) == te::Index(0))) return std::nullopt;
  }
  return run;
}

// The element of a K-slice that a factor loads, widened or not.
const te::ScalarNode& LoadOf(const te::Scalar& factor) {
  return factor->kind == te::ScalarKind::kCast ? *factor->args[0] : *factor;
}

}  // namespace

void PrintThreadgroupTile(const movement::Kernel& kernel, const movement::Step& step,
                          const movement::ThreadgroupTile& tile, const TaskShape& shape, int* next_temp,
                          CodeWriter* out) {
  const std::string row = AxisText(tile.row_axis), column = AxisText(tile.column_axis);
  const movement::FragmentProduct& product = tile.product;
  const te::ScalarNode &first = LoadOf(step.body[0]->args[0]), &second = LoadOf(step.body[0]->args[1]);
  const bool first_by_row = first.indices[0].UsesAxis(tile.row_axis);
  const te::ScalarNode &by_row = first_by_row ? first : second, &by_column = first_by_row ? second : first;
  // Position of an element, or of the first element of a fragment.
  const auto place_of = [](const std::string& axis, const char* item, int items, const char* number, int extent) {
    return absl::StrCat("const int ", axis, " = ", extent > 1 ? absl::StrCat(extent, " * ") : "", "(", item, " + ",
                        number, " * ", items, ")");
  };
  const std::string row_of = place_of(row, "item_row", tile.item_rows, "r", product.rows),
                    column_of = place_of(column, "item_column", tile.item_columns, "c", product.columns);
  std::string results = absl::StrCat(Unrolled("r", tile.rows), " ", Unrolled("c", tile.columns));
  const std::string item = product.fragments() ? absl::StrCat("(lid / ", product.work_items, ")") : std::string("lid");
  out->Line(absl::StrCat("const int item_row = ", item, " / ", tile.item_columns, ", item_column = ", item, " % ",
                         tile.item_columns, ";"));
  const int own = product.rows * product.columns / product.work_items;  // a work-item's elements of a fragment
  const std::vector<movement::Loop> tiles(step.loops.begin(), step.loops.end() - 2);
  const int around = OpenPoints(tiles, kernel, 1, out, /*unroll=*/1);
  out->Line(absl::StrCat("float acc[", tile.rows, "][", tile.columns, "][", own, "];"));
  out->Line(absl::StrCat(results, " ", Unrolled("e", own), " acc[r][c][e] = 0.f;"));

  const std::vector<te::Axis> k_slices(step.reduction->axes.begin(), step.reduction->axes.end() - 1);
  TaskShape staged = shape;
  staged.unroll = kLoadsAtOnce;
  std::map<const movement::Step*, Run> runs;  // copied whole, by a copy engine
  for (const movement::Step& shared_copy : tile.shared_copies) {
    if (const auto run = RunOf(shared_copy); run && product.from_memory) runs[&shared_copy] = *run;
  }
  if (!runs.empty()) out->Line(absl::StrCat("BEGIN_RUNS(", runs.size(), ")"));
  const auto bring_in = [&] {
    for (const movement::Step& shared_copy : tile.shared_copies) {
      if (const auto run = runs.find(&shared_copy); run != runs.end()) {
        out->Line(absl::StrCat("COPY_RUN(b", shared_copy.stores[0].buffer, " + ",
                               IndexText(run->second.to, AxisText, kernel), ", b", shared_copy.body[0]->tensor, " + ",
                               IndexText(run->second.from, AxisText, kernel), ", ",
                               run->second.elements * DTypeBytes(shared_copy.store_types[0]), ")"));
        continue;
      }
      if (tile.buffers == 1 || !PrintCopy(kernel, shared_copy, staged, out)) {
        out->Open("");
        PrintNest(kernel, shared_copy, staged, next_temp, out);
        out->Close();
      }
    }
  };
  int depth = 0;
  if (tile.buffers == 1) {
    std::vector<movement::Loop> loops;
    for (const te::Axis& axis : k_slices) loops.push_back({axis, std::nullopt});
    depth = OpenPoints(loops, kernel, 1, out, /*unroll=*/1);
    if (!tile.shared_copies.empty()) out->Line("BARRIER");  // the slices before have been read
    bring_in();
    if (!runs.empty()) out->Line("RUNS_ARRIVE");
    if (product.from_memory) out->Line("SLICES_WRITTEN");
    if (!tile.shared_copies.empty()) out->Line("BARRIER");
  } else {
    int64_t count = 1;
    for (const te::Axis& axis : k_slices) count *= axis.extent;
    // After the barrier the K-slice copied in the iteration before has arrived, and the one multiplied there has been
    // read.
    out->Open(absl::StrCat("UNROLL_BY(1) for (ix k_slice = 0; k_slice <= ", count, "; ++k_slice)"));
    out->Line("COPIES_ARRIVE");
    if (!runs.empty()) out->Line("if (k_slice > 0) RUNS_ARRIVE");
    if (product.from_memory) out->Line("SLICES_WRITTEN");
    out->Line("BARRIER");
    out->Open(absl::StrCat("if (k_slice < ", count, ")"));
    PrintCoordinates("k_slice", k_slices, out);
    bring_in();
    out->Close();
    out->Line("if (k_slice == 0) continue;");
    PrintCoordinates("(k_slice - 1)", k_slices, out);
    depth = 1;
  }
  const te::Axis& k_slice = step.reduction->axes.back();
  const std::string k = AxisText(k_slice.id);
  const std::string type = by_row.dtype == DType::kF16 ? "f16" : "tf32";
  // Products run asynchronously, and the compiler does not see when they are waited for: HOLD keeps it from moving
  // accesses to the results across these places.
  const std::string hold = absl::StrCat(results, " ", Unrolled("e", own), " HOLD(acc[r][c][e])");
  if (product.from_memory) out->Line(absl::StrCat(hold, " BEGIN_PRODUCTS"));
  out->Open(absl::StrCat("for (int ", k, " = 0; ", k, " < ", k_slice.extent, "; ", k, " += ", product.depth, ")"));
  const auto operand = [&](const te::ScalarNode& load, const char* name, const char* number, int count,
                           const std::string& place, int axis) {
    const std::string element = absl::StrCat(name, "[", number, "]");
    out->Line(absl::StrCat(product.fragments() ? absl::StrCat(name, "_", type) : std::string("float"), " ", name, "[",
                           count, "];"));
    std::string load_text = absl::StrCat(element, " = ", Factor(load, kernel));
    if (product.fragments()) {
      int64_t pitch = 0;
      load.indices[0].AffineIn(axis, &pitch);
      load_text = absl::StrCat("ld_", name, "_", type, "(&", element, ", b", load.tensor, " + ",
                               IndexText(load.indices[0], AxisText, kernel), ", ", pitch, ")");
    }
    out->Line(absl::StrCat(Unrolled(number, count), " { ", place, "; ", load_text, "; }"));
  };
  if (product.from_memory) {
    // Bytes from one row of layout blocks to the next.
    const int64_t pitch = k_slice.extent * DTypeBytes(by_row.dtype) * movement::FragmentProduct::kBlockRows;
    const auto matrix = [&](const te::ScalarNode& load) {
      return absl::StrCat("MATRIX(b", load.tensor, " + ", IndexText(load.indices[0], AxisText, kernel), ", ", pitch,
                          ")");
    };
    out->Line(absl::StrCat(results, " { ", row_of, "; ", column_of, "; multiply_memory_", type, "(acc[r][c], ",
                           matrix(by_row), ", ", matrix(by_column), "); }"));
  } else {
    operand(by_row, "by_row", "r", tile.rows, row_of, tile.row_axis);
    operand(by_column, "by_column", "c", tile.columns, column_of, tile.column_axis);
    out->Line(absl::StrCat(results, product.fragments()
                                        ? absl::StrCat(" multiply_", type, "(acc[r][c], by_row[r], by_column[c]);")
                                        : " acc[r][c][0] += by_row[r] * by_column[c];"));
  }
  out->Close();
  if (product.from_memory) out->Line(absl::StrCat("END_PRODUCTS ", hold));
  for (int i = 0; i < depth; ++i) out->Close();

  if (own > 1) absl::StrAppend(&results, " ", Unrolled("e", own));
  out->Open(results);
  out->Line(absl::StrCat(row_of, product.from_memory   ? " + FRAGMENT_ROW_OF_FOUR(e);"
                                 : product.fragments() ? " + FRAGMENT_ROW(e);"
                                                       : ";"));
  out->Line(absl::StrCat(column_of, product.fragments() ? " + FRAGMENT_COLUMN(e);" : ";"));
  te::Pred inside;
  for (const movement::Loop& loop : {step.loops[tiles.size()], step.loops.back()}) {
    if (loop.limit) inside.push_back({te::Index(loop.axis), te::Cmp::kLt, *loop.limit});
  }
  if (const std::optional<movement::Bound>& limit = tile.store_limit) {
    inside.push_back({limit->index, te::Cmp::kLt, te::Index(limit->limit)});
  }
  out->Open(inside.empty() ? "" : absl::StrCat("if (", PredText(inside, AxisText, kernel), ")"));
  PrintResult(kernel, step, own > 1 ? "acc[r][c][e]" : "acc[r][c][0]", next_temp, out);
  out->Close();
  out->Close();
  for (int i = 0; i < around; ++i) out->Close();
}

}  // namespace fusion::text
