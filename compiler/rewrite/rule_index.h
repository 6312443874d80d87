// Finds rules by what their patterns require of a node and of the operands directly below it. This requirement alone
// excludes most rules, without matching.
#ifndef FUSION_COMPILER_REWRITE_RULE_INDEX_H_
#define FUSION_COMPILER_REWRITE_RULE_INDEX_H_

#include <bitset>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/work_graph.h"

namespace fusion::rewrite {

class RuleIndex {
 public:
  // The rules must outlive the index.
  explicit RuleIndex(const std::vector<const Rule*>& rules);

  // Returns, in the order given, every rule that matches at the node, and possibly others.
  std::vector<const Rule*> Possible(const WorkGraph& graph, const ecg::Node& root) const;

 private:
  // Kinds of operands: results of an operator that some pattern names there, and values known at compile time.
  using Kinds = std::bitset<256>;
  struct Entry {
    const Rule* rule;
    std::vector<Kinds> operands;  // each entry needs an operand of one of these kinds
  };
  size_t KindOf(const std::string& op) const;
  void AddOperands(const WorkGraph& graph, const ecg::Node& node, int* nodes_left, Kinds* kinds) const;

  std::unordered_map<std::string, std::vector<Entry>> entries_;  // by the operator of the root
  std::unordered_map<std::string, size_t> kinds_;                // by operator
};

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_RULE_INDEX_H_
