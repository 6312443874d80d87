// Usage: phase_cost THREADS PHASES TASK_NS [TASKS]. Prints what a phase costs beside its work, in microseconds, as one
// line of JSON; each figure is that of the fastest of many rounds.
//   calls    each phase is a call of the pool
//   program  all phases are one call, with a barrier between them
//   serial   the calling thread runs everything
// A phase has TASKS tasks (default: THREADS), each of which computes for about TASK_NS; the work counted off is that of
// the tasks spread over the threads.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/devices/cpu/worker_pool.h"

namespace {

using Clock = std::chrono::steady_clock;

// args[0]: the rounds of a task's loop; args[1]: an i64 for each task, a cache line apart.
void Work(void* const* args, void*, int64_t begin, int64_t end) {
  const int64_t rounds = *static_cast<const int64_t*>(args[0]);
  for (int64_t task = begin; task < end; ++task) {
    int64_t* const value = static_cast<int64_t*>(args[1]) + 8 * task;
    int64_t x = *value + 1;
    for (int64_t r = 0; r < rounds; ++r) asm volatile("" : "+r"(x));
    *value = x;
  }
}

template <typename Function>
double FastestSeconds(int rounds, const Function& function) {
  double best = 1e9;
  for (int r = 0; r < rounds; ++r) {
    const Clock::time_point start = Clock::now();
    function();
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc >= 4 ? std::atoi(argv[1]) : 0, phases = argc >= 4 ? std::atoi(argv[2]) : 0;
  const int64_t task_ns = argc >= 4 ? std::atoi(argv[3]) : -1, tasks = argc >= 5 ? std::atoi(argv[4]) : threads;
  if (threads < 1 || threads > 1024 || phases < 1 || task_ns < 0 || tasks < 1) {
    std::fprintf(stderr, "usage: phase_cost THREADS PHASES TASK_NS [TASKS]\n");
    return 2;
  }
  auto pool = fusion::WorkerPool::Create(threads, 0);
  if (!pool.ok()) {
    std::fprintf(stderr, "phase_cost: %s\n", std::string(pool.status().message()).c_str());
    return 1;
  }
  int64_t rounds = 1000000;
  std::vector<int64_t> values(8 * tasks);
  void* args[] = {&rounds, values.data()};
  void* const* const sets[] = {args};
  const double round_s = FastestSeconds(5, [&] { Work(args, nullptr, 0, 1); }) / static_cast<double>(rounds);
  rounds = static_cast<int64_t>(1e-9 * static_cast<double>(task_ns) / round_s);

  const std::vector<fusion::WorkerPool::Phase> program(phases, (*pool)->Cut({{Work, sets, tasks}}));
  const fusion::WorkerPool::Hold hold(**pool);
  constexpr int kRounds = 300;
  const auto cost = [&](int at_once, const auto& function) {
    const double work_s = static_cast<double>((tasks + at_once - 1) / at_once) * static_cast<double>(rounds) * round_s;
    return 1e6 * (FastestSeconds(kRounds, function) / phases - work_s);
  };
  const double serial = cost(1, [&] {
    for (int p = 0; p < phases; ++p) Work(args, nullptr, 0, tasks);
  });
  const double calls = cost(threads, [&] {
    for (const auto& phase : program) (*pool)->Run({&phase, 1});
  });
  const double one_call = cost(threads, [&] { (*pool)->Run(program); });
  std::printf(
      "{\"threads\": %d, \"tasks\": %lld, \"task_us\": %.2f, \"calls\": %.3f, \"program\": %.3f, \"serial\": %.3f}\n",
      threads, static_cast<long long>(tasks), 1e6 * static_cast<double>(rounds) * round_s, calls, one_call, serial);
  return 0;
}
