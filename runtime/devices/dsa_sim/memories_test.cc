#include "runtime/devices/dsa_sim/memories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "runtime/devices/dsa_sim/slice.h"

namespace fusion::dsa {
namespace {

Program WithBuffers() {
  const auto program = Parse(R"(program p for small {
    buffer x lb 0.0 0 f32[4096]
    buffer h lb 0.0 16384 f16[4096]
    buffer b gb 0 0 bf16[4096]
    buffer again lb 0.0 4 f32[4]
})");
  EXPECT_TRUE(program.ok()) << program.status();
  return *program;
}

// A slice of up to three indices that stays inside 4096 elements.
Slice RandomSlice(std::mt19937* random, int buffer) {
  const auto draw = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(*random);
  };
  Slice slice;
  slice.buffer = buffer;
  slice.first = 2048;
  const int64_t rank = draw(0, 3);
  for (int64_t d = 0; d < rank; ++d) slice.strides.push_back({draw(1, 8), draw(-20, 20)});
  if (rank > 1 && draw(0, 1) == 0) {  // rows that continue each other
    slice.strides[rank - 2].stride = slice.strides[rank - 1].count * slice.strides[rank - 1].stride;
  }
  return slice;
}

TEST(Memories, ASliceIsReadAndWrittenInTheOrderOfItsIndices) {
  const Program program = WithBuffers();
  std::mt19937 random(1);
  for (int trial = 0; trial < 600; ++trial) {
    const Slice slice = RandomSlice(&random, trial % 3);
    Memories memories(program), expected(program);
    for (int64_t i = 0; i < 4096; ++i) {
      memories.Set(slice.buffer, i, static_cast<float>(i) / 3);
      expected.Set(slice.buffer, i, static_cast<float>(i) / 3);
    }
    std::vector<float> values;
    memories.Read(slice, &values);
    const std::vector<int64_t> offsets = Offsets(slice.strides);
    ASSERT_EQ(values.size(), offsets.size());
    for (size_t i = 0; i < offsets.size(); ++i) {
      ASSERT_EQ(values[i], expected.Get(slice.buffer, slice.first + offsets[i]));
    }
    // Where an element is written twice, the last index counts.
    for (size_t i = 0; i < offsets.size(); ++i) {
      values[i] = static_cast<float>(i) / 7;
      expected.Set(slice.buffer, slice.first + offsets[i], values[i]);
    }
    memories.Write(slice, values);
    for (int64_t i = 0; i < 4096; ++i) ASSERT_EQ(memories.Get(slice.buffer, i), expected.Get(slice.buffer, i));
  }
}

TEST(Memories, BuffersOfOneMemoryShareItsBytes) {
  const Program program = WithBuffers();
  Memories memories(program);
  memories.Set(3, 0, 5);
  EXPECT_EQ(memories.Get(0, 1), 5);
  memories.Set(1, 0, 1.0F / 3);
  EXPECT_EQ(memories.Get(1, 0), HalfToFloat(FloatToHalf(1.0F / 3)));
}

}  // namespace
}  // namespace fusion::dsa
