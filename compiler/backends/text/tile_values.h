// The values of a register tile's body at one point of its unrolled reduction loops: each is a vector in a variable of
// the text, which rows and vectors of the tile share where the value is the same for them.
#ifndef FUSION_COMPILER_BACKENDS_TEXT_TILE_VALUES_H_
#define FUSION_COMPILER_BACKENDS_TEXT_TILE_VALUES_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "compiler/backends/text/expr_printer.h"
#include "compiler/backends/text/task_text.h"
#include "compiler/movement/kernel.h"

namespace fusion::text {

// One load of the body. Its address is split into a base (computed before the reduction), pointer steps for each
// rolled loop, and constants for row, vector and unrolled points.
struct TileOperand {
  const te::ScalarNode* node;
  std::map<int, int64_t> step;  // coefficient by rolled axis
  int64_t row = 0, vector = 0;
  std::map<int, int64_t> unrolled;
  bool by_lane = false;
  bool affine = true;
  // Number of the rolled loop inside of which the base is computed, because the address is no line along it (a ring
  // wraps around there); -1: in front of the reduction.
  int base_in_loop = -1;
  std::string pointer;
  const movement::Prefetch* prefetch = nullptr;
  std::string next_panel;  // pointer to this tile's share of the next panel
};

// Where the values are computed.
struct TilePoint {
  std::string first_row;      // text of the first row's coordinate
  std::map<int, int64_t> at;  // coordinates along unrolled axes
  int rolled_axis = -1;       // the innermost loop of the reduction, -1: all axes are unrolled
  int copy = 0;               // number of the copy of that loop's text
};

class TileValues {
 public:
  // The references must outlive the object.
  TileValues(const movement::Kernel& kernel, const movement::RegisterTile& tile,
             const std::vector<TileOperand>& operands, TilePoint point, int* next_temp, CodeWriter* out)
      : kernel_(kernel), tile_(tile), operands_(operands), point_(std::move(point)), next_temp_(next_temp), out_(out) {}

  // Prints what the value needs and is not printed yet. Returns the text of the value for a row and a vector.
  std::string Emit(const te::Scalar& s, int row, int vector);

 private:
  // A value's node, its row (-1: all) and its vector (-1: all).
  using Key = std::tuple<const te::ScalarNode*, int, int>;

  // Names the axes of an index at the row and the vector of a value.
  AxisName NameAt(int row, int vector) const;
  std::string PlaceOf(const TileOperand& operand, int row, int vector);
  std::string LoadedText(const te::ScalarNode& load, int row, int vector);
  std::string EmitIf(const te::Scalar& s, const Key& key, int row, int vector);

  const movement::Kernel& kernel_;
  const movement::RegisterTile& tile_;
  const std::vector<TileOperand>& operands_;
  const TilePoint point_;
  int* next_temp_;
  CodeWriter* out_;
  std::map<Key, std::string> values_;
};

}  // namespace fusion::text

#endif  // FUSION_COMPILER_BACKENDS_TEXT_TILE_VALUES_H_
