#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

// " expr conv work 12 outputs (0, 2) reduce 0 4", or "".
std::string PrintExpression(const Program& program, const ExpressionPart& part) {
  if (!part.present()) return "";
  // Work is a number of operations, so its digits count.
  std::string text = absl::StrFormat(" expr %s work %.15g", program.expressions[part.expression].name, part.work);
  if (!part.outputs.empty()) absl::StrAppend(&text, " outputs (", absl::StrJoin(part.outputs, ", "), ")");
  if (part.reduce_end > 0) absl::StrAppend(&text, " reduce ", part.reduce_begin, " ", part.reduce_end);
  return text;
}

// A slice of an instruction, with its origin where it is a box of an expression's tensor.
std::string PrintOperand(const Program& program, const Instruction& instruction, size_t number, const Slice& slice) {
  std::string text = PrintSlice(program, slice);
  if (instruction.part.present()) {
    absl::StrAppend(&text, " at (", absl::StrJoin(instruction.part.origins[number], ", "), ")");
    const size_t results = 1 + instruction.also.size();
    if (number >= results) absl::StrAppend(&text, " as ", instruction.part.inputs[number - results]);
  }
  return text;
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
  const auto list = [&](const std::vector<Slice>& slices, size_t first, const char* between) {
    return absl::StrJoin(slices, between, [&](std::string* out, const Slice& slice) {
      absl::StrAppend(out, PrintOperand(program, instruction, first + (&slice - slices.data()), slice));
    });
  };
  const auto from = [&](const char* between) {
    return list(instruction.from, 1 + instruction.also.size(), instruction.part.present() ? ", " : between);
  };
  const auto to = [&] {
    return absl::StrCat(PrintOperand(program, instruction, 0, instruction.to), instruction.also.empty() ? "" : ", ",
                        list(instruction.also, 1, ", "));
  };
  const std::string expression = PrintExpression(program, instruction.part);
  switch (instruction.kind) {
    case Kind::kSync:
      text = instruction.cluster < 0 ? "sync all" : absl::StrCat("sync ", instruction.cluster);
      break;
    case Kind::kMatrix:
      text = absl::StrCat("matrix ", instruction.unit, " ", PrintPlace(instruction.place), expression, " ", to(),
                          instruction.accumulate ? " += " : " = ", from(" * "));
      break;
    case Kind::kVector:
      text = absl::StrCat(
          "vector ", instruction.unit, " ", PrintPlace(instruction.place),
          expression.empty() ? absl::StrCat(" ", GetVectorOpInfo(instruction.op).name) : expression, " ", to(), " = ",
          expression.empty() && instruction.op == VectorOp::kFill ? absl::StrCat(instruction.immediate) : from(", "));
      break;
    default:
      text = absl::StrCat(TransferName(instruction.kind), expression, " ", to(), " = ", from(", "));
  }
  absl::StripTrailingAsciiWhitespace(&text);  // an expression may have no operands
  if (!instruction.after.empty()) absl::StrAppend(&text, " after ", absl::StrJoin(instruction.after, ", "));
  return text;
}

std::string Print(const Program& program) {
  std::string text = absl::StrCat("program ", program.name, " for ", program.machine, " {\n");
  for (const Expression& expression : program.expressions) {
    absl::StrAppend(&text, "  expression ", expression.name, "\n", expression.text, "  end\n");
  }
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
