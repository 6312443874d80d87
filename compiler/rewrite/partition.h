// Partitions of DNNFusion §4.2: matching all rules on the whole graph takes exponential time, so the graph is cut at
// operators in which no rule can take part.
#ifndef FUSION_COMPILER_REWRITE_PARTITION_H_
#define FUSION_COMPILER_REWRITE_PARTITION_H_

#include <set>
#include <string>
#include <vector>

#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/work_graph.h"

namespace fusion::rewrite {

// Returns the operators that patterns name.
std::set<std::string> OpsOf(const std::vector<const Rule*>& rules);

// Returns connected groups of live nodes, in graph order. A node belongs to a group when its operator is associative,
// commutative or distributive, or when a pattern names it (the rules of classics.rules move data, which has none of the
// three properties).
std::vector<std::vector<ecg::NodeId>> Partition(const WorkGraph& graph, const std::set<std::string>& pattern_ops);

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_PARTITION_H_
