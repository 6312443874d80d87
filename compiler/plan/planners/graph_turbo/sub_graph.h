// A sub-graph (GraphTurbo, section 1.1) and its instances: what one of them reads, keeps and computes.
#ifndef FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_SUB_GRAPH_H_
#define FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_SUB_GRAPH_H_

#include <cstdint>
#include <map>
#include <vector>

#include "compiler/plan/planners/graph_turbo/op_graph.h"

namespace fusion::graph_turbo {

// Operators that become one kernel, ascending. Its outputs are the tensors that others read or the model returns. One
// output is the rule (section 3.1); only a single operator may have several.
struct SubGraph {
  std::vector<int> ops;
};

std::vector<int> OutputsOf(const OpGraph& graph, const SubGraph& sub_graph);
// The tensors that operators of the sub-graph read and none of them makes, ascending.
std::vector<int> InputsOf(const OpGraph& graph, const SubGraph& sub_graph);

// Parts of a tensor: factor f of a dimension cuts it into f pieces of ceil(extent / f), of which the last may be
// shorter where f does not divide the extent. One factor a dimension.
using Factors = std::vector<int64_t>;
int64_t PieceLength(int64_t extent, int64_t factor);
int64_t Pieces(const Factors& factors);                                // the product
std::vector<int64_t> PieceAt(const Factors& factors, int64_t number);  // row-major coordinates
Region PieceOf(const Shape& shape, const Factors& factors, const std::vector<int64_t>& at);

// The work of an instance: for each tensor that it reads or makes, the part. It is found from the last operator
// backwards by bounds inference (access_map.h), so halos are in it.
struct Footprint {
  std::map<int, Region> regions;
  double work = 0;  // of all its operators
  // The most bytes that the instance needs at once, its operators run in order: what it reads until its last use, each
  // result from its operator to its last use (section 4.3); an output stays to the end.
  double peak_bytes = 0;
};

// `outputs` are the parts of the sub-graph's outputs, parallel to OutputsOf.
Footprint FootprintOf(const OpGraph& graph, const SubGraph& sub_graph, const std::vector<Region>& outputs);

// The parts of all outputs that belong to one piece of the first. An output whose dimensions have other extents than
// those that are split cannot be split with it: `ok` is false.
struct OutputPieces {
  bool ok = true;
  std::vector<Region> regions;
};
OutputPieces PiecesOf(const OpGraph& graph, const std::vector<int>& outputs, const Factors& factors,
                      const std::vector<int64_t>& at);

}  // namespace fusion::graph_turbo

#endif  // FUSION_COMPILER_PLAN_PLANNERS_GRAPH_TURBO_SUB_GRAPH_H_
