#include "worker/measure/vector_loops.h"

#if defined(__x86_64__)
#define FUSION_REG(v) "v"(v)

namespace fusion {

typedef float V __attribute__((vector_size(64)));

FUSION_VECTOR_LOOPS(kAvx512Loops, V)

}  // namespace fusion
#endif
