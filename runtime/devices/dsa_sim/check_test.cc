#include "runtime/devices/dsa_sim/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/stored_machines.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::dsa {
namespace {

using ::testing::HasSubstr;

absl::Status CheckFor(const Machine& machine, const std::string& body) {
  ASSIGN_OR_RETURN(const Program program, Parse(absl::StrCat("program p for ", machine.name, " {\n", body, "\n}\n")));
  RETURN_IF_ERROR(CheckOperands(machine, program));
  return CheckAccesses(machine, program);
}

absl::Status Check(const std::string& body) { return CheckFor(SmallMachine(), body); }

void ExpectRefused(const std::string& body, absl::StatusCode code, const std::string& why) {
  const absl::Status status = Check(body);
  EXPECT_EQ(status.code(), code) << status.message();
  EXPECT_THAT(std::string(status.message()), HasSubstr(why)) << body;
}

constexpr char kBuffers[] = R"(
    buffer x ddr 0 f32[16] input
    buffer y ddr 64 f32[16] output
    buffer a lb 0.0 0 f32[16]
    buffer b lb 0.0 64 f32[16]
    buffer c lb 0.1 0 f32[16]
    buffer g gb 0 0 f32[16]
)";

TEST(CheckOperands, RefusesABufferThatOverflowsItsMemory) {
  ExpectRefused("buffer a lb 0.1 1000 f32[7]", absl::StatusCode::kResourceExhausted,
                "bytes 1000 to 1028 do not fit lb 0.1, which has 1024 bytes");
  ExpectRefused("buffer a gb 1 0 f32[1025]", absl::StatusCode::kResourceExhausted, "do not fit gb 1");
  ExpectRefused("buffer a ddr 0 f32[262145]", absl::StatusCode::kResourceExhausted, "do not fit ddr");
  EXPECT_TRUE(Check("buffer a lb 0.1 1000 f32[6]").ok());
}

TEST(CheckOperands, RefusesPlacesAndTypesThatThereAreNot) {
  ExpectRefused("buffer a lb 2.0 0 f32[1]", absl::StatusCode::kInvalidArgument, "there is no core 2.0");
  ExpectRefused("buffer a lb 0.2 0 f32[1]", absl::StatusCode::kInvalidArgument, "2 clusters of 2 cores");
  ExpectRefused("buffer a ddr 0 i8[1]", absl::StatusCode::kInvalidArgument, "expected f32, f16 or bf16");
  ExpectRefused("buffer a lb 0.0 2 f32[1]", absl::StatusCode::kInvalidArgument, "multiple of its size");
  ExpectRefused("buffer a gb 0 0 f32[1] input", absl::StatusCode::kInvalidArgument, "in DDR");
}

TEST(CheckOperands, RefusesPartsOfExpressionsThatDoNotFit) {
  const std::string head = absl::StrCat("expression e\nend\n", kBuffers);
  const auto refused = [&](const std::string& line, const std::string& why) {
    ExpectRefused(absl::StrCat(head, line), absl::StatusCode::kInvalidArgument, why);
  };
  refused("0: store expr e work 1 y[0] at () = a[0] at () as 0", "expected the name of a buffer");
  refused("0: vector vme 0.0 expr e work 1 a[0 + 2:1] at () = b[0] at () as 0", "another rank than its slice");
  refused("0: vector vme 0.0 expr e work -1 a[0] at () = b[0] at () as 0", "is negative");
  refused("0: vector vme 0.0 expr e work 1 reduce 3 2 a[0] at () = b[0] at () as 0", "is negative");
  refused("0: vector mme 0.0 expr e work 1 a[0] at () = b[0] at () as 0", "is of the other kind");
  refused("0: vector vme 0.0 expr e work 1 a[0] at () = c[0] at () as 0", "works in lb 0.0");
  refused("0: vector vme 0.0 expr e work 1 a[0] at (), c[0] at () = b[0] at () as 0", "are in two memories");
  refused("0: vector vme 0.0 expr e work 1 a[0 + 2:1] at (0), a[1] at () = b[0] at () as 0", "an element twice");
  refused("0: vector vme 0.0 expr e work 1 a[0 + 2:1] at (0) = a[0 + 2:1] at (0) as 0", "overlaps an operand");
  refused("0: matrix mme 0.0 expr e work 1 a[0] at (), a[1] at () += b[0] at () as 0", "only one result");
  refused("0: vector vme 0.0 expr e work 1 outputs (0, 1) a[0] at () = b[0] at () as 0", "not those of its results");
  refused("0: vector vme 0.0 expr e work 1 outputs (1, 1) a[0] at (), a[1] at () = b[0] at () as 0", "ascending");
  refused("0: load expr e work 1 a[0] at () = x[0] at () as 0, c[0] at () as 1", "finds its addresses");
  refused("0: load expr e work 1 a[0] at () = ", "a load needs an operand in DDR");
}

TEST(CheckAccesses, SeesAllResultsAndOperandsOfAnExpression) {
  const std::string head = absl::StrCat("expression e\nend\n", kBuffers, "0: load a[0 + 16:1] = x[0 + 16:1]\n");
  ExpectRefused(absl::StrCat(head, "1: vector vme 0.0 expr e work 1 b[0] at (), b[1] at () = a[0] at () as 0"),
                absl::StatusCode::kFailedPrecondition, "reads element 0 of a, which instruction 0");
  ExpectRefused(absl::StrCat(head, "1: vector vme 0.0 expr e work 1 b[0] at (), a[1] at () = b[2] at () as 0 after 0"),
                absl::StatusCode::kFailedPrecondition, "never written");
  ExpectRefused(absl::StrCat(head,
                             "1: vector vme 0.0 fill b[0 + 16:1] = 0\n"
                             "2: vector vme 0.0 expr e work 1 b[0] at (), a[1] at () = b[2] at () as 0"),
                absl::StatusCode::kFailedPrecondition, "writes element 1 of a, which instruction 0");
}

TEST(CheckOperands, RefusesASliceThatLeavesItsBuffer) {
  ExpectRefused(absl::StrCat(kBuffers, "0: load a[8 + 9:1] = x[0 + 9:1]"), absl::StatusCode::kInvalidArgument,
                "elements 8 to 16 of a, which has 16");
  ExpectRefused(absl::StrCat(kBuffers, "0: load a[0 + 2:1] = x[0 + 2:-1]"), absl::StatusCode::kInvalidArgument,
                "elements -1 to 0 of x");
}

TEST(CheckOperands, RefusesSlicesBeyondAllMeasure) {
  const std::pair<const char*, const char*> cases[] = {
      {"0: load a[0 + 4294967297:0] = x[0 + 4294967297:0]", "at most 4294967296 elements"},
      {"0: load a[0 + 0:1] = x[0 + 0:1]", "a count of 0"},
      {"0: load a[0 + 2:9223372036854775807] = x[0 + 2:1]", "a stride of 9223372036854775807"},
      {"0: load a[-1 + 2:1] = x[0 + 2:1]", "begins at element -1"},
  };
  for (const auto& [line, why] : cases) {
    ExpectRefused(absl::StrCat(kBuffers, line), absl::StatusCode::kInvalidArgument, why);
  }
}

TEST(CheckOperands, RefusesInputsThatOverlap) {
  ExpectRefused("buffer x ddr 0 f32[16] input\nbuffer z ddr 60 f32[4] input", absl::StatusCode::kInvalidArgument,
                "the inputs x and z overlap");
}

TEST(CheckOperands, RefusesAProgramWithoutOperands) {
  // No text says that, but a backend could make it.
  Program program =
      *Parse("program p for small {\nbuffer x ddr 0 f32[4] input\nbuffer g gb 0 0 f32[4]\n0: load g[0] = x[0]\n}");
  program.instructions[0].from.clear();
  EXPECT_THAT(std::string(CheckOperands(SmallMachine(), program).message()), HasSubstr("it takes 1 operands"));
}

TEST(CheckOperands, RefusesTransfersBetweenWrongLevels) {
  const std::pair<const char*, const char*> cases[] = {
      {"0: load y[0 + 4:1] = x[0 + 4:1]", "a load goes from DDR"},
      {"0: store a[0 + 4:1] = x[0 + 4:1]", "a store goes from a GB or an LB"},
      {"0: move a[0 + 4:1] = c[0 + 4:1]", "a move goes between the GB"},
      {"0: redistribute a[0 + 4:1] = b[0 + 4:1]", "two cores of one cluster"},
      {"0: load a[0 + 4:1] = x[0 + 5:1]", "transfers 5 elements to 4"},
      {"0: vector vme 0.0 relu c[0 + 4:1] = c[0 + 4:1]", "its unit works in lb 0.0"},
      {"0: vector mme 0.0 relu a[0 + 4:1] = a[0 + 4:1]", "of the other kind"},
      {"0: vector tpc 0.0 relu a[0 + 4:1] = a[0 + 4:1]", "no unit 'tpc'"},
      {"0: vector vme 0.0 add a[0 + 4:1] = b[0 + 4:1], b[0 + 3:1]", "3 elements of an operand for 4"},
      {"0: matrix mme 0.0 a[0 + 2:2, 2:1] = b[0 + 2:2, 2:1] * b[4 + 3:2, 2:1]", "2x2 from 2x2 and 3x2"},
      {"0: vector vme 0.0 relu a[0 + 4:0] = b[0 + 4:1]", "contains an element twice"},
      {"0: vector vme 0.0 relu a[0 + 2:1, 2:1] = b[0 + 4:1]", "contains an element twice"},
      {"0: vector vme 0.0 relu a[1 + 4:1] = a[0 + 4:1]", "overlaps an operand"},
  };
  for (const auto& [line, why] : cases) {
    ExpectRefused(absl::StrCat(kBuffers, line), absl::StatusCode::kInvalidArgument, why);
  }
}

TEST(CheckOperands, ACoreWithoutAnLbComputesInItsGb) {
  const Machine goya = *StoredMachine("goya");
  const std::string buffers = R"(
    buffer x ddr 0 f32[16] input
    buffer g gb 0 0 f32[64]
    0: load g[0 + 16:1] = x[0 + 16:1]
  )";
  EXPECT_TRUE(
      CheckFor(goya, buffers + "1: matrix gemm 0.8 g[16 + 4:4, 4:1] = g[0 + 4:4, 4:1] * g[0 + 4:4, 4:1] after 0").ok());
  EXPECT_THAT(std::string(CheckFor(goya, "buffer l lb 0.8 0 f32[1]").message()), HasSubstr("which has 0 bytes"));
}

TEST(CheckAccesses, RefusesReadsOfWhatWasNeverWritten) {
  ExpectRefused(absl::StrCat(kBuffers, "0: load a[0 + 8:1] = x[0 + 8:1]\n1: store y[0 + 16:1] = a[0 + 16:1] after 0"),
                absl::StatusCode::kFailedPrecondition, "reads element 8 of a, which was never written");
  ExpectRefused(absl::StrCat(kBuffers,
                             "0: load a[0 + 16:1] = x[0 + 16:1]\n"
                             "1: matrix mme 0.0 b[0 + 4:4, 4:1] += a[0 + 4:4, 4:1] * a[0 + 4:4, 4:1] after 0"),
                absl::StatusCode::kFailedPrecondition, "reads element 0 of b, which was never written");
  ExpectRefused(absl::StrCat(kBuffers, "0: load a[0 + 8:1] = x[0 + 8:1]\n1: store y[0 + 8:1] = a[0 + 8:1] after 0"),
                absl::StatusCode::kFailedPrecondition, "element 8 of the output y is never written");
}

// The tail of a program that writes the output, so that only the race decides.
std::string WithOutput(const std::string& lines, int next) {
  return absl::StrCat(kBuffers, lines, "\n", next, ": store y[0 + 16:1] = a[0 + 16:1] after ", next - 1);
}

TEST(CheckAccesses, RefusesRaces) {
  const std::string load = "0: load a[0 + 16:1] = x[0 + 16:1]\n";
  // A read of what another engine writes.
  ExpectRefused(WithOutput(load + "1: vector vme 0.0 relu b[0 + 16:1] = a[0 + 16:1]", 2),
                absl::StatusCode::kFailedPrecondition, "reads element 0 of a, which instruction 0");
  // A write of what another engine writes.
  ExpectRefused(WithOutput(load + "1: vector vme 0.0 fill a[4 + 4:1] = 0", 2), absl::StatusCode::kFailedPrecondition,
                "writes element 4 of a, which instruction 0");
  // A write of what another engine still reads.
  ExpectRefused(WithOutput(load + "1: vector vme 0.0 relu b[0 + 16:1] = a[0 + 16:1] after 0\n"
                                  "2: load a[0 + 16:1] = x[0 + 16:1]",
                           3),
                absl::StatusCode::kFailedPrecondition, "reads, and nothing makes it wait");
  // The same memory under another name.
  ExpectRefused(WithOutput("buffer alias lb 0.0 32 f32[4]\n" + load + "1: vector vme 0.0 fill alias[0 + 4:1] = 0", 2),
                absl::StatusCode::kFailedPrecondition, "of alias");
}

TEST(CheckAccesses, AcceptsWhatIsOrdered) {
  const std::string load = "0: load a[0 + 16:1] = x[0 + 16:1]\n";
  const char* const ordered[] = {
      "1: vector vme 0.0 relu a[0 + 16:1] = a[0 + 16:1] after 0",
      // By an engine: the second load follows the first.
      "1: load a[0 + 4:1] = x[0 + 4:1]",
      // By a sync.
      "1: sync 0\n2: vector vme 0.0 relu a[0 + 16:1] = a[0 + 16:1]",
      "1: sync all\n2: vector vme 0.0 relu a[0 + 16:1] = a[0 + 16:1]",
      // Through another instruction.
      "1: vector vme 0.0 relu b[0 + 16:1] = a[0 + 16:1] after 0\n2: vector vme 0.0 fill a[0 + 16:1] = 1",
  };
  for (const char* lines : ordered) {
    const int next = 1 + static_cast<int>(std::count(lines, lines + std::strlen(lines), '\n')) + 1;
    const absl::Status status = Check(WithOutput(load + lines, next));
    EXPECT_TRUE(status.ok()) << status.message();
  }
  // The sync of another cluster orders nothing here.
  EXPECT_FALSE(Check(WithOutput(load + "1: sync 1\n2: vector vme 0.0 relu a[0 + 16:1] = a[0 + 16:1]", 3)).ok());
}

}  // namespace
}  // namespace fusion::dsa
