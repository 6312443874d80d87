// Lets generated CUDA text be compiled as C++ and run on the processor, for tests: included in front of it, with
// FUSION_CUDA_KERNEL(function, threads) for each of its functions behind. The threads of a block are fibers that give
// way to each other at barriers and shuffles; blocks run one after another. A barrier that only some threads of a block
// reach ends the process with a message, as it would hang a GPU or worse.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_TESTING_CUDA_SHIM_H_
#define FUSION_RUNTIME_DEVICES_CUDA_TESTING_CUDA_SHIM_H_

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#define FUSION_CUDA_SHIM 1
#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __restrict__ __restrict

#ifdef __clang__
typedef __fp16 fusion_half;  // is no parameter and no result
#else
typedef _Float16 fusion_half;
#endif

namespace cuda_shim {

struct Place {
  unsigned x = 0;
};
static Place thread_index, block_index;

constexpr int kMostThreads = 1024;
constexpr size_t kStackBytes = 256 << 10;

struct Fiber {
  jmp_buf at;
  char* stack = nullptr;
  bool done = false;
};
static Fiber fibers[kMostThreads];
static char* free_stacks[kMostThreads];
static int free_stack_count = 0;
static jmp_buf scheduler;
static void (*task)(void* call);
static void* task_call;
static uint64_t slots[kMostThreads];  // of a shuffle

// Copies that a thread waits for: done no sooner than that, so that what is read too early shows.
struct Copy {
  void* to;
  const void* from;
  size_t size_bytes;
};
constexpr int kMostCopies = 1024;
static Copy copies[kMostThreads][kMostCopies];
static int copy_count[kMostThreads];

// To the scheduler; returns when the others have come here too.
static __attribute__((noinline)) void GiveWay() {
  if (_setjmp(fibers[thread_index.x].at) == 0) _longjmp(scheduler, 1);
}

static void Enter() {
  task(task_call);
  fibers[thread_index.x].done = true;
  _longjmp(scheduler, 1);
}

static __attribute__((noinline)) void Resume(unsigned thread, bool first) {
  thread_index.x = thread;
  Fiber& fiber = fibers[thread];
  if (_setjmp(scheduler) == 0) {
    if (!first) _longjmp(fiber.at, 1);
    fiber.done = false;
    fiber.stack = free_stack_count > 0 ? free_stacks[--free_stack_count] : static_cast<char*>(malloc(kStackBytes));
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = fiber.stack;
    start.uc_stack.ss_size = kStackBytes;
    start.uc_link = nullptr;
    makecontext(&start, Enter, 0);
    setcontext(&start);
  }
  if (fibers[thread].done) free_stacks[free_stack_count++] = fibers[thread].stack;
}

// One block. Every other one runs its threads in the opposite order: what is missing a barrier shows.
static void RunBlock(unsigned block, int threads, void (*body)(void*), void* call) {
  block_index.x = block;
  task = body;
  task_call = call;
  for (bool first = true;; first = false) {
    int done = 0;
    for (int i = 0; i < threads; ++i) {
      const int thread = block % 2 == 0 ? i : threads - 1 - i;
      Resume(static_cast<unsigned>(thread), first);
      done += fibers[thread].done ? 1 : 0;
    }
    if (done == threads) return;
    if (done > 0) {
      fprintf(stderr, "a barrier of block %u is reached by %d of its %d threads\n", block, threads - done, threads);
      abort();
    }
  }
}

static void CopyLater(void* to, const void* from, size_t size_bytes) {
  const bool aligned = ((uintptr_t)to | (uintptr_t)from) % size_bytes == 0;
  int& count = copy_count[thread_index.x];
  if (!aligned || count == kMostCopies) {
    fprintf(stderr, aligned ? "a thread has too many copies under way\n" : "a copy is not aligned to its size\n");
    abort();
  }
  copies[thread_index.x][count++] = {to, from, size_bytes};
}

static void FinishCopies() {
  int& count = copy_count[thread_index.x];
  for (int c = 0; c < count; ++c)
    memcpy(copies[thread_index.x][c].to, copies[thread_index.x][c].from, copies[thread_index.x][c].size_bytes);
  count = 0;
}

// A product of fragments by a warp: where the instruction's operands lie is spelled out here once more, as the PTX ISA
// has it.
static uint32_t row_parts[kMostThreads][4], column_parts[kMostThreads][2];

static float Element(uint32_t bits, int half, bool halves) {
  float value;
  if (halves) {
    const unsigned short bits16 = static_cast<unsigned short>(bits >> (16 * half));
    fusion_half narrow;
    memcpy(&narrow, &bits16, sizeof narrow);
    value = static_cast<float>(narrow);
  } else {
    memcpy(&value, &bits, sizeof value);
  }
  return value;
}

static void Multiply(float* d, const unsigned* a, const unsigned* b, const char* form) {
  const bool halves = strstr(form, "k16") != nullptr;
  const int depth = halves ? 16 : 8, each = halves ? 2 : 1;  // elements of a register
  memcpy(row_parts[thread_index.x], a, sizeof row_parts[0]);
  memcpy(column_parts[thread_index.x], b, sizeof column_parts[0]);
  GiveWay();
  const int lane = static_cast<int>(thread_index.x % 32), warp = static_cast<int>(thread_index.x) - lane;
  for (int e = 0; e < 4; ++e) {
    const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    float sum = 0;
    for (int k = 0; k < depth; ++k) {
      const int beside = k / each % 4, upper = k / (4 * each), half = k % each;
      sum += Element(row_parts[warp + row % 8 * 4 + beside][row / 8 + 2 * upper], half, halves) *
             Element(column_parts[warp + column * 4 + beside][upper], half, halves);
    }
    d[e] += sum;
  }
  GiveWay();
}

template <typename T>
T Exchange(T value, int from) {
  memcpy(&slots[thread_index.x], &value, sizeof value);
  GiveWay();
  T result;
  memcpy(&result, &slots[from], sizeof result);
  GiveWay();
  return result;
}

// Blocks [begin, end) of kernel(args...), pointers all.
template <typename... Pointers>
struct Launcher {
  template <size_t... I>
  struct Numbers {};
  template <size_t N, size_t... I>
  struct MakeNumbers : MakeNumbers<N - 1, N - 1, I...> {};
  template <size_t... I>
  struct MakeNumbers<0, I...> {
    using type = Numbers<I...>;
  };
  void (*kernel)(Pointers...);
  void* const* args;

  template <size_t... I>
  void Call(Numbers<I...>) {
    kernel(static_cast<Pointers>(args[I])...);
  }
  static void Body(void* launcher) {
    static_cast<Launcher*>(launcher)->Call(typename MakeNumbers<sizeof...(Pointers)>::type());
  }
};
template <typename... Pointers>
constexpr int ParameterCount(void (*)(Pointers...)) {
  return sizeof...(Pointers);
}
template <typename... Pointers>
void Launch(void (*kernel)(Pointers...), int threads, void* const* args, int64_t begin, int64_t end) {
  Launcher<Pointers...> launcher{kernel, args};
  for (int64_t block = begin; block < end; ++block) {
    RunBlock(static_cast<unsigned>(block), threads, &Launcher<Pointers...>::Body, &launcher);
  }
}

static inline unsigned Pair(const unsigned short* p) {
  unsigned pair;
  memcpy(&pair, p, sizeof pair);
  return pair;
}

template <typename To, typename From>
To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "");
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace cuda_shim

#define PAIR(p) cuda_shim::Pair(p)
#define MULTIPLY(form) cuda_shim::Multiply(d, a.x, b.x, form);
static inline unsigned tf32(float value) {  // to nearest, ties away from zero
  return (cuda_shim::Bits<unsigned>(value) + 0x1000) & ~0x1fffu;
}
#define COPY(bytes) cuda_shim::CopyLater(to, from, bytes);
static inline void copies_arrive() { cuda_shim::FinishCopies(); }
#define threadIdx cuda_shim::thread_index
#define blockIdx cuda_shim::block_index

static inline void __syncthreads() { cuda_shim::GiveWay(); }
template <typename T>
static inline T __shfl_xor_sync(unsigned, T value, int mask) {
  return cuda_shim::Exchange(value, static_cast<int>(threadIdx.x) ^ mask);
}
static inline float __int_as_float(int bits) { return cuda_shim::Bits<float>(bits); }
static inline float __uint_as_float(unsigned bits) { return cuda_shim::Bits<float>(bits); }
static inline unsigned __float_as_uint(float value) { return cuda_shim::Bits<unsigned>(value); }
static inline double __longlong_as_double(long long bits) { return cuda_shim::Bits<double>(bits); }
static inline float h2f(unsigned short bits) {
  fusion_half half;
  memcpy(&half, &bits, sizeof half);
  return static_cast<float>(half);
}
static inline unsigned short f2h(float value) {
  const fusion_half half = static_cast<fusion_half>(value);
  unsigned short bits;
  memcpy(&bits, &half, sizeof bits);
  return bits;
}

// NAME_threads: of a block. NAME_parameters: how many. NAME_tasks: runs blocks [begin, end), with the signature of a
// phase of the CPU's kernels.
#define FUSION_CUDA_KERNEL(name, threads)                                                                              \
  extern "C" __attribute__((visibility("default"))) const int name##_threads, name##_parameters;                       \
  const int name##_threads = threads, name##_parameters = cuda_shim::ParameterCount(name);                             \
  extern "C"                                                                                                           \
      __attribute__((visibility("default"))) void name##_tasks(void* const* args, void*, int64_t begin, int64_t end) { \
    cuda_shim::Launch(name, threads, args, begin, end);                                                                \
  }

#endif  // FUSION_RUNTIME_DEVICES_CUDA_TESTING_CUDA_SHIM_H_
