#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/ecg/text.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

// From this many members on, one kernel that loads its index is better than one kernel for each constant index.
constexpr size_t kLeastFamily = 8;

bool IsOneIndex(const ecg::Graph& graph, const ecg::Node& node, size_t input) {
  const ops::OpDef* def = ops::FindOp(node.op);
  if (def == nullptr || input >= def->roles.size() || def->roles[input] != ops::InputRole::kIndices) return false;
  const ecg::Value& value = graph.value(node.inputs[input]);
  return value.constant.has_value() && value.constant->num_elements() == 1;
}

// A text that is equal for nodes that differ in this input alone.
std::string FamilyOf(const ecg::Node& node, size_t input) {
  std::vector<ecg::ValueId> others = node.inputs;
  others[input] = ecg::kNone;
  return absl::StrCat(node.op, "{", ecg::Print(node.attrs), "} ", input, " of ", absl::StrJoin(others, " "));
}

}  // namespace

ecg::Graph OpenIndices(const ecg::Graph& graph) {
  std::map<std::string, std::set<ecg::ValueId>> families;
  auto visit = [&](const ecg::Node& node, auto&& found) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != ecg::kNone && IsOneIndex(graph, node, i)) found(i, FamilyOf(node, i));
    }
  };
  for (const ecg::Node& node : graph.nodes()) {
    visit(node, [&](size_t i, const std::string& family) { families[family].insert(node.inputs[i]); });
  }
  ecg::Rewriter rewriter(graph);
  std::map<ecg::ValueId, ecg::ValueId> opened;  // others that read the same constant keep the known one
  for (const ecg::Node& node : graph.nodes()) {
    std::vector<ecg::ValueId> inputs = rewriter.MapInputs(node);
    visit(node, [&](size_t i, const std::string& family) {
      if (families.at(family).size() < kLeastFamily) return;
      const auto [index, fresh] = opened.emplace(node.inputs[i], ecg::kNone);
      if (fresh) {
        const ecg::Value& value = graph.value(node.inputs[i]);
        index->second = rewriter.graph()->AddOpaqueConstant(value.name, *value.constant);
      }
      inputs[i] = index->second;
    });
    rewriter.CopyWith(node, std::move(inputs));
  }
  return rewriter.Finish();
}

}  // namespace fusion::simplify
