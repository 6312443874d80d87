#include "runtime/devices/cpu/phase_barrier.h"

#include "runtime/devices/cpu/spin.h"

namespace fusion {

void PhaseBarrier::Wait(uint64_t phase) {
  if (spins_ && Spin([&] { return open() > phase; }, [] { return kSpinInRun; })) return;
  // The order is: this thread says that it sleeps, then looks at `open_`; Add changes `open_`, then looks whether
  // somebody sleeps. All four are sequentially consistent, so at least one of them sees the other.
  sleepers_.fetch_add(1);
  for (uint64_t now = open_.load(); now <= phase; now = open_.load()) open_.wait(now);
  sleepers_.fetch_sub(1);
}

}  // namespace fusion
