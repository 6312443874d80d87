#include "compiler/schedule/rewrite/minimal_filtering.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

#include "compiler/schedule/nest/form_stages.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;
using te::TensorId;
using Idx = te::Builder::Idx;

constexpr int64_t kTaps = 3;
// Channels on each side, that is, products left for each transformed element. With fewer, the transforms cost as much
// as they save.
constexpr double kLeastChannels = 16;

// The last tile also computes results past the end: all computed results may be at most so many times the wanted ones.
constexpr double kMostOvershoot = 1.5;

// The bound on ErrorGrowth over all axes: it allows F(4, 3) over two axes, but not F(6, 3).
constexpr double kMostErrorGrowth = 16;

// Finite points of the interpolation. With one half and minus two instead of two and minus two the powers stay smaller,
// and the errors of F(4, 3) are two thirds as large (Barabasz et al., Error Analysis and Improving the Accuracy of
// Winograd Convolution, ACM TOMS 2020).
constexpr double kPoints[] = {0, 1, -1, 0.5, -2, -0.5, 2};
constexpr int64_t kPointOne = 1, kPointMinusOne = 2;  // their places in kPoints

// A recovered tap below this part of the terms that it is the sum of is their rounding: of four terms, each rounded
// once in the transformed filter and once by its factor.
constexpr double kTapRounding = 0x1p-21;

// A spatial axis of the reduction, the taps that slide along it, and the dimensions of the operands where both meet.
struct Window {
  Axis out, tap;
  int x_dim = -1, w_dim = -1;
  int64_t offset = 0;  // x index = out + tap + offset
  int64_t tiles = 0;   // the last tile may go past the end
};

// The load that slides and the load of the constant filter, if the body is their product; else nullptrs.
std::pair<const te::ScalarNode*, const te::ScalarNode*> Operands(const te::Program& program, const te::Te& te) {
  if (te.IsMap() || te.routine || te.reduction->kind != te::ReductionKind::kSum || te.reduction->acc != DType::kF32 ||
      !te.reduction->pred.empty() || te.outputs.size() != 1) {
    return {};
  }
  const Scalar& body = te.body[0];
  if (body->kind != te::ScalarKind::kOp || body->op != te::Op::kMul) return {};
  const te::ScalarNode *x = body->args[0].get(), *w = body->args[1].get();
  for (const te::ScalarNode* load : {x, w}) {
    if (load->kind != te::ScalarKind::kLoad || load->dtype != DType::kF32) return {};
    for (const Index& index : load->indices) {
      if (index.HasLoad()) return {};
    }
  }
  const auto filter = [&](const te::ScalarNode* load) {
    const te::TensorInfo& info = program.tensors[load->tensor];
    return info.role == te::Role::kConstant && load->pad == nullptr;
  };
  if (!filter(w)) std::swap(x, w);
  if (!filter(w) || filter(x) || (x->pad != nullptr && !te::IsImm(x->pad, 0))) return {};
  return {x, w};
}

int DimensionsUsing(const std::vector<Index>& indices, const Axis& axis, int* last) {
  int count = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].UsesAxis(axis.id)) continue;
    ++count;
    *last = static_cast<int>(d);
  }
  return count;
}

bool UsesAny(const Index& index, const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return index.UsesAxis(axis.id); });
}

// The innermost windows, at most two.
std::vector<Window> FindWindows(const te::Te& te, const te::ScalarNode& x, const te::ScalarNode& w, int64_t outputs) {
  std::vector<Window> windows;
  for (size_t a = te.axes.size(); a-- > 0 && windows.size() < 2;) {
    for (const Axis& tap : te.reduction->axes) {
      Window window{te.axes[a], tap};
      window.tiles = (window.out.extent + outputs - 1) / outputs;
      const auto computed = static_cast<double>(window.tiles * outputs);
      if (tap.extent != kTaps || computed > kMostOvershoot * static_cast<double>(window.out.extent)) continue;
      int unused = 0;
      if (DimensionsUsing(x.indices, window.out, &window.x_dim) != 1 ||
          DimensionsUsing(w.indices, window.out, &unused) != 0 || DimensionsUsing(x.indices, tap, &unused) != 1 ||
          unused != window.x_dim || DimensionsUsing(w.indices, tap, &window.w_dim) != 1 ||
          !(w.indices[window.w_dim] == Index(tap))) {
        continue;
      }
      const Index rest = x.indices[window.x_dim] - Index(window.out) - Index(tap);
      if (!rest.IsConstant()) continue;
      window.offset = rest.constant();
      windows.insert(windows.begin(), window);
      break;
    }
  }
  return windows;
}

double PointsOf(const std::vector<Axis>& axes) {
  double points = 1;
  for (const Axis& axis : axes) points *= static_cast<double>(axis.extent);
  return points;
}

class Filtering {
 public:
  Filtering(const te::Program& program, size_t at, const te::ScalarNode& x, const te::ScalarNode& w,
            std::vector<Window> windows, FilterMatrices matrices)
      : old_(program),
        te_(program.tes[at]),
        x_(x),
        w_(w),
        windows_(std::move(windows)),
        matrices_(std::move(matrices)),
        m_(matrices_.outputs),
        n_(m_ + kTaps - 1),
        builder_(&result_.program) {
    result_.program = program;
    result_.result = te_.outputs[0];
    result_.program.tes.assign(program.tes.begin(), program.tes.begin() + static_cast<int64_t>(at));
    for (const Axis& axis : te_.reduction->axes) {
      if (WindowOfTap(axis) == nullptr) reductions_.push_back(axis);
    }
    // Orders the dimensions of x: those that the products reduce over come last, so that they can be the lanes.
    std::vector<int> whole, slid, windowed, folded;
    for (int d = 0; d < static_cast<int>(x.indices.size()); ++d) {
      const bool reductions = UsesAny(x.indices[d], reductions_);
      (WindowOf(d) != nullptr            ? windowed
       : !reductions                     ? whole
       : UsesAny(x.indices[d], te_.axes) ? slid
                                         : folded)
          .push_back(d);
    }
    for (const std::vector<int>* part : {&whole, &slid, &windowed, &folded}) {
      x_order_.insert(x_order_.end(), part->begin(), part->end());
    }
    // Orders the axes of the products: those that move the filter come last.
    for (const bool of_filter : {false, true}) {
      for (const Axis& axis : te_.axes) {
        int unused = 0;
        if ((DimensionsUsing(w.indices, axis, &unused) > 0) == of_filter) product_axes_.push_back(axis);
      }
    }
  }

  FilteredProgram Run(size_t at) {
    const bool overshoots = std::any_of(windows_.begin(), windows_.end(),
                                        [&](const Window& window) { return window.tiles * m_ != window.out.extent; });
    pad_ = x_.pad == nullptr && overshoots ? te::Imm(DType::kF32, 0) : x_.pad;
    in_ = builder_.Constant("filter_in", matrices_.in);
    out_ = builder_.Constant("filter_out", matrices_.out);
    TensorId moved = x_.tensor;
    for (size_t q = 0; q < windows_.size(); ++q) moved = TransformInput(moved, q);
    const TensorId products = Multiply(moved);
    result_.plain.sums = Finish(products);
    result_.plain.filter = result_.filter;
    result_.plain.te = SumPlainly();
    for (size_t s = at; s < result_.program.tes.size(); ++s) result_.program.tes[s].origins = te_.origins;
    for (size_t s = at + 1; s < old_.tes.size(); ++s) result_.program.tes.push_back(old_.tes[s]);
    return std::move(result_);
  }

 private:
  const Window* WindowOf(int x_dim) const {
    for (const Window& window : windows_) {
      if (window.x_dim == x_dim) return &window;
    }
    return nullptr;
  }
  const Window* WindowOfTap(const Axis& tap) const {
    for (const Window& window : windows_) {
      if (window.tap.id == tap.id) return &window;
    }
    return nullptr;
  }
  const Window* WindowOfAxis(const Axis& out) const {
    for (const Window& window : windows_) {
      if (window.out.id == out.id) return &window;
    }
    return nullptr;
  }
  int64_t Number(const Window& window) const { return &window - windows_.data(); }

  // Transforms the input along window q. The result has dimensions [q + 1 rows of matrices] and then those of x;
  // windows up to q are counted in tiles, the later ones as they were read.
  TensorId TransformInput(TensorId from, size_t q) {
    Shape shape(q + 1, n_);
    for (int d : x_order_) {
      const Window* window = WindowOf(d);
      shape.push_back(window == nullptr                            ? old_.tensors[x_.tensor].shape[d]
                      : Number(*window) <= static_cast<int64_t>(q) ? window->tiles
                                                                   : window->tiles * m_ + kTaps - 1);
    }
    return builder_.Reduce("filter_input", te::ReductionKind::kSum, DType::kF32, DType::kF32, shape, {n_},
                           [&](const Idx& i, const Idx& r) {
                             Idx at(i.begin(), i.begin() + static_cast<int64_t>(q));
                             if (q == 0) at.resize(x_order_.size());
                             for (size_t o = 0; o < x_order_.size(); ++o) {
                               const Window* window = WindowOf(x_order_[o]);
                               Index index = i[q + 1 + o];
                               if (window != nullptr && Number(*window) == static_cast<int64_t>(q))
                                 index = index * m_ + r[0];
                               if (q > 0) {
                                 at.push_back(index);
                               } else {
                                 at[x_order_[o]] = window == nullptr ? index : index + Index(window->offset);
                               }
                             }
                             const Scalar value = te::Load(from, DType::kF32, at, q == 0 ? pad_ : nullptr);
                             return builder_.At(in_, {i[q], r[0]}) * value;
                           });
  }

  // Computes one product for each row of the matrices, and reduces over all that is reduced besides the taps.
  TensorId Multiply(TensorId moved) {
    Shape filter_shape = old_.tensors[w_.tensor].shape;
    result_.source = w_.tensor;
    for (const Window& window : windows_) {
      filter_shape[window.w_dim] = n_;
      result_.transform.by_dimension.emplace_back(window.w_dim, matrices_.filter);
    }
    result_.filter = result_.program.AddTensor("filter", DType::kF32, filter_shape, te::Role::kConstant);
    const size_t rank = windows_.size();
    Shape shape(rank, n_), reduction_shape;
    for (const Axis& axis : product_axes_) {
      const Window* window = WindowOfAxis(axis);
      shape.push_back(window == nullptr ? axis.extent : window->tiles);
    }
    for (const Axis& axis : reductions_) reduction_shape.push_back(axis.extent);
    return builder_.Reduce(
        "filter_products", te::ReductionKind::kSum, DType::kF32, DType::kF32, shape, reduction_shape,
        [&](const Idx& i, const Idx& r) {
          const auto value = [&](const Axis& axis) -> const Index* {
            for (size_t a = 0; a < product_axes_.size(); ++a) {
              if (product_axes_[a].id == axis.id) return &i[rank + a];
            }
            for (size_t f = 0; f < reductions_.size(); ++f) {
              if (reductions_[f].id == axis.id) return &r[f];
            }
            return nullptr;
          };
          Idx at(i.begin(), i.begin() + static_cast<int64_t>(rank));
          for (int d : x_order_) {
            const Window* window = WindowOf(d);
            at.push_back(window == nullptr ? te::Substitute(x_.indices[d], value) : *value(window->out));
          }
          Idx weight;
          for (const Index& index : w_.indices) weight.push_back(te::Substitute(index, value));
          for (size_t q = 0; q < rank; ++q) weight[windows_[q].w_dim] = i[q];
          return te::Load(moved, DType::kF32, at, x_.pad) * builder_.At(result_.filter, weight);
        });
  }

  // Transforms the results back, window by window. The last expression keeps the axes, the epilogue and the output of
  // the reduction that it replaces. Returns what it reads.
  TensorId Finish(TensorId products) {
    TensorId from = products;
    if (windows_.size() == 2) {
      Shape shape = {n_};
      for (const Axis& axis : product_axes_) {
        shape.push_back(axis.id == windows_[1].out.id ? windows_[1].tiles : axis.extent);
      }
      from = builder_.Reduce("filter_output", te::ReductionKind::kSum, DType::kF32, DType::kF32, shape, {n_},
                             [&](const Idx& i, const Idx& r) {
                               Idx at = {r[0], i[0]};
                               Index place;
                               for (size_t a = 0; a < product_axes_.size(); ++a) {
                                 const bool here = product_axes_[a].id == windows_[0].out.id;
                                 if (here) place = te::Mod(i[a + 1], m_);
                                 at.push_back(here ? te::FloorDiv(i[a + 1], m_) : i[a + 1]);
                               }
                               return builder_.At(out_, {place, r[0]}) * builder_.At(from, at);
                             });
    }
    const Axis& out = windows_.back().out;
    te::Te last = te_;
    const Axis row = result_.program.NewAxis(n_);
    last.reduction->axes = {row};
    Idx at = {Index(row)};
    for (const Axis& axis : product_axes_)
      at.push_back(axis.id == out.id ? te::FloorDiv(Index(axis), m_) : Index(axis));
    last.body = {builder_.At(out_, {te::Mod(Index(out), m_), Index(row)}) * builder_.At(from, at)};
    result_.program.tes.push_back(std::move(last));
    return from;
  }

  // The reduction that was replaced, over recovered taps: each is a sum over two rows of the transformed filter for
  // each window.
  te::Te SumPlainly() {
    const auto* rows = static_cast<const float*>(matrices_.filter.data());
    const auto norm = [&](int64_t point) { return 1 / rows[point * kTaps]; };
    Tensor factors(DType::kF32, {kTaps, 2});
    const float values[kTaps][2] = {{norm(0), 0}, {norm(kPointOne) / 2, -norm(kPointMinusOne) / 2}, {1, 0}};
    std::memcpy(factors.mutable_data(), values, sizeof(values));
    const TensorId factor = builder_.Constant("filter_taps", factors);
    Scalar tap, size;
    for (uint32_t choice = 0; choice < 1u << windows_.size(); ++choice) {
      Idx weight = w_.indices;
      std::vector<Scalar> term;
      for (size_t q = 0; q < windows_.size(); ++q) {
        const Index t(windows_[q].tap);
        const bool second = (choice >> q & 1) != 0;
        // The first rows are 0, that of point 1, and the last one; the second row matters for the middle tap alone.
        weight[windows_[q].w_dim] =
            second ? te::Mod(t, 2) * kPointMinusOne : t + te::FloorDiv(t, kTaps - 1) * (n_ - kTaps);
        term.push_back(builder_.At(factor, {t, Index(second ? 1 : 0)}));
      }
      Scalar value = builder_.At(result_.filter, weight);
      for (const Scalar& by : term) value = by * value;
      tap = tap == nullptr ? value : tap + value;
      const Scalar absolute = te::Call(te::Op::kAbs, {value});
      size = size == nullptr ? absolute : size + absolute;
    }
    const Scalar below =
        te::Call(te::Op::kLt, {te::Call(te::Op::kAbs, {tap}), size * te::Imm(DType::kF32, kTapRounding)});
    tap = te::Call(te::Op::kSelect, {below, te::Imm(DType::kF32, 0), tap});
    te::Te plain = te_;
    plain.body = {te::Load(x_.tensor, DType::kF32, x_.indices, x_.pad) * tap};
    return plain;
  }

  const te::Program& old_;
  const te::Te& te_;
  const te::ScalarNode& x_;
  const te::ScalarNode& w_;
  const std::vector<Window> windows_;
  const FilterMatrices matrices_;
  const int64_t m_, n_;
  FilteredProgram result_;
  te::Builder builder_;
  std::vector<Axis> reductions_, product_axes_;
  std::vector<int> x_order_;
  TensorId in_ = -1, out_ = -1;
  Scalar pad_;  // the value of inputs outside the image
};

}  // namespace

FilterMatrices MakeFilterMatrices(int64_t outputs, int64_t taps) {
  const int64_t n = outputs + taps - 1;
  FilterMatrices result{outputs, taps, Tensor(DType::kF32, {n, n}), Tensor(DType::kF32, {n, taps}),
                        Tensor(DType::kF32, {outputs, n})};
  const std::vector<double> points(std::begin(kPoints), std::begin(kPoints) + n - 1);
  const auto put = [](Tensor* tensor, int64_t row, int64_t column, double value) {
    static_cast<float*>(tensor->mutable_data())[row * tensor->shape()[1] + column] = static_cast<float>(value);
  };
  // Coefficients of the product of (x - p) over all points but `left_out`.
  const auto polynomial = [&](int64_t left_out) {
    std::vector<double> coefficients = {1};
    for (int64_t p = 0; p < static_cast<int64_t>(points.size()); ++p) {
      if (p == left_out) continue;
      coefficients.push_back(0);
      for (size_t c = coefficients.size(); c-- > 0;) {
        coefficients[c] = (c > 0 ? coefficients[c - 1] : 0) - points[p] * coefficients[c];
      }
    }
    return coefficients;
  };
  for (int64_t j = 0; j < n; ++j) {
    const bool infinity = j + 1 == n;
    const std::vector<double> coefficients = polynomial(infinity ? -1 : j);
    for (int64_t i = 0; i < n; ++i) {
      put(&result.in, j, i, i < static_cast<int64_t>(coefficients.size()) ? coefficients[i] : 0);
    }
    double norm = 1, power = 1;
    for (int64_t l = 0; !infinity && l + 1 < n; ++l) norm *= l == j ? 1 : points[j] - points[l];
    for (int64_t k = 0; k < std::max(taps, outputs); ++k) {
      if (k < taps) put(&result.filter, j, k, infinity ? (k + 1 == taps ? 1 : 0) : power / norm);
      if (k < outputs) put(&result.out, k, j, infinity ? (k + 1 == outputs ? 1 : 0) : power);
      if (!infinity) power *= points[j];
    }
  }
  return result;
}

double ErrorGrowth(const FilterMatrices& matrices) {
  const auto norm = [](const Tensor& matrix, int64_t row) {
    double sum = 0;
    const int64_t columns = matrix.shape()[1];
    const float* values = static_cast<const float*>(matrix.data()) + row * columns;
    for (int64_t c = 0; c < columns; ++c) sum += static_cast<double>(values[c]) * values[c];
    return sum;
  };
  const int64_t n = matrices.in.shape()[0];
  const float* out = static_cast<const float*>(matrices.out.data());
  double most = 0;
  for (int64_t i = 0; i < matrices.outputs; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < n; ++j) {
      const double weight = out[i * n + j];
      sum += weight * weight * norm(matrices.filter, j) * norm(matrices.in, j);
    }
    most = std::max(most, sum);
  }
  return std::sqrt(most / static_cast<double>(matrices.taps));
}

std::optional<FilteredProgram> FilterMinimally(const te::Program& program, int64_t outputs) {
  for (size_t at = 0; at < program.tes.size(); ++at) {
    const te::Te& te = program.tes[at];
    const auto [x, w] = Operands(program, te);
    if (x == nullptr) continue;
    const std::vector<Window> windows = FindWindows(te, *x, *w, outputs);
    if (windows.empty()) continue;
    double taps = 1, filters = 1;
    for (const Window& window : windows) taps *= static_cast<double>(window.tap.extent);
    for (const Axis& axis : te.axes) {
      int unused = 0;
      if (DimensionsUsing(w->indices, axis, &unused) > 0) filters *= static_cast<double>(axis.extent);
    }
    if (PointsOf(te.reduction->axes) / taps < kLeastChannels || filters < kLeastChannels) continue;
    FilterMatrices matrices = MakeFilterMatrices(outputs, kTaps);
    if (std::pow(ErrorGrowth(matrices), static_cast<double>(windows.size())) > kMostErrorGrowth) continue;
    return Filtering(program, at, *x, *w, windows, std::move(matrices)).Run(at);
  }
  return std::nullopt;
}

}  // namespace fusion
