#include "compiler/plan/planners/graph_turbo/lowering/emitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/devices/dsa_sim/order.h"

namespace fusion::graph_turbo {

Emitter::Emitter(const dsa::Machine& machine, const std::string& name, DType dtype)
    : machine_(machine), dtype_(dtype), global_(static_cast<int64_t>(machine.global_bytes.value)) {
  program_.name = name;
  program_.machine = machine.name;
  for (int core = 0; core < machine.cores(); ++core) {
    local_.emplace_back(static_cast<int64_t>(machine.GroupOf(core).local_bytes.value));
  }
  double fastest = 0;
  for (const std::string& unit : machine.groups[0].units) {
    const dsa::ComputeUnit& known = *machine.Unit(unit);
    if (known.kind != dsa::UnitKind::kVector || known.per_cycle.value <= fastest) continue;
    fastest = known.per_cycle.value;
    copy_unit_ = unit;
  }
}

Block* Emitter::NewBlock(const dsa::Memory& memory, const MemorySpace::Range& range, const std::string& name,
                         int64_t elements, bool input, bool output) {
  dsa::Buffer buffer;
  buffer.name = name;
  buffer.memory = memory;
  buffer.offset_bytes = range.offset;
  buffer.dtype = dtype_;
  buffer.elements = elements;
  buffer.input = input;
  buffer.output = output;
  Block& block = blocks_.emplace_back();
  block.memory = memory;
  block.buffer = static_cast<int>(program_.buffers.size());
  block.range = range;
  block.before = range.before;
  program_.buffers.push_back(std::move(buffer));
  return &block;
}

Block* Emitter::NewGlobal(int64_t elements) {
  const auto range = global_.Allocate(elements * element_bytes());
  if (!range) return nullptr;
  return NewBlock({dsa::Level::kGlobal, {}}, *range, absl::StrCat("b", blocks_.size()), elements, false, false);
}

Block* Emitter::NewLocal(int core, int64_t elements) {
  const auto range = local_[core].Allocate(elements * element_bytes());
  if (!range) return nullptr;
  return NewBlock({dsa::Level::kLocal, {0, core}}, *range, absl::StrCat("b", blocks_.size()), elements, false, false);
}

Block* Emitter::NewDdr(const std::string& name, int64_t elements, bool input, bool output) {
  const int64_t aligned = (elements * element_bytes() + MemorySpace::kAlignment - 1) / MemorySpace::kAlignment;
  const MemorySpace::Range range{ddr_bytes_, aligned * MemorySpace::kAlignment, {}};
  ddr_bytes_ += range.bytes;
  return NewBlock({}, range, name, elements, input, output);
}

void Emitter::Free(Block* block) {
  Waits accesses = block->before;
  accesses.Merge(block->accesses);
  if (block->memory.level == dsa::Level::kGlobal) global_.Free(block->range, accesses);
  if (block->memory.level == dsa::Level::kLocal) local_[block->memory.place.core].Free(block->range, accesses);
}

void Emitter::Recycle(Block* block) {
  block->before.Merge(block->accesses);
  block->writes = {};
  block->accesses = {};
}

dsa::Slice Emitter::SliceOf(const Held& held, const Region& region) {
  dsa::Slice slice;
  slice.buffer = held.block->buffer;
  int64_t stride = 1;
  slice.strides.resize(region.ranges.size());
  for (size_t d = region.ranges.size(); d-- > 0;) {
    slice.first += (region.ranges[d].begin - held.box.ranges[d].begin) * stride;
    slice.strides[d] = {region.ranges[d].length(), stride};
    stride *= held.box.ranges[d].length();
  }
  return slice;
}

void Emitter::Add(dsa::Instruction instruction, const std::vector<Block*>& reads, const std::vector<Block*>& writes) {
  const int engine = dsa::EngineOf(machine_, program_, instruction);
  const int number = static_cast<int>(program_.instructions.size());
  Waits waits;
  for (const Block* block : reads) waits.Merge(block->writes);
  for (const Block* block : writes) waits.Merge(block->before);
  for (const auto& [other, earlier] : waits.list()) {
    if (other != engine && earlier > last_sync_) instruction.after.push_back(earlier);
  }
  std::sort(instruction.after.begin(), instruction.after.end());
  for (Block* block : reads) block->accesses.Add(engine, number);
  for (Block* block : writes) {
    block->writes.Add(engine, number);
    block->accesses.Add(engine, number);
  }
  program_.instructions.push_back(std::move(instruction));
}

void Emitter::Copy(const Held& from, const Held& to, const Region& region) {
  const dsa::Memory &a = from.block->memory, &b = to.block->memory;
  dsa::Instruction instruction;
  instruction.to = SliceOf(to, region);
  instruction.from = {SliceOf(from, region)};
  if (a.level == dsa::Level::kDdr) {
    instruction.kind = dsa::Kind::kLoad;
  } else if (b.level == dsa::Level::kDdr) {
    instruction.kind = dsa::Kind::kStore;
  } else if (a.level != b.level) {
    instruction.kind = dsa::Kind::kMove;
  } else if (!(a == b)) {
    instruction.kind = dsa::Kind::kRedistribute;
  } else {
    instruction.kind = dsa::Kind::kVector;
    instruction.op = dsa::VectorOp::kCopy;
    instruction.unit = copy_unit_;
    instruction.place = a.place;
  }
  Add(std::move(instruction), {from.block}, {to.block});
}

void Emitter::Compute(const Computation& computation) {
  dsa::Instruction instruction;
  instruction.kind = computation.kind;
  if (computation.kind != dsa::Kind::kLoad) {
    instruction.place = {0, computation.core};
    instruction.unit = computation.unit;
  }
  instruction.accumulate = computation.accumulate;
  dsa::ExpressionPart& part = instruction.part;
  part.expression = computation.expression;
  part.work = computation.work;
  part.reduce_begin = computation.reduce.begin;
  part.reduce_end = computation.reduce.end;
  const auto origin = [&](const Region& region) {
    std::vector<int64_t>& at = part.origins.emplace_back();
    for (const Range& range : region.ranges) at.push_back(range.begin);
  };
  std::vector<Block*> reads, writes;
  for (const Operand& result : computation.results) {
    const dsa::Slice slice = SliceOf(result.held, result.region);
    if (writes.empty()) {
      instruction.to = slice;
    } else {
      instruction.also.push_back(slice);
    }
    writes.push_back(result.held.block);
    origin(result.region);
  }
  for (const Operand& operand : computation.operands) {
    instruction.from.push_back(SliceOf(operand.held, operand.region));
    part.inputs.push_back(operand.input);
    reads.push_back(operand.held.block);
    origin(operand.region);
  }
  Add(std::move(instruction), reads, writes);
}

void Emitter::Sync() {
  dsa::Instruction instruction;
  instruction.kind = dsa::Kind::kSync;
  instruction.cluster = 0;
  last_sync_ = static_cast<int>(program_.instructions.size());
  program_.instructions.push_back(std::move(instruction));
}

int Emitter::AddExpression(const std::string& name, const std::string& text) {
  program_.expressions.push_back({name, text});
  return static_cast<int>(program_.expressions.size()) - 1;
}

}  // namespace fusion::graph_turbo
