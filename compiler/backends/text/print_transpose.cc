#include "compiler/backends/text/print_transpose.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/transpose.h"

namespace fusion::text {
namespace {

class TransposePrinter {
 public:
  TransposePrinter(const movement::Kernel& kernel, const movement::Step& step,
                   const movement::BlockedTranspose& transpose, int64_t lanes, int* next_temp, CodeWriter* out)
      : kernel_(kernel),
        step_(step),
        transpose_(transpose),
        stored_(step.store_types[0]),
        inside_(movement::InsideBorder(step.body[0], transpose.axis, transpose.across_axis)),
        bits_(movement::MovesBits(inside_, stored_)),
        lanes_(bits_ ? movement::TransposedBlock(stored_, lanes) : lanes),
        lane_(AxisText(transpose.axis)),
        across_(AxisText(transpose.across_axis)),
        next_temp_(next_temp),
        out_(out) {}

  void Print() {
    std::vector<movement::Loop> around, blocked;
    for (const movement::Loop& loop : step_.loops) {
      (loop.axis.id == transpose_.axis || loop.axis.id == transpose_.across_axis ? blocked : around).push_back(loop);
    }
    const int depth = OpenPoints(around, kernel_, 1, out_);
    for (const movement::Loop& loop : blocked) {  // a limit may depend on a loop around it
      out_->Line(absl::StrCat("const ix e_", AxisText(loop.axis.id), " = ", LimitText(loop, kernel_), ";"));
    }
    out_->Line(absl::StrCat("ix ", across_, " = 0;"));
    OpenBlocks(across_);
    out_->Line(absl::StrCat("ix ", lane_, " = 0;"));
    OpenBlocks(lane_);
    PrintFusionBlock();
    out_->Close();
    OpenRest(lane_);
    PrintElements(0, lanes_);
    out_->Close();
    out_->Close();
    OpenRest(across_);
    out_->Open(absl::StrCat("for (ix ", lane_, " = 0; ", lane_, " < e_", lane_, "; ++", lane_, ")"));
    PrintElement(AxisText);
    out_->Close();
    out_->Close();
    for (int i = 0; i < depth; ++i) out_->Close();
  }

 private:
  void OpenBlocks(const std::string& x) {
    out_->Open(absl::StrCat("for (; ", x, " + ", lanes_, " <= e_", x, "; ", x, " += ", lanes_, ")"));
  }
  void OpenRest(const std::string& x) { out_->Open(absl::StrCat("for (; ", x, " < e_", x, "; ++", x, ")")); }

  // Names the loops' variables, with offsets added to the lane's and to the other one.
  AxisName Moved(const std::string& lane, const std::string& across) const {
    return [this, lane, across](int axis) {
      const std::string name = AxisText(axis);
      const std::string& by = axis == transpose_.axis ? lane : across;
      if ((axis != transpose_.axis && axis != transpose_.across_axis) || by.empty()) return name;
      return absl::StrCat("(", name, " + ", by, ")");
    };
  }

  std::string Place(const AxisName& name, const char* between) const {
    return absl::StrCat("b", step_.stores[0].buffer, between, IndexText(step_.stores[0].address, name, kernel_));
  }

  void PrintElement(const AxisName& name) {
    ExprPrinter printer(out_, {&kernel_, name, -1, 1, "", {}, next_temp_});
    const std::string value = printer.Emit(step_.body[0]).text;
    out_->Line(StoreText(kernel_.buffers[step_.stores[0].buffer], Place(name, "[") + "]", value));
  }

  // Prints elements of a tile: lanes [0, lanes) if `lanes` is above 0, else the current one of the lane loop.
  void PrintElements(int64_t lanes, int64_t across) {
    out_->Open(absl::StrCat("for (int t = 0; t < ", across, "; ++t)"));
    if (lanes > 0) out_->Open(absl::StrCat("for (int l = 0; l < ", lanes, "; ++l)"));
    PrintElement(Moved(lanes > 0 ? "l" : "", "t"));
    if (lanes > 0) out_->Close();
    out_->Close();
  }

  // The test that the corners of a tile are inside the border.
  std::string Corners() const {
    std::vector<std::string> tests;
    for (const te::Comparison& c : step_.body[0]->pred) {
      const te::Index difference = c.lhs - c.rhs;
      const auto last = [&](int axis) {
        int64_t coefficient = 0;
        difference.AffineIn(axis, &coefficient);
        return (coefficient > 0) == (c.cmp == te::Cmp::kLt) ? absl::StrCat(lanes_ - 1) : std::string();
      };
      tests.push_back(
          absl::StrCat(IndexText(difference, Moved(last(transpose_.axis), last(transpose_.across_axis)), kernel_),
                       c.cmp == te::Cmp::kLt ? " < 0" : " >= 0"));
    }
    return absl::StrJoin(tests, " && ");
  }

  void PrintFusionBlock() {
    const bool guarded = inside_ != step_.body[0];
    out_->Open(guarded ? absl::StrCat("if (", Corners(), ")") : "");
    std::map<const te::ScalarNode*, std::vector<std::string>> rows;
    for (const te::ScalarNode* load : movement::LoadsAcross(inside_, transpose_.axis, lanes_)) {
      rows[load] = Transposed(*load);
    }
    for (int64_t t = 0; t < lanes_; ++t) {
      const AxisName name = Moved("", absl::StrCat(t));
      if (bits_) {
        out_->Line(
            absl::StrCat("st_bits_", DTypeName(stored_), "(", Place(name, " + "), ", ", rows.begin()->second[t], ");"));
        continue;
      }
      ExprPrinter::Options options{&kernel_, name, transpose_.axis, lanes_, "", {}, next_temp_};
      for (const auto& [load, vectors] : rows) options.loaded[load] = vectors[t];
      ExprPrinter printer(out_, std::move(options));
      const std::string value = printer.EmitVector(inside_);
      const std::string place = Place(name, " + ");
      out_->Line(transpose_.streaming_stores ? absl::StrCat("st_stream_f32(", place, ", ", value, ");")
                                             : VectorStoreText(step_.store_types[0], place, value));
    }
    out_->Close();
    if (!guarded) return;
    out_->Open("else");
    PrintElements(lanes_, lanes_);
    out_->Close();
  }

  // The load's vectors along the lanes, by row across. Perfect shuffles of row i with row i + lanes / 2, repeated
  // log2(lanes) times, exchange rows and lanes.
  std::vector<std::string> Transposed(const te::ScalarNode& load) {
    const DType dtype = kernel_.buffers[load.tensor].dtype;
    const char* type = bits_ && DTypeBytes(dtype) == 1 ? "vb" : bits_ && DTypeBytes(dtype) == 2 ? "vw" : "vf";
    const std::string zip = bits_ && DTypeBytes(dtype) < 4 ? absl::StrCat("zip_", type, "_") : "zip_";
    std::vector<std::string> rows;
    const auto fresh = [&](const std::string& value) {
      rows.push_back(absl::StrCat("t", (*next_temp_)++));
      out_->Line(absl::StrCat("const ", type, " ", rows.back(), " = ", value, ";"));
    };
    for (int64_t s = 0; s < lanes_; ++s) {
      const std::string at =
          absl::StrCat("b", load.tensor, " + ", IndexText(load.indices[0], Moved(absl::StrCat(s), ""), kernel_));
      fresh(bits_ ? absl::StrCat("ld_bits_", DTypeName(dtype), "(", at, ")") : VectorLoadText(dtype, at));
    }
    return ExchangeLanes(std::move(rows), type, zip, next_temp_, out_);
  }

  const movement::Kernel& kernel_;
  const movement::Step& step_;
  const movement::BlockedTranspose& transpose_;
  const DType stored_;
  const te::Scalar& inside_;
  const bool bits_;  // the body is one load whose bits are moved as they are
  const int64_t lanes_;
  const std::string lane_, across_;
  int* next_temp_;
  CodeWriter* out_;
};

}  // namespace

void PrintTranspose(const movement::Kernel& kernel, const movement::Step& step,
                    const movement::BlockedTranspose& transpose, int64_t lanes, int* next_temp, CodeWriter* out) {
  TransposePrinter(kernel, step, transpose, lanes, next_temp, out).Print();
}

}  // namespace fusion::text
