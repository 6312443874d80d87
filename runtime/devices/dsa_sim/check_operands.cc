#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/slice.h"

namespace fusion::dsa {
namespace {

// The most elements of a slice; an instruction is simulated element by element.
constexpr int64_t kMostElements = int64_t{1} << 32;

absl::Status CheckPlace(const Machine& machine, const Place& place) {
  if (place.cluster < 0 || place.cluster >= machine.clusters || place.core < 0 || place.core >= machine.cores()) {
    return absl::InvalidArgumentError(absl::StrCat("there is no core ", place.cluster, ".", place.core, "; ",
                                                   machine.name, " has ", machine.clusters, " clusters of ",
                                                   machine.cores(), " cores"));
  }
  return absl::OkStatus();
}

absl::Status CheckBuffer(const Machine& machine, const Buffer& buffer) {
  RETURN_IF_ERROR(CheckPlace(machine, buffer.memory.place));
  if (buffer.dtype != DType::kF32 && buffer.dtype != DType::kF16 && buffer.dtype != DType::kBF16) {
    return absl::InvalidArgumentError(
        absl::StrCat("the element type is ", DTypeName(buffer.dtype), "; expected f32, f16 or bf16"));
  }
  if (buffer.memory.level != Level::kDdr && (buffer.input || buffer.output)) {
    return absl::InvalidArgumentError("inputs and outputs are in DDR");
  }
  double capacity = machine.ddr_bytes.value;
  if (buffer.memory.level == Level::kGlobal) capacity = machine.global_bytes.value;
  if (buffer.memory.level == Level::kLocal) capacity = machine.GroupOf(buffer.memory.place.core).local_bytes.value;
  if (buffer.offset_bytes < 0 || buffer.elements < 1 || buffer.elements > (int64_t{1} << 40) ||
      buffer.offset_bytes % DTypeBytes(buffer.dtype) != 0) {
    return absl::InvalidArgumentError("expected at least one element, at an offset that is a multiple of its size");
  }
  if (static_cast<double>(buffer.offset_bytes) + static_cast<double>(buffer.size_bytes()) > capacity) {
    return absl::ResourceExhaustedError(absl::StrCat("its bytes ", buffer.offset_bytes, " to ",
                                                     buffer.offset_bytes + buffer.size_bytes(), " do not fit ",
                                                     PrintMemory(buffer.memory), ", which has ", capacity, " bytes"));
  }
  return absl::OkStatus();
}

// Two inputs at the same addresses could not both hold their values.
absl::Status CheckInputsApart(const Program& program) {
  std::vector<const Buffer*> inputs;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.input) inputs.push_back(&buffer);
  }
  std::sort(inputs.begin(), inputs.end(),
            [](const Buffer* a, const Buffer* b) { return a->offset_bytes < b->offset_bytes; });
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i]->offset_bytes < inputs[i - 1]->offset_bytes + inputs[i - 1]->size_bytes()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the inputs ", inputs[i - 1]->name, " and ", inputs[i]->name, " overlap"));
    }
  }
  return absl::OkStatus();
}

class InstructionCheck {
 public:
  InstructionCheck(const Machine& machine, const Program& program, const Instruction& instruction)
      : machine_(machine), program_(program), instruction_(instruction) {}

  absl::Status Run(int number) const {
    for (const int earlier : instruction_.after) {
      if (earlier < 0 || earlier >= number)
        return Bad(absl::StrCat("it waits for ", earlier, ", which is not earlier"));
    }
    if (instruction_.kind == Kind::kSync) {
      if (instruction_.cluster < -1 || instruction_.cluster >= machine_.clusters)
        return Bad("there is no such cluster");
      return absl::OkStatus();
    }
    if (instruction_.part.present()) RETURN_IF_ERROR(CheckPart());
    const size_t operands = instruction_.part.present()          ? instruction_.from.size()
                            : instruction_.kind == Kind::kMatrix ? 2
                            : instruction_.kind == Kind::kVector ? GetVectorOpInfo(instruction_.op).operands
                                                                 : 1;
    if (instruction_.from.size() != operands) return Bad(absl::StrCat("it takes ", operands, " operands"));
    RETURN_IF_ERROR(CheckSlice(instruction_.to));
    for (const Slice& slice : instruction_.also) RETURN_IF_ERROR(CheckSlice(slice));
    for (const Slice& slice : instruction_.from) RETURN_IF_ERROR(CheckSlice(slice));
    RETURN_IF_ERROR(CheckDestination());
    if (instruction_.kind == Kind::kMatrix) return CheckMatrix();
    if (instruction_.kind == Kind::kVector) return CheckVector();
    return CheckTransfer();
  }

 private:
  static absl::Status Bad(const std::string& what) { return absl::InvalidArgumentError(what); }
  const Buffer& BufferOf(const Slice& slice) const { return program_.buffers[slice.buffer]; }

  absl::Status CheckSlice(const Slice& slice) const {
    if (slice.buffer < 0 || slice.buffer >= static_cast<int>(program_.buffers.size())) return Bad("no such buffer");
    const Buffer& buffer = BufferOf(slice);
    if (slice.first < 0 || slice.first >= buffer.elements) {
      return Bad(absl::StrCat("a slice begins at element ", slice.first, " of ", buffer.name, ", which has ",
                              buffer.elements));
    }
    int64_t elements = 1;
    for (const Stride& stride : slice.strides) {
      if (stride.count < 1 || stride.count > kMostElements / elements) {
        return Bad(absl::StrCat("a slice of ", buffer.name, " has a count of ", stride.count,
                                "; expected at least 1, and at most ", kMostElements, " elements"));
      }
      elements *= stride.count;
      if (stride.stride > buffer.elements || stride.stride < -buffer.elements) {
        return Bad(absl::StrCat("a slice of ", buffer.name, " has a stride of ", stride.stride, ", and the buffer ",
                                buffer.elements, " elements"));
      }
    }
    const ElementRange range = TouchedElements(slice);
    if (range.low < 0 || range.high >= buffer.elements) {
      return Bad(absl::StrCat("a slice reaches elements ", range.low, " to ", range.high, " of ", buffer.name,
                              ", which has ", buffer.elements));
    }
    return absl::OkStatus();
  }

  absl::Status CheckPart() const {
    const ExpressionPart& part = instruction_.part;
    if (part.expression >= static_cast<int>(program_.expressions.size())) return Bad("there is no such expression");
    if (instruction_.kind != Kind::kMatrix && instruction_.kind != Kind::kVector && instruction_.kind != Kind::kLoad) {
      return Bad("only units and loads compute expressions");
    }
    if (part.work < 0 || part.reduce_begin < 0 || part.reduce_end < part.reduce_begin) {
      return Bad("its work or its part of the reduction is negative");
    }
    if (instruction_.accumulate && !instruction_.also.empty()) return Bad("only one result can be added to");
    if (part.inputs.size() != instruction_.from.size()) {
      return Bad(absl::StrCat("it has ", instruction_.from.size(), " operands for ", part.inputs.size(), " inputs"));
    }
    const bool ascending = std::is_sorted(part.outputs.begin(), part.outputs.end(), std::less_equal<>());
    if (!part.outputs.empty() && (part.outputs.size() != 1 + instruction_.also.size() || !ascending)) {
      return Bad("its outputs are not those of its results, ascending");
    }
    std::vector<const Slice*> slices = {&instruction_.to};
    for (const Slice& slice : instruction_.also) slices.push_back(&slice);
    for (const Slice& slice : instruction_.from) slices.push_back(&slice);
    if (part.origins.size() != slices.size()) {
      return Bad(absl::StrCat("it has ", slices.size(), " slices and ", part.origins.size(), " origins"));
    }
    for (size_t i = 0; i < slices.size(); ++i) {
      if (part.origins[i].size() != slices[i]->strides.size()) return Bad("an origin has another rank than its slice");
    }
    return absl::OkStatus();
  }

  // Does the instruction write each element once, and read no element that it writes, but element by element in place?
  absl::Status CheckDestination() const {
    std::vector<ByteRuns> written = {ByteRunsOf(program_, instruction_.to)};
    for (const Slice& slice : instruction_.also) {
      if (!(BufferOf(slice).memory == BufferOf(instruction_.to).memory)) return Bad("its results are in two memories");
      written.push_back(ByteRunsOf(program_, slice));
    }
    if (TouchTwice(written)) return Bad("its destination contains an element twice");
    const bool in_place =
        instruction_.kind == Kind::kVector && !instruction_.part.present() && !GetVectorOpInfo(instruction_.op).reduces;
    for (const Slice& slice : instruction_.from) {
      if (!(BufferOf(slice).memory == BufferOf(instruction_.to).memory)) continue;
      if (in_place && slice == instruction_.to) continue;
      const ByteRuns read = ByteRunsOf(program_, slice);
      for (const ByteRuns& runs : written) {
        if (Overlap(runs, read)) return Bad("its destination overlaps an operand");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckTransfer() const {
    if (instruction_.from.empty()) return Bad("a load needs an operand in DDR");
    const Buffer &to = BufferOf(instruction_.to), &from = BufferOf(instruction_.from[0]);
    const Level a = from.memory.level, b = to.memory.level;
    const bool one_cluster = from.memory.place.cluster == to.memory.place.cluster;
    if (instruction_.kind == Kind::kLoad && (a != Level::kDdr || b == Level::kDdr)) {
      return Bad("a load goes from DDR to a GB or an LB");
    }
    if (instruction_.kind == Kind::kStore && (a == Level::kDdr || b != Level::kDdr)) {
      return Bad("a store goes from a GB or an LB to DDR");
    }
    if (instruction_.kind == Kind::kMove && (a == Level::kDdr || b == Level::kDdr || a == b || !one_cluster)) {
      return Bad("a move goes between the GB of a cluster and an LB of the same cluster");
    }
    if (instruction_.kind == Kind::kRedistribute &&
        (a != Level::kLocal || b != Level::kLocal || !one_cluster || from.memory.place == to.memory.place)) {
      return Bad("a redistribution goes between the LBs of two cores of one cluster");
    }
    if (instruction_.part.present()) {
      for (const Slice& slice : instruction_.from) {
        if (BufferOf(slice).memory.level != Level::kDdr && !(BufferOf(slice).memory == to.memory)) {
          return Bad("a load that gathers finds its addresses in the memory that it loads to");
        }
      }
      return absl::OkStatus();
    }
    if (from.dtype != to.dtype) return Bad("a transfer does not convert elements; use copy on a vector unit");
    if (instruction_.from[0].elements() != instruction_.to.elements()) {
      return Bad(
          absl::StrCat("it transfers ", instruction_.from[0].elements(), " elements to ", instruction_.to.elements()));
    }
    return absl::OkStatus();
  }

  absl::Status CheckUnit(UnitKind kind) const {
    RETURN_IF_ERROR(CheckPlace(machine_, instruction_.place));
    const CoreGroup& group = machine_.GroupOf(instruction_.place.core);
    const ComputeUnit* unit = nullptr;
    for (const std::string& name : group.units) {
      if (name == instruction_.unit) unit = machine_.Unit(name);
    }
    if (unit == nullptr) return Bad(absl::StrCat("the core has no unit '", instruction_.unit, "'"));
    if (unit->kind != kind) return Bad(absl::StrCat("the unit '", unit->name, "' is of the other kind"));
    // A core without an LB computes in its cluster's GB.
    Memory memory{Level::kLocal, instruction_.place};
    if (group.local_bytes.value == 0) memory = {Level::kGlobal, {instruction_.place.cluster, 0}};
    std::vector<Slice> slices = instruction_.from;
    slices.push_back(instruction_.to);
    slices.insert(slices.end(), instruction_.also.begin(), instruction_.also.end());
    for (const Slice& slice : slices) {
      if (!(BufferOf(slice).memory == memory)) {
        return Bad(absl::StrCat("its unit works in ", PrintMemory(memory), ", and ", BufferOf(slice).name, " is in ",
                                PrintMemory(BufferOf(slice).memory)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckMatrix() const {
    RETURN_IF_ERROR(CheckUnit(UnitKind::kMatrix));
    if (instruction_.part.present()) return absl::OkStatus();
    const Slice &to = instruction_.to, &a = instruction_.from[0], &b = instruction_.from[1];
    if (to.strides.empty() || a.strides.empty() || b.strides.size() != 2) {
      return Bad("a matrix product takes to[m…, n] = a[m…, k] * b[k, n]");
    }
    const int64_t n = to.strides.back().count, k = a.strides.back().count;
    if (b.strides[0].count != k || b.strides[1].count != n || a.elements() / k != to.elements() / n) {
      return Bad(absl::StrCat("the operands' extents do not fit: ", to.elements() / n, "x", n, " from ",
                              a.elements() / k, "x", k, " and ", b.strides[0].count, "x", b.strides[1].count));
    }
    return absl::OkStatus();
  }

  absl::Status CheckVector() const {
    RETURN_IF_ERROR(CheckUnit(UnitKind::kVector));
    if (instruction_.part.present()) return absl::OkStatus();
    const VectorOpInfo& info = GetVectorOpInfo(instruction_.op);
    for (const Slice& slice : instruction_.from) {
      if (info.reduces && slice.strides.empty()) return Bad(absl::StrCat(info.name, " needs an index to reduce"));
      const int64_t elements = slice.elements() / (info.reduces ? slice.strides.back().count : 1);
      if (elements != instruction_.to.elements()) {
        return Bad(
            absl::StrCat(elements, " elements of an operand for ", instruction_.to.elements(), " of the result"));
      }
    }
    return absl::OkStatus();
  }

  const Machine& machine_;
  const Program& program_;
  const Instruction& instruction_;
};

}  // namespace

absl::Status CheckOperands(const Machine& machine, const Program& program) {
  if (program.machine != machine.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("program ", program.name, " is for ", program.machine, ", and the machine is ", machine.name));
  }
  for (const Buffer& buffer : program.buffers) {
    RETURN_IF_ERROR(Annotate(CheckBuffer(machine, buffer), absl::StrCat("buffer ", buffer.name)));
  }
  RETURN_IF_ERROR(CheckInputsApart(program));
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& instruction = program.instructions[i];
    const absl::Status status = InstructionCheck(machine, program, instruction).Run(i);
    if (!status.ok()) {
      return Annotate(status, absl::StrCat("instruction ", i, " (", PrintInstruction(program, i), ")"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion::dsa
