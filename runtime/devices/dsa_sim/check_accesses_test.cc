// Random programs, against a check that follows each byte on its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/order.h"
#include "runtime/devices/dsa_sim/slice.h"
#include "runtime/devices/dsa_sim/testing/small_machine.h"

namespace fusion::dsa {
namespace {

// The problems of the first instruction that has any, or of an output.
struct Finding {
  int instruction = -1;  // -1: an output
  std::set<std::string> problems;
};

class ByteByByte {
 public:
  ByteByByte(const Machine& machine, const Program& program) : program_(program), before_(machine, program) {}

  Finding Run() {
    for (int b = 0; b < static_cast<int>(program_.buffers.size()); ++b) {
      if (program_.buffers[b].input)
        Each({b, 0, {{program_.buffers[b].elements, 1}}}, [](Byte& byte) { byte.written = true; });
    }
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (instruction.kind == Kind::kSync) continue;
      Finding finding{i, {}};
      const auto read = [&](Byte& byte) {
        if (!byte.written) finding.problems.insert("which was never written");
        if (byte.writer >= 0 && !before_(byte.writer, i)) finding.problems.insert("writes, and nothing");
        byte.readers.insert(i);
      };
      for (const Slice& slice : instruction.from) Each(slice, read);
      if (instruction.accumulate) Each(instruction.to, read);
      if (!finding.problems.empty()) return finding;
      Each(instruction.to, [&](Byte& byte) {
        if (byte.writer >= 0 && !before_(byte.writer, i)) finding.problems.insert("writes, and nothing");
        for (const int reader : byte.readers) {
          if (reader != i && !before_(reader, i)) finding.problems.insert("reads, and nothing");
        }
        byte = {true, i, {}};
      });
      if (!finding.problems.empty()) return finding;
    }
    Finding finding;
    for (int b = 0; b < static_cast<int>(program_.buffers.size()); ++b) {
      if (!program_.buffers[b].output) continue;
      Each({b, 0, {{program_.buffers[b].elements, 1}}}, [&](Byte& byte) {
        if (!byte.written) finding.problems.insert("is never written");
      });
    }
    return finding;
  }

 private:
  struct Byte {
    bool written = false;
    int writer = -1;  // of an instruction
    std::set<int> readers;
  };

  template <typename Visit>
  void Each(const Slice& slice, const Visit& visit) {
    const Buffer& buffer = program_.buffers[slice.buffer];
    const auto memory = std::make_tuple(buffer.memory.level, buffer.memory.place.cluster, buffer.memory.place.core);
    const int64_t width = DTypeBytes(buffer.dtype);
    for (const int64_t offset : Offsets(slice.strides)) {
      for (int64_t k = 0; k < width; ++k) {
        visit(bytes_[memory][buffer.offset_bytes + (slice.first + offset) * width + k]);
      }
    }
  }

  const Program& program_;
  const HappensBefore before_;
  std::map<std::tuple<Level, int, int>, std::map<int64_t, Byte>> bytes_;
};

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {
    program_.name = "p";
    program_.machine = "small";
  }

  // `ordered` of each hundred dependences are there; below 0 those on writers of the memories that an instruction
  // touches, but not those on readers. With `begun` the program begins by writing each buffer of a GB or an LB, and it
  // may end by writing its output.
  Program Make(int instructions, int ordered, bool begun) {
    ordered_ = ordered;
    const int64_t base = begun ? 4000 : 0;  // near the end of a page of the history
    AddBuffer("x", {}, base, DType::kF32, 24).input = true;
    AddBuffer("z", {}, base + 96, DType::kF16, 24).input = true;
    AddBuffer("y", {}, base + 144 - 16 * Any(0, 1), DType::kF32, 20).output = true;
    for (int k = 0; k < 6; ++k) {
      const Memory memories[] = {{Level::kLocal, {0, 0}}, {Level::kLocal, {0, 1}}, {Level::kGlobal, {}}, {}};
      const Memory& memory = memories[Any(0, begun ? 2 : 3)];
      const int64_t offset = 4 * Any(0, 30) + (memory.level == Level::kDdr ? base : 0);
      AddBuffer(absl::StrCat("b", k), memory, offset, Any(0, 2) == 0 ? DType::kF16 : DType::kF32, Any(8, 40));
    }
    if (begun) LoadAll();
    while (static_cast<int>(program_.instructions.size()) < instructions) {
      program_.instructions.push_back(AnyInstruction());
      // The output is read in a program that begins with nothing, and is unwritten then.
      const std::vector<Slice>& read = program_.instructions.back().from;
      const bool reads_output = std::any_of(read.begin(), read.end(), [](const Slice& s) { return s.buffer == 2; });
      if ((begun && reads_output) || !CheckOperands(machine_, program_).ok()) program_.instructions.pop_back();
    }
    if (begun && Any(0, 1) == 0) StoreOutput();
    return program_;
  }

 private:
  int64_t Any(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }

  Buffer& AddBuffer(const std::string& name, const Memory& memory, int64_t offset, DType dtype, int64_t elements) {
    return program_.buffers.emplace_back(Buffer{name, memory, offset, dtype, elements});
  }

  Slice AnySlice() {
    Slice slice{static_cast<int>(Any(0, std::ssize(program_.buffers) - 1)), Any(0, 12), {}};
    for (int64_t rank = Any(1, 3); rank > 0; --rank)
      slice.strides.push_back({Any(1, 4), Any(0, 6) == 0 ? Any(-4, 0) : Any(1, 9)});
    return slice;
  }

  // Does `earlier` write a memory that the instruction touches?
  bool WritesFor(const Instruction& earlier, const Instruction& instruction) const {
    const auto memory = [&](const Slice& slice) { return program_.buffers[slice.buffer].memory; };
    const auto writes = [&](const Slice& slice) { return memory(slice) == memory(earlier.to); };
    return writes(instruction.to) || std::any_of(instruction.from.begin(), instruction.from.end(), writes);
  }

  void Wait(Instruction* instruction) {
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) {
      const Instruction& earlier = program_.instructions[i];
      const bool waits = ordered_ >= 0                 ? Any(0, 99) < ordered_
                         : earlier.kind == Kind::kSync ? true
                                                       : WritesFor(earlier, *instruction);
      if (waits) instruction->after.push_back(i);
    }
  }

  // Each element of a whole buffer is element 0 of the other one.
  void Transfer(Kind kind, int to, int from) {
    Instruction instruction;
    instruction.kind = kind;
    const int64_t elements = program_.buffers[to].elements;
    instruction.to = {to, 0, {{elements, 1}}};
    instruction.from = {{from, 0, {{elements, 0}}}};
    Wait(&instruction);
    program_.instructions.push_back(std::move(instruction));
  }

  void LoadAll() {
    for (int b = 3; b < static_cast<int>(program_.buffers.size()); ++b) {
      if (program_.buffers[b].memory.level == Level::kDdr) continue;
      Transfer(Kind::kLoad, b, program_.buffers[b].dtype == DType::kF32 ? 0 : 1);
    }
  }

  void StoreOutput() {
    for (int b = 3; b < static_cast<int>(program_.buffers.size()); ++b) {
      if (program_.buffers[b].memory.level == Level::kDdr || program_.buffers[b].dtype != DType::kF32) continue;
      Transfer(Kind::kStore, 2, b);
      return;
    }
  }

  Instruction AnyInstruction() {
    Instruction instruction;
    const Kind kinds[] = {Kind::kLoad,   Kind::kStore,  Kind::kMove, Kind::kRedistribute,
                          Kind::kVector, Kind::kVector, Kind::kSync};
    instruction.kind = kinds[Any(0, 6)];
    if (instruction.kind == Kind::kSync) {
      instruction.cluster = Any(0, 3) == 0 ? -1 : static_cast<int>(Any(0, 1));
      return instruction;
    }
    instruction.to = AnySlice();
    instruction.from = {AnySlice()};
    if (instruction.kind == Kind::kVector) {
      instruction.unit = "vme";
      instruction.place = {0, static_cast<int>(Any(0, 1))};
      instruction.op = Any(0, 2) == 0 ? VectorOp::kFill : VectorOp::kAdd;
      instruction.from.resize(instruction.op == VectorOp::kFill ? 0 : 2, AnySlice());
    }
    // Equal counts, so that many of them are accepted.
    for (Slice& slice : instruction.from) {
      slice.strides.resize(instruction.to.strides.size());
      for (size_t k = 0; k < slice.strides.size(); ++k) slice.strides[k].count = instruction.to.strides[k].count;
    }
    Wait(&instruction);
    return instruction;
  }

  const Machine machine_ = SmallMachine();
  std::mt19937 random_;
  Program program_;
  int ordered_ = 100;
};

TEST(CheckAccesses, RefusesWhatAByteByByteCheckRefuses) {
  const Machine machine = SmallMachine();
  std::map<std::string, int> seen;
  for (uint32_t seed = 0; seed < 2000; ++seed) {
    constexpr int kOrdered[] = {-1, 60, 80, 97, 100};
    const Program program =
        RandomProgram(seed).Make(static_cast<int>(4 + seed % 17), kOrdered[seed % 5], seed % 3 != 0);
    const Finding expected = ByteByByte(machine, program).Run();
    const absl::Status status = CheckAccesses(machine, program);
    const std::string message(status.message());
    ASSERT_EQ(status.ok(), expected.problems.empty()) << message << "\n" << Print(program);
    if (status.ok()) {
      ++seen["ok"];
      continue;
    }
    if (expected.instruction >= 0) {
      EXPECT_TRUE(absl::StartsWith(message, absl::StrCat("instruction ", expected.instruction, " ("))) << message;
    }
    const auto named = std::find_if(expected.problems.begin(), expected.problems.end(),
                                    [&](const std::string& problem) { return absl::StrContains(message, problem); });
    ASSERT_NE(named, expected.problems.end()) << message << "\n" << Print(program);
    ++seen[*named];
  }
  for (const char* outcome :
       {"ok", "which was never written", "writes, and nothing", "reads, and nothing", "is never written"}) {
    EXPECT_GE(seen[outcome], 3) << outcome;
  }
}

}  // namespace
}  // namespace fusion::dsa
