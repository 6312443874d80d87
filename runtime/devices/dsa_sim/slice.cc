#include "runtime/devices/dsa_sim/slice.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

namespace fusion::dsa {
namespace {

using Ranges = std::vector<std::pair<int64_t, int64_t>>;

void Append(const ByteRuns& runs, Ranges* ranges) {
  VisitRuns(runs, [&](int64_t begin, int64_t end) {
    ranges->emplace_back(begin, end);
    return true;
  });
}

}  // namespace

int64_t Slice::elements() const {
  int64_t product = 1;
  for (const Stride& stride : strides) product *= stride.count;
  return product;
}

std::vector<int64_t> Offsets(const std::vector<Stride>& strides) {
  std::vector<int64_t> offsets = {0};
  for (const Stride& stride : strides) {
    std::vector<int64_t> next;
    next.reserve(offsets.size() * stride.count);
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < stride.count; ++i) next.push_back(offset + i * stride.stride);
    }
    offsets = std::move(next);
  }
  return offsets;
}

ElementRange TouchedElements(const Slice& slice) {
  ElementRange range{slice.first, slice.first};
  for (const Stride& stride : slice.strides) {
    const int64_t reach = (stride.count - 1) * stride.stride;
    range.low += std::min<int64_t>(reach, 0);
    range.high += std::max<int64_t>(reach, 0);
  }
  return range;
}

ByteRuns ByteRunsOf(const Program& program, const Slice& slice) {
  const Buffer& buffer = program.buffers[slice.buffer];
  const int64_t width = DTypeBytes(buffer.dtype);
  ByteRuns runs;
  int64_t first = slice.first;
  for (const Stride& stride : slice.strides) {
    if (stride.count == 1) continue;
    if (stride.stride == 0) {
      runs.repeats = true;
      continue;
    }
    if (stride.stride < 0) first += (stride.count - 1) * stride.stride;
    runs.outer.push_back({stride.count, std::abs(stride.stride) * width});
  }
  const auto descends = [](const Stride& a, const Stride& b) { return a.stride > b.stride; };
  if (!std::is_sorted(runs.outer.begin(), runs.outer.end(), descends)) {
    std::stable_sort(runs.outer.begin(), runs.outer.end(), descends);
  }
  runs.first = buffer.offset_bytes + first * width;
  runs.length = width;
  while (!runs.outer.empty() && runs.outer.back().stride == runs.length) {
    runs.length *= runs.outer.back().count;
    runs.outer.pop_back();
  }
  // Strides that continue each other are one.
  for (size_t k = runs.outer.size(); k-- > 1;) {
    Stride &out = runs.outer[k - 1], &in = runs.outer[k];
    if (out.stride != in.count * in.stride) continue;
    out = {out.count * in.count, in.stride};
    runs.outer.erase(runs.outer.begin() + static_cast<std::ptrdiff_t>(k));
  }
  int64_t span = runs.length;
  for (auto stride = runs.outer.rbegin(); stride != runs.outer.rend(); ++stride) {
    runs.disjoint = runs.disjoint && stride->stride >= span;
    span += (stride->count - 1) * stride->stride;
  }
  runs.end = runs.first + span;
  return runs;
}

bool Overlap(const ByteRuns& a, const ByteRuns& b) {
  if (a.end <= b.first || b.end <= a.first) return false;
  Ranges of_a, of_b;
  Append(a, &of_a);
  Append(b, &of_b);
  std::sort(of_a.begin(), of_a.end());
  std::sort(of_b.begin(), of_b.end());
  for (size_t i = 0, j = 0; i < of_a.size() && j < of_b.size();) {
    if (of_a[i].first < of_b[j].second && of_b[j].first < of_a[i].second) return true;
    (of_a[i].second <= of_b[j].second ? i : j) += 1;
  }
  return false;
}

bool TouchTwice(const std::vector<ByteRuns>& slices) {
  bool apart = true;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (slices[i].repeats) return true;
    apart = apart && slices[i].disjoint;
    for (size_t j = 0; j < i; ++j) {
      apart = apart && (slices[i].end <= slices[j].first || slices[j].end <= slices[i].first);
    }
  }
  if (apart) return false;
  Ranges ranges;
  for (const ByteRuns& runs : slices) Append(runs, &ranges);
  std::sort(ranges.begin(), ranges.end());
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return true;
  }
  return false;
}

}  // namespace fusion::dsa
