// Moves a thread to another processor. The scheduler places a thread when it wakes; if another program holds the other
// processors at that moment, it may put a worker on the processor of the thread that works with it, and leaves both there
// for 10 to 25 ms, in which a run takes longer than it would on one thread.
#ifndef FUSION_RUNTIME_DEVICES_CPU_THREAD_PLACEMENT_H_
#define FUSION_RUNTIME_DEVICES_CPU_THREAD_PLACEMENT_H_

#include <sys/types.h>

namespace fusion {

// The processor on which the caller runs now, or -1 where the system does not tell.
int CurrentCpu();

// Moves the thread `tid` of this process off the caller's processor if its affinity allows another one. The affinity is
// the same afterwards. Returns false if no other processor is allowed or the system refuses. Costs two to four
// microseconds, and a migration where the thread was on the caller's processor.
bool MoveOffThisCpu(pid_t tid);

}  // namespace fusion

#endif  // FUSION_RUNTIME_DEVICES_CPU_THREAD_PLACEMENT_H_
