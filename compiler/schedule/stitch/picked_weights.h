// Weights that data pick: a router of a mixture of experts says for each token whose weights multiply it, so a product
// reads `w[pick[token], k, n]`. Task by task along the tokens, each would read all columns of another expert, which no
// cache keeps until the next token of that expert. Column by column, the same columns of all experts stay near while
// the tokens pass.
#ifndef FUSION_COMPILER_SCHEDULE_STITCH_PICKED_WEIGHTS_H_
#define FUSION_COMPILER_SCHEDULE_STITCH_PICKED_WEIGHTS_H_

#include <cstdint>
#include <optional>

#include "compiler/cost/device_model.h"
#include "compiler/te/program/program.h"

namespace fusion {

struct PickedColumns {
  te::Axis axis;      // of the results; the picked operand moves along it, the other operands do not
  int64_t block = 1;  // columns that stay in a core's own caches for all that can be picked; all blocks are alike
};

// Returns the columns of the reduction's picked operand where they are better taken block by block: each is picked
// several times, and one core's caches do not hold all. Returns nullopt where no such block fits, either.
std::optional<PickedColumns> ColumnsOfPickedWeights(const te::Program& program, const te::Te& te,
                                                    const DeviceModel& device);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_STITCH_PICKED_WEIGHTS_H_
