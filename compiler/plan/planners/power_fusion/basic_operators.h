// The basic operators of a graph of opened composites (PowerFusion §6), read from their tensor expressions.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_BASIC_OPERATORS_H_
#define FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_BASIC_OPERATORS_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/te/program/program.h"

namespace fusion::power_fusion {

enum class BasicKind : uint8_t {
  kElementwise,  // each result reads the elements at its own position
  kBroadcast,    // an operand is read again along an axis that it does not have
  kReduce,
  kTranspose,  // elements only move: a transposition, a shuffle, a concatenation, a part
  kOpaque,     // no single expression says what it does: GIR does not describe it
};
const char* BasicKindName(BasicKind kind);  // "broadcast"

struct Operand {
  ecg::ValueId value = ecg::kNone;
  te::TensorId tensor = -1;  // of the operator's program
  bool in_order = true;      // elements are visited in the order in which they lie
  bool repeats = false;      // an axis of the results does not move it
  bool rereads = false;      // a reduction reads an element for several results
  bool looked_up = false;    // values decide which elements are read
  double loads = 0;          // elements that are read, repetitions included
};

struct BasicOperator {
  ecg::NodeId node = ecg::kNone;
  BasicKind kind = BasicKind::kOpaque;
  // Its last expression computes the results. Others in front of it are maps that could not be substituted, because
  // their values address something. Empty where the operator is opaque.
  te::Program program;
  bool routine = true;                // opaque, and no expression at all: it is a kernel of its own
  std::vector<Operand> operands;      // distinct values
  std::vector<ecg::ValueId> results;  // of one shape
  double operations = 0;              // multiply-adds count as two
  // §6: whether it is left to anchors (the paper's libraries) follows from its counts. A reduction that computes longer
  // than main memory takes to bring its operands and take its results is bound by computation.
  bool compute_bound = false;

  const te::Te& te() const { return program.tes.back(); }
  const Shape& shape() const { return program.tensors[te().outputs[0]].shape; }
};

// By node. `device` has typical rates. Fails with CANCELLED.
absl::StatusOr<std::vector<BasicOperator>> BasicOperatorsOf(const ecg::Graph& graph, const DeviceModel& device,
                                                            const std::function<bool()>& cancelled);

}  // namespace fusion::power_fusion

#endif  // FUSION_COMPILER_PLAN_PLANNERS_POWER_FUSION_BASIC_OPERATORS_H_
