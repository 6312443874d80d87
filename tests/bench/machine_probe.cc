// Usage: machine_probe THREADS FMA_MS COPY_MS [COPY_BYTES]. Prints what this machine can do as one line of JSON; 0 ms
// leaves a measurement out.
//   fma_gflops     independent multiply-adds on registers, counted as two operations each
//   copy_gb_per_s  bytes copied by memcpy between buffers, each read once and written once; the buffers are far larger
//                  than the caches, or take COPY_BYTES, all threads and both sides together
// Each figure is the sum over THREADS threads that run at the same time. It comes from the fastest time slice; the
// suffix `_mean` marks the figure of the whole time and `_median` that of the median slice.
// Build with -O3 -march=native.
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif
#if defined(__aarch64__)
constexpr int kAccumulators = 20;  // four pipes of latency four, 32 registers
#else
constexpr int kAccumulators = 12;  // two pipes of latency four or five, 16 registers or more
#endif
typedef float Vector __attribute__((vector_size(kVectorBytes)));

struct Rates {
  double best = 0;  // of the fastest slice: what the machine can do
  double mean = 0;  // over the whole time: what it does while other programs run
  double median = 0;
};

// `slice` does some work and returns the amount.
Rates Repeat(Clock::duration time, const std::function<double()>& slice) {
  Rates rates;
  std::vector<double> slices;
  double total = 0;
  const Clock::time_point begin = Clock::now();
  Clock::time_point now = begin;
  do {
    const Clock::time_point start = now;
    const double work = slice();
    now = Clock::now();
    total += work;
    slices.push_back(work / std::chrono::duration<double>(now - start).count());
  } while (now - begin < time);
  rates.mean = total / std::chrono::duration<double>(now - begin).count();
  std::sort(slices.begin(), slices.end());
  rates.best = slices.back();
  rates.median = slices[slices.size() / 2];
  return rates;
}

double MultiplyAdds() {
  Vector accumulators[kAccumulators] = {};
  const Vector factor = Vector{} + 0.999f, term = Vector{} + 0.001f;
  constexpr int kSteps = 200'000;  // about 0.5 ms
  for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 32
    for (int i = 0; i < kAccumulators; ++i) accumulators[i] = accumulators[i] * factor + term;
  }
  for (Vector& accumulator : accumulators) asm volatile("" : : "m"(accumulator));
  return 2.0 * kSteps * kAccumulators * (kVectorBytes / sizeof(float));
}

double Copy(const std::vector<char>& from, std::vector<char>& to) {
  std::memcpy(to.data(), from.data(), from.size());
  asm volatile("" : : "r"(to.data()) : "memory");
  return static_cast<double>(from.size());
}

// Returns the sum over threads that start together.
Rates OnThreads(int threads, const std::function<Rates(int)>& work) {
  std::vector<Rates> rates(threads);
  std::barrier start(threads);
  std::vector<std::jthread> pool;
  for (int thread = 0; thread < threads; ++thread) {
    pool.emplace_back([&, thread] {
      start.arrive_and_wait();
      rates[thread] = work(thread);
    });
  }
  pool.clear();
  Rates sum;
  for (const Rates& rate : rates) {
    sum.best += rate.best;
    sum.mean += rate.mean;
    sum.median += rate.median;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc == 4 || argc == 5 ? std::atoi(argv[1]) : 0;
  if (threads < 1 || threads > 1024) {
    std::fprintf(stderr, "usage: machine_probe THREADS FMA_MS COPY_MS [COPY_BYTES]\n");
    return 2;
  }
  const std::chrono::milliseconds fma_time(std::atoi(argv[2])), copy_time(std::atoi(argv[3]));
  std::printf("{\"threads\": %d", threads);
  if (fma_time.count() > 0) {
    const Rates fma = OnThreads(threads, [&](int) { return Repeat(fma_time, MultiplyAdds); });
    std::printf(", \"fma_gflops\": %.1f, \"fma_gflops_mean\": %.1f", fma.best / 1e9, fma.mean / 1e9);
  }
  if (copy_time.count() > 0) {
    constexpr size_t kFarBeyondCaches = 48 << 20;
    const size_t buffer_bytes = argc == 5 ? std::strtoull(argv[4], nullptr, 10) / 2 / threads : kFarBeyondCaches;
    const Rates copy = OnThreads(threads, [&](int) {
      const std::vector<char> from(buffer_bytes, 1);
      std::vector<char> to(buffer_bytes, 2);
      return Repeat(copy_time, [&] { return Copy(from, to); });
    });
    std::printf(", \"copy_gb_per_s\": %.2f, \"copy_gb_per_s_mean\": %.2f, \"copy_gb_per_s_median\": %.2f",
                copy.best / 1e9, copy.mean / 1e9, copy.median / 1e9);
  }
  std::printf("}\n");
}
