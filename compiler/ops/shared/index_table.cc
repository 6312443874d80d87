#include "compiler/ops/shared/index_table.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "compiler/ops/registry/def_parts.h"

namespace fusion::ops {
namespace {

using te::Index;
using te::Scalar;
using Formula = std::function<Index(const std::vector<Index>&)>;

// An index tensor longer than this stays a load: the tests below are linear in its length, and long ones are data.
constexpr int64_t kMaxTable = 4096;

Formula AffineFormula(const Shape& shape, const std::vector<int64_t>& values) {
  std::vector<int64_t> coefficients(shape.size(), 0);
  int64_t stride = 1;
  for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
    if (shape[d] > 1) coefficients[d] = values[stride] - values[0];
    stride *= shape[d];
  }
  std::vector<int64_t> point(shape.size(), 0);
  for (int64_t value : values) {
    int64_t expected = values[0];
    for (size_t d = 0; d < shape.size(); ++d) expected += coefficients[d] * point[d];
    if (value != expected) return nullptr;
    for (int d = static_cast<int>(shape.size()) - 1; d >= 0 && ++point[d] == shape[d]; --d) point[d] = 0;
  }
  return [coefficients, base = values[0]](const std::vector<Index>& i) {
    Index sum = base;
    for (size_t d = 0; d < i.size(); ++d) sum = sum + i[d] * coefficients[d];
    return sum;
  };
}

int64_t FloorDivInt(int64_t a, int64_t b) { return a / b - (a % b != 0 && a < 0 ? 1 : 0); }

// Finds values[i] = c·((a·i + b)//d) + e: upsampling by whole factors (a = 1) and by ratios (a/d).
Formula StaircaseFormula(const std::vector<int64_t>& values) {
  const int64_t n = static_cast<int64_t>(values.size());
  auto check = [&](int64_t a, int64_t b, int64_t d, int64_t c) -> Formula {
    const int64_t e = values[0] - c * FloorDivInt(b, d);
    for (int64_t i = 0; i < n; ++i) {
      if (values[i] != c * FloorDivInt(a * i + b, d) + e) return nullptr;
    }
    return [=](const std::vector<Index>& i) { return FloorDiv(i[0] * a + Index(b), d) * c + Index(e); };
  };
  std::vector<int64_t> starts = {0};
  for (int64_t i = 1; i < n; ++i) {
    if (values[i] != values[i - 1]) starts.push_back(i);
  }
  const int64_t runs = static_cast<int64_t>(starts.size());
  if (runs < 2) return nullptr;
  const int64_t c = values[starts[1]] - values[0];
  if (runs > 2) {
    const int64_t d = starts[2] - starts[1];
    if (starts[1] <= d) {
      if (Formula f = check(1, d - starts[1], d, c)) return f;
    }
  } else if (Formula f =
                 check(1, std::max(starts[1], n - starts[1]) - starts[1], std::max(starts[1], n - starts[1]), c)) {
    return f;
  }
  // A ratio a/d with the smallest d that can hold the whole table: v0 + (a·i + b)//d for small a and d.
  const int64_t rise = values[n - 1] - values[0];
  for (int64_t d = 2; d <= 8; ++d) {
    for (int64_t b = 0; b < d; ++b) {
      const int64_t a = (rise * d + (n - 2)) / std::max<int64_t>(n - 1, 1);
      for (int64_t near = a - 1; near <= a + 1; ++near) {
        if (Formula f = check(near, b, d, 1)) return f;
      }
    }
  }
  return nullptr;
}

}  // namespace

IndexTable::IndexTable(te::Builder* builder, std::string name, Shape shape, std::vector<int64_t> values)
    : builder_(builder), name_(std::move(name)), shape_(std::move(shape)), values_(std::move(values)) {
  if (values_.empty()) return;
  formula_ = AffineFormula(shape_, values_);
  if (formula_ == nullptr && shape_.size() == 1) formula_ = StaircaseFormula(values_);
}

Index IndexTable::operator()(const std::vector<Index>& point) {
  if (formula_ != nullptr) return formula_(point);
  const auto [lo, hi] = std::minmax_element(values_.begin(), values_.end());
  if (tensor_ < 0) tensor_ = builder_->Constant(name_, Tensor::From(DType::kI64, shape_, values_));
  return Index::Load(tensor_, point, {*lo, *hi});
}

std::vector<Index> ReshapeIndices(const std::vector<Index>& out, const Shape& out_shape, const Shape& in_shape) {
  std::vector<Index> in(in_shape.size(), Index(0));
  size_t o = 0, i = 0;
  while (true) {
    while (o < out_shape.size() && out_shape[o] == 1) ++o;
    while (i < in_shape.size() && in_shape[i] == 1) ++i;
    if (o >= out_shape.size() || i >= in_shape.size()) return in;
    const size_t o_begin = o, i_begin = i;
    int64_t o_elements = out_shape[o++], i_elements = in_shape[i++];
    while (o_elements != i_elements) {
      if (o_elements < i_elements) {
        o_elements *= out_shape[o++];
      } else {
        i_elements *= in_shape[i++];
      }
    }
    const Index linear =
        te::Linearize({out.begin() + o_begin, out.begin() + o}, {out_shape.begin() + o_begin, out_shape.begin() + o});
    const std::vector<Index> part = te::Delinearize(linear, {in_shape.begin() + i_begin, in_shape.begin() + i});
    std::copy(part.begin(), part.end(), in.begin() + i_begin);
  }
}

Scalar ByRange(const Index& i, const std::vector<int64_t>& begins, const std::vector<Scalar>& pieces) {
  std::function<Scalar(size_t, size_t)> choose = [&](size_t first, size_t last) {
    if (last - first == 1) return pieces[first];
    const size_t middle = (first + last) / 2;
    return te::If({{i, te::Cmp::kLt, Index(begins[middle])}}, choose(first, middle), choose(middle, last));
  };
  return choose(0, pieces.size());
}

std::vector<Run> AffineRuns(const std::vector<int64_t>& values) {
  std::vector<Run> runs;
  const int64_t n = static_cast<int64_t>(values.size());
  for (int64_t i = 0; i < n;) {
    Run run{i, i + 1, values[i], 0};
    if (i + 1 < n) run.step = values[i + 1] - values[i];
    while (run.end < n && values[run.end] == run.first + run.step * (run.end - run.begin)) ++run.end;
    // A run of two points between longer runs is the end of one and the start of the next: its second point goes to the
    // next.
    if (run.end - run.begin == 2 && run.end < n) {
      run.end = run.begin + 1;
      run.step = 0;
    }
    runs.push_back(run);
    i = run.end;
  }
  return runs;
}

WrappedIndices::WrappedIndices(LowerContext& context, int input, int64_t extent) : extent_(extent) {
  te::Builder& b = *context.builder;
  const Shape& shape = context.ShapeOf(input);
  const Tensor* constant = context.Constant(input);
  if (constant != nullptr && constant->num_elements() <= kMaxTable) {
    std::vector<int64_t> values(constant->num_elements());
    for (size_t k = 0; k < values.size(); ++k) {
      const int64_t given = constant->GetInt(k);
      values[k] = std::clamp<int64_t>(given < 0 ? given + extent : given, 0, extent - 1);
    }
    table_.emplace(&b, "indices", shape, std::move(values));
    return;
  }
  tensor_ = b.Map("indices", DType::kI64, shape, [&](const te::Builder::Idx& i) {
    const Scalar counted = CountedIndex(b.At(context.in[input], i), extent);
    return te::Max(te::Min(counted, te::ImmInt(DType::kI64, extent - 1)), te::ImmInt(DType::kI64, 0));
  });
}

Index WrappedIndices::operator()(const std::vector<Index>& point) {
  if (table_.has_value()) return (*table_)(point);
  return Index::Load(tensor_, point, {0, extent_ - 1});
}

}  // namespace fusion::ops
