// Drops buffers that no step reads or writes any more: constants that packed copies have replaced.
#ifndef FUSION_COMPILER_SCHEDULE_DROP_UNUSED_BUFFERS_H_
#define FUSION_COMPILER_SCHEDULE_DROP_UNUSED_BUFFERS_H_

#include "compiler/movement/kernel.h"

namespace fusion {

// The buffers that stay keep their order, those of block scope last, and every step gets their new numbers.
void DropUnusedBuffers(movement::Kernel* kernel);

}  // namespace fusion

#endif  // FUSION_COMPILER_SCHEDULE_DROP_UNUSED_BUFFERS_H_
