#include "compiler/rewrite/rule_index.h"

#include <algorithm>

namespace fusion::rewrite {
namespace {

constexpr size_t kOther = 0, kKnown = 1, kFirstOp = 2;
constexpr size_t kLastKind = 255;  // operators beyond share it, which only makes more rules seem possible
constexpr int kMostNodes = 16;     // nodes of a chain that are searched; for longer ones every rule seems possible

// Returns the patterns of the operands below the root, through nested associative operators.
const std::vector<Term>& OperandsOf(const Term& pattern) { return pattern.flat.empty() ? pattern.args : pattern.flat; }

}  // namespace

RuleIndex::RuleIndex(const std::vector<const Rule*>& rules) {
  for (const Rule* rule : rules) {
    Entry entry{rule, {}};
    for (const Term& term : OperandsOf(rule->pattern)) {
      Kinds kinds;
      if (term.kind == Term::Kind::kOp) {
        for (const std::string& op : term.ops) {
          kinds.set(kinds_.emplace(op, std::min(kFirstOp + kinds_.size(), kLastKind)).first->second);
        }
      }
      if (term.kind == Term::Kind::kNumber || (term.kind == Term::Kind::kVariable && term.constant && !term.optional)) {
        kinds.set(kKnown);
      }
      if (kinds.any()) entry.operands.push_back(kinds);
    }
    for (const std::string& op : rule->pattern.ops) entries_[op].push_back(entry);
  }
}

std::vector<const Rule*> RuleIndex::Possible(const WorkGraph& graph, const ecg::Node& root) const {
  std::vector<const Rule*> possible;
  const auto entries = entries_.find(root.op);
  if (entries == entries_.end()) return possible;
  Kinds kinds;
  int nodes_left = kMostNodes;
  AddOperands(graph, root, &nodes_left, &kinds);
  if (nodes_left == 0) kinds.set();
  for (const Entry& entry : entries->second) {
    const bool all = std::all_of(entry.operands.begin(), entry.operands.end(),
                                 [&](const Kinds& needed) { return (needed & kinds).any(); });
    if (all) possible.push_back(entry.rule);
  }
  return possible;
}

size_t RuleIndex::KindOf(const std::string& op) const {
  const auto it = kinds_.find(op);
  return it == kinds_.end() ? kOther : it->second;
}

void RuleIndex::AddOperands(const WorkGraph& graph, const ecg::Node& node, int* nodes_left, Kinds* kinds) const {
  if (*nodes_left == 0) return;
  --*nodes_left;
  for (ecg::ValueId input : node.inputs) {
    if (input == ecg::kNone) continue;
    if (graph.IsKnown(input)) kinds->set(kKnown);
    const ecg::NodeId producer = graph.value(input).producer;
    if (producer == ecg::kNone) continue;
    kinds->set(KindOf(graph.node(producer).op));
    if (graph.node(producer).op == node.op) AddOperands(graph, graph.node(producer), nodes_left, kinds);
  }
}

}  // namespace fusion::rewrite
