#include "compiler/backends/text/task_text.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::text {

std::string AxisText(int axis) { return absl::StrCat("x", axis); }

std::string LimitText(const movement::Loop& loop, const movement::Kernel& kernel) {
  if (!loop.limit) return absl::StrCat(loop.axis.extent);
  return absl::StrCat("smin_i64(", loop.axis.extent, ", ", IndexText(*loop.limit, AxisText, kernel), ")");
}

std::string BoundText(const movement::Bound& bound, const AxisName& name, const movement::Kernel& kernel) {
  return absl::StrCat(IndexText(bound.index, name, kernel), " < ", bound.limit);
}

std::string MaskedText(const movement::Bound& bound, const std::string& value, DType dtype,
                       const movement::Kernel& kernel) {
  return absl::StrCat("vsel(iota() < bi((int)(", bound.limit, " - (", IndexText(bound.index, AxisText, kernel), "))), ",
                      value, ", ", VectorZero(dtype), ")");
}

int64_t Points(const std::vector<movement::Loop>& loops) {
  int64_t points = 1;
  for (const movement::Loop& loop : loops) points *= loop.axis.extent;
  return points;
}

int OpenPoints(const std::vector<movement::Loop>& loops, const movement::Kernel& kernel, int work_group_size,
               CodeWriter* out, int unroll, const std::string& item) {
  const std::string unrolled = unroll > 0 ? absl::StrCat("UNROLL_BY(", unroll, ") ") : "";
  if (work_group_size == 1) {
    for (const movement::Loop& loop : loops) {
      const std::string i = AxisText(loop.axis.id);
      out->Open(absl::StrCat(unrolled, "for (ix ", i, " = 0, e_", i, " = ", LimitText(loop, kernel), "; ", i, " < e_",
                             i, "; ++", i, ")"));
    }
    return static_cast<int>(loops.size());
  }
  const int64_t points = Points(loops);
  if (points % work_group_size == 0) {
    out->Open(absl::StrCat(unrolled, "for (ix turn = 0; turn < ", points / work_group_size, "; ++turn)"));
    out->Line(absl::StrCat("const ix point = ", item, " + turn * ", work_group_size, ";"));
  } else {
    out->Open(
        absl::StrCat(unrolled, "for (ix point = ", item, "; point < ", points, "; point += ", work_group_size, ")"));
  }
  TakePointApart(loops, out);
  for (const movement::Loop& loop : loops) {
    if (!loop.limit) continue;
    out->Line(
        absl::StrCat("if (", AxisText(loop.axis.id), " >= ", IndexText(*loop.limit, AxisText, kernel), ") continue;"));
  }
  return 1;
}

void TakePointApart(const std::vector<movement::Loop>& loops, CodeWriter* out) {
  int64_t inner = Points(loops);
  for (const movement::Loop& loop : loops) {
    inner /= std::max<int64_t>(1, loop.axis.extent);
    out->Line(absl::StrCat("const ix ", AxisText(loop.axis.id), " = point / ", std::max<int64_t>(1, inner), " % ",
                           loop.axis.extent, ";"));
  }
}

// Perfect shuffles of row i with row i + lanes / 2, repeated log2(lanes) times, exchange rows and lanes.
std::vector<std::string> ExchangeLanes(std::vector<std::string> rows, const std::string& type, const std::string& zip,
                                       int* next_temp, CodeWriter* out) {
  const size_t lanes = rows.size();
  for (size_t width = 1; width < lanes; width *= 2) {
    const std::vector<std::string> before = std::exchange(rows, {});
    for (size_t i = 0; i < lanes / 2; ++i) {
      const std::string pair = absl::StrCat("(", before[i], ", ", before[i + lanes / 2], ")");
      for (const char* half : {"low", "high"}) {
        rows.push_back(absl::StrCat("t", (*next_temp)++));
        out->Line(absl::StrCat("const ", type, " ", rows.back(), " = ", zip, half, pair, ";"));
      }
    }
  }
  return rows;
}

}  // namespace fusion::text
