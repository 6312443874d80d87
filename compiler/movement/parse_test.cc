#include "compiler/movement/parse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compiler/movement/print.h"
#include "compiler/movement/testing/look_kernel.h"
#include "compiler/schedule/fusion_block_passes.h"
#include "compiler/schedule/schedule_routine.h"
#include "compiler/schedule/testing/schedule_text.h"
#include "compiler/te/testing/random_program.h"

namespace fusion::movement {
namespace {

using ::fusion::testing::Device;
using ::fusion::testing::GroupDevice;
using ::fusion::testing::OrFail;
using ::fusion::testing::ParseTe;
using ::fusion::testing::Stages;
using ::testing::HasSubstr;

void ExpectSameText(const Kernel& kernel) {
  const std::string text = Print(kernel);
  const absl::StatusOr<Kernel> parsed = Parse(text);
  ASSERT_TRUE(parsed.ok()) << parsed.status() << "\n" << text;
  EXPECT_EQ(Print(*parsed), text);
  EXPECT_EQ(parsed->num_args(), kernel.num_args());
  EXPECT_EQ(parsed->scratch_bytes, kernel.scratch_bytes);
}

TEST(Parse, LooksAndAlternatives) {
  const Kernel kernel = testing::LookingSums();
  ExpectSameText(kernel);
  EXPECT_THAT(Print(kernel), HasSubstr("look b3[0]"));
  EXPECT_THAT(Print(kernel), HasSubstr("runs if finite b3"));
  EXPECT_THAT(Print(kernel), HasSubstr("runs unless finite b3"));
  EXPECT_FALSE(Parse(absl::StrReplaceAll(Print(kernel), {{"runs if", "runs when"}})).ok());
}

// One kernel of each strategy, and of everything that a text may have beside it.
TEST(Parse, WhatEachStrategyPrints) {
  const char kProduct[] =
      "te p(%0: f32[100, 256], %1: f32[256, 70] const, %2: f32[70]) {\n"
      "  %3[i0<100, i1<70]: f32 = sum.f32(i2<256) mul(%0[i0, i2], %1[i2, i1]) then (max(add(acc0, %2[i1]), 0.0))\n"
      "  return %3\n}";
  DeviceModel tensor_cores = GroupDevice();
  tensor_cores.kind = "cuda";
  tensor_cores.async_copies = true;
  tensor_cores.matrix_products = {{"f16", 16, 8, 16, 32, 1e13, false}};
  DeviceModel persistent = GroupDevice();
  persistent.work_group_size = 1;
  persistent.persistent_groups = 2;
  persistent.launch_s = 5e-6;
  persistent.barrier_s = 2e-7;
  struct Case {
    const char* what;
    std::string text;
    std::vector<std::string> contains;
    DeviceModel device = Device();
    Choices choices = {};
    std::map<te::TensorId, Layout> layouts = {};
    std::vector<DirectiveRequest> directives = {};
  };
  for (const Case& c : {
           Case{"a tile with a tail, packed weights and prefetches", kProduct, {"step tile{", "pack [", "store if "}},
           Case{"a tile that prefetches its next rows",
                "te p(%0: f32[32, 2048, 8], %1: f32[32, 8, 16]) {\n  %2[i0<2048, i1<16]: f32 = sum.f32(i2<32, i3<8) "
                "mul(%0[i2, i0, i3], %1[i2, i3, i1])\n  return %2\n}",
                {"prefetch b0 next rows"}},
           Case{"a threadgroup tile", kProduct, {"step threadgroup_tile{", "then"}, GroupDevice()},
           Case{"fragments",
                "te p(%0: f16[128, 256], %1: f16[256, 128]) {\n  %2[i0<128, i1<128]: f32 = sum.f32(i2<256) "
                "mul(cast.f32(%0[i0, i2]), cast.f32(%1[i2, i1]))\n  return %2\n}",
                {"threadgroup_tile{", " by 16x8x16 of 32"},
                tensor_cores},
           Case{"a map whose rest is a vector",
                "te p(%0: f32[8, 100]) {\n  %1[i0<8, i1<50]: f32 = exp(%0[i0, 2*i1])\n  return %1\n}",
                {"rest in a vector"}},
           Case{"a map that prefetches",
                "te p(%0: f32[1048576]) {\n  %1[i0<1048576]: f32 = erf(%0[i0])\n  return %1\n}",
                {" next i", " + 256 of b0"}},
           Case{"a transpose in tiles",
                "te p(%0: f32[4096, 4096]) {\n  %1[i0<4096, i1<4096]: f32 = %0[i1, i0]\n  return %1\n}",
                {"step transpose{lanes ", " across ", " streaming"}},
           Case{"rows and columns",
                "te p(%0: f32[64, 300], %1: f32[300, 600]) {\n  %2[i0<64]: f32 = sum.f32(i1<300) %0[i0, i1]\n"
                "  %3[i2<600]: f32 = max.f32(i3<300) %1[i3, i2]\n  return %2, %3\n}",
                {"row_reduction{"}},
           Case{"a prefix sum",
                "te p(%0: f32[8, 64]) {\n  %1[i0<8, i1<64]: f32 = sum.f32(i2<64) if i2 < i1 + 1 then %0[i0, i2] else "
                "0.0\n  return %1\n}",
                {"step prefix"}},
           Case{"a general reduction",
                "te p(%0: f32[6, 9]) {\n  %1, %2[i0<6]: f32, i64 = reduce(i1<9 if i1 < 7)(-inf, 0:i64) -> (max(acc0, "
                "%0[i0, i1]), if i1 < 3 then acc1 else index(i1))\n  return %1, %2\n}",
                {"reduce general", "init f32:-inf", "init i64:0", "acc1"}},
           Case{"a lookup, of which the range is not printed",
                "te p(%0: f32[512, 8], %1: i64[100]) {\n  %2[i0<100, i1<8]: f32 = %0[%1[i0]{0..511}, i1]\n  return "
                "%2\n}",
                {"%t1["}},
           Case{"a blocked result whose last block has empty lanes",
                "te p(%0: f32[1, 24, 6, 6]) {\n  %1[i0<1, i1<24, i2<6, i3<6]: f32 = exp(%0[i0, i1, i2, i3])\n  return "
                "%1\n}",
                {"zero unless "},
                Device(),
                {},
                {{1, Layout{1, 16}}}},
           Case{"a persistent kernel",
                "te p(%0: f32[1, 200000]) {\n  %1[i0<1]: f32 = sum.f32(i1<200000) %0[i0, i1]\n"
                "  %2[i2<1, i3<200000]: f32 = div(%0[i2, i3], %1[i2])\n  return %2\n}",
                {"sync device, persistent"},
                persistent},
           Case{"phases beside each other",
                "te p(%0: f32[64, 300], %1: f32[100]) {\n  %2[i0<64]: f32 = sum.f32(i1<300) %0[i0, i1]\n"
                "  %3[i2<100]: f32 = exp(%1[i2])\n  return %2, %3\n}",
                {"}\nbeside\nparallel"},
                GroupDevice(),
                {},
                {},
                {{-1, "form", "beside"}}},
       }) {
    SCOPED_TRACE(c.what);
    const ScheduledFusionBlock scheduled =
        OrFail(ScheduleFusionBlock(Stages(c.text), c.layouts, c.device, {c.choices, {}, {}, c.directives}));
    const std::string text = Print(scheduled.kernel);
    for (const std::string& part : c.contains) EXPECT_THAT(text, HasSubstr(part));
    ExpectSameText(scheduled.kernel);
  }
}

TEST(Parse, ARoutine) {
  const ScheduledFusionBlock scheduled = OrFail(ScheduleRoutine(ParseTe(R"(te p(%0: f32[2, 5]) {
  %1, %2: f32[2, 3], i64[2, 3] = routine top_k(%0) {5, 1, 3, 1} tasks 2 scratch 140
  return %1
})"),
                                                                {}));
  ExpectSameText(scheduled.kernel);
}

TEST(Parse, LibraryCalls) {
  DeviceModel device = GroupDevice();
  device.product_library = "cuBLASLt of a test";
  device.convolution_library = "cuDNN of a test";
  for (const char* text :
       {"te p(%0: f32[6, 128, 256], %1: f32[6, 256, 64], %2: f32[64]) {\n  %3[i0<6, i1<128, i2<64]: f32 = "
        "sum.f32(i3<256) mul(%0[i0, i1, i3], %1[i0, i3, i2]) then (add(acc0, %2[i2]))\n  return %3\n}",
        "te p(%0: f32[1, 16, 30, 30], %1: f32[32, 16, 3, 3] const) {\n  %2[i0<1, i1<32, i2<30, i3<30]: f32 = "
        "sum.f32(i4<16, i5<3, i6<3) mul(%0[i0, i4, i2 + i5 - 1, i3 + i6 - 1]?0.0, %1[i1, i4, i5, i6])\n  return "
        "%2\n}"}) {
    const ScheduledFusionBlock scheduled = OrFail(ScheduleFusionBlock(Stages(text), {}, device, {{{"library", 1}}}));
    EXPECT_THAT(Print(scheduled.kernel), HasSubstr("step library{"));
    ExpectSameText(scheduled.kernel);
  }
}

// Minimal filtering packs a filter through matrices, of which the text has the shapes.
TEST(Parse, PacksThroughMatrices) {
  Kernel kernel = OrFail(ScheduleFusionBlock(Stages(R"(te p(%0: f32[16, 32], %1: f32[32, 40] const) {
  %2[i2<16, i3<40]: f32 = sum.f32(i4<32) mul(%0[i2, i4], %1[i4, i3])
  return %2
})"),
                                             {}, Device()))
                      .kernel;
  ASSERT_EQ(kernel.packs.size(), 1u);
  kernel.packs[0].transform.by_dimension = {{0, Tensor(DType::kF32, {6, 3})}, {1, Tensor(DType::kF32, {4, 3})}};
  EXPECT_THAT(Print(kernel), HasSubstr(" through "));
  ExpectSameText(kernel);
}

class RandomKernelTest : public ::testing::TestWithParam<int> {};

TEST_P(RandomKernelTest, PrintsTheSameAgain) {
  const te::Program program = te::testing::RandomProgram(GetParam()).Make();
  const absl::StatusOr<te::Program> stages = FormStages(program);
  ASSERT_TRUE(stages.ok()) << stages.status();
  for (const DeviceModel& device : {Device(), Device(32, 16), GroupDevice()}) {
    for (const Choices& choices : {Choices{}, Choices{{"form", 1}}, Choices{{"stitch", 1}}}) {
      const absl::StatusOr<ScheduledFusionBlock> scheduled = ScheduleFusionBlock(*stages, {}, device, {choices});
      ASSERT_TRUE(scheduled.ok()) << scheduled.status() << te::Print(*stages);
      ExpectSameText(scheduled->kernel);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomKernelTest, ::testing::Range(0, 40));

constexpr char kExp[] = R"(buffer b0 kernel f32[64]
buffer b1 kernel f32[64]
parallel (i0<4) {
  step map{lanes i1} {
    loop i1<16
      v0 = load b0[16*i0 + i1]
      v1 = exp(v0)
      body v1
    store b1[16*i0 + i1]
  }
}
)";

TEST(Parse, ErrorsNameTheLineAndWhatIsWrong) {
  EXPECT_TRUE(Parse(kExp).ok()) << Parse(kExp).status();
  struct Case {
    const char *from, *to, *error;
  };
  for (const Case& c :
       {Case{"exp(v0)", "expo(v0)", "line 7: 'expo' is not an operation"},
        Case{"exp(v0)", "exp(v7)", "line 7: 'v7' is not defined"}, Case{"exp(v0)", "add(v0)", "line 7: "},
        Case{"load b0", "load b9", "line 6: there is no buffer b9"},
        Case{"i1]\n      v1", "i2]\n      v1", "line 6: axis i2 is not defined here"},
        Case{"map{lanes", "maps{lanes", "line 4: 'maps' is no strategy"},
        Case{"map{lanes i1}", "map{lanes i0}", "movement: "},
        Case{"kernel f32[64]\nbuffer b1", "kernel f32[60]\nbuffer b1", "movement: "},
        Case{"buffer b1 kernel", "buffer b1 lane", "'lane' is no scope of a buffer"},
        Case{"kernel f32[64]\nparallel", "kernel f32[64] const packed\nparallel",
             "there is not one pack for each packed buffer"},
        Case{"  }\n}\n", "  }\n", "expected"},
        Case{"  }\n}\n", "  }\n}\nend", "expected 'parallel' or the end, found 'end'"}}) {
    const std::string text = absl::StrReplaceAll(kExp, {{c.from, c.to}});
    ASSERT_NE(text, kExp) << c.from;
    const absl::Status status = Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.error));
  }
}

TEST(Parse, ATextThatEndsTooEarlyIsRefused) {
  const std::string text = kExp;
  for (size_t at = text.find("parallel") + 1; at + 1 < text.size(); ++at) {
    EXPECT_FALSE(Parse(text.substr(0, at)).ok()) << text.substr(0, at);
  }
}

// A character that is missing is an error or makes another kernel, which is verified.
TEST(Parse, ATextThatMissesACharacterDoesNoHarm) {
  for (size_t at = 0; at < std::string(kExp).size(); ++at) {
    std::string text = kExp;
    text.erase(at, 1);
    const absl::StatusOr<Kernel> parsed = Parse(text);
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << parsed.status();
    }
  }
}

}  // namespace
}  // namespace fusion::movement
