#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {
namespace {

std::string PrintPlace(const Place& place) { return absl::StrCat(place.cluster, ".", place.core); }

std::string PrintSlice(const Program& program, const Slice& slice) {
  std::string text = absl::StrCat(program.buffers[slice.buffer].name, "[", slice.first);
  for (size_t i = 0; i < slice.strides.size(); ++i) {
    absl::StrAppend(&text, i == 0 ? " + " : ", ", slice.strides[i].count, ":", slice.strides[i].stride);
  }
  return text + "]";
}

const char* TransferName(Kind kind) {
  switch (kind) {
    case Kind::kLoad:
      return "load";
    case Kind::kStore:
      return "store";
    case Kind::kMove:
      return "move";
    default:
      return "redistribute";
  }
}

}  // namespace

std::string PrintMemory(const Memory& memory) {
  switch (memory.level) {
    case Level::kDdr:
      return "ddr";
    case Level::kGlobal:
      return absl::StrCat("gb ", memory.place.cluster);
    case Level::kLocal:
      return absl::StrCat("lb ", PrintPlace(memory.place));
  }
  return "";
}

std::string PrintInstruction(const Program& program, int index) {
  const Instruction& instruction = program.instructions[index];
  std::string text;
  const auto from = [&](const char* between) {
    return absl::StrJoin(instruction.from, between, [&](std::string* out, const Slice& slice) {
      absl::StrAppend(out, PrintSlice(program, slice));
    });
  };
  switch (instruction.kind) {
    case Kind::kSync:
      text = instruction.cluster < 0 ? "sync all" : absl::StrCat("sync ", instruction.cluster);
      break;
    case Kind::kMatrix:
      text = absl::StrCat("matrix ", instruction.unit, " ", PrintPlace(instruction.place), " ",
                          PrintSlice(program, instruction.to), instruction.accumulate ? " += " : " = ", from(" * "));
      break;
    case Kind::kVector:
      text = absl::StrCat("vector ", instruction.unit, " ", PrintPlace(instruction.place), " ",
                          GetVectorOpInfo(instruction.op).name, " ", PrintSlice(program, instruction.to), " = ",
                          instruction.op == VectorOp::kFill ? absl::StrCat(instruction.immediate) : from(", "));
      break;
    default:
      text = absl::StrCat(TransferName(instruction.kind), " ", PrintSlice(program, instruction.to), " = ", from(", "));
  }
  if (!instruction.after.empty()) absl::StrAppend(&text, " after ", absl::StrJoin(instruction.after, ", "));
  return text;
}

std::string Print(const Program& program) {
  std::string text = absl::StrCat("program ", program.name, " for ", program.machine, " {\n");
  for (const Buffer& buffer : program.buffers) {
    absl::StrAppend(&text, "  buffer ", buffer.name, " ", PrintMemory(buffer.memory), " ", buffer.offset_bytes, " ",
                    DTypeName(buffer.dtype), "[", buffer.elements, "]", buffer.input ? " input" : "",
                    buffer.output ? " output" : "", "\n");
  }
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    absl::StrAppend(&text, "  ", i, ": ", PrintInstruction(program, static_cast<int>(i)), "\n");
  }
  return text + "}\n";
}

}  // namespace fusion::dsa
