#include "compiler/movement/pack_constant.h"

#include <algorithm>
#include <cstring>

#include "compiler/movement/constant_transform.h"

namespace fusion::movement {
namespace {

// The fewest rows of a tile, where the box has so many: what is computed once for a tile then costs next to nothing.
constexpr int64_t kTileRows = 1024;
// Most entries of a table. Constants with longer axes are packed without tables.
constexpr int64_t kMaxTable = 1 << 20;
// Rows whose sources are adjacent are copied together: a cache line of floats.
constexpr int64_t kRun = 16;

int64_t Evaluate(const te::Index& index, const std::vector<int>& ids, const std::vector<int64_t>& values);

int64_t Evaluate(const te::Term& term, const std::vector<int>& ids, const std::vector<int64_t>& values) {
  if (term.kind == te::TermKind::kAxis) {
    const auto it = std::find(ids.begin(), ids.end(), term.axis.id);
    return it == ids.end() ? 0 : values[it - ids.begin()];
  }
  if (term.inner == nullptr) return 0;
  const int64_t inner = Evaluate(*term.inner, ids, values), d = term.divisor;
  const int64_t mod = ((inner % d) + d) % d;
  return term.kind == te::TermKind::kMod ? mod : (inner - mod) / d;
}

int64_t Evaluate(const te::Index& index, const std::vector<int>& ids, const std::vector<int64_t>& values) {
  int64_t result = index.constant();
  for (const te::Index::Part& part : index.parts()) result += part.coefficient * Evaluate(part.term, ids, values);
  return result;
}

bool Compare(te::Cmp cmp, int64_t difference) {
  switch (cmp) {
    case te::Cmp::kLt:
      return difference < 0;
    case te::Cmp::kGe:
      return difference >= 0;
    case te::Cmp::kEq:
      return difference == 0;
    case te::Cmp::kNe:
      return difference != 0;
  }
  return false;
}

// out[r * pitch + c] = in[row[r] + column[c]].
template <typename T>
void CopyTile(const T* in, const int64_t* row, int64_t rows, const int64_t* column, int64_t columns, bool adjacent,
              int64_t pitch, T* out) {
  if (adjacent) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(out + r * pitch, in + row[r] + column[0], static_cast<size_t>(columns) * sizeof(T));
    }
    return;
  }
  for (int64_t r = 0; r < rows;) {
    int64_t run = 1;
    while (run < kRun && r + run < rows && row[r + run] == row[r] + run) ++run;
    T* place = out + r * pitch;
    if (run == kRun) {
      for (int64_t c = 0; c < columns; ++c) {
        const T* line = in + row[r] + column[c];
        for (int64_t i = 0; i < kRun; ++i) place[i * pitch + c] = line[i];
      }
    } else {
      for (int64_t i = 0; i < run; ++i) {
        const T* line = in + row[r + i];
        for (int64_t c = 0; c < columns; ++c) place[i * pitch + c] = line[column[c]];
      }
    }
    r += run;
  }
}

}  // namespace

ConstantPacker::ConstantPacker(const Pack& pack, int64_t source_elements)
    : pack_(pack), source_elements_(source_elements) {
  for (const te::Axis& axis : pack.axes) {
    ids_.push_back(axis.id);
    extents_.push_back(axis.extent);
  }
  if (!extents_.empty()) columns_ = extents_.back();
  for (size_t a = 0; a + 1 < extents_.size(); ++a) rows_ *= extents_[a];
  tables_ = MakeTables();
}

bool ConstantPacker::Separate(const te::Index& index, Sum* sum) const {
  sum->constant += index.constant();
  sum->by_axis.resize(ids_.size());
  std::vector<int64_t> at(ids_.size(), 0);
  for (const te::Index::Part& part : index.parts()) {
    std::vector<te::Axis> axes;
    te::CollectAxes(te::Index::FromParts(0, {part}), &axes);
    std::vector<size_t> positions;
    for (const te::Axis& axis : axes) {
      const auto it = std::find(ids_.begin(), ids_.end(), axis.id);
      if (it != ids_.end()) positions.push_back(it - ids_.begin());
    }
    if (positions.size() > 1) return false;
    if (positions.empty()) {
      sum->constant += part.coefficient * Evaluate(part.term, ids_, at);
      continue;
    }
    const size_t p = positions[0];
    std::vector<int64_t>& table = sum->by_axis[p];
    table.resize(extents_[p], 0);
    for (at[p] = 0; at[p] < extents_[p]; ++at[p]) table[at[p]] += part.coefficient * Evaluate(part.term, ids_, at);
    at[p] = 0;
  }
  return true;
}

ConstantPacker::Tiled ConstantPacker::Tile(Sum sum) const {
  Tiled tiled;
  const size_t last = extents_.size() - 1;
  tiled.row.assign(1, 0);
  for (size_t a = outer_axes_; a < last; ++a) {
    std::vector<int64_t> joined;
    joined.reserve(tiled.row.size() * extents_[a]);
    for (const int64_t before : tiled.row) {
      for (int64_t i = 0; i < extents_[a]; ++i)
        joined.push_back(before + (sum.by_axis[a].empty() ? 0 : sum.by_axis[a][i]));
    }
    tiled.row = std::move(joined);
  }
  tiled.column = sum.by_axis[last].empty() ? std::vector<int64_t>(columns_, 0) : std::move(sum.by_axis[last]);
  sum.by_axis.resize(outer_axes_);
  tiled.outer = std::move(sum);
  return tiled;
}

int64_t ConstantPacker::Tiled::Base(const std::vector<int64_t>& at) const {
  int64_t base = outer.constant;
  for (size_t a = 0; a < outer.by_axis.size(); ++a) {
    if (!outer.by_axis[a].empty()) base += outer.by_axis[a][at[a]];
  }
  return base;
}

bool ConstantPacker::MakeTables() {
  if (extents_.empty() || rows_ * columns_ == 0) return false;
  for (const int64_t extent : extents_) {
    if (extent > kMaxTable) return false;
  }
  Sum address;
  if (!Separate(pack_.address, &address)) return false;
  std::vector<Sum> differences(pack_.pred.size());
  for (size_t i = 0; i < differences.size(); ++i) {
    if (!Separate(pack_.pred[i].lhs - pack_.pred[i].rhs, &differences[i])) return false;
  }
  outer_axes_ = extents_.size() - 1;
  while (outer_axes_ > 0 && tile_rows_ < kTileRows && tile_rows_ * extents_[outer_axes_ - 1] <= kMaxTable) {
    // An axis that decides a condition stays outside of tiles, so that all rows of a tile fulfil the same conditions.
    const bool decides = std::any_of(differences.begin(), differences.end(), [&](const Sum& difference) {
      return !difference.by_axis[outer_axes_ - 1].empty();
    });
    if (decides) break;
    tile_rows_ *= extents_[--outer_axes_];
  }
  for (size_t i = 0; i < differences.size(); ++i) {
    Condition condition{pack_.pred[i].cmp, Tile(std::move(differences[i]))};
    const std::vector<int64_t>& column = condition.difference.column;
    const auto [least, most] = std::minmax_element(column.begin(), column.end());
    condition.least = *least;
    condition.most = *most;
    conditions_.push_back(std::move(condition));
  }
  address_ = Tile(std::move(address));
  const auto [row_least, row_most] = std::minmax_element(address_.row.begin(), address_.row.end());
  const auto [column_least, column_most] = std::minmax_element(address_.column.begin(), address_.column.end());
  least_ = *row_least + *column_least;
  most_ = *row_most + *column_most;
  adjacent_columns_ = true;
  for (int64_t c = 0; c < columns_; ++c) {
    adjacent_columns_ = adjacent_columns_ && address_.column[c] == address_.column[0] + c;
  }
  return true;
}

int64_t ConstantPacker::ColumnsThatHold(const std::vector<int64_t>& at, std::vector<uint8_t>* holds) const {
  std::fill(holds->begin(), holds->end(), 1);
  for (const Condition& condition : conditions_) {
    const int64_t base = condition.difference.Base(at);
    // Most tiles lie inside; the least and the greatest column value show it.
    const bool ordered = condition.cmp == te::Cmp::kLt || condition.cmp == te::Cmp::kGe;
    if (ordered && Compare(condition.cmp, base + condition.least) && Compare(condition.cmp, base + condition.most)) {
      continue;
    }
    for (int64_t c = 0; c < columns_; ++c) {
      (*holds)[c] = (*holds)[c] && Compare(condition.cmp, base + condition.difference.column[c]);
    }
  }
  return std::count(holds->begin(), holds->end(), 1);
}

std::vector<int64_t> ConstantPacker::OuterAt(int64_t tile) const {
  std::vector<int64_t> at(outer_axes_);
  for (size_t a = outer_axes_; a-- > 0;) {
    at[a] = tile % extents_[a];
    tile /= extents_[a];
  }
  return at;
}

int64_t ConstantPacker::held() const {
  if (pack_.pred.empty()) return rows_ * columns_;
  int64_t held = 0;
  if (tables_) {
    std::vector<uint8_t> holds(columns_);
    for (int64_t tile = 0; tile < rows_ / tile_rows_; ++tile) {
      held += tile_rows_ * ColumnsThatHold(OuterAt(tile), &holds);
    }
    return held;
  }
  std::vector<int64_t> at(ids_.size(), 0);
  for (int64_t i = 0; i < rows_ * columns_; ++i) {
    int64_t rest = i;
    for (size_t a = ids_.size(); a-- > 0;) {
      at[a] = rest % extents_[a];
      rest /= extents_[a];
    }
    held += Holds(at) ? 1 : 0;
  }
  return held;
}

bool ConstantPacker::Holds(const std::vector<int64_t>& at) const {
  return std::all_of(pack_.pred.begin(), pack_.pred.end(), [&](const te::Comparison& condition) {
    return Compare(condition.cmp, Evaluate(condition.lhs, ids_, at) - Evaluate(condition.rhs, ids_, at));
  });
}

template <typename T>
void ConstantPacker::PackTiled(const T* in, int64_t begin, int64_t end, T* out) const {
  std::vector<uint8_t> holds(columns_);
  for (int64_t row = begin; row < end;) {
    const int64_t first = row % tile_rows_, rows = std::min(end - row, tile_rows_ - first);
    const std::vector<int64_t> at = OuterAt(row / tile_rows_);
    T* place = out + (row - begin) * columns_;
    row += rows;
    const int64_t hold = ColumnsThatHold(at, &holds);
    const bool prefix = std::find(holds.begin(), holds.begin() + hold, 0) == holds.begin() + hold;
    const int64_t base = address_.Base(at);
    const bool inside = base + least_ >= 0 && base + most_ < source_elements_;
    if (hold < columns_ || !inside) std::memset(place, 0, static_cast<size_t>(rows * columns_) * sizeof(T));
    if (hold == 0) continue;
    if (prefix && inside) {
      CopyTile(in + base, address_.row.data() + first, rows, address_.column.data(), hold, adjacent_columns_, columns_,
               place);
      continue;
    }
    for (int64_t r = first; r < first + rows; ++r, place += columns_) {
      for (int64_t c = 0; c < columns_; ++c) {
        const int64_t address = base + address_.row[r] + address_.column[c];
        if (holds[c] && address >= 0 && address < source_elements_) place[c] = in[address];
      }
    }
  }
}

template <typename T>
void ConstantPacker::PackEach(const T* in, int64_t begin, int64_t end, T* out) const {
  std::vector<int64_t> at(ids_.size(), 0);
  std::memset(out, 0, static_cast<size_t>((end - begin) * columns_) * sizeof(T));
  for (int64_t row = begin; row < end; ++row) {
    int64_t rest = row;
    for (size_t a = ids_.size(); a-- > 1;) {
      at[a - 1] = rest % extents_[a - 1];
      rest /= extents_[a - 1];
    }
    for (int64_t c = 0; c < columns_; ++c, ++out) {
      if (!at.empty()) at.back() = c;
      if (!Holds(at)) continue;
      const int64_t address = Evaluate(pack_.address, ids_, at);
      if (address >= 0 && address < source_elements_) *out = in[address];
    }
  }
}

void ConstantPacker::PackRows(const Tensor& source, int64_t begin, int64_t end, void* out) const {
  const auto pack = [&]<typename T>(T /*of this size*/) {
    const T* in = static_cast<const T*>(source.data());
    if (tables_) {
      PackTiled(in, begin, end, static_cast<T*>(out));
    } else {
      PackEach(in, begin, end, static_cast<T*>(out));
    }
  };
  switch (DTypeBytes(source.dtype())) {
    case 1:
      return pack(uint8_t{});
    case 2:
      return pack(uint16_t{});
    case 4:
      return pack(uint32_t{});
    default:
      return pack(uint64_t{});
  }
}

Tensor PackedConstant(const Pack& pack, const Tensor& source) {
  const Tensor original = Transformed(pack.transform, source);
  const ConstantPacker packer(pack, original.num_elements());
  Shape shape;
  for (const te::Axis& axis : pack.axes) shape.push_back(axis.extent);
  Tensor packed(original.dtype(), shape);
  packer.PackRows(original, 0, packer.rows(), packed.mutable_data());
  return packed;
}

}  // namespace fusion::movement
