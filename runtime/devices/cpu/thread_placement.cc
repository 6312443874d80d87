#include "runtime/devices/cpu/thread_placement.h"

#include <sched.h>

namespace fusion {

int CurrentCpu() { return sched_getcpu(); }

bool MoveOffThisCpu(pid_t tid) {
  const int here = CurrentCpu();
  cpu_set_t allowed;
  if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(tid, sizeof(allowed), &allowed) != 0) return false;
  cpu_set_t elsewhere = allowed;
  CPU_CLR(here, &elsewhere);
  if (CPU_COUNT(&elsewhere) == 0) return false;
  // A thread that waits in this processor's queue moves as soon as its affinity excludes the processor. The wider
  // affinity that follows does not move it back.
  if (sched_setaffinity(tid, sizeof(elsewhere), &elsewhere) != 0) return false;
  return sched_setaffinity(tid, sizeof(allowed), &allowed) == 0;
}

}  // namespace fusion
