// Joins steps of a task over rows: where a step reduces a row and later steps read the result, all of them run inside
// one loop over rows (movement::RowNest), and the result stays in registers of the vector or warp that computes the row
// (Scope::kWarp). Other values between them are scratch for one row, where a core's scratch serves one row at a time.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_JOIN_ROWS_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_JOIN_ROWS_H_

#include <map>
#include <set>
#include <string>

#include "compiler/cost/device_model.h"
#include "compiler/movement/kernel.h"
#include "compiler/te/program/program.h"

namespace fusion {

// The plan's decisions about tensors and registers.
struct RegisterRequests {
  std::set<te::TensorId> wanted;    // hand-overs no further than a warp
  std::set<te::TensorId> unwanted;  // hand-overs no nearer than scratch
};

struct JoinedRows {
  movement::Phase phase;
  std::vector<movement::Buffer> buffers;  // of the kernel
  std::map<te::TensorId, std::string> refused;  // of `wanted`: why a tensor is in no register
};

// Returns the phase, whose buffers are the kernel's, with its steps joined where that keeps something in registers. On
// devices of work-groups a team computes each row, so steps are joined only where that makes no work-item run more
// turns than before and needs no more shared memory, or where a tensor is wanted in registers. Without row nests in the
// result nothing was joined.
JoinedRows JoinRows(const movement::Kernel& kernel, const movement::Phase& phase, const RegisterRequests& requests,
                    const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_JOIN_ROWS_H_
