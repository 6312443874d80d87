#include "client/local/tied_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

namespace fusion {
namespace {

constexpr size_t kMostMovedRows = 1000;  // each is held against each

struct Output {
  const Tensor* actual;
  const Tensor* reference;
  double tolerance, scale;
  int64_t row_elements;
};

bool SameRow(const Output& output, int64_t from, int64_t to) {
  for (int64_t i = 0; i < output.row_elements; ++i) {
    const int64_t x = from * output.row_elements + i, y = to * output.row_elements + i;
    if (!IsFloat(output.actual->dtype())) {
      if (output.actual->GetInt(x) != output.reference->GetInt(y)) return false;
      continue;
    }
    const double a = output.actual->GetDouble(x), b = output.reference->GetDouble(y);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!(std::abs(a - b) <= output.tolerance * std::max(std::abs(b), output.scale))) return false;
  }
  return true;
}

bool SameRow(const std::vector<Output>& outputs, int64_t from, int64_t to) {
  return std::all_of(outputs.begin(), outputs.end(), [&](const Output& output) { return SameRow(output, from, to); });
}

// For each place the row of `actual` that belongs there; empty where there is none.
std::vector<int64_t> MatchRows(const std::vector<Output>& outputs, int64_t rows) {
  std::vector<int64_t> source(static_cast<size_t>(rows), -1);
  std::set<int64_t> free;
  for (int64_t r = 0; r < rows; ++r) {
    if (SameRow(outputs, r, r)) {
      source[static_cast<size_t>(r)] = r;
    } else {
      free.insert(r);
    }
  }
  if (free.size() > kMostMovedRows) return {};
  const std::set<int64_t> open = free;
  for (const int64_t place : open) {
    const auto row = std::find_if(free.begin(), free.end(), [&](int64_t r) { return SameRow(outputs, r, place); });
    if (row == free.end()) return {};
    source[static_cast<size_t>(place)] = *row;
    free.erase(row);
  }
  return source;
}

Tensor Reordered(const Tensor& tensor, const std::vector<int64_t>& source) {
  Tensor result(tensor.dtype(), tensor.shape());
  const size_t row_bytes = static_cast<size_t>(tensor.size_bytes()) / source.size();
  for (size_t place = 0; place < source.size(); ++place) {
    std::memcpy(static_cast<char*>(result.mutable_data()) + place * row_bytes,
                static_cast<const char*>(tensor.data()) + static_cast<size_t>(source[place]) * row_bytes, row_bytes);
  }
  return result;
}

}  // namespace

std::optional<Reordering> ReorderTiedRows(absl::Span<const Tensor> actual, absl::Span<const Tensor> reference,
                                          absl::Span<const Comparison> compared) {
  std::map<int64_t, std::vector<size_t>> by_rows;
  for (size_t i = 0; i < actual.size(); ++i) {
    const Shape& shape = actual[i].shape();
    if (!shape.empty() && shape[0] > 1 && actual[i].num_elements() > 0) by_rows[shape[0]].push_back(i);
  }
  Reordering result{{actual.begin(), actual.end()}, std::vector<int64_t>(actual.size(), 0)};
  bool any = false;
  for (const auto& [rows, group] : by_rows) {
    bool ordered = false, broken = false;
    std::vector<Output> outputs;
    for (const size_t i : group) {
      broken = broken || !compared[i].ok;
      ordered = ordered || (compared[i].ok && IsFloat(actual[i].dtype()));
      outputs.push_back({&actual[i], &reference[i], compared[i].tolerance, RootMeanSquare(reference[i]),
                         actual[i].num_elements() / rows});
    }
    if (!ordered || !broken) continue;  // nothing that sorts, or nothing to mend
    const std::vector<int64_t> source = MatchRows(outputs, rows);
    if (source.empty()) continue;
    any = true;
    int64_t moved = 0;
    for (int64_t place = 0; place < rows; ++place) moved += source[static_cast<size_t>(place)] != place;
    for (const size_t i : group) {
      result.actual[i] = Reordered(actual[i], source);
      result.moved_rows[i] = moved;
    }
  }
  if (!any) return std::nullopt;
  return result;
}

}  // namespace fusion
