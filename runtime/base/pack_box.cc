#include "runtime/base/pack_box.h"

#include <cstring>

namespace fusion {

void PackBox(void* data, int64_t element_bytes, const Shape& whole, const Shape& part) {
  const size_t rank = whole.size();
  if (whole == part || NumElements(part) == 0) return;
  // Rows of the innermost dimensions that stay whole move at once; a row never moves behind a later one's place.
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

}  // namespace fusion
