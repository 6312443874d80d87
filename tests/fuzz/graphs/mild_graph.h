// A graph that is drawn operator by operator, whose inputs and constants are mild.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_MILD_GRAPH_H_
#define FUSION_TESTS_FUZZ_GRAPHS_MILD_GRAPH_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ecg/graph.h"
#include "tests/fuzz/graphs/drawing.h"

namespace fusion::fuzz {

// The base of generators that draw graphs of one kind.
class MildGraph {
 protected:
  explicit MildGraph(uint64_t seed) : draw_(seed, GraphLimits()) {}

  const fusion::Shape& Shape(ecg::ValueId value) const { return graph_.value(value).type.shape; }
  ecg::ValueId NewInput(const fusion::Shape& shape);  // of f32, with data of its own
  ecg::ValueId NewConstant(const fusion::Shape& shape);
  std::string NewName(const char* kind) const;
  // The operator's results, or its only one. Its operands must fit.
  std::vector<ecg::ValueId> AddAll(const std::string& op, std::vector<ecg::ValueId> inputs,
                                   const ecg::Attributes& attrs, size_t results);
  ecg::ValueId Add(const std::string& op, std::vector<ecg::ValueId> inputs, const ecg::Attributes& attrs = {});

  Drawing draw_;
  ecg::Graph graph_;
};

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_MILD_GRAPH_H_
