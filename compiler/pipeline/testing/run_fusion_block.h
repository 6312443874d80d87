// For tests of the kernel path: lowers, schedules, prints and builds fusion blocks of a graph, runs them in this
// machine's memory and compares the results with the interpreter. The run leaves a kernel no place to hide an error:
// outputs, temporaries and scratch start as NaN, tasks run in random chunks in random order, and each buffer is
// followed by its 64 bytes of slack and then by a page that faults.
#ifndef FUSION_COMPILER_PIPELINE_TESTING_RUN_FUSION_BLOCK_H_
#define FUSION_COMPILER_PIPELINE_TESTING_RUN_FUSION_BLOCK_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/cost/device_model.h"
#include "compiler/ecg/graph.h"
#include "compiler/kernels/fusion_kernel.h"

namespace fusion::testing {

// Builds a graph with inferred types. A failed inference aborts, because it is the test's mistake.
class GraphMaker {
 public:
  using Attrs = std::vector<std::pair<std::string, ecg::Attribute>>;

  ecg::ValueId In(Shape shape, DType dtype = DType::kF32);
  ecg::ValueId In(Tensor value);                                       // an input that gets this value in the run
  ecg::ValueId Weight(const Shape& shape, DType dtype = DType::kF32);  // a random constant
  ecg::ValueId Const(Tensor value);
  ecg::ValueId Scalar(double value, DType dtype = DType::kF32);
  ecg::ValueId Ints(const std::vector<int64_t>& values);
  ecg::ValueId Op(const std::string& op, std::vector<ecg::ValueId> inputs, const Attrs& attrs = {});
  std::vector<ecg::ValueId> Ops(const std::string& op, std::vector<ecg::ValueId> inputs, const Attrs& attrs,
                                int outputs);
  void Out(ecg::ValueId value);

  const ecg::Graph& graph() const { return graph_; }
  const std::map<ecg::ValueId, Tensor>& inputs() const { return inputs_; }

 private:
  ecg::Graph graph_;
  std::map<ecg::ValueId, Tensor> inputs_;
  uint64_t seed_ = 1;
};

struct FusionCase {
  FusionCase(std::string name, const GraphMaker& maker)
      : name(std::move(name)), graph(maker.graph()), inputs(maker.inputs()) {}
  std::string name;
  ecg::Graph graph;
  std::map<ecg::ValueId, Tensor> inputs;  // other inputs are random
};

enum class LayoutMode {
  kPlain,     // every value row-major
  kChosen,    // as ChooseLayouts says
  kBlocked,   // every f32 value of rank >= 3 blocked on axis 1, inputs and outputs of the graph too
  kAxisLast,  // the same values with axis 1 moved behind all others
};
const char* LayoutModeName(LayoutMode mode);

struct RunOptions {
  DeviceModel device;
  LayoutMode layouts = LayoutMode::kPlain;
  bool split = false;  // every node is a kernel, instead of the whole graph
  // If not 0, each choice that the scheduler meets (compiler/schedule/choices.h) is taken at random.
  uint64_t choices_seed = 0;
  Choices choices = {};  // used otherwise, by every kernel that meets them
  // If not 0, scopes are asked for of some hand-overs inside each kernel, at random: barriers, tensors that must exist,
  // and the default in words. Where the schedule refuses them, nothing is asked.
  uint64_t scopes_seed = 0;
  bool hold_once = false;                       // packed constants are read packed by all kernels (hold_once.h)
  std::vector<Directive> directives = {};       // of every kernel
  std::vector<FusionBlock> fusion_blocks = {};  // if any, these are the kernels, in the order in which they run
};

struct FusionResult {
  std::string name;                   // "case avx512 plain"
  absl::Status status;                // OK: all outputs agree with the interpreter
  std::vector<FusionKernel> kernels;  // those that could be scheduled
  std::vector<Tensor> outputs;        // of the graph; empty where the kernels did not run to their end
};

DeviceModel Avx512Device();
DeviceModel Avx2Device();
// Makes every node a fusion block of its own, for Avx512Device.
std::vector<std::shared_ptr<const FusionKernel>> KernelOfEachNode(const ecg::Graph& graph);
DeviceModel NeonDevice();
DeviceModel VnniDevice();  // AVX-512 with products of bytes
// An OpenCL device with vectors of `lanes` and `work_group_size` work-items a task.
DeviceModel OpenClTestDevice(int lanes, int work_group_size);
// The same with subgroups of 8 work-items, emulated in local memory.
DeviceModel SubgroupTestDevice(int lanes, int work_group_size);
DeviceModel CudaTestDevice(int work_group_size);
// Returns OK if this machine executes the device's code, itself or by emulation. Otherwise the error says what to
// install.
absl::Status CanRun(const DeviceModel& device);

// Runs every case with every option; results are ordered by case. All kernels go through one call of the toolchain.
std::vector<FusionResult> RunCases(const std::vector<FusionCase>& cases, const std::vector<RunOptions>& options);

// Both x86 devices, each with plain, chosen, blocked and axis-last layouts, and once with every node as a kernel of its
// own.
std::vector<RunOptions> AllOptions();
// Calls RunCases with AllOptions or the given options. Returns one line for each failure, empty if there is none. A
// test usually needs only this call.
std::string Failures(const std::vector<FusionCase>& cases);
std::string Failures(const std::vector<FusionCase>& cases, const std::vector<RunOptions>& options);

// The one tolerance of generated code (others: tests/README.md): |actual - expected| <= relative·|expected| +
// absolute·max(1, largest |expected|). Sums are reassociated and contracted, so their error grows with the size of the
// terms, not of the result.
absl::Status CompareOutputs(const Tensor& expected, const Tensor& actual);

// ToPhysical puts the logical tensor's elements into physical order (lanes past the extent: zero); FromPhysical
// reverses it. `pad_is_zero` tells whether all physical padding holds zero.
Tensor ToPhysical(const Tensor& logical, const Layout& layout);
Tensor FromPhysical(const void* physical, DType dtype, const Shape& shape, const Layout& layout, bool* pad_is_zero);

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_PIPELINE_TESTING_RUN_FUSION_BLOCK_H_
