// Limits on the size of random graphs.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_LIMITS_H_
#define FUSION_TESTS_FUZZ_GRAPHS_LIMITS_H_

#include <cstdint>

namespace fusion::fuzz {

struct GraphLimits {
  int min_nodes = 3, max_nodes = 30;
  int64_t max_elements = 2048;  // of a value
  double max_flops = 2e5;       // of a node
  double max_work = 4e6;        // of a node: number of terms that the interpreter evaluates
  int max_rank = 6;             // of a result; inputs have at most 5
  bool large = false;           // extents of hundreds and thousands
};

// Few operators, on values that are larger than a core's caches and that several tasks share.
GraphLimits LargeLimits(GraphLimits limits);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_LIMITS_H_
