#include "compiler/backends/text/print_threadgroup_tile.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/text/print_nest.h"

namespace fusion::text {
namespace {

// Elements that a work-item copies at once. Without this limit compilers unroll the loops around them as well, and keep
// the addresses and border tests of all of them in registers.
constexpr int kLoadsAtOnce = 4;
// Steps of a product of elements that are unrolled: a vector along the depth is loaded at once where it lies so.
constexpr int kDepthAtOnce = 4;

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

// Text of the position of an element, or of the first element of a fragment. `together`: elements of a work-item that
// lie beside each other.
std::string PositionText(const std::string& axis, const char* item, int items, const char* number, int extent,
                         int together) {
  if (together > 1) {
    return absl::StrCat("const int ", axis, " = ", together, " * (", item, " + ", number, " / ", together, " * ", items,
                        ") + ", number, " % ", together);
  }
  return absl::StrCat("const int ", axis, " = ", extent > 1 ? absl::StrCat(extent, " * ") : "", "(", item, " + ",
                      number, " * ", items, ")");
}

// The elements of a side that a work-item has beside each other: a vector, where the K-slice holds them as one.
int TogetherOf(const te::ScalarNode& load, int axis, int count, bool fragments, int lanes) {
  int64_t pitch = 0;
  const bool vector = !fragments && count % lanes == 0 && load.indices[0].AffineIn(axis, &pitch) && pitch == 1;
  return vector ? lanes : 1;
}

class ThreadgroupTilePrinter {
 public:
  ThreadgroupTilePrinter(const movement::Kernel& kernel, const movement::Step& step,
                         const movement::ThreadgroupTile& tile, const TaskShape& shape, int* next_temp, CodeWriter* out)
      : kernel_(kernel),
        step_(step),
        tile_(tile),
        product_(tile.product),
        shape_(shape),
        next_temp_(next_temp),
        out_(out),
        results_(absl::StrCat(Unrolled("r", tile.rows), " ", Unrolled("c", tile.columns))),
        own_(product_.rows * product_.columns / product_.work_items),
        k_slices_(step.reduction->axes.begin(), step.reduction->axes.end() - 1) {
    const te::ScalarNode &first = LoadOf(step.body[0]->args[0]), &second = LoadOf(step.body[0]->args[1]);
    const bool first_by_row = first.indices[0].UsesAxis(tile.row_axis);
    by_row_ = first_by_row ? &first : &second;
    by_column_ = first_by_row ? &second : &first;
    row_of_ = PositionText(AxisText(tile.row_axis), "item_row", tile.item_rows, "r", product_.rows,
                           TogetherOf(*by_row_, tile.row_axis, tile.rows, product_.fragments(), shape.lanes));
    column_of_ =
        PositionText(AxisText(tile.column_axis), "item_column", tile.item_columns, "c", product_.columns,
                     TogetherOf(*by_column_, tile.column_axis, tile.columns, product_.fragments(), shape.lanes));
    type_ = by_row_->dtype == DType::kF16 ? "f16" : "tf32";
    for (const movement::Step& shared_copy : tile.shared_copies) {
      if (const auto run = RunOf(shared_copy); run && product_.from_memory) runs_[&shared_copy] = *run;
    }
  }

  void Print() {
    const std::string item =
        product_.fragments() ? absl::StrCat("(lid / ", product_.work_items, ")") : std::string("lid");
    out_->Line(absl::StrCat("const int item_row = ", item, " / ", tile_.item_columns, ", item_column = ", item, " % ",
                            tile_.item_columns, ";"));
    const std::vector<movement::Loop> tiles(step_.loops.begin(), step_.loops.end() - 2);
    const int around = OpenPoints(tiles, kernel_, 1, out_, /*unroll=*/1);
    out_->Line(absl::StrCat("float acc[", tile_.rows, "][", tile_.columns, "][", own_, "];"));
    out_->Line(absl::StrCat(results_, " ", Unrolled("e", own_), " acc[r][c][e] = 0.f;"));
    if (!runs_.empty()) out_->Line(absl::StrCat("BEGIN_RUNS(", runs_.size(), ")"));
    const int depth = tile_.buffers == 1 ? OpenSlices() : OpenSlicesAhead();
    PrintProducts();
    for (int i = 0; i < depth; ++i) out_->Close();
    PrintResults();
    for (int i = 0; i < around; ++i) out_->Close();
  }

 private:
  // Copies a K-slice of each operand to shared memory.
  void CopySlices() {
    TaskShape staged = shape_;
    staged.unroll = kLoadsAtOnce;
    for (const movement::Step& shared_copy : tile_.shared_copies) {
      if (const auto run = runs_.find(&shared_copy); run != runs_.end()) {
        out_->Line(absl::StrCat("COPY_RUN(b", shared_copy.stores[0].buffer, " + ",
                                IndexText(run->second.to, AxisText, kernel_), ", b", shared_copy.body[0]->tensor, " + ",
                                IndexText(run->second.from, AxisText, kernel_), ", ",
                                run->second.elements * DTypeBytes(shared_copy.store_types[0]), ")"));
        continue;
      }
      if (tile_.buffers == 1 || !PrintCopy(kernel_, shared_copy, staged, out_)) {
        out_->Open("");
        PrintNest(kernel_, shared_copy, staged, next_temp_, out_);
        out_->Close();
      }
    }
  }

  // Opens the loops over K-slices; each iteration copies a slice and then multiplies it. Returns how many Close() end
  // them.
  int OpenSlices() {
    std::vector<movement::Loop> loops;
    for (const te::Axis& axis : k_slices_) loops.push_back({axis, std::nullopt});
    const int depth = OpenPoints(loops, kernel_, 1, out_, /*unroll=*/1);
    if (!tile_.shared_copies.empty()) out_->Line("BARRIER");  // the slices before have been read
    CopySlices();
    if (!runs_.empty()) out_->Line("RUNS_ARRIVE");
    if (product_.from_memory) out_->Line("SLICES_WRITTEN");
    if (!tile_.shared_copies.empty()) out_->Line("BARRIER");
    return depth;
  }

  // The same where a slice is copied while the one before is multiplied.
  int OpenSlicesAhead() {
    int64_t count = 1;
    for (const te::Axis& axis : k_slices_) count *= axis.extent;
    // After the barrier the K-slice copied in the iteration before has arrived, and the one multiplied there has been
    // read.
    out_->Open(absl::StrCat("UNROLL_BY(1) for (ix k_slice = 0; k_slice <= ", count, "; ++k_slice)"));
    out_->Line("COPIES_ARRIVE");
    if (!runs_.empty()) out_->Line("if (k_slice > 0) RUNS_ARRIVE");
    if (product_.from_memory) out_->Line("SLICES_WRITTEN");
    out_->Line("BARRIER");
    out_->Open(absl::StrCat("if (k_slice < ", count, ")"));
    PrintCoordinates("k_slice", k_slices_, out_);
    CopySlices();
    out_->Close();
    out_->Line("if (k_slice == 0) continue;");
    PrintCoordinates("(k_slice - 1)", k_slices_, out_);
    return 1;
  }

  // Multiplies the K-slices, a fragment's depth at a time.
  void PrintProducts() {
    const te::Axis& k_slice = step_.reduction->axes.back();
    const std::string k = AxisText(k_slice.id);
    // Products run asynchronously, and the compiler does not see when they are waited for: HOLD keeps it from moving
    // accesses to the results across these places.
    const std::string hold = absl::StrCat(results_, " ", Unrolled("e", own_), " HOLD(acc[r][c][e])");
    if (product_.from_memory) out_->Line(absl::StrCat(hold, " BEGIN_PRODUCTS"));
    out_->Open(absl::StrCat(product_.fragments() ? "" : absl::StrCat("UNROLL_BY(", kDepthAtOnce, ") "), "for (int ", k,
                            " = 0; ", k, " < ", k_slice.extent, "; ", k, " += ", product_.depth, ")"));
    if (product_.from_memory) {
      out_->Line(absl::StrCat(results_, " { ", row_of_, "; ", column_of_, "; multiply_memory_", type_, "(acc[r][c], ",
                              MatrixText(*by_row_), ", ", MatrixText(*by_column_), "); }"));
    } else {
      LoadOperand(*by_row_, "by_row", "r", tile_.rows, row_of_, tile_.row_axis);
      LoadOperand(*by_column_, "by_column", "c", tile_.columns, column_of_, tile_.column_axis);
      out_->Line(absl::StrCat(results_, product_.fragments()
                                            ? absl::StrCat(" multiply_", type_, "(acc[r][c], by_row[r], by_column[c]);")
                                            : " acc[r][c][0] += by_row[r] * by_column[c];"));
    }
    out_->Close();
    if (product_.from_memory) out_->Line(absl::StrCat("END_PRODUCTS ", hold));
  }

  // Text of an operand that lies in shared memory: its address, and the bytes from one row of layout blocks to the
  // next.
  std::string MatrixText(const te::ScalarNode& load) const {
    const int64_t pitch =
        step_.reduction->axes.back().extent * DTypeBytes(by_row_->dtype) * movement::FragmentProduct::kBlockRows;
    return absl::StrCat("MATRIX(b", load.tensor, " + ", IndexText(load.indices[0], AxisText, kernel_), ", ", pitch,
                        ")");
  }

  // Loads an operand's elements or fragments into registers.
  void LoadOperand(const te::ScalarNode& load, const char* name, const char* number, int count,
                   const std::string& place, int axis) {
    const std::string element = absl::StrCat(name, "[", number, "]");
    out_->Line(absl::StrCat(product_.fragments() ? absl::StrCat(name, "_", type_) : std::string("float"), " ", name,
                            "[", count, "];"));
    std::string text = absl::StrCat(element, " = ", Factor(load, kernel_));
    if (product_.fragments()) {
      int64_t pitch = 0;
      load.indices[0].AffineIn(axis, &pitch);
      text = absl::StrCat("ld_", name, "_", type_, "(&", element, ", b", load.tensor, " + ",
                          IndexText(load.indices[0], AxisText, kernel_), ", ", pitch, ")");
    }
    out_->Line(absl::StrCat(Unrolled(number, count), " { ", place, "; ", text, "; }"));
  }

  // The epilogue at each result, and the stores.
  void PrintResults() {
    out_->Open(own_ > 1 ? absl::StrCat(results_, " ", Unrolled("e", own_)) : results_);
    out_->Line(absl::StrCat(row_of_, product_.from_memory   ? " + FRAGMENT_ROW_OF_FOUR(e);"
                                     : product_.fragments() ? " + FRAGMENT_ROW(e);"
                                                            : ";"));
    out_->Line(absl::StrCat(column_of_, product_.fragments() ? " + FRAGMENT_COLUMN(e);" : ";"));
    te::Pred inside;
    for (const movement::Loop& loop : {step_.loops[step_.loops.size() - 2], step_.loops.back()}) {
      if (loop.limit) inside.push_back({te::Index(loop.axis), te::Cmp::kLt, *loop.limit});
    }
    if (const std::optional<movement::Bound>& limit = tile_.store_limit) {
      inside.push_back({limit->index, te::Cmp::kLt, te::Index(limit->limit)});
    }
    out_->Open(inside.empty() ? "" : absl::StrCat("if (", PredText(inside, AxisText, kernel_), ")"));
    PrintResult(kernel_, step_, own_ > 1 ? "acc[r][c][e]" : "acc[r][c][0]", next_temp_, out_);
    out_->Close();
    out_->Close();
  }

  const movement::Kernel& kernel_;
  const movement::Step& step_;
  const movement::ThreadgroupTile& tile_;
  const movement::FragmentProduct& product_;
  const TaskShape& shape_;
  int* next_temp_;
  CodeWriter* out_;
  std::string row_of_, column_of_;        // texts that define the position of a result
  const std::string results_;             // text of the loops over a work-item's results
  const int own_;                         // a work-item's elements of a fragment
  const std::vector<te::Axis> k_slices_;
  const te::ScalarNode* by_row_;  // the factors' loads
  const te::ScalarNode* by_column_;
  std::string type_;                           // in the names of the helpers for fragments
  std::map<const movement::Step*, Run> runs_;  // copied whole, by a copy engine
};

}  // namespace

void PrintThreadgroupTile(const movement::Kernel& kernel, const movement::Step& step,
                          const movement::ThreadgroupTile& tile, const TaskShape& shape, int* next_temp,
                          CodeWriter* out) {
  ThreadgroupTilePrinter(kernel, step, tile, shape, next_temp, out).Print();
}

}  // namespace fusion::text
