#include "compiler/ops/registry/op_list.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "compiler/ops/contrib/contrib_list.h"

namespace fusion::ops {
namespace {

// One family per line.
// clang-format off
constexpr std::vector<OpDef> (*kFamilies[])() = {
    UnaryOps,
    BinaryOps,
    CastOps,
    BitCastOps,
    ReductionOps,
    SoftmaxOps,
    NormalizationOps,
    LossOps,
    MatMulOps,
    ConvolutionOps,
    PoolingOps,
    ReshapeOps,
    TransposeOps,
    SliceOps,
    PadOps,
    ExpandOps,
    GatherOps,
    ScatterOps,
    ResizeOps,
    SamplingOps,
    ShapeOps,
    OrderingOps,
    SelectionOps,
    QuantizeOps,
    RecurrentOps,
    AttentionOps,
    LinearAttentionOps,
    CacheOps,
    RoiOps,
    DeformConvOps,
    Col2ImOps,
    DeterminantOps,
    SignalOps,
    ContribActivationOps,
    ContribProductOps,
    ContribLayerNormOps,
    ContribAttentionOps,
    ContribRotaryOps,
    IntProductOps,
    ExpressionOps,
};
// clang-format on

const std::map<std::string, OpDef>& Table() {
  static const auto& table = *[] {
    auto* ops = new std::map<std::string, OpDef>;
    for (auto family : kFamilies) {
      for (OpDef& op : family()) {
        std::string name = op.name;
        ops->emplace(std::move(name), std::move(op));
      }
    }
    return ops;
  }();
  return table;
}

}  // namespace

const OpDef* FindOp(const std::string& name) {
  const auto it = Table().find(name);
  return it == Table().end() ? nullptr : &it->second;
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : Table()) {
    if (!op.internal) ops.push_back(&op);
  }
  return ops;
}

}  // namespace fusion::ops
