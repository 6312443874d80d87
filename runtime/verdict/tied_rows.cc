#include "runtime/verdict/tied_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "runtime/base/status_macros.h"
#include "runtime/verdict/local_scale.h"

namespace fusion {
namespace {

constexpr size_t kMostMovedRows = 1000;  // each is compared with each

struct Output {
  const Tensor* actual;
  const Tensor* reference;
  double tolerance;
  bool sorts;  // agrees place by place, so the others may be sorted by it
  int64_t row_elements;
  LocalScale scale;
};

bool SameRow(Output& output, int64_t from, int64_t to) {
  for (int64_t i = 0; i < output.row_elements; ++i) {
    const int64_t x = from * output.row_elements + i, y = to * output.row_elements + i;
    if (!IsFloat(output.actual->dtype())) {
      if (output.actual->GetInt(x) != output.reference->GetInt(y)) return false;
      continue;
    }
    const double a = output.actual->GetDouble(x), b = output.reference->GetDouble(y);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (!std::isfinite(a) || !std::isfinite(b) || output.scale.Error(y, a) > output.tolerance) return false;
  }
  return true;
}

bool SameRow(std::vector<Output>& outputs, int64_t from, int64_t to) {
  return std::all_of(outputs.begin(), outputs.end(), [&](Output& output) { return SameRow(output, from, to); });
}

// Returns in how many outputs row `from` agrees with place `to`; -1 if the scores do not agree.
int64_t Agreeing(std::vector<Output>& outputs, int64_t from, int64_t to) {
  int64_t agreeing = 0;
  for (Output& output : outputs) {
    const bool same = SameRow(output, from, to);
    if (output.sorts && !same) return -1;
    agreeing += same;
  }
  return agreeing;
}

// Returns for each place the row of `actual` that belongs there; empty if too many rows disagree to try them all.
std::vector<int64_t> MatchRows(std::vector<Output>& outputs, int64_t rows) {
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
  std::set<int64_t> open = free;
  for (auto place = open.begin(); place != open.end();) {
    const auto row = std::find_if(free.begin(), free.end(), [&](int64_t r) { return SameRow(outputs, r, *place); });
    if (row == free.end()) {
      ++place;
      continue;
    }
    source[static_cast<size_t>(*place)] = *row;
    free.erase(row);
    place = open.erase(place);
  }
  // The rows left tie with a place, but also differ. The caller should see how they differ, not that they traded
  // places.
  for (const int64_t place : open) {
    int64_t best = -1, most = -1;
    for (const int64_t row : free) {
      const int64_t agreeing = Agreeing(outputs, row, place);
      if (agreeing > most || (agreeing == most && row == place)) {
        best = row;
        most = agreeing;
      }
    }
    if (best < 0) continue;
    source[static_cast<size_t>(place)] = best;
    free.erase(best);
  }
  for (int64_t& row : source) {  // places with which none of the remaining rows ties
    if (row >= 0) continue;
    row = *free.begin();
    free.erase(free.begin());
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

Reordering ReorderTiedRows(absl::Span<const Tensor> actual, absl::Span<const Tensor> reference,
                           absl::Span<const Comparison> compared, const Slack& slack) {
  std::map<int64_t, std::vector<size_t>> by_rows;
  for (size_t i = 0; i < actual.size(); ++i) {
    const Shape& shape = actual[i].shape();
    if (shape != reference[i].shape()) continue;
    if (!shape.empty() && shape[0] > 1 && actual[i].num_elements() > 0) by_rows[shape[0]].push_back(i);
  }
  Reordering result{{actual.begin(), actual.end()}, std::vector<int64_t>(actual.size(), 0)};
  for (const auto& [rows, group] : by_rows) {
    bool ordered = false, broken = false;
    std::vector<Output> outputs;
    for (const size_t i : group) {
      const DType dtype = actual[i].dtype();
      const bool sorts = compared[i].ok() && IsFloat(dtype);
      broken = broken || compared[i].verdict == Verdict::kWrong;
      ordered = ordered || sorts;
      outputs.push_back({&actual[i], &reference[i], compared[i].tolerance, sorts, actual[i].num_elements() / rows,
                         LocalScale(reference[i], slack)});
    }
    if (!ordered || !broken) continue;  // nothing sorts the rows, or nothing is wrong
    const std::vector<int64_t> source = MatchRows(outputs, rows);
    if (source.empty()) continue;
    int64_t moved = 0;
    for (int64_t place = 0; place < rows; ++place) moved += source[static_cast<size_t>(place)] != place;
    for (const size_t i : group) {
      if (moved == 0) break;
      result.actual[i] = Reordered(actual[i], source);
      result.moved_rows[i] = moved;
    }
  }
  return result;
}

absl::StatusOr<OutputsCompared> CompareOutputs(std::vector<Tensor> actual, const std::vector<Tensor>& reference,
                                               const Slack& slack) {
  OutputsCompared result;
  const auto compare = [&](const std::vector<Tensor>& tensors) -> absl::Status {
    result.outputs.clear();
    for (size_t i = 0; i < tensors.size(); ++i) {
      auto compared = CompareTensors(tensors[i], reference[i], slack);
      RETURN_IF_ERROR(Annotate(compared.status(), absl::StrCat("output ", i)));
      result.outputs.push_back(*std::move(compared));
    }
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(compare(actual));
  Reordering reordered = ReorderTiedRows(actual, reference, result.outputs, slack);
  result.moved_rows = std::move(reordered.moved_rows);
  const bool any = std::any_of(result.moved_rows.begin(), result.moved_rows.end(), [](int64_t n) { return n > 0; });
  if (any) RETURN_IF_ERROR(compare(reordered.actual));
  result.actual = std::move(reordered.actual);
  return result;
}

}  // namespace fusion
