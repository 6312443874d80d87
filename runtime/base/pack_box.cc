#include "runtime/base/pack_box.h"

#include <cstring>

namespace fusion {

void PackBox(void* data, int64_t element_bytes, const Shape& whole, const Shape& part) {
  const size_t rank = whole.size();
  if (whole == part || NumElements(part) == 0) return;
  // The innermost dimensions that stay whole move together as one row. A row is never moved past the place of a later
  // row.
  size_t inner = rank;
  int64_t row_bytes = element_bytes;
  while (inner > 0 && part[inner - 1] == whole[inner - 1]) row_bytes *= part[--inner];
  int64_t pitch_bytes = row_bytes * whole[inner - 1];
  row_bytes *= part[inner - 1];
  auto* bytes = static_cast<char*>(data);
  std::vector<int64_t> at(inner, 0);
  const int64_t rows = NumElements({part.begin(), part.begin() + static_cast<std::ptrdiff_t>(inner) - 1});
  for (int64_t row = 0; row < rows; ++row) {
    int64_t from = 0, rest = row;
    int64_t stride = 1;
    for (size_t d = inner - 1; d-- > 0;) {
      from += rest % part[d] * stride;
      rest /= part[d];
      stride *= whole[d];
    }
    std::memmove(bytes + row * row_bytes, bytes + from * pitch_bytes, static_cast<size_t>(row_bytes));
  }
}

void SpreadBox(const void* from, void* to, int64_t element_bytes, const Shape& whole, const Shape& part) {
  const auto whole_bytes = static_cast<size_t>(element_bytes * NumElements(whole));
  const auto part_bytes = static_cast<size_t>(element_bytes * NumElements(part));
  if (part_bytes == 0) {
    if (whole_bytes > 0) std::memset(to, 0, whole_bytes);
    return;
  }
  // The dimensions outside the outermost one that is cut have equal extents in both arrays, so both consist of the same
  // number of pieces.
  size_t d = 0;
  int64_t blocks = 1;
  while (d < whole.size() && part[d] == whole[d]) blocks *= whole[d++];
  if (d == whole.size()) {
    std::memcpy(to, from, whole_bytes);
    return;
  }
  const Shape inner_whole(whole.begin() + static_cast<std::ptrdiff_t>(d) + 1, whole.end());
  const Shape inner_part(part.begin() + static_cast<std::ptrdiff_t>(d) + 1, part.end());
  const int64_t row_whole = element_bytes * NumElements(inner_whole),
                row_part = element_bytes * NumElements(inner_part);
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  for (int64_t block = 0; block < blocks; ++block) {
    for (int64_t row = 0; row < part[d]; ++row) {
      SpreadBox(source, target, element_bytes, inner_whole, inner_part);
      source += row_part;
      target += row_whole;
    }
    std::memset(target, 0, static_cast<size_t>((whole[d] - part[d]) * row_whole));
    target += (whole[d] - part[d]) * row_whole;
  }
}

}  // namespace fusion
