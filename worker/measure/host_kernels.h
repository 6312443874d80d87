// Small loops of multiply-add, exp and copy in the widest instruction set of this CPU. The device model takes their
// rates. The multiply-add loop also runs beside each sample of a measurement, because a neighbour or the clock governor
// can take a quarter of a shared machine away for a second.
#ifndef FUSION_WORKER_MEASURE_HOST_KERNELS_H_
#define FUSION_WORKER_MEASURE_HOST_KERNELS_H_

#include <cstdint>

#include "runtime/devices/cpu/isa.h"

namespace fusion {

// Runs about `iterations` × 12 independent vector FMAs on the calling thread. Returns flops per second, counting 2 per
// FMA.
double FmaFlopsPerSecond(const InstructionSet& isa, int64_t iterations);

// Returns the seconds of one vector exponential, as kernels compute it and eight independent at a time, divided by the
// seconds of one vector FMA.
double SpecialCyclesRatio(const InstructionSet& isa);

// Copies `bytes` (a multiple of 128) between 64-byte aligned places with plain vector loads and stores, `repeats`
// times. Returns the bytes read plus written per second.
double CopyBytesPerSecond(const InstructionSet& isa, const void* from, void* to, int64_t bytes, int64_t repeats);

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_HOST_KERNELS_H_
