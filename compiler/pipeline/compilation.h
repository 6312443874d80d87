// Compilation: what the passes of one program read and write.
#ifndef FUSION_COMPILER_PIPELINE_COMPILATION_H_
#define FUSION_COMPILER_PIPELINE_COMPILATION_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compiler/api/compile_account.h"
#include "compiler/api/compile_context.h"
#include "compiler/api/compile_options.h"
#include "compiler/api/model_files.h"
#include "compiler/bundle/constant_pool.h"
#include "compiler/bundle/emit.h"
#include "compiler/launch/elide_copies.h"
#include "compiler/launch/loop_memory.h"
#include "compiler/layout/value_layouts.h"
#include "compiler/measure/fusion_oracle.h"
#include "compiler/onnx/import.h"
#include "compiler/pipeline/realised_plan.h"
#include "compiler/pipeline/stage_clock.h"
#include "compiler/plan/plan.h"

namespace fusion {

// A program as far as it is planned.
struct Planned {
  ecg::Graph graph;
  std::vector<std::vector<std::string>> input_symbols;
  std::vector<onnx_import::InputExtent> input_extents;
  ValueLayouts layouts;
  FusionPlan plan;
  std::vector<RealisedFusionBlock> realised;  // parallel to the plan's fusion blocks
  ElidedCopies elided;
  LoopPlan loops;
  std::vector<LoopSegment> segments;          // of the plan's fusion blocks, in the order in which they run
  std::vector<std::vector<size_t>> launches;  // the fusion blocks of each
  std::vector<bool> concurrent;  // with the launch in front of it (launch/concurrent_launches.h); empty: none is

  // The fusion blocks that have a kernel.
  std::vector<FusionBlock> KernelFusionBlocks() const;
  // How often a run executes each of them.
  std::vector<int64_t> KernelRuns() const;
};

// One program of a model, up to its movement graphs.
struct Prepared {
  CompileAccount account;
  Planned planned;
  std::vector<PlannedLaunch> launches;
};

// The options name one specialisation. Everything that is pointed to must outlive the compilation; the oracle keeps
// pointers into `planned`.
struct Compilation {
  const ModelFiles& files;
  const CompileOptions& options;
  const CompileContext& context;  // with the device as these options may use it
  GraphFusionOracle* oracle = nullptr;
  StageClock* clock = nullptr;
  CompileAccount* account = nullptr;
  Planned* planned = nullptr;
  ConstantPool* constants = nullptr;               // shared by the programs of a bundle; null if there is one program
  std::vector<PlannedLaunch>* launches = nullptr;  // null if kernels are not asked for
  const FusionPlan* given = nullptr;               // the plan to make; null: the options' planner makes one
  const ValueLayouts* given_layouts = nullptr;     // the layouts to take; null: those that are chosen for the device
  std::map<const void*, std::string> not_held_once = {};  // as HoldOnce returns it

  int Units() const;  // the tasks that run at the same time
};

// Number of tasks that run at the same time. A device kind without a backend is refused later.
int Units(const CompileOptions& options, const CompileContext& context);

// Returns the context with its device as these options may use it. `device` holds that device.
CompileContext ContextFor(const CompileOptions& options, const CompileContext& context, DeviceModel* device);

// The passes over fusion blocks to leave out.
std::set<std::string> DisabledFusionBlockPasses(const CompileOptions& options);

}  // namespace fusion

#endif  // FUSION_COMPILER_PIPELINE_COMPILATION_H_
