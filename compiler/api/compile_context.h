// The surroundings of a compilation: the device, measurements, builders of kernels, and the receiver of its progress.
#ifndef FUSION_COMPILER_API_COMPILE_CONTEXT_H_
#define FUSION_COMPILER_API_COMPILE_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <string>

#include "compiler/backends/toolchain.h"
#include "compiler/cost/device_model.h"
#include "compiler/cost/latency_oracle.h"
#include "compiler/cost/plan_oracle.h"
#include "runtime/log/log.h"

namespace fusion {

struct ProgressEvent {
  std::string stage;            // as in StageSeconds, or "profiling"
  int64_t done = 0, total = 0;  // total 0: unknown
  std::string message;          // for people
};

struct CompileContext {
  const DeviceModel* device = nullptr;
  LatencyOracle* oracle = nullptr;
  Toolchain* toolchain = nullptr;
  std::function<void(const ProgressEvent&)> progress;  // may be empty; called on the compiling thread
  std::function<bool()> cancelled;                     // may be empty; polled between steps
  PlanOracle* plans = nullptr;                         // null: plans are not compared as a whole
  // For logs: an id of the work that the compilation is a part of, and where lines about it go. Both may be empty.
  std::string trace = {};
  std::function<void(const LogLine&)> log = {};
};

}  // namespace fusion

#endif  // FUSION_COMPILER_API_COMPILE_CONTEXT_H_
