// Small loops in the widest instruction set of this processor, whose rates are known: multiply-add, exp, copy. The
// first is taken once for the device model, and again beside each sample of a measurement, because a neighbour or the
// clock governor can take a quarter of a shared machine away for a second.
#ifndef FUSION_WORKER_MEASURE_HOST_KERNELS_H_
#define FUSION_WORKER_MEASURE_HOST_KERNELS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// The widest instruction set that generated kernels use and this processor has.
struct HostIsa {
  std::string isa;    // avx512vnni | avx512 | avx2 | neon
  std::string march;  // x86-64-v4[+avx512vnni] | x86-64-v3 | armv8-a
  int vector_bytes = 0;
  int vector_registers = 0;
};
// UNIMPLEMENTED on a processor older than AVX2.
absl::StatusOr<HostIsa> DetectHostIsa();

// Runs about `iterations` × 12 independent vector FMAs on the calling thread; returns flops per second (2 an FMA).
double FmaFlopsPerSecond(const HostIsa& isa, int64_t iterations);

// Seconds of one vector exp (polynomial and division, four independent at a time) over seconds of one vector FMA.
double SpecialCyclesRatio(const HostIsa& isa);

// Copies `bytes` (a multiple of 128) between 64-byte aligned places with plain vector loads and stores, `repeats`
// times; bytes read plus written per second.
double CopyBytesPerSecond(const HostIsa& isa, const void* from, void* to, int64_t bytes, int64_t repeats);

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_HOST_KERNELS_H_
