// Helpers of the tests of scheduling: kernels of programs that are given as text, for a device with round figures.
#ifndef FUSION_COMPILER_SCHEDULE_TESTING_SCHEDULE_TEXT_H_
#define FUSION_COMPILER_SCHEDULE_TESTING_SCHEDULE_TEXT_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compiler/cost/device_model.h"
#include "compiler/layout/layout.h"
#include "compiler/schedule/kernel_draft.h"
#include "compiler/schedule/nest/form_stages.h"
#include "compiler/schedule/schedule_fusion_block.h"
#include "compiler/te/program/program.h"

namespace fusion::testing {

// Each of these fails the test and returns an empty value where something is not OK.

template <class T>
T OrFail(absl::StatusOr<T> made) {
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : T();
}

inline te::Program ParseTe(const std::string& text) { return OrFail(te::Parse(text)); }

// The program's stages, as the scheduler gets them.
inline te::Program Stages(const std::string& text) {
  te::Program staged = OrFail(FormStages(ParseTe(text)));
  EXPECT_TRUE(te::Verify(staged).ok()) << te::Print(staged);
  return staged;
}

// One core with two caches of its own.
inline DeviceModel Device(int vector_bytes = 64, int registers = 32) {
  DeviceModel device;
  device.vector_bytes = vector_bytes;
  device.vector_registers = registers;
  device.memory = {{"L1", 32 << 10, 2e11, false}, {"L2", 1 << 20, 7e10, false}, {"DRAM", 0, 1e10, true}};
  return device;
}

// Forty units whose tasks are work-groups of 128 with 48 KiB of shared memory.
inline DeviceModel GroupDevice() {
  DeviceModel device;
  device.kind = "opencl";
  device.work_group_size = 128;
  device.parallel_units = 40;
  device.memory = {{"local", 48 << 10, 1e12, false}, {"global", 0, 1e11, true}};
  return device;
}

inline ScheduledFusionBlock Schedule(const std::string& text, const std::map<te::TensorId, Layout>& layouts = {},
                                     const DeviceModel& device = Device()) {
  return OrFail(ScheduleFusionBlock(Stages(text), layouts, device));
}

// The names of the steps' strategies.
inline std::vector<std::string> Strategies(const movement::Phase& phase) {
  std::vector<std::string> strategies;
  for (const movement::Step& step : phase.steps) strategies.push_back(movement::StrategyName(step));
  return strategies;
}

// A draft of the kernel of a program, with all that it refers to. The program is taken as it is, without FormStages.
struct DraftedProgram {
  explicit DraftedProgram(const std::string& text, const DeviceModel& device = Device(),
                          std::map<te::TensorId, Layout> layouts = {}, Choices wanted = {})
      : program(ParseTe(text)), layouts(std::move(layouts)), device(device), choices(std::move(wanted)) {}

  const te::Program program;
  const std::map<te::TensorId, Layout> layouts;
  const DeviceModel device;
  ChoiceLog choices;
  KernelDraft draft{program, layouts, device, &choices};

  std::vector<PhysicalTe> PhysicalStages() {
    std::vector<PhysicalTe> stages;
    for (const te::Te& te : program.tes) stages.push_back(OrFail(draft.Physical(te)));
    return stages;
  }
  // The loop nest of a stage as Flatten leaves it.
  Nest NestOf(size_t stage = 0) {
    const PhysicalTe physical = OrFail(draft.Physical(program.tes.at(stage)));
    return OrFail(draft.MakeNest(physical));
  }
};

}  // namespace fusion::testing

#endif  // FUSION_COMPILER_SCHEDULE_TESTING_SCHEDULE_TEXT_H_
