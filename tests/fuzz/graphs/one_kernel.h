// Runs graphs as one kernel each, in a form of the schedule that no plan asks for by itself.
#ifndef FUSION_TESTS_FUZZ_GRAPHS_ONE_KERNEL_H_
#define FUSION_TESTS_FUZZ_GRAPHS_ONE_KERNEL_H_

#include <string>
#include <vector>

#include "compiler/ecg/graph.h"
#include "tests/fuzz/graphs/modes.h"

namespace fusion::fuzz {

// Schedules all operators of a graph as one fusion block with the directive `form`, and runs its kernel in guarded
// memory (compiler/pipeline/testing). The layouts of values and the choices that the schedule leaves open differ from
// graph to graph: half of the graphs take them at random. `isa` is that of RunSettings. FAILED_PRECONDITION, with the reason,
// where a graph has no kernel of this form.
std::vector<Outputs> RunAsOneKernel(const std::vector<ecg::Graph>& graphs, const std::string& form,
                                    const std::string& isa);

}  // namespace fusion::fuzz

#endif  // FUSION_TESTS_FUZZ_GRAPHS_ONE_KERNEL_H_
