#include "compiler/backends/text/print_nest.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/extreme_reduction.h"
#include "compiler/movement/prefix_reduction.h"
#include "compiler/movement/vector_form.h"
#include "runtime/base/check.h"

namespace fusion::text {
namespace {

using te::Axis;
using te::Scalar;

// The most copies of a short reduction's text, which use the vector accumulators in turn.
constexpr int64_t kMostUnrolled = 8;
// Work-items that reduce a contiguous row together: neighbours that run in step read neighbours.
constexpr int kRowTeam = 32;
// Vectors of a row that one pass over its columns keeps: a few thousand bytes, which stay in the nearest cache.
constexpr int64_t kStripVectors = 64;

class NestPrinter {
 public:
  NestPrinter(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
              CodeWriter* out)
      : kernel_(kernel),
        step_(step),
        map_(step.As<movement::VectorMap>()),
        lanes_(shape.lanes),
        work_group_size_(shape.work_group_size),
        parts_(shape.parts),
        unroll_(shape.unroll),
        next_temp_(next_temp),
        out_(out) {}

  void Print() {
    if (const int team = ReductionTeam(); team > 1) return PrintSharedReduction(team);
    std::visit([this](const auto& strategy) { PrintBy(strategy); }, step_.strategy);
  }

  void PrintResult(const std::string& acc) {
    OpenUnmasked();
    StoreScalars(step_.then, {{acc, false}});
    out_->Close();
  }

 private:
  void PrintBy(const movement::ScalarLoops&) { PrintScalar(); }
  void PrintBy(const movement::VectorMap&) { PrintMap(); }
  void PrintBy(const movement::RowReduction&) {
    step_.reduction->kind == te::ReductionKind::kGeneral ? PrintRowExtreme() : PrintRowReduction();
  }
  void PrintBy(const movement::PrefixPass& pass) { PrintPrefix(pass); }
  void PrintBy(const LibraryCall&) {}  // is no text
  template <typename Other>
  void PrintBy(const Other&) {
    FUSION_CHECK(false, "tiles and routines have printers of their own");
  }

  void OpenLoop(const movement::Loop& loop) { OpenPoints({loop}, kernel_, 1, out_); }

  std::string Place(const movement::Store& store) {
    return absl::StrCat("b", store.buffer, "[", IndexText(store.address, AxisText, kernel_), "]");
  }

  ExprPrinter::Options ScalarOptions(std::vector<PrintedValue> accs = {}) {
    return {&kernel_, AxisText, -1, 1, "", std::move(accs), next_temp_};
  }

  // Opens the code for real lanes. Lanes past a blocked layout's logical extent get zero, and nothing is loaded for
  // them.
  void OpenUnmasked() {
    if (!step_.lane_limit) return out_->Open("");
    out_->Open(absl::StrCat("if (!(", BoundText(*step_.lane_limit, AxisText, kernel_), "))"));
    for (const movement::Store& store : step_.stores)
      out_->Line(StoreText(kernel_.buffers[store.buffer], Place(store), "0"));
    out_->Close();
    out_->Open("else");
  }

  // Stores one element of every output.
  void StoreScalars(const std::vector<Scalar>& values, const std::vector<PrintedValue>& accs) {
    ExprPrinter printer(out_, ScalarOptions(accs));
    for (size_t o = 0; o < step_.stores.size(); ++o) {
      const std::string value = values.empty() ? accs[o].text : printer.Emit(values[o]).text;
      out_->Line(StoreText(kernel_.buffers[step_.stores[o].buffer], Place(step_.stores[o]), value));
    }
  }

  void PrintScalar() {
    const int depth = OpenPoints(step_.loops, kernel_, work_group_size_, out_, unroll_);
    OpenUnmasked();
    if (!step_.reduction) {
      StoreScalars(step_.body, {});
    } else {
      PrintScalarReduction();
    }
    out_->Close();
    for (int i = 0; i < depth; ++i) out_->Close();
  }

  static std::string Combine(te::ReductionKind kind, const std::string& acc, const std::string& x, DType dtype) {
    switch (kind) {
      case te::ReductionKind::kSum:
        return IsFloat(dtype) ? absl::StrCat(acc, " += ", x, ";")
                              : absl::StrCat(acc, " = (", CType(dtype), ")((u64)", acc, " + (u64)", x, ");");
      case te::ReductionKind::kProd:
        return IsFloat(dtype) ? absl::StrCat(acc, " *= ", x, ";")
                              : absl::StrCat(acc, " = (", CType(dtype), ")((u64)", acc, " * (u64)", x, ");");
      case te::ReductionKind::kMax:
        return absl::StrCat(acc, " = ", TypedName("smax", dtype), "(", x, ", ", acc, ");");
      case te::ReductionKind::kMin:
        return absl::StrCat(acc, " = ", TypedName("smin", dtype), "(", x, ", ", acc, ");");
      case te::ReductionKind::kGeneral:
        break;
    }
    return "";
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
    for (size_t i = 0; i < reduction.axes.size() + 1; ++i) out_->Close();
    StoreScalars(step_.then, accs);
  }

  // Prefetches the vectors that will be loaded next: of the next task, or further along the loop.
  void PrintReadNext() {
    const movement::ReadNext& next = map_->read_next;
    if (next.axis < 0) return;
    const AxisName ahead = [&](int axis) {
      return axis == next.axis ? absl::StrCat("(", AxisText(axis), " + ", next.distance, ")") : AxisText(axis);
    };
    std::set<std::string> places;
    for (const Scalar& s : step_.body) {
      te::Visit(s, [&](const te::ScalarNode& node) {
        if (node.kind != te::ScalarKind::kLoad) return;
        if (std::find(next.buffers.begin(), next.buffers.end(), node.tensor) == next.buffers.end()) return;
        places.insert(absl::StrCat("b", node.tensor, " + ", IndexText(node.indices[0], ahead, kernel_)));
      });
    }
    for (const std::string& place : places) out_->Line(absl::StrCat("PREFETCH_L1(", place, ");"));
  }

  // `count`: the number of elements to store, for a vector that is not whole.
  void PrintMapVector(int axis, const std::string& count = "") {
    PrintReadNext();
    ExprPrinter printer(out_, {&kernel_, AxisText, axis, lanes_, count, {}, next_temp_});
    for (size_t o = 0; o < step_.stores.size(); ++o) {
      std::string value = printer.EmitVector(step_.body[o]);
      if (step_.lane_limit) value = MaskedText(*step_.lane_limit, value, step_.store_types[o], kernel_);
      const std::string place =
          absl::StrCat("b", step_.stores[o].buffer, " + ", IndexText(step_.stores[o].address, AxisText, kernel_));
      if (!count.empty()) {
        out_->Line(absl::StrCat("st_first_f32(", place, ", ", value, ", ", count, ");"));
      } else {
        out_->Line(map_->streaming_stores ? absl::StrCat("st_stream_f32(", place, ", ", value, ");")
                                          : VectorStoreText(step_.store_types[o], place, value));
      }
    }
  }

  // Prints the last `count` elements, which fill no vector.
  void PrintMapPart(int axis, const std::string& count) {
    ExprPrinter::Options options{&kernel_, AxisText, axis, lanes_, count, {}, next_temp_};
    options.part = true;
    ExprPrinter printer(out_, options);
    for (size_t o = 0; o < step_.stores.size(); ++o) {
      const std::string value = printer.EmitVector(step_.body[o]);
      const std::string place =
          absl::StrCat("b", step_.stores[o].buffer, " + ", IndexText(step_.stores[o].address, AxisText, kernel_));
      out_->Line(IsRowOfScratch(o) ? VectorStoreText(step_.store_types[o], place, value)
                                   : PartStoreText(step_.store_types[o], place, value, count));
    }
  }

  // Does the step fill a scratch buffer of the task from its beginning to its end? Then the last vector is stored
  // whole: it ends within the buffer's last line, which holds nothing else. A load by the next step cannot be served
  // from a store of a part of a vector, so it would wait until that store reaches the cache.
  bool IsRowOfScratch(size_t o) const {
    const movement::Loop& inner = step_.loops.back();
    const movement::Buffer& buffer = kernel_.buffers[step_.stores[o].buffer];
    return buffer.scope == Scope::kBlock && !inner.limit && buffer.elements == inner.axis.extent &&
           step_.stores[o].address == te::Index(inner.axis);
  }

  // Prints one vector for each work-item; where a row ends within it, its elements one by one.
  void PrintSharedMap() {
    std::vector<movement::Loop> vectors = step_.loops;
    const movement::Loop inner = vectors.back();
    const std::string i = AxisText(inner.axis.id);
    const int number = kernel_.next_axis;  // number of the vector in its row: an axis of this text alone
    vectors.back() = {{number, (inner.axis.extent + lanes_ - 1) / lanes_}, std::nullopt};
    OpenPoints(vectors, kernel_, work_group_size_, out_, unroll_);
    out_->Line(absl::StrCat("const ix first = ", AxisText(number), " * ", lanes_, ", e_", i, " = ",
                            LimitText(inner, kernel_), ";"));
    const bool whole = !inner.limit && inner.axis.extent % lanes_ == 0;
    out_->Open(whole ? "" : absl::StrCat("if (first + ", lanes_, " <= e_", i, ")"));
    out_->Line(absl::StrCat("const ix ", i, " = first;"));
    PrintMapVector(inner.axis.id);
    out_->Close();
    if (!whole) {
      out_->Open("else");
      out_->Open(absl::StrCat("for (ix ", i, " = first; ", i, " < e_", i, "; ++", i, ")"));
      OpenUnmasked();
      StoreScalars(step_.body, {});
      for (int depth = 0; depth < 3; ++depth) out_->Close();
    }
    out_->Close();
  }

  // The number of work-items that share a result of a reduction: those that would be idle otherwise, and along a
  // contiguous row enough to read it together. 1: results are not shared.
  int ReductionTeam() const {
    const bool tile =
        step_.Is<movement::RegisterTile>() || step_.Is<movement::ThreadgroupTile>() || step_.Is<movement::PrefixPass>();
    if (work_group_size_ == 1 || !step_.reduction || step_.reduction->kind == te::ReductionKind::kGeneral || tile)
      return 1;
    const int64_t results = Points(step_.loops);
    int64_t points = 1;
    for (const Axis& axis : step_.reduction->axes) points *= axis.extent;
    int team = step_.Is<movement::RowReduction>() ? std::min(work_group_size_, kRowTeam) : 1;
    while (2 * team <= work_group_size_ && 2 * team * results <= work_group_size_) team *= 2;
    while (team > 1 && team > points) team /= 2;
    return team;
  }

  // Distributes the results over teams of work-items. Each work-item reduces points of its own, then the team combines
  // what its members have. All work-items run equally many iterations, since there are barriers in them.
  void PrintSharedReduction(int team) {
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

  // Text that reduces the lanes of a vector of partial results; not for products.
  static std::string Horizontal(const te::Reduction& reduction, const std::string& v) {
    const char* const name = reduction.kind == te::ReductionKind::kSum   ? "hadd"
                             : reduction.kind == te::ReductionKind::kMax ? "hmax"
                                                                         : "hmin";
    return absl::StrCat(name, IsFloat(reduction.acc) ? "_f32" : "_i32", "(", v, ")");
  }

  // Does the step move rows longer than a vector without computing on them? Then the last vector of a row may overlap
  // the one before, even where the result lies in its operand's place: the elements that are written again do not
  // change.
  bool CopiesRows(const movement::Loop& inner) const {
    if (inner.limit || inner.axis.extent <= lanes_ || step_.lane_limit || step_.body.size() != 1) return false;
    if (map_->streaming_stores) return false;  // such stores need aligned vectors
    const Scalar& body = step_.body[0];
    const bool border = body->kind == te::ScalarKind::kIf && body->args[1]->kind == te::ScalarKind::kImm;
    for (const te::Comparison& c : body->pred) {
      if (c.lhs.UsesAxis(inner.axis.id) || c.rhs.UsesAxis(inner.axis.id)) return false;
    }
    const Scalar& load = border ? body->args[0] : body;
    if (load->kind != te::ScalarKind::kLoad || load->pad != nullptr || load->dtype != step_.store_types[0])
      return false;
    // The last vector begins anywhere, but elements in layout blocks are adjacent only from a multiple of the lanes on.
    int64_t stride = 0;
    return load->indices[0].AffineIn(inner.axis.id, &stride) && (stride == 0 || stride == 1) &&
           step_.stores[0].address.AffineIn(inner.axis.id, &stride) && stride == 1;
  }

  void PrintMap() {
    if (work_group_size_ > 1) return PrintSharedMap();
    for (size_t i = 0; i + 1 < step_.loops.size(); ++i) OpenLoop(step_.loops[i]);
    const movement::Loop& inner = step_.loops.back();
    const std::string i = AxisText(inner.axis.id);
    const bool whole = !inner.limit && inner.axis.extent % lanes_ == 0;
    out_->Line(absl::StrCat("const ix e_", i, " = ", LimitText(inner, kernel_), ";"));
    if (!whole) out_->Line(absl::StrCat("ix ", i, " = 0;"));
    out_->Open(whole ? absl::StrCat("for (ix ", i, " = 0; ", i, " < e_", i, "; ", i, " += ", lanes_, ")")
                     : absl::StrCat("for (; ", i, " + ", lanes_, " <= e_", i, "; ", i, " += ", lanes_, ")"));
    PrintMapVector(inner.axis.id);
    out_->Close();
    if (!whole && map_->rest_in_vector) {
      out_->Open(absl::StrCat("if (", i, " < e_", i, ")"));
      PrintMapVector(inner.axis.id, absl::StrCat("e_", i, " - ", i));
      out_->Close();
    } else if (!whole && CopiesRows(inner)) {
      out_->Line(absl::StrCat(i, " = e_", i, " - ", lanes_, ";"));
      PrintMapVector(inner.axis.id);
    } else if (!whole && parts_ && !step_.lane_limit && movement::CallsLibrary(step_.body)) {
      out_->Open(absl::StrCat("if (", i, " < e_", i, ")"));
      PrintMapPart(inner.axis.id, absl::StrCat("(e_", i, " - ", i, ")"));
      out_->Close();
    } else if (!whole) {
      out_->Open(absl::StrCat("for (; ", i, " < e_", i, "; ++", i, ")"));
      OpenUnmasked();
      StoreScalars(step_.body, {});
      out_->Close();
      out_->Close();
    }
    for (size_t l = 0; l + 1 < step_.loops.size(); ++l) out_->Close();
  }

  // Reduces into four vector accumulators along the contiguous reduction axis, then single vectors, then single
  // elements; one horizontal step follows.
  void PrintRowReduction() {
    const int depth = OpenPoints(step_.loops, kernel_, work_group_size_, out_, unroll_);
    OpenUnmasked();
    const te::Reduction& reduction = *step_.reduction;
    const std::string init = BroadcastText(reduction.acc, ReductionIdentity(reduction.kind, reduction.acc));
    const std::string tag = absl::StrCat((*next_temp_)++);
    const std::string v = absl::StrCat("v", tag, "_");
    const Axis inner = reduction.axes.back();
    const int64_t wide = 4 * lanes_;
    for (int a = 0; a < 4; ++a) out_->Line(absl::StrCat(VectorType(reduction.acc), " ", v, a, " = ", init, ";"));
    const std::string acc = absl::StrCat("a", tag);
    out_->Line(
        absl::StrCat(CType(reduction.acc), " ", acc, " = ", ReductionIdentity(reduction.kind, reduction.acc), ";"));
    // A reduction that is no longer than a vector or two unrolls the axis outside it, to keep the four accumulators
    // busy.
    const size_t outer_axes = reduction.axes.size() - 1;
    const bool unrolled =
        outer_axes > 0 && inner.extent < wide && reduction.axes[outer_axes - 1].extent <= kMostUnrolled;
    const size_t loops = outer_axes - (unrolled ? 1 : 0);
    for (size_t f = 0; f < loops; ++f) OpenLoop({reduction.axes[f], std::nullopt});
    const std::string i = AxisText(inner.id);
    for (int64_t copy = 0; copy < (unrolled ? reduction.axes[loops].extent : 1); ++copy) {
      auto name = [&](int axis, int64_t offset) {
        if (unrolled && axis == reduction.axes[loops].id) return absl::StrCat(copy, "L");
        return axis == inner.id && offset != 0 ? absl::StrCat("(", i, " + ", offset, ")") : AxisText(axis);
      };
      auto vector_body = [&](int64_t offset, int64_t a) {
        ExprPrinter printer(
            out_, {&kernel_, [&](int axis) { return name(axis, offset); }, inner.id, lanes_, "", {}, next_temp_});
        out_->Line(VectorCombine(reduction, absl::StrCat(v, a), printer.EmitVector(step_.body[0])));
      };
      out_->Open("");
      out_->Line(absl::StrCat("ix ", i, " = 0;"));
      if (inner.extent >= wide) {
        out_->Open(absl::StrCat("for (; ", i, " + ", wide, " <= ", inner.extent, "; ", i, " += ", wide, ")"));
        for (int a = 0; a < 4; ++a) vector_body(a * lanes_, a);
        out_->Close();
      }
      if (inner.extent % wide >= lanes_) {
        out_->Open(absl::StrCat("for (; ", i, " + ", lanes_, " <= ", inner.extent, "; ", i, " += ", lanes_, ")"));
        vector_body(0, copy % 4);
        out_->Close();
      }
      if (inner.extent % lanes_ != 0 && parts_ && movement::CallsLibrary(step_.body)) {
        const std::string count = absl::StrCat(inner.extent % lanes_);
        ExprPrinter::Options options{&kernel_,  [&](int axis) { return name(axis, 0); }, inner.id, lanes_, count, {},
                                     next_temp_};
        options.part = true;
        ExprPrinter printer(out_, options);
        const std::string x = printer.EmitVector(step_.body[0]);
        out_->Line(VectorCombine(reduction, absl::StrCat(v, copy % 4),
                                 absl::StrCat("vsel(iota() < bi(", count, "), ", x, ", ", init, ")")));
      } else if (inner.extent % lanes_ != 0) {
        out_->Open(absl::StrCat("for (; ", i, " < ", inner.extent, "; ++", i, ")"));
        ExprPrinter::Options options = ScalarOptions();
        options.axis_name = [&](int axis) { return name(axis, 0); };
        ExprPrinter printer(out_, options);
        out_->Line(Combine(reduction.kind, acc, printer.Emit(step_.body[0]).text, reduction.acc));
        out_->Close();
      }
      out_->Close();
    }
    for (size_t f = 0; f < loops; ++f) out_->Close();
    // Combines the four vectors into one, and its lanes into one element.
    for (const auto& [into, from] : {std::pair(0, 1), std::pair(2, 3), std::pair(0, 2)}) {
      out_->Line(VectorCombine(reduction, absl::StrCat(v, into), absl::StrCat(v, from)));
    }
    if (reduction.kind == te::ReductionKind::kProd) {
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
    const int depth = OpenPoints(step_.loops, kernel_, work_group_size_, out_, unroll_);
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

  // Prints one pass along the innermost loop. Vectors of another loop are taken a strip at a time, so that rows are
  // read in runs.
  void PrintPrefix(const movement::PrefixPass& pass) {
    std::vector<Axis> axes;
    for (const movement::Loop& loop : step_.loops) axes.push_back(loop.axis);
    const movement::PrefixReduction prefix = *movement::PrefixReductionOf(*step_.reduction, step_.body, axes);
    std::vector<movement::Loop> around(step_.loops.begin(), step_.loops.end() - 1);
    if (pass.vector_axis < 0) {
      const int depth = OpenPoints(around, kernel_, work_group_size_, out_, unroll_);
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

  // Names the reduction's axis by the variable of the loop along it.
  AxisName PrefixName(const movement::PrefixReduction& prefix) const {
    const int k = step_.reduction->axes[0].id;
    return [k, axis = prefix.axis](int id) { return AxisText(id == k ? axis : id); };
  }

  void OpenPrefix(const movement::PrefixReduction& prefix) {
    const std::string i = AxisText(prefix.axis);
    const int64_t extent = step_.reduction->axes[0].extent;
    out_->Open(prefix.reverse ? absl::StrCat("for (ix ", i, " = ", extent - 1, "; ", i, " >= 0; --", i, ")")
                              : absl::StrCat("for (ix ", i, " = 0; ", i, " < ", extent, "; ++", i, ")"));
  }

  void PrintPrefixOfOne(const movement::PrefixReduction& prefix) {
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

  const movement::Kernel& kernel_;
  const movement::Step& step_;
  const movement::VectorMap* const map_;  // the strategy of a map in vectors
  const int64_t lanes_;
  const int work_group_size_;
  const bool parts_;
  const int unroll_;
  int* next_temp_;
  CodeWriter* out_;
};

}  // namespace

void PrintNest(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
               CodeWriter* out) {
  NestPrinter(kernel, step, shape, next_temp, out).Print();
}

void PrintResult(const movement::Kernel& kernel, const movement::Step& step, const std::string& acc, int* next_temp,
                 CodeWriter* out) {
  NestPrinter(kernel, step, {}, next_temp, out).PrintResult(acc);
}

}  // namespace fusion::text
