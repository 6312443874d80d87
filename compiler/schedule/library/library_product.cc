#include "compiler/schedule/library/library_product.h"

#include <optional>
#include <utility>

#include "compiler/cost/matrix_products.h"
#include "compiler/schedule/library/library_nest.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;
using te::ScalarKind;

// The load of an operand, which may be widened from f16.
const te::ScalarNode* OperandLoad(const Scalar& s) {
  const bool widened = s->kind == ScalarKind::kCast && s->dtype == DType::kF32 && s->args[0]->dtype == DType::kF16;
  return PlainLoad(widened ? s->args[0] : s);
}

// The roles of the nest's axes.
struct Roles {
  Axis row, column, batch{-1, 1}, depth;

  struct Strides {
    int64_t row = 0, column = 0, batch = 0, depth = 0;
  };
  // The strides of an address that is the sum of multiples of these axes and nothing else; nullopt for any other.
  std::optional<Strides> Of(const Index& address) const {
    Strides s;
    Index sum;
    for (const auto& [axis, stride] : {std::pair(&row, &s.row), std::pair(&column, &s.column),
                                       std::pair(&batch, &s.batch), std::pair(&depth, &s.depth)}) {
      if (axis->id < 0) continue;
      if (!address.AffineIn(axis->id, stride)) return std::nullopt;
      sum = sum + Index(*axis) * *stride;
    }
    if (!(sum == address)) return std::nullopt;
    return s;
  }
};

std::optional<Roles> RolesOf(const Nest& nest, const Index& by_row, const Index& by_column) {
  if (nest.reduction->axes.size() != 1) return std::nullopt;
  Roles roles;
  int rows = 0, columns = 0, batches = 0;
  for (const Axis& axis : nest.axes) {
    const bool row = by_row.UsesAxis(axis.id), column = by_column.UsesAxis(axis.id);
    if (row && column) {
      roles.batch = axis, ++batches;
    } else if (row) {
      roles.row = axis, ++rows;
    } else if (column) {
      roles.column = axis, ++columns;
    } else {
      return std::nullopt;
    }
  }
  roles.depth = nest.reduction->axes[0];
  if (rows != 1 || columns != 1 || batches > 1) return std::nullopt;
  return roles;
}

// The buffer of the bias where a bias alone follows the sum; -1 where nothing follows it, nullopt for anything else.
std::optional<int> BiasOf(const Nest& nest, const Axis& along) {
  if (nest.then.empty()) return -1;
  Scalar value = nest.then[0];
  if (value->kind == ScalarKind::kCast && value->dtype == nest.store_types[0]) value = value->args[0];
  if (value->kind == ScalarKind::kAcc) return -1;
  if (nest.store_types[0] != DType::kF32 || value->kind != ScalarKind::kOp || value->op != te::Op::kAdd) {
    return std::nullopt;
  }
  for (const int sum : {0, 1}) {
    const te::ScalarNode* load = PlainLoad(value->args[1 - sum]);
    if (value->args[sum]->kind != ScalarKind::kAcc || load == nullptr || load->dtype != DType::kF32) continue;
    if (load->indices[0] == Index(along)) return load->tensor;
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<movement::Phase> LibraryProductPhase(const Nest& nest, const DeviceModel& device,
                                                    const movement::Kernel& kernel) {
  const auto refuse = [](const char* why) { return absl::FailedPreconditionError(why); };
  if (!IsPlainSumOfProducts(nest)) return refuse("the stage is not a plain sum of f32 products");
  const te::ScalarNode* operands[] = {OperandLoad(nest.body[0]->args[0]), OperandLoad(nest.body[0]->args[1])};
  if (operands[0] == nullptr || operands[1] == nullptr || operands[0]->dtype != operands[1]->dtype) {
    return refuse("an operand is computed on the way and does not lie in memory");
  }
  const bool halves = operands[0]->dtype == DType::kF16;
  const DType result = nest.store_types[0];
  if (!(result == DType::kF32 || (halves && result == DType::kF16)))
    return refuse("the library does not write results of this type");
  const std::optional<Roles> roles = RolesOf(nest, operands[0]->indices[0], operands[1]->indices[0]);
  if (!roles) return refuse("the addresses are not those of matrices");
  using Strides = Roles::Strides;
  const std::optional<Strides> by_row = roles->Of(operands[0]->indices[0]),
                               by_column = roles->Of(operands[1]->indices[0]),
                               store = roles->Of(nest.stores[0].address);
  if (!by_row || !by_column || !store) return refuse("the addresses are not those of matrices");

  // d is contiguous along the rows or along the columns of the nest.
  const bool rows_inside = store->row == 1 && store->column != 1;
  if (!rows_inside && store->column != 1) return refuse("neither rows nor columns of the result are contiguous");
  LibraryProduct product;
  const Axis& inner = rows_inside ? roles->row : roles->column;
  const Axis& outer = rows_inside ? roles->column : roles->row;
  const te::ScalarNode* a = operands[rows_inside ? 0 : 1];
  const te::ScalarNode* b = operands[rows_inside ? 1 : 0];
  const Strides& of_a = rows_inside ? *by_row : *by_column;
  const Strides& of_b = rows_inside ? *by_column : *by_row;
  const int64_t a_stride = rows_inside ? of_a.row : of_a.column, b_stride = rows_inside ? of_b.column : of_b.row;
  product.a = a->tensor, product.b = b->tensor, product.d = nest.stores[0].buffer;
  product.m = inner.extent, product.n = outer.extent, product.depth = roles->depth.extent;
  product.batches = roles->batch.extent;
  product.a_along_depth = of_a.depth == 1, product.b_along_depth = of_b.depth == 1;
  product.a_pitch = product.a_along_depth ? a_stride : of_a.depth;
  product.b_pitch = product.b_along_depth ? b_stride : of_b.depth;
  product.d_pitch = rows_inside ? store->column : store->row;
  product.a_batch = of_a.batch, product.b_batch = of_b.batch, product.d_batch = store->batch;
  product.tf32 = !halves && FindMatrixProduct(device, DType::kF32) != nullptr;
  const bool matrices = (product.a_along_depth || a_stride == 1) && (product.b_along_depth || b_stride == 1) &&
                        product.a_pitch >= (product.a_along_depth ? product.depth : product.m) &&
                        product.b_pitch >= (product.b_along_depth ? product.depth : product.n) &&
                        product.d_pitch >= product.m && product.a_batch >= 0 && product.b_batch >= 0 &&
                        (product.batches == 1 || product.d_batch > 0);
  if (!matrices) return refuse("the addresses are not those of matrices");
  const std::optional<int> bias = BiasOf(nest, inner);
  if (!bias) return refuse("the epilogue behind the sum is not a bias");
  product.bias = *bias;
  for (const int buffer : {product.a, product.b, product.d}) {
    if (kernel.buffers[buffer].scope == Scope::kBlock)
      return refuse("an operand lies in the shared memory of a work-group");
  }
  return PhaseOf(nest, product);
}

}  // namespace fusion
