#include "worker/measure/vector_loops.h"

#if defined(__x86_64__)
#define FUSION_REG(v) "x"(v)

namespace fusion {

typedef float V __attribute__((vector_size(32)));

FUSION_VECTOR_LOOPS(kAvx2Loops, V)

}  // namespace fusion
#endif
