#include "compiler/backends/text/print_vector_map.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/backends/text/nest_printer.h"
#include "compiler/movement/vector_form.h"

namespace fusion::text {
namespace {

using te::Scalar;

class VectorMapPrinter : public NestPrinter {
 public:
  VectorMapPrinter(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                   CodeWriter* out)
      : NestPrinter(kernel, step, shape, next_temp, out), map_(step.As<movement::VectorMap>()) {}

  void Print() {
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

 private:
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

  // Prints one vector for each work-item; where a row ends within it, its elements one by one.
  void PrintSharedMap() {
    std::vector<movement::Loop> vectors = step_.loops;
    const movement::Loop inner = vectors.back();
    const std::string i = AxisText(inner.axis.id);
    const int number = kernel_.next_axis;  // number of the vector in its row: an axis of this text alone
    vectors.back() = {{number, (inner.axis.extent + lanes_ - 1) / lanes_}, std::nullopt};
    OpenPoints(vectors, kernel_, work_group_size_, out_, unroll_, item_);
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

  const movement::VectorMap* const map_;
};

}  // namespace

void PrintVectorMap(const movement::Kernel& kernel, const movement::Step& step, const TaskShape& shape, int* next_temp,
                    CodeWriter* out) {
  VectorMapPrinter(kernel, step, shape, next_temp, out).Print();
}

}  // namespace fusion::text
