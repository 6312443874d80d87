#include "worker/measure/vector_loops.h"

#if defined(__aarch64__)
#define FUSION_REG(v) "w"(v)

namespace fusion {

typedef float V __attribute__((vector_size(16)));

FUSION_VECTOR_LOOPS(kNeonLoops, V)

}  // namespace fusion
#endif
