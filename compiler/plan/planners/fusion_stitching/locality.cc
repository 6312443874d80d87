#include "compiler/plan/planners/fusion_stitching/locality.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "compiler/ops/registry/op_def.h"
#include "compiler/te/program/program.h"
#include "compiler/te/ranges/bounds.h"

namespace fusion {
namespace {

// Does the part of the result at one position of its first `leading` axes lie in one piece of the tensor, the piece
// with that position's number?
bool IsLocal(const te::Te& te, size_t leading, int64_t pieces, te::TensorId tensor, const Shape& shape) {
  const int64_t elements = NumElements(shape);
  if (elements % pieces != 0) return false;
  const int64_t piece = elements / pieces;
  te::Box part;
  std::vector<te::Index> position;
  std::vector<int64_t> extents;
  for (size_t d = 0; d < te.axes.size(); ++d) {
    if (d < leading) {
      part.push_back({te::Index(te.axes[d]), 1});
      position.emplace_back(te.axes[d]);
      extents.push_back(te.axes[d].extent);
    } else {
      part.push_back({te::Index(0), te.axes[d].extent});
    }
  }
  const absl::StatusOr<te::Box> box = te::RequiredBox(te, part, tensor, shape);
  if (!box.ok()) return false;
  std::vector<te::Index> first;
  int64_t beyond = 0, stride = elements;  // `beyond`: the address of the last element less that of the first
  for (size_t d = 0; d < shape.size(); ++d) {
    if ((*box)[d].length == 0) return true;  // nothing is read
    stride /= shape[d];
    first.push_back((*box)[d].origin);
    beyond += ((*box)[d].length - 1) * stride;
  }
  const te::Interval offset = (te::Linearize(first, shape) - te::Linearize(position, extents) * piece).Range();
  return offset.lo >= 0 && offset.hi + beyond < piece;
}

int64_t Pieces(const te::Te& te, te::TensorId tensor, const Shape& shape) {
  if (te.routine || NumElements(shape) == 0) return 1;
  for (size_t leading = te.axes.size(); leading > 0; --leading) {
    int64_t pieces = 1;
    for (size_t d = 0; d < leading; ++d) pieces *= te.axes[d].extent;
    if (pieces > 1 && IsLocal(te, leading, pieces, tensor, shape)) return pieces;
  }
  return 1;
}

}  // namespace

int64_t CommonPieces(int64_t a, int64_t b) { return std::gcd(a, b); }

std::map<ecg::ValueId, int64_t> PiecesByOperand(const ecg::Graph& graph, ecg::NodeId node) {
  std::map<ecg::ValueId, int64_t> result;
  for (ecg::ValueId v : graph.node(node).inputs) {
    if (v != ecg::kNone && graph.value(v).producer != ecg::kNone) result[v] = 1;
  }
  if (result.empty()) return result;
  std::vector<ecg::ValueId> outputs;
  for (ecg::ValueId v : graph.node(node).outputs) {
    if (v != ecg::kNone) outputs.push_back(v);
  }
  const absl::StatusOr<ops::LoweredFusionBlock> lowered = ops::LowerNodes(graph, {node}, outputs);
  if (!lowered.ok()) return result;
  const te::Program& program = lowered->program;
  // The values that the operator hands over inside itself must be local, too.
  int64_t inside = 0;
  std::map<ecg::ValueId, int64_t> read;
  for (const te::Te& te : program.tes) {
    if (te.routine) return result;
    std::set<te::TensorId> tensors;
    te::VisitTensors(te, [&](te::TensorId tensor) { tensors.insert(tensor); });
    for (te::TensorId tensor : tensors) {
      const ecg::ValueId value = lowered->value_of_tensor[tensor];
      const bool made_here = program.DefiningTe(tensor) >= 0;
      if (!made_here && !result.count(value)) continue;
      int64_t& pieces = made_here ? inside : read[value];
      pieces = CommonPieces(pieces, Pieces(te, tensor, program.tensors[tensor].shape));
    }
  }
  for (auto& [value, pieces] : result) {
    const auto it = read.find(value);
    pieces = it == read.end() ? 0 : CommonPieces(it->second, inside);
  }
  return result;
}

}  // namespace fusion
