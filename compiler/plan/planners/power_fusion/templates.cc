#include "compiler/plan/planners/power_fusion/templates.h"

#include <algorithm>
#include <map>
#include <utility>

#include "compiler/analysis/derived.h"

namespace fusion::power_fusion {
namespace {

using ecg::ValueId;

// The most chunks of one reduction: their partial results are combined one after another.
constexpr int64_t kMostChunks = 32;

te::Box WholeBox(const Shape& shape) {
  te::Box box;
  for (const int64_t extent : shape) box.push_back({te::Index(0), extent});
  return box;
}

// The largest number of chunks that divides the innermost reduction axis and is no more than the idle units.
int64_t ChunksOf(const BasicOperator& op, int64_t units, const DeviceModel& device) {
  if (!op.te().reduction || units >= device.parallel_units) return 1;
  int64_t chunks = std::min<int64_t>(kMostChunks, device.parallel_units / std::max<int64_t>(1, units));
  const int64_t extent = op.te().reduction->axes.back().extent;
  while (chunks > 1 && extent % chunks != 0) --chunks;
  return chunks;
}

class Merger {
 public:
  Merger(const ecg::Graph& graph, int64_t units, const std::set<ValueId>& results) : graph_(graph), results_(results) {
    gir_.units = units;
  }

  void Generate(const BasicOperator& op, const Template& chosen, const Patterns& patterns) {
    int made = -1;
    if (op.kind == BasicKind::kTranspose) {
      GOperator move = Make(GKind::kMove, op);
      for (size_t i = 0; i < op.operands.size(); ++i) {
        move.reads.push_back(Read(op, op.operands[i], patterns.operands[i], &move));
        move.through.push_back({op.node});
      }
      made = Registers(op.results[0], patterns.results);
      move.writes = made;
      gir_.Add(std::move(move));
    } else {
      made = Compute(op, chosen, patterns);
    }
    for (const ValueId value : op.results) {
      makers_[value] = &op;
      GOperator store = Make(GKind::kMove, op);
      store.reads = {made};
      store.writes = Dram(value, patterns.results);
      stored_[value] = store.writes;
      if (results_.count(value) > 0) gir_.results.push_back(value);
      gir_.Add(std::move(store));
    }
  }

  Gir Finish() && { return std::move(gir_); }

 private:
  static GOperator Make(GKind kind, const BasicOperator& op) {
    GOperator made;
    made.kind = kind;
    made.op = op.node;
    return made;
  }
  int Registers(ValueId value, Pattern pattern) {
    return gir_.Add({value, Scope::kLane, std::move(pattern), graph_.value(value).type.shape, Bytes(value)});
  }
  int Dram(ValueId value, Pattern pattern) {
    return gir_.Add({value, Scope::kDevice, std::move(pattern), graph_.value(value).type.shape, Bytes(value)});
  }
  double Bytes(ValueId value) const { return static_cast<double>(ecg::ValueBytes(graph_.value(value))); }

  // The slice in DRAM that a move of the operator reads, behind a synchronisation if the graph writes the tensor.
  int Read(const BasicOperator& op, const Operand& operand, const Pattern& pattern, GOperator* move) {
    const int read = Dram(operand.value, pattern);
    if (const auto stored = stored_.find(operand.value); stored != stored_.end()) {
      GOperator sync = Make(GKind::kSync, op);
      sync.reads = {stored->second};
      sync.writes = read;
      gir_.Add(std::move(sync));
    }
    move->rereads |= operand.rereads;
    if (operand.looked_up) {
      const Shape& shape = graph_.value(operand.value).type.shape;
      const auto elements = static_cast<double>(std::max<int64_t>(1, NumElements(shape)));
      move->looked_up_bytes += operand.loads * Bytes(operand.value) / elements;
    }
    return read;
  }

  // Does the reduction run along contiguous elements of the operand, or of what it was moved from?
  bool AlongWidth(const BasicOperator& op, const Operand& operand) const {
    std::vector<te::Index> indices;
    const auto find = [&](te::TensorId tensor) {
      return [&indices, tensor](const te::ScalarNode& node) {
        if (node.kind == te::ScalarKind::kLoad && node.tensor == tensor) indices = node.indices;
      };
    };
    for (const te::Scalar& body : op.te().body) te::Visit(body, find(operand.tensor));
    ValueId value = operand.value;
    for (auto maker = makers_.find(value); maker != makers_.end(); maker = makers_.find(value)) {
      const BasicOperator& move = *maker->second;
      if (move.kind != BasicKind::kTranspose || move.operands.size() != 1) break;
      const te::Scalar& body = move.te().body[0];
      if (body->kind != te::ScalarKind::kLoad || body->tensor != move.operands[0].tensor) break;
      const std::vector<te::Index> inner = std::move(indices);
      const std::vector<te::Axis>& axes = move.te().axes;
      indices.clear();
      for (const te::Index& index : body->indices) {
        indices.push_back(te::Substitute(index, [&](const te::Axis& axis) -> const te::Index* {
          for (size_t a = 0; a < axes.size() && a < inner.size(); ++a) {
            if (axes[a].id == axis.id) return &inner[a];
          }
          return nullptr;
        }));
      }
      value = move.operands[0].value;
    }
    const Shape& shape = graph_.value(value).type.shape;
    if (indices.size() != shape.size()) return false;
    const te::Index address = te::Linearize(indices, shape);
    const std::vector<te::Axis>& reduced = op.te().reduction->axes;
    return std::any_of(reduced.begin(), reduced.end(), [&](const te::Axis& axis) {
      int64_t coefficient = 0;
      return axis.extent > 1 && address.AffineIn(axis.id, &coefficient) && coefficient == 1;
    });
  }

  int Compute(const BasicOperator& op, const Template& chosen, const Patterns& patterns) {
    GOperator compute = Make(op.kind == BasicKind::kReduce ? GKind::kReduce : GKind::kElementwise, op);
    // Units that all compute the same compute it again.
    const int64_t again = chosen.units == gir_.units ? 1 : gir_.units;
    compute.operations = op.operations * static_cast<double>(again);
    double largest = -1;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Operand& operand = op.operands[i];
      const Pattern& pattern = patterns.operands[i];
      GOperator move = Make(GKind::kMove, op);
      move.reads = {Read(op, operand, pattern, &move)};
      move.through.resize(1);
      move.writes = Registers(operand.value, pattern);
      int ready = move.writes;
      gir_.Add(std::move(move));
      if (operand.repeats && op.kind == BasicKind::kBroadcast) {
        GOperator broadcast = Make(GKind::kBroadcast, op);
        broadcast.reads = {ready};
        broadcast.writes = ready = Registers(operand.value, pattern);
        gir_.Add(std::move(broadcast));
      }
      compute.reads.push_back(ready);
      if (op.te().reduction && Bytes(operand.value) > largest) {
        largest = Bytes(operand.value);
        compute.along_width = AlongWidth(op, operand);
      }
    }
    const int made = Registers(op.results[0], patterns.results);
    if (chosen.chunks == 1) {
      compute.writes = made;
      gir_.Add(std::move(compute));
      return made;
    }
    // Several units reduce: partial results meet in DRAM.
    Slice partial = gir_.slices[made];
    partial.value = ecg::kNone;
    partial.bytes *= static_cast<double>(chosen.chunks);
    const auto add = [&](GKind kind, int from, Scope memory) {
      GOperator next = Make(kind, op);
      next.reads = {from};
      next.through.resize(1);
      partial.memory = memory;
      const int to = next.writes = gir_.Add(partial);
      gir_.Add(std::move(next));
      return to;
    };
    compute.writes = gir_.Add(partial);
    const int reduced = compute.writes;
    gir_.Add(std::move(compute));
    const int read = add(GKind::kSync, add(GKind::kMove, reduced, Scope::kDevice), Scope::kDevice);
    GOperator combine = Make(GKind::kReduce, op);
    combine.reads = {add(GKind::kMove, read, Scope::kLane)};
    combine.writes = made;
    gir_.Add(std::move(combine));
    return made;
  }

  const ecg::Graph& graph_;
  const std::set<ValueId>& results_;
  Gir gir_;
  std::map<ValueId, int> stored_;  // slices
  std::map<ValueId, const BasicOperator*> makers_;
};

}  // namespace

std::vector<Template> TemplatesOf(const BasicOperator& op, const DeviceModel& device) {
  const std::vector<te::Axis>& axes = op.te().axes;
  const int n = static_cast<int>(axes.size());
  std::vector<Template> templates;
  const auto add = [&](int first, int last) {
    Template one;
    one.first = first;
    one.last = last;
    for (int a = first; a < last; ++a) one.units *= axes[a].extent;
    const bool known = std::any_of(templates.begin(), templates.end(), [&](const Template& other) {
      return other.units == one.units && (one.units == 1 || (other.first <= first && last <= other.last));
    });
    if (known) return;
    templates.push_back(one);
    one.chunks = ChunksOf(op, one.units, device);
    one.units *= one.chunks;
    if (one.chunks > 1) templates.push_back(one);
  };
  for (int last = 0; last <= n; ++last) add(0, last);
  // Columns of a matrix, whose rows are reduced or transposed.
  for (int first = 1; first < n; ++first) add(first, n);
  return templates;
}

te::Box ResultBox(const BasicOperator& op, const Template& chosen, int64_t units) {
  const std::vector<te::Axis>& axes = op.te().axes;
  std::vector<int64_t> extents;
  for (int a = chosen.first; a < chosen.last; ++a) extents.push_back(axes[a].extent);
  te::Index unit(UnitAxis(units));
  if (chosen.chunks > 1) unit = te::FloorDiv(unit, chosen.chunks);
  const bool shared = chosen.units == units;
  const std::vector<te::Index> position = shared ? te::Delinearize(unit, extents) : std::vector<te::Index>();
  te::Box box;
  for (int a = 0; a < static_cast<int>(axes.size()); ++a) {
    const bool own = shared && a >= chosen.first && a < chosen.last;
    box.push_back(own ? te::Span{position[a - chosen.first], 1} : te::Span{te::Index(0), axes[a].extent});
  }
  return box;
}

te::Box OperandBox(const BasicOperator& op, const Operand& operand, const te::Box& results) {
  const Shape& shape = op.program.tensors[operand.tensor].shape;
  std::set<te::TensorId> read;
  te::VisitTensors(op.te(), [&](te::TensorId tensor) { read.insert(tensor); });
  if (read.count(operand.tensor) == 0) return WholeBox(shape);  // it addresses something
  absl::StatusOr<te::Box> box = te::RequiredBox(op.te(), results, operand.tensor, shape);
  return box.ok() ? *std::move(box) : WholeBox(shape);
}

Patterns PatternsOf(const BasicOperator& op, const Template& chosen, int64_t units) {
  const te::Box results = ResultBox(op, chosen, units);
  Patterns patterns;
  for (const Operand& operand : op.operands) {
    patterns.operands.push_back(PatternOf(OperandBox(op, operand, results), op.program.tensors[operand.tensor].shape,
                                          operand.in_order && !operand.looked_up));
  }
  patterns.results = PatternOf(results, op.shape());
  return patterns;
}

Gir MergeGirs(const ecg::Graph& graph, const std::vector<ChosenTemplate>& operators, int64_t units,
              const std::set<ecg::ValueId>& results) {
  Merger merger(graph, units, results);
  for (const ChosenTemplate& one : operators) {
    if (one.patterns != nullptr) {
      merger.Generate(*one.op, one.chosen, *one.patterns);
    } else {
      merger.Generate(*one.op, one.chosen, PatternsOf(*one.op, one.chosen, units));
    }
  }
  return std::move(merger).Finish();
}

}  // namespace fusion::power_fusion
