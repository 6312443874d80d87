#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "tests/fuzz/graphs/eager_values.h"
#include "tests/fuzz/graphs/shrink.h"
#include "tests/fuzz/graphs/values.h"

namespace fusion::fuzz {
namespace {

constexpr size_t kBatch = 24;

// Removes initializers and inputs that nothing reads.
void Prune(onnx::GraphProto* graph) {
  std::set<std::string> read;
  for (const auto& node : graph->node()) {
    for (const std::string& name : Reads(node)) read.insert(name);
  }
  for (int i = graph->initializer_size() - 1; i >= 0; --i) {
    if (read.count(graph->initializer(i).name()) == 0) graph->mutable_initializer()->DeleteSubrange(i, 1);
  }
  for (int i = graph->input_size() - 1; i >= 0; --i) {
    if (read.count(graph->input(i).name()) == 0) graph->mutable_input()->DeleteSubrange(i, 1);
  }
}

// Returns the tensors of all names; empty if the nodes cannot be run one by one.
TensorsByName Values(const onnx::ModelProto& model) {
  const auto values = RunAll(model);
  return values.ok() ? values->tensors : TensorsByName();
}

// Removes node n; its results that are still read become inputs.
onnx::ModelProto Without(const onnx::ModelProto& model, int n, const TensorsByName& values) {
  onnx::ModelProto smaller = model;
  onnx::GraphProto* graph = smaller.mutable_graph();
  const onnx::NodeProto gone = graph->node(n);
  graph->mutable_node()->DeleteSubrange(n, 1);
  for (const std::string& name : gone.output()) {
    for (int o = graph->output_size() - 1; o >= 0; --o) {
      if (graph->output(o).name() == name) graph->mutable_output()->DeleteSubrange(o, 1);
    }
    const auto value = values.find(name);
    if (value != values.end()) *graph->add_input() = TypeProto(name, value->second.dtype(), value->second.shape());
  }
  Prune(graph);
  return smaller;
}

std::vector<onnx::ModelProto> Candidates(const onnx::ModelProto& model) {
  std::vector<onnx::ModelProto> all;
  const onnx::GraphProto& graph = model.graph();
  for (int o = 0; graph.output_size() > 1 && o < graph.output_size(); ++o) {
    onnx::ModelProto fewer = model;
    fewer.mutable_graph()->mutable_output()->DeleteSubrange(o, 1);
    all.push_back(std::move(fewer));
  }
  const TensorsByName values = Values(model);
  for (int n = 0; n < graph.node_size(); ++n) {
    all.push_back(Without(model, n, values));
    // Makes an earlier result the only output.
    for (const std::string& name : graph.node(n).output()) {
      if (graph.output_size() != 1 || graph.output(0).name() == name || name.empty()) continue;
      onnx::ModelProto shorter = model;
      shorter.mutable_graph()->mutable_output(0)->set_name(name);
      all.push_back(std::move(shorter));
    }
    // Replaces an If by one of its branches.
    for (const auto& attribute : graph.node(n).attribute()) {
      if (graph.node(n).op_type() != "If" || !attribute.has_g()) continue;
      onnx::ModelProto inlined = model;
      onnx::GraphProto* to = inlined.mutable_graph();
      to->clear_node();
      for (int k = 0; k < graph.node_size(); ++k) {
        if (k != n) {
          *to->add_node() = graph.node(k);
          continue;
        }
        for (const auto& inner : attribute.g().node()) *to->add_node() = inner;
        for (int o = 0; o < graph.node(n).output_size(); ++o) {
          onnx::NodeProto* copy = to->add_node();
          copy->set_op_type("Identity");
          copy->add_input(attribute.g().output(o).name());
          copy->add_output(graph.node(n).output(o));
        }
      }
      all.push_back(std::move(inlined));
    }
    // Removes one node from a body.
    for (int a = 0; a < graph.node(n).attribute_size(); ++a) {
      if (!graph.node(n).attribute(a).has_g()) continue;
      for (int k = 0; k < graph.node(n).attribute(a).g().node_size(); ++k) {
        onnx::ModelProto smaller = model;
        smaller.mutable_graph()->mutable_node(n)->mutable_attribute(a)->mutable_g()->mutable_node()->DeleteSubrange(k,
                                                                                                                    1);
        all.push_back(std::move(smaller));
      }
    }
  }
  // Removes everything that no output needs.
  for (onnx::ModelProto& candidate : all) {
    onnx::GraphProto* to = candidate.mutable_graph();
    std::set<std::string> needed;
    for (const auto& output : to->output()) needed.insert(output.name());
    for (int n = to->node_size() - 1; n >= 0; --n) {
      const auto& outputs = to->node(n).output();
      if (std::none_of(outputs.begin(), outputs.end(),
                       [&](const std::string& name) { return needed.count(name) > 0; })) {
        to->mutable_node()->DeleteSubrange(n, 1);
      } else {
        for (const std::string& name : Reads(to->node(n))) needed.insert(name);
      }
    }
    Prune(to);
  }
  std::stable_sort(all.begin(), all.end(), [](const onnx::ModelProto& a, const onnx::ModelProto& b) {
    return a.ByteSizeLong() < b.ByteSizeLong();
  });
  return all;
}

}  // namespace

Case ShrinkModel(const Case& failed, const std::function<std::vector<bool>(const std::vector<Case>&)>& fails) {
  Case smallest = failed;
  for (bool progress = true; progress;) {
    progress = false;
    std::vector<Case> candidates;
    for (const onnx::ModelProto& model : Candidates(*smallest.model)) {
      if (model.graph().output_size() == 0) continue;
      if (model.ByteSizeLong() >= smallest.model->ByteSizeLong()) continue;
      if (auto graph = ImportModel(model); graph.ok()) candidates.push_back({"", *std::move(graph), model});
    }
    for (size_t begin = 0; begin < candidates.size() && !progress; begin += kBatch) {
      const std::vector<Case> batch(
          candidates.begin() + static_cast<std::ptrdiff_t>(begin),
          candidates.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kBatch, candidates.size())));
      const std::vector<bool> failed_too = fails(batch);
      for (size_t k = 0; k < batch.size() && !progress; ++k) {
        if (!failed_too[k]) continue;
        smallest = batch[k];
        smallest.name = failed.name;
        progress = true;
      }
    }
  }
  return smallest;
}

}  // namespace fusion::fuzz
