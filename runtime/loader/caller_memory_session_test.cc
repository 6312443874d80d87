// Runs on the caller's memory: with every alignment, in front of pages that fault, and with memory that is used twice.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "runtime/devices/cpu/thread_pool.h"
#include "runtime/loader/session.h"
#include "runtime/loader/testing/guarded_memory.h"
#include "runtime/loader/testing/tiny_bundle.h"

namespace fusion {
namespace {

constexpr int64_t kElements = 512, kBytes = 4 * kElements, kColumns = 8;

class CallerMemorySessionTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    path_ = new std::string(::testing::TempDir() + "/caller_memory_" + std::to_string(getpid()) + ".fusion");
    const auto code = BuildSharedObject(kTinyKernelSource);
    ASSERT_TRUE(code.ok()) << code.status();
    ASSERT_TRUE(WriteTinyBundle(*path_, *code, TinyManifest()).ok());
  }
  static void TearDownTestSuite() { unlink(path_->c_str()); }

  static std::unique_ptr<Session> MakeSession(int threads) { return *Session::Create(*Bundle::Open(*path_), threads); }

  static std::vector<float> Input(int seed) {
    std::vector<float> x(kElements);
    for (int64_t i = 0; i < kElements; ++i) x[i] = static_cast<float>((i * 7 + seed) % 23 - 11) * 0.25f;
    return x;
  }
  static std::vector<float> Right(const std::vector<float>& x) {
    std::vector<float> y(kElements);
    for (int64_t i = 0; i < kElements; ++i) {
      y[i] = std::max(0.0f, x[i] * static_cast<float>(i % kColumns + 1) - 1.0f);
    }
    return y;
  }
  static absl::Status Run(Session& session, const void* x, void* y, void* w) {
    const void* inputs[] = {x};
    void* outputs[] = {y, w};
    return session.RunRaw(inputs, outputs);
  }
  static std::vector<float> Floats(const void* data, int64_t count = kElements) {
    std::vector<float> floats(count);
    std::memcpy(floats.data(), data, 4 * count);
    return floats;
  }

  static std::string* path_;
};
std::string* CallerMemorySessionTest::path_ = nullptr;

TEST_F(CallerMemorySessionTest, EveryAlignmentAndEveryDistanceFromAPageThatFaults) {
  const auto session = MakeSession(2);
  for (int64_t gap = 0; gap <= 128; ++gap) {
    GuardedMemory x(kBytes, gap), y(kBytes, (gap * 5 + 3) % 129), w(4 * kColumns, gap);
    const std::vector<float> values = Input(static_cast<int>(gap));
    std::memcpy(x.data(), values.data(), kBytes);
    ASSERT_TRUE(Run(*session, x.data(), y.data(), w.data()).ok());
    ASSERT_EQ(Floats(y.data()), Right(values)) << gap;
    ASSERT_EQ(Floats(w.data(), kColumns)[7], 8.0f) << gap;
    ASSERT_EQ(Floats(x.data()), values) << "the input is written, " << gap;
    ASSERT_TRUE(x.SurroundingsUntouched() && y.SurroundingsUntouched() && w.SurroundingsUntouched()) << gap;
  }
}

// The session's own buffers are poisoned, so a right result can only come from the caller's memory.
TEST_F(CallerMemorySessionTest, PlainMemoryIsNotCopied) {
  const auto session = MakeSession(1);
  GuardedMemory x(kBytes, 64), y(kBytes, 64), w(4 * kColumns, 64);
  const std::vector<float> values = Input(1);
  std::memcpy(x.data(), values.data(), kBytes);
  std::memset(session->input(0), 0x11, kBytes);
  ASSERT_TRUE(Run(*session, x.data(), y.data(), w.data()).ok());
  EXPECT_EQ(Floats(y.data()), Right(values));
  const auto* own = static_cast<const unsigned char*>(session->input(0));
  EXPECT_TRUE(std::all_of(own, own + kBytes, [](unsigned char byte) { return byte == 0x11; }));
  EXPECT_EQ(Floats(session->output(0)), std::vector<float>(kElements, 0.0f)) << "zero since it was made";
}

// A run must not assume that the memory of the previous run is still valid.
TEST_F(CallerMemorySessionTest, MemoryMayChangeFromRunToRun) {
  const auto session = MakeSession(2);
  GuardedMemory w(4 * kColumns, 64);
  for (int run = 0; run < 12; ++run) {
    const std::vector<float> values = Input(run);
    GuardedMemory x(kBytes, run % 3 == 0 ? 0 : 64), y(kBytes, run % 4 == 0 ? 0 : 64);
    void* input = run % 5 == 0 ? session->input(0) : x.data();
    void* output = run % 6 == 0 ? const_cast<void*>(session->output(0)) : y.data();
    std::memcpy(input, values.data(), kBytes);
    ASSERT_TRUE(Run(*session, input, output, w.data()).ok());
    EXPECT_EQ(Floats(output), Right(values)) << run;
  }
}

TEST_F(CallerMemorySessionTest, AnOutputMayOverlapAnInput) {
  const auto session = MakeSession(2);
  for (const int64_t shift : {0, 4, 32, 100, 2044, 2048}) {
    GuardedMemory memory(2 * kBytes, 64), w(4 * kColumns, 64);
    const std::vector<float> values = Input(3);
    for (const bool output_first : {false, true}) {
      char* x = memory.data() + (output_first ? shift : 0);
      char* y = memory.data() + (output_first ? 0 : shift);
      std::memcpy(x, values.data(), kBytes);
      ASSERT_TRUE(Run(*session, x, y, w.data()).ok());
      EXPECT_EQ(Floats(y), Right(values)) << shift;
    }
    EXPECT_TRUE(memory.SurroundingsUntouched());
  }
  // The session's own memory is input and output, as in a loop that feeds a result back.
  const std::vector<float> values = Input(4);
  std::memcpy(session->input(0), values.data(), kBytes);
  float w[kColumns];
  ASSERT_TRUE(Run(*session, session->input(0), session->input(0), w).ok());
  EXPECT_EQ(Floats(session->input(0)), Right(values));
  ASSERT_TRUE(Run(*session, session->input(0), const_cast<void*>(session->output(0)), w).ok());
  ASSERT_TRUE(Run(*session, session->output(0), const_cast<void*>(session->output(0)), w).ok());
  EXPECT_EQ(Floats(session->output(0)), Right(Right(Right(values))));
}

TEST_F(CallerMemorySessionTest, OfOutputsThatOverlapTheLastStays) {
  const auto session = MakeSession(1);
  const std::vector<float> values = Input(5);
  GuardedMemory y(kBytes, 64);
  ASSERT_TRUE(Run(*session, values.data(), y.data(), y.data()).ok());
  std::vector<float> right = Right(values);
  for (int64_t i = 0; i < kColumns; ++i) right[i] = static_cast<float>(i + 1);
  EXPECT_EQ(Floats(y.data()), right);
}

// Many callers run on sessions of their own and on a shared one, on the pool of the process and on a separate pool.
TEST_F(CallerMemorySessionTest, ManyCallersAtOnce) {
  const auto pool = ThreadPool::Create(2);
  const auto bundle = Bundle::Open(*path_);
  const auto common = MakeSession(2);
  std::atomic<int> right{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 8; ++c) {
    callers.emplace_back([&, c] {
      const auto own = Session::Create(*bundle, c % 3, c % 2 == 0 ? *pool : nullptr);
      for (int run = 0; run < 50; ++run) {
        const std::vector<float> values = Input(c * 50 + run);
        std::vector<float> y(kElements), w(kColumns);
        Session& session = run % 2 == 0 ? *common : **own;
        right += Run(session, values.data(), y.data(), w.data()).ok() && y == Right(values);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(right, 400);
  EXPECT_FALSE(Session::Create(*bundle, 3, *pool).ok()) << "the pool has two";
}

}  // namespace
}  // namespace fusion
