/* The calling convention of compiled CPU kernels, in plain C. Generated code does not include this file but follows it.
 *
 * Every phase of a kernel is one exported function (extern "C") of this type. A call executes tasks [begin, end) of the
 * phase's [0, tasks). The runtime covers [0, tasks) once per launch, in ranges, in any order, on several threads at
 * once; a range is never empty. A full barrier separates the phases of a launch, and launches.
 *
 * args[i]   Base address of the launch's i-th buffer, readable 64 bytes past its end (FORMAT.md in runtime/bundle). It
 *           is 64-byte aligned, but an input or output of the model may be the caller's memory, which is aligned to its
 *           element's size only. Buffers are distinct memory, except arena buffers that the manifest itself overlaps,
 *           and inputs, which are only read and may overlap each other.
 * scratch   This thread's own `scratch_bytes_per_thread` bytes, 64-byte aligned, readable 64 bytes past the end. The
 *           contents are undefined at entry. No range that runs at the same time shares them.
 *
 * The function returns normally, keeps no state, and calls nothing but memcpy, memmove, memset and libm. */
#ifndef FUSION_RUNTIME_DEVICES_CPU_KERNEL_ABI_H_
#define FUSION_RUNTIME_DEVICES_CPU_KERNEL_ABI_H_

#include <stdint.h>

typedef void (*fusion_kernel_phase)(void* const* args, void* scratch, int64_t begin, int64_t end);

#endif /* FUSION_RUNTIME_DEVICES_CPU_KERNEL_ABI_H_ */
