#include "compiler/backends/text/print_tile_results.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/vector_form.h"

namespace fusion::text {
namespace {

using te::Axis;
using te::Scalar;

class ResultPrinter {
 public:
  ResultPrinter(const movement::Kernel& kernel, const movement::Step& step, const movement::RegisterTile& tile,
                const TaskShape& shape, int* next_temp, CodeWriter* out)
      : kernel_(kernel),
        step_(step),
        tile_(tile),
        store_(step.stores[0]),
        stored_(step.store_types[0]),
        lanes_(shape.lanes),
        work_group_size_(shape.work_group_size),
        transposes_(shape.parts),
        next_temp_(next_temp),
        out_(out) {}

  // Puts the tile into a small array, so that the epilogue is one text however many accumulators there are.
  void Print(const TileResults& results) {
    const int rows = results.rows, vectors = results.vectors;
    const bool single = rows * vectors == 1;
    const std::string type = VectorType(step_.reduction->acc);
    const bool some_lanes = step_.look && tile_.store_limit;
    if (step_.look && !some_lanes) Look(rows * vectors, vectors);
    const bool contiguous =
        te::ClassifyLanes(store_.address, Axis{tile_.lane_axis, lanes_}, lanes_) == te::LaneAccess::kContiguous;
    const bool apart = !contiguous && work_group_size_ == 1 && VectorThen() && !step_.lane_limit;
    const std::vector<Run> runs = apart && transposes_ ? Runs(rows, vectors) : std::vector<Run>();
    if (!runs.empty()) out_->Line(absl::StrCat(VectorType(stored_), " out[", rows * vectors, "];"));
    if (single) {
      out_->Line(absl::StrCat("const ", type, " acc = c0_0;"));
      out_->Line(absl::StrCat("const ix rr = 0, vv = 0;"));
    } else {
      std::vector<std::string> all;
      for (int r = 0; r < rows; ++r) {
        for (int v = 0; v < vectors; ++v) all.push_back(absl::StrCat("c", r, "_", v));
      }
      out_->Line(absl::StrCat("const ", type, " tile[", all.size(), "] = {", absl::StrJoin(all, ", "), "};"));
      out_->Open(absl::StrCat("UNROLL for (ix rr = 0; rr < ", rows, "; ++rr) UNROLL for (ix vv = 0; vv < ", vectors,
                              "; ++vv)"));
      out_->Line(absl::StrCat("const ", type, " acc = tile[rr * ", vectors, " + vv];"));
    }
    out_->Open("");
    PrintPlace(absl::StrCat(results.first_row, " + rr"), "vv");
    if (some_lanes) {  // the others hold what lay in the scratch
      out_->Line(absl::StrCat("look = look + vsel(iota() < bi((int)", ValidLanes(), "), acc, bc(0.f)) * bc(0.f);"));
    }
    if (contiguous && VectorThen()) {
      StoreVector();
    } else if (!runs.empty()) {
      KeepForTranspose(vectors);
    } else if (apart && !step_.then.empty()) {
      StoreApart();
    } else {
      StoreElements();
    }
    out_->Close();
    if (!single) out_->Close();
    for (const Run& run : runs) StoreTransposed(run, results);
  }

 private:
  // Adds zero times the sums to the look: NaN where one of them is infinite or NaN. A tree, since each addition waits
  // for those below it alone.
  void Look(int count, int vectors) {
    std::vector<std::string> sums;
    for (int i = 0; i < count; ++i) sums.push_back(absl::StrCat("c", i / vectors, "_", i % vectors));
    for (; sums.size() > 1; sums.resize((sums.size() + 1) / 2)) {
      const size_t half = (sums.size() + 1) / 2;
      for (size_t i = half; i < sums.size(); ++i) {
        sums[i - half] = absl::StrCat("(", sums[i - half], " + ", sums[i], ")");
      }
    }
    out_->Line(absl::StrCat("look = look + ", sums[0], " * bc(0.f);"));
  }

  // Results whose addresses follow each other: in each lane, those of these rows and vectors.
  using Run = std::vector<std::pair<int, int>>;

  // Names the row and the vector, and counts the lanes that are stored from there.
  void PrintPlace(const std::string& row, const std::string& vector) {
    if (tile_.row_axis >= 0) out_->Line(absl::StrCat("const ix ", AxisText(tile_.row_axis), " = ", row, ";"));
    if (tile_.outer_axis >= 0) out_->Line(absl::StrCat("const ix ", AxisText(tile_.outer_axis), " = ", vector, ";"));
    if (!tile_.store_limit) return;
    out_->Line(absl::StrCat("const ix left = ", tile_.store_limit->limit, " - (",
                            IndexText(tile_.store_limit->index, AxisText, kernel_), ");"));
  }

  // The number of lanes to store; empty: all.
  std::string ValidLanes() const {
    if (!tile_.store_limit) return "";
    return tile_.store_limit->index.UsesAxis(tile_.lane_axis) ? absl::StrCat("smin_i64(", lanes_, ", left)")
                                                              : absl::StrCat("(left > 0 ? ", lanes_, " : 0)");
  }

  // The address of a lane, whose number is the text `l`.
  std::string LaneAddress(const std::string& l) const {
    const auto in_lane = [&](int axis) {
      return axis == tile_.lane_axis ? absl::StrCat("(", AxisText(axis), " + ", l, ")") : AxisText(axis);
    };
    return IndexText(store_.address, in_lane, kernel_);
  }

  std::string VectorValue() {
    if (step_.then.empty()) return "acc";
    ExprPrinter printer(out_, {&kernel_, AxisText, tile_.lane_axis, lanes_, ValidLanes(), {{"acc", true}}, next_temp_});
    return printer.EmitVector(step_.then[0]);
  }

  void StoreVector() {
    const std::string valid = ValidLanes();
    if (!valid.empty()) out_->Open("if (left > 0)");
    std::string value = VectorValue();
    if (step_.lane_limit) value = MaskedText(*step_.lane_limit, value, stored_, kernel_);
    const std::string place = absl::StrCat("b", store_.buffer, " + ", IndexText(store_.address, AxisText, kernel_));
    if (valid.empty()) {
      out_->Line(VectorStoreText(stored_, place, value));
      return;
    }
    out_->Line(absl::StrCat(PointerType(kernel_.buffers[store_.buffer], /*read_only=*/false), " o = ", place, ";"));
    out_->Line(absl::StrCat("const ix n = ", valid, ";"));
    out_->Line(absl::StrCat("const ", VectorType(stored_), " out = ", value, ";"));
    const std::string whole = absl::StrCat("if (n == ", lanes_, ") ", VectorStoreText(stored_, "o", "out"));
    if (stored_ == DType::kF32) {
      out_->Line(absl::StrCat(whole, " else st_first_f32(o, out, n);"));
    } else {  // through an array, converted like whole vectors
      out_->Line(absl::StrCat(whole, " else { ", StorageType(stored_), " tail[", lanes_, "]; ",
                              VectorStoreText(stored_, "tail", "out"),
                              " for (ix l = 0; l < n; ++l) o[l] = tail[l]; }"));
    }
    out_->Close();
  }

  // Lanes whose results lie apart are computed together and stored one by one.
  void StoreApart() {
    const std::string valid = ValidLanes();
    if (!valid.empty()) out_->Open("if (left > 0)");
    const std::string value = VectorValue();
    out_->Line(absl::StrCat(StorageType(stored_), " apart[", lanes_, "]; ", VectorStoreText(stored_, "apart", value)));
    const std::string count = valid.empty() ? absl::StrCat(lanes_) : valid;
    out_->Line(absl::StrCat("for (ix l = 0, n = ", count, "; l < n; ++l) b", store_.buffer, "[", LaneAddress("l"),
                            "] = apart[l];"));
    if (!valid.empty()) out_->Close();
  }

  // The runs of at most a vector in which each lane's results follow each other. Empty where a transposed tile is not
  // worth its shuffles, which are as many for a short run as for a whole vector.
  std::vector<Run> Runs(int rows, int vectors) const {
    int64_t by_row = 0, by_vector = 0;
    if (tile_.row_axis >= 0 && !store_.address.AffineIn(tile_.row_axis, &by_row)) return {};
    if (tile_.outer_axis >= 0 && !store_.address.AffineIn(tile_.outer_axis, &by_vector)) return {};
    std::vector<std::pair<int64_t, std::pair<int, int>>> results;
    for (int r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) results.push_back({by_row * r + by_vector * v, {r, v}});
    }
    std::sort(results.begin(), results.end());
    const std::optional<movement::Bound>& limit = tile_.store_limit;
    if (limit && limit->index.UsesAxis(tile_.row_axis)) return {};
    const bool limited_vectors = limit && limit->index.UsesAxis(tile_.outer_axis);
    std::vector<Run> runs;
    int64_t next = 0;
    for (const auto& [address, result] : results) {
      const bool joins = !runs.empty() && address == next && static_cast<int64_t>(runs.back().size()) < lanes_ &&
                         (!limited_vectors || runs.back().back().second == result.second);
      if (!joins) runs.emplace_back();
      runs.back().push_back(result);
      next = address + 1;
    }
    return static_cast<int64_t>(results.size()) * 4 > static_cast<int64_t>(runs.size()) * lanes_ ? runs
                                                                                                 : std::vector<Run>();
  }

  void KeepForTranspose(int vectors) {
    const std::string place = absl::StrCat("out[rr * ", vectors, " + vv]");
    if (tile_.store_limit) {
      out_->Line(absl::StrCat(place, " = ", VectorZero(stored_), ";"));
      out_->Open("if (left > 0)");
    }
    out_->Line(absl::StrCat(place, " = ", VectorValue(), ";"));
    if (tile_.store_limit) out_->Close();
  }

  // Exchanges the run's results with the lanes in registers, so that each lane's results are one store.
  void StoreTransposed(const Run& run, const TileResults& results) {
    out_->Open("");
    PrintPlace(absl::StrCat(results.first_row, " + ", run[0].first), absl::StrCat(run[0].second));
    std::vector<std::string> kept;
    for (int64_t i = 0; i < lanes_; ++i) {
      const auto& [r, v] = run[std::min<size_t>(i, run.size() - 1)];  // what follows the run is not stored
      kept.push_back(absl::StrCat("(vf)out[", r * results.vectors + v, "]"));
    }
    const std::vector<std::string> lanes = ExchangeLanes(std::move(kept), "vf", "zip_", next_temp_, out_);
    const bool some = tile_.store_limit && tile_.store_limit->index.UsesAxis(tile_.lane_axis);
    if (tile_.store_limit) out_->Open("if (left > 0)");
    const std::string type = VectorType(stored_);
    for (int64_t l = 0; l < lanes_; ++l) {
      const std::string place = absl::StrCat("b", store_.buffer, " + ", LaneAddress(absl::StrCat(l, "L")));
      const std::string value = type == "vf" ? lanes[l] : absl::StrCat("(", type, ")", lanes[l]);
      const std::string count = absl::StrCat(run.size());
      const std::string text = static_cast<int64_t>(run.size()) == lanes_ ? VectorStoreText(stored_, place, value)
                               : stored_ == DType::kF32
                                   ? absl::StrCat("st_first_f32(", place, ", ", value, ", ", count, ");")
                                   : PartStoreText(stored_, place, value, count);
      out_->Line(some && l > 0 ? absl::StrCat("if (left > ", l, ") ", text) : text);
    }
    if (tile_.store_limit) out_->Close();
    out_->Close();
  }

  // A value without a vector form is computed and stored lane by lane.
  void StoreElements() {
    const std::string valid = ValidLanes();
    const std::string lane_value = LaneText(step_.reduction->acc, "acc", "l");
    const std::string count = valid.empty() ? absl::StrCat(lanes_) : valid;
    out_->Open(absl::StrCat("for (ix l = 0, n = ", count, "; l < n; ++l)"));
    const auto in_lane = [&](int axis) {
      return axis == tile_.lane_axis ? absl::StrCat("(", AxisText(axis), " + l)") : AxisText(axis);
    };
    ExprPrinter printer(out_, {&kernel_, in_lane, -1, 1, "", {{lane_value, false}}, next_temp_});
    std::string value = step_.then.empty() ? lane_value : printer.Emit(step_.then[0]).text;
    if (const std::optional<movement::Bound>& limit = step_.lane_limit) {
      value =
          absl::StrCat("((", IndexText(limit->index, in_lane, kernel_), ") < ", limit->limit, " ? ", value, " : 0)");
    }
    out_->Line(
        StoreText(kernel_.buffers[store_.buffer], absl::StrCat("b", store_.buffer, "[", LaneAddress("l"), "]"), value));
    out_->Close();
  }

  bool VectorThen() const {
    bool ok = movement::LaneKindOf(stored_) != movement::LaneKind::kNone;
    for (const Scalar& s : step_.then) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        ok = ok && movement::HasVectorForm(node);
        for (const te::Comparison& c : node.pred) {
          ok = ok && !c.lhs.UsesAxis(tile_.lane_axis) && !c.rhs.UsesAxis(tile_.lane_axis);
        }
      });
    }
    return ok;
  }

  const movement::Kernel& kernel_;
  const movement::Step& step_;
  const movement::RegisterTile& tile_;
  const movement::Store& store_;
  const DType stored_;
  const int64_t lanes_;
  const int work_group_size_;
  const bool transposes_;
  int* next_temp_;
  CodeWriter* out_;
};

}  // namespace

void PrintTileResults(const movement::Kernel& kernel, const movement::Step& step, const movement::RegisterTile& tile,
                      const TaskShape& shape, const TileResults& results, int* next_temp, CodeWriter* out) {
  ResultPrinter(kernel, step, tile, shape, next_temp, out).Print(results);
}

}  // namespace fusion::text
