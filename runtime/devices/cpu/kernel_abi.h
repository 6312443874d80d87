/* The calling convention of compiled CPU kernels. Plain C; generated code does not include it, it follows it.
 *
 * Every phase of a kernel is one exported function (extern "C") of this type. It executes tasks [begin, end) of the
 * phase's [0, tasks). The runtime covers [0, tasks) once per launch, in ranges, in any order, on any threads at once; a
 * range never splits a task and is never empty. The phases of a launch, and launches, are separated by a full barrier.
 *
 * args[i]   Base address of the launch's i-th buffer, readable 64 bytes past its end (FORMAT.md in runtime/bundle).
 *           64-byte aligned; an input or output of the model may be the caller's memory, which is a multiple of its
 *           element only. Buffers are distinct memory except arena buffers that the manifest itself overlaps, and
 *           inputs, which are only read and may overlap each other.
 * scratch   This thread's own `scratch_bytes_per_thread` bytes, 64-byte aligned, contents undefined at entry, readable
 *           64 bytes past the end. Not shared with any range that runs at the same time.
 *
 * The function returns normally, keeps no state, and calls nothing but memcpy, memmove, memset and libm. */
#ifndef FUSION_RUNTIME_DEVICES_CPU_KERNEL_ABI_H_
#define FUSION_RUNTIME_DEVICES_CPU_KERNEL_ABI_H_

#include <stdint.h>

typedef void (*fusion_kernel_phase)(void* const* args, void* scratch, int64_t begin, int64_t end);

#endif /* FUSION_RUNTIME_DEVICES_CPU_KERNEL_ABI_H_ */
