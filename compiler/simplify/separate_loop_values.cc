#include <set>
#include <string>
#include <utility>

#include "compiler/ecg/rewriter.h"
#include "compiler/ops/control/find_loops.h"
#include "compiler/ops/control/loop.h"
#include "compiler/simplify/passes.h"
#include "runtime/base/status_macros.h"

namespace fusion::simplify {
namespace {

ecg::ValueId Copied(ecg::ValueId value, ecg::Graph* graph) {
  const ecg::ValueType type = graph->value(value).type;
  const std::string name = graph->value(value).name;
  return graph->node(graph->AddNode("Identity", name, {value}, {}, {type}, {name})).outputs[0];
}

class Separation {
 public:
  Separation(const ecg::Graph& graph, const ecg::Loops& loops) : graph_(graph), loops_(loops), rewriter_(graph) {}

  ecg::Graph Run() {
    for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph_.nodes().size()); ++id) {
      const ecg::Node& node = graph_.node(id);
      if (node.op == ops::kLoopBegin) {
        CopyBegin(node);
      } else if (node.op == ops::kLoopEnd) {
        CopyEnd(id);
      } else {
        rewriter_.Copy(node);
      }
    }
    return rewriter_.Finish();
  }

 private:
  void CopyBegin(const ecg::Node& node) {
    std::vector<ecg::ValueId> inputs = rewriter_.MapInputs(node);
    const int carried = ops::LoopFormOf(node).carried;
    for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
      const ecg::Value& value = graph_.value(node.inputs[i]);
      const bool in_arena = value.producer != ecg::kNone && !graph_.IsOutput(node.inputs[i]);
      // Later iterations overwrite the memory of an initial value, so nobody else may read it there.
      if (i < carried || !in_arena) inputs[i] = Copied(inputs[i], rewriter_.graph());
    }
    rewriter_.CopyWith(node, std::move(inputs));
  }

  void CopyEnd(ecg::NodeId id) {
    const ecg::Node& node = graph_.node(id);
    std::vector<ecg::ValueId> inputs = rewriter_.MapInputs(node);
    const int carried = ops::LoopFormOf(node).carried;
    // A value that is carried on and stacked is written once: its stack is its memory.
    std::set<ecg::ValueId> nexts, stacked;
    for (int i = 1; i < static_cast<int>(inputs.size()); ++i) {
      const ecg::ValueId value = node.inputs[i];
      const bool from_body =
          graph_.value(value).producer != ecg::kNone && loops_.of_node[graph_.value(value).producer] >= 0;
      if (!from_body || !(i <= carried ? nexts : stacked).insert(value).second) {
        inputs[i] = CopiedWithin(inputs[i], inputs[0]);
      }
    }
    rewriter_.CopyWith(node, std::move(inputs));
    for (const ecg::ValueId output : node.outputs) {
      if (graph_.IsOutput(output)) rewriter_.Bind(output, Copied(rewriter_.Map(output), rewriter_.graph()));
    }
  }

  // A copy in each iteration of the loop with this token.
  ecg::ValueId CopiedWithin(ecg::ValueId value, ecg::ValueId token) {
    ecg::Graph* graph = rewriter_.graph();
    const ecg::ValueType type = graph->value(value).type;
    const std::string name = graph->value(value).name;
    return graph->node(graph->AddNode(ops::kLoopCopy, name, {value, token}, {}, {type}, {name})).outputs[0];
  }

  const ecg::Graph& graph_;
  const ecg::Loops& loops_;
  ecg::Rewriter rewriter_;
};

}  // namespace

absl::StatusOr<ecg::Graph> SeparateLoopValues(const ecg::Graph& graph) {
  ASSIGN_OR_RETURN(const ecg::Loops loops, ecg::FindLoops(graph));
  if (loops.empty()) return graph;
  return Separation(graph, loops).Run();
}

}  // namespace fusion::simplify
