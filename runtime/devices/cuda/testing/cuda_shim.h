// Lets tests compile generated CUDA text as C++ and run it on the CPU. Include it before the text, and put
// FUSION_CUDA_KERNEL(function, threads) for each function after it. The threads of a thread block are fibers that yield
// to each other at barriers and shuffles. Thread blocks run one after another; those of a cooperative launch take
// turns, each from one grid barrier to the next.
// The process ends with a message if only some threads of a thread block reach a barrier, which would hang a GPU or
// worse, and if thread blocks wait for others that never arrive.
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
// All shared memory lies in one section, so that it can be saved and restored for thread blocks that take turns.
#define __shared__ static __attribute__((section("cuda_shared")))
extern "C" char __start_cuda_shared[] __attribute__((weak, visibility("hidden")));
extern "C" char __stop_cuda_shared[] __attribute__((weak, visibility("hidden")));
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __restrict__ __restrict

#ifdef __clang__
typedef __fp16 fusion_half;  // may be neither parameter nor result
#else
typedef _Float16 fusion_half;
#endif

namespace cuda_shim {

struct Place {
  unsigned x = 0;
};
static Place thread_index, block_index, grid_dim;

constexpr int kMostThreads = 1024;
constexpr size_t kStackBytes = 256 << 10;

struct Fiber {
  jmp_buf at;
  char* stack;
  bool begun, done;
};
// A thread block and its progress: its threads run in rounds from one barrier to the next.
struct ThreadBlock {
  Fiber* fibers;
  char* shared;  // holds its shared memory while another thread block runs
  int next;      // next thread of this round
  int done;      // threads that ended in this round
};
static Fiber* fibers;      // of the running thread block
static char* free_stacks;  // each free stack holds the address of the next
static jmp_buf scheduler;
static void (*task)(void* call);
static void* task_call;
static uint64_t slots[kMostThreads];  // values that a shuffle exchanges
static bool waits;                    // the thread that yielded waits for other thread blocks
static uint64_t arrivals;             // at grid barriers

// Asynchronous copies of each thread. They are done only when the thread waits for them, so that reading too early
// gives wrong results.
struct Copy {
  void* to;
  const void* from;
  size_t size_bytes;
};
constexpr int kMostCopies = 1024;
static Copy copies[kMostThreads][kMostCopies];
static int copy_count[kMostThreads];

// Yields to the scheduler. Returns when all other threads of the thread block have reached this point, too.
static __attribute__((noinline)) void GiveWay() {
  if (_setjmp(fibers[thread_index.x].at) == 0) _longjmp(scheduler, 1);
}

static void Enter() {
  task(task_call);
  fibers[thread_index.x].done = true;
  _longjmp(scheduler, 1);
}

static __attribute__((noinline)) void Resume(unsigned thread) {
  thread_index.x = thread;
  Fiber& fiber = fibers[thread];
  if (_setjmp(scheduler) == 0) {
    if (fiber.begun) _longjmp(fiber.at, 1);
    fiber.begun = true;
    fiber.stack = free_stacks != nullptr ? free_stacks : static_cast<char*>(malloc(kStackBytes));
    if (fiber.stack == free_stacks) memcpy(&free_stacks, fiber.stack, sizeof free_stacks);
    ucontext_t start;
    getcontext(&start);
    start.uc_stack.ss_sp = fiber.stack;
    start.uc_stack.ss_size = kStackBytes;
    start.uc_link = nullptr;
    makecontext(&start, Enter, 0);
    setcontext(&start);
  }
  if (fibers[thread].done) {
    memcpy(fibers[thread].stack, &free_stacks, sizeof free_stacks);
    free_stacks = fibers[thread].stack;
  }
}

// Runs a thread block until it ends (returns true) or until one of its threads waits for other thread blocks. Every
// other thread block runs its threads in the opposite order, so that a missing barrier gives wrong results.
static bool Continue(ThreadBlock* block, unsigned number, int threads) {
  block_index.x = number;
  fibers = block->fibers;
  for (;; block->next = block->done = 0) {
    for (; block->next < threads; ++block->next) {
      const int thread = number % 2 == 0 ? block->next : threads - 1 - block->next;
      Resume(static_cast<unsigned>(thread));
      if (waits) return waits = false;
      block->done += fibers[thread].done ? 1 : 0;
    }
    if (block->done == threads) return true;
    if (block->done > 0) {
      fprintf(stderr, "a barrier of block %u is reached by %d of its %d threads\n", number, threads - block->done,
              threads);
      abort();
    }
  }
}

// Runs thread blocks [begin, end) in turns.
static void RunBlocks(int64_t begin, int64_t end, int threads, void (*body)(void*), void* call) {
  task = body;
  task_call = call;
  const auto count = static_cast<size_t>(end - begin);
  const auto shared_bytes = static_cast<size_t>(__stop_cuda_shared - __start_cuda_shared);
  ThreadBlock* blocks = static_cast<ThreadBlock*>(calloc(count, sizeof(ThreadBlock)));
  for (size_t b = 0; b < count; ++b) {
    blocks[b].fibers = static_cast<Fiber*>(calloc(static_cast<size_t>(threads), sizeof(Fiber)));
    if (count > 1) blocks[b].shared = static_cast<char*>(calloc(shared_bytes + 1, 1));
  }
  for (size_t left = count; left > 0;) {
    const uint64_t before = arrivals;
    const size_t left_before = left;
    for (size_t b = 0; b < count; ++b) {
      ThreadBlock& block = blocks[b];
      if (block.fibers == nullptr) continue;
      if (count > 1) memcpy(__start_cuda_shared, block.shared, shared_bytes);
      const bool ended = Continue(&block, static_cast<unsigned>(begin) + static_cast<unsigned>(b), threads);
      if (count > 1) memcpy(block.shared, __start_cuda_shared, shared_bytes);
      if (!ended) continue;
      free(block.fibers);
      free(block.shared);
      block.fibers = nullptr;
      --left;
    }
    if (left > 0 && left == left_before && arrivals == before) {
      fprintf(stderr, "%zu blocks wait for others that do not come\n", left);
      abort();
    }
  }
  free(blocks);
}

// A thread arrives at a grid barrier (Come), and then checks whether all have arrived (See). Others can arrive only
// while it yields.
static unsigned Come(unsigned* grid_barrier, unsigned n) {
  ++arrivals;
  const unsigned before = *grid_barrier;
  *grid_barrier += n;
  return before;
}
static unsigned See(const unsigned* grid_barrier) {
  waits = true;
  GiveWay();
  return *grid_barrier;
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

// A matrix product of fragments by a warp. The positions of the instruction's operands are implemented here a second
// time, from the PTX ISA.
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
  const int depth = halves ? 16 : 8, each = halves ? 2 : 1;  // elements in a register
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

// Bulk copies that one thread starts. They are done only when a thread waits for their phase. The low byte of
// `arrivals` holds the number of copies of a phase, the bits above it count completed phases.
constexpr int kMostRuns = 8;
static Copy runs[kMostRuns];
static int run_count;

static void ExpectRuns(unsigned long* arrivals, int count) {
  *arrivals = static_cast<unsigned long>(count);
  run_count = 0;
}
static void CopyRun(void* to, const void* from, size_t size_bytes) {
  if (((uintptr_t)to | (uintptr_t)from | size_bytes) % 16 != 0 || run_count == kMostRuns) {
    fprintf(stderr, "a run is not aligned to 16 bytes, or one of too many\n");
    abort();
  }
  runs[run_count++] = {to, from, size_bytes};
}
static void AwaitRuns(unsigned long* arrivals, unsigned phase) {
  GiveWay();  // the thread that starts the copies may not have reached this point
  if (run_count == static_cast<int>(*arrivals & 0xff)) {
    for (int r = 0; r < run_count; ++r) memcpy(runs[r].to, runs[r].from, runs[r].size_bytes);
    run_count = 0;
    *arrivals += 0x100;
  }
  if ((*arrivals >> 8) % 2 == phase) {
    fprintf(stderr, "a thread waits for runs that nobody has copied\n");
    abort();
  }
}

// Products of matrices in shared memory by four warps. Results appear only when a thread waits for them.
struct Product {
  float* results;
  uint64_t by_row, by_column;
};
constexpr int kMostProducts = 64;
static Product products[kMostThreads][kMostProducts];
static int product_count[kMostThreads];
static bool shown[kMostThreads];  // the thread has made its writes visible to the tensor cores

static unsigned SharedAddress(const void* p) {
  const auto offset = static_cast<const char*>(p) - __start_cuda_shared;
  if (offset < 0 || p >= __stop_cuda_shared || offset % 16 != 0) {
    fprintf(stderr, "a matrix begins outside shared memory, or not at 16 bytes\n");
    abort();
  }
  return static_cast<unsigned>(offset);
}

// Returns element `k` of row `row` of a matrix of halves, whose position a wgmma descriptor encodes.
static float ElementAt(uint64_t matrix, int row, int k) {
  const auto field = [&](int bit) { return static_cast<int64_t>(matrix >> bit & 0x3fff) << 4; };
  const char* at = __start_cuda_shared + field(0) + k / 8 * field(16) + row / 8 * field(32) + row % 8 * 16 + k % 8 * 2;
  fusion_half half;
  memcpy(&half, at, sizeof half);
  return static_cast<float>(half);
}

static void MultiplyLater(float* results, uint64_t by_row, uint64_t by_column) {
  int& count = product_count[thread_index.x];
  if (!shown[thread_index.x] || count == kMostProducts) {
    fprintf(stderr, shown[thread_index.x] ? "a thread waits for none of its products\n"
                                          : "a product reads what was not shown to the tensor cores\n");
    abort();
  }
  products[thread_index.x][count++] = {results, by_row, by_column};
}

static void FinishProducts() {
  const int lane = static_cast<int>(thread_index.x % 32), warp = static_cast<int>(thread_index.x / 32 % 4);
  for (int p = 0; p < product_count[thread_index.x]; ++p) {
    const Product& product = products[thread_index.x][p];
    for (int e = 0; e < 32; ++e) {
      const int row = warp * 16 + lane / 4 + e / 2 % 2 * 8, column = e / 4 * 8 + lane % 4 * 2 + e % 2;
      for (int k = 0; k < 16; ++k) {
        product.results[e] += ElementAt(product.by_row, row, k) * ElementAt(product.by_column, column, k);
      }
    }
  }
  product_count[thread_index.x] = 0;
  shown[thread_index.x] = false;
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

// Calls kernel(args...), whose parameters are all pointers, for thread blocks [begin, end).
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
// `together`: at the same time, as in a cooperative launch.
template <typename... Pointers>
void Launch(void (*kernel)(Pointers...), int threads, void* const* args, int64_t begin, int64_t end, bool together) {
  Launcher<Pointers...> launcher{kernel, args};
  grid_dim.x = static_cast<unsigned>(end);
  for (int64_t next = begin; next < end;) {
    const int64_t first = next;
    next = together ? end : first + 1;
    RunBlocks(first, next, threads, &Launcher<Pointers...>::Body, &launcher);
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
static inline unsigned tf32(float value) {  // rounds to nearest, ties away from zero
  return (cuda_shim::Bits<unsigned>(value) + 0x1000) & ~0x1fffu;
}
#define MATRIX(p, next_rows) matrix_at(cuda_shim::SharedAddress(p), next_rows)
#define expect_runs(arrivals, count) cuda_shim::ExpectRuns(arrivals, count)
#define copy_run(to, from, bytes, arrivals) cuda_shim::CopyRun(to, from, bytes)
#define await_runs(arrivals, phase) cuda_shim::AwaitRuns(arrivals, phase)
#define SLICES_WRITTEN cuda_shim::shown[threadIdx.x] = true;
#define HOLD(result) ;
#define BEGIN_PRODUCTS
#define END_PRODUCTS cuda_shim::FinishProducts();
#define multiply_memory_f16(d, a, b) cuda_shim::MultiplyLater(d, a, b)
#define COPY(bytes) cuda_shim::CopyLater(to, from, bytes);
static inline void copies_arrive() { cuda_shim::FinishCopies(); }
#define threadIdx cuda_shim::thread_index
#define blockIdx cuda_shim::block_index
#define gridDim cuda_shim::grid_dim
static inline unsigned come(unsigned* grid_barrier, unsigned n) { return cuda_shim::Come(grid_barrier, n); }
static inline unsigned see(const unsigned* grid_barrier) { return cuda_shim::See(grid_barrier); }

static inline void __syncthreads() { cuda_shim::GiveWay(); }
static inline void __syncwarp(unsigned) { cuda_shim::GiveWay(); }
template <typename T>
static inline T __shfl_xor_sync(unsigned, T value, int mask) {
  return cuda_shim::Exchange(value, static_cast<int>(threadIdx.x) ^ mask);
}
static inline float __int_as_float(int bits) { return cuda_shim::Bits<float>(bits); }
static inline float __uint_as_float(unsigned bits) { return cuda_shim::Bits<float>(bits); }
static inline float __fadd_rn(float a, float b) {
  volatile float sum = a + b;
  return sum;
}
static inline double __dadd_rn(double a, double b) {
  volatile double sum = a + b;
  return sum;
}
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

// Exports four symbols of a kernel:
// - NAME_threads: threads of a thread block
// - NAME_parameters: number of parameters
// - NAME_tasks: runs thread blocks [begin, end) one after another; its signature is that of a phase of a CPU kernel
// - NAME_together: runs them at the same time; `begin` must be 0
#define FUSION_CUDA_EXPORT extern "C" __attribute__((visibility("default")))
#define FUSION_CUDA_KERNEL(name, threads)                                                         \
  FUSION_CUDA_EXPORT const int name##_threads, name##_parameters;                                 \
  const int name##_threads = threads, name##_parameters = cuda_shim::ParameterCount(name);        \
  FUSION_CUDA_EXPORT void name##_tasks(void* const* args, void*, int64_t begin, int64_t end) {    \
    cuda_shim::Launch(name, threads, args, begin, end, false);                                    \
  }                                                                                               \
  FUSION_CUDA_EXPORT void name##_together(void* const* args, void*, int64_t begin, int64_t end) { \
    cuda_shim::Launch(name, threads, args, begin, end, true);                                     \
  }

#endif  // FUSION_RUNTIME_DEVICES_CUDA_TESTING_CUDA_SHIM_H_
