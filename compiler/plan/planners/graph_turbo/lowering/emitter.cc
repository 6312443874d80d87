#include "compiler/plan/planners/graph_turbo/lowering/emitter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::graph_turbo {

Emitter::Emitter(const dsa::Machine& machine, const std::string& name, DType dtype, bool instructions)
    : machine_(machine),
      engines_(machine),
      dtype_(dtype),
      instructions_(instructions),
      workload_(machine),
      global_(static_cast<int64_t>(machine.global_bytes.value)),
      last_of_engine_(engines_.count(), -1) {
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
  Block& block = blocks_.emplace_back();
  block.memory = memory;
  block.buffer = static_cast<int>(blocks_.size()) - 1;
  block.range = range;
  block.before = range.before;
  if (!instructions_) return &block;
  dsa::Buffer buffer;
  buffer.name = name.empty() ? absl::StrCat("b", block.buffer) : name;
  buffer.memory = memory;
  buffer.offset_bytes = range.offset;
  buffer.dtype = dtype_;
  buffer.elements = elements;
  buffer.input = input;
  buffer.output = output;
  program_.buffers.push_back(std::move(buffer));
  return &block;
}

int Emitter::UnitNumber(const std::string& name) const {
  return static_cast<int>(machine_.Unit(name) - machine_.units.data());
}

Block* Emitter::NewGlobal(int64_t elements) {
  const auto range = global_.Allocate(elements * element_bytes());
  if (!range) return nullptr;
  return NewBlock({dsa::Level::kGlobal, {}}, *range, "", elements, false, false);
}

Block* Emitter::NewLocal(int core, int64_t elements) {
  const auto range = local_[core].Allocate(elements * element_bytes());
  if (!range) return nullptr;
  return NewBlock({dsa::Level::kLocal, {0, core}}, *range, "", elements, false, false);
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
  block->writes.Clear();
  block->accesses.Clear();
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

void Emitter::Add(const dsa::Workload::Task& task, absl::Span<Block* const> reads, absl::Span<Block* const> writes) {
  const int engine = task.engine, number = static_cast<int>(workload_.size());
  after_.clear();
  // An instruction waits for the last one of each other engine, and for none that a sync covers.
  const auto wait = [&](const Waits& waits) {
    for (const auto& [other, earlier] : waits.list()) {
      if (other == engine || earlier <= last_sync_) continue;
      int& last = last_of_engine_[other];
      if (last < 0) waited_.push_back(other);
      last = std::max(last, earlier);
    }
  };
  for (const Block* block : reads) wait(block->writes);
  for (const Block* block : writes) wait(block->before);
  for (const int other : waited_) after_.push_back(std::exchange(last_of_engine_[other], -1));
  waited_.clear();
  std::sort(after_.begin(), after_.end());
  for (Block* block : reads) block->accesses.Add(engine, number);
  for (Block* block : writes) {
    block->writes.Add(engine, number);
    block->accesses.Add(engine, number);
  }
  workload_.Add(task, after_);
}

void Emitter::Copy(const Held& from, const Held& to, const Region& region) {
  const dsa::Memory &a = from.block->memory, &b = to.block->memory;
  dsa::Workload::Task task;
  task.amount = static_cast<double>(region.elements()) * static_cast<double>(element_bytes());
  if (a.level == dsa::Level::kDdr) {
    task.kind = dsa::Kind::kLoad;
    task.engine = engines_.Dma(0);
  } else if (b.level == dsa::Level::kDdr) {
    task.kind = dsa::Kind::kStore;
    task.engine = engines_.Dma(0);
  } else if (a.level != b.level) {
    task.kind = dsa::Kind::kMove;
    task.engine = engines_.Mover(b.level == dsa::Level::kLocal ? b.place : a.place);
  } else if (!(a == b)) {
    task.kind = dsa::Kind::kRedistribute;
    task.engine = engines_.Link(a.place);
  } else {
    task.kind = dsa::Kind::kVector;
    task.engine = engines_.Unit(a.place, copy_unit_);
    task.unit = static_cast<int16_t>(UnitNumber(copy_unit_));
    task.amount = static_cast<double>(region.elements());
  }
  Block *const read[] = {from.block}, *const written[] = {to.block};
  Add(task, read, written);
  if (!instructions_) return;
  dsa::Instruction& instruction = program_.instructions.emplace_back();
  instruction.kind = task.kind;
  instruction.to = SliceOf(to, region);
  instruction.from = {SliceOf(from, region)};
  instruction.after = after_;
  if (task.kind != dsa::Kind::kVector) return;
  instruction.op = dsa::VectorOp::kCopy;
  instruction.unit = copy_unit_;
  instruction.place = a.place;
}

void Emitter::Compute(const Computation& computation) {
  dsa::Workload::Task task;
  task.kind = computation.kind;
  if (computation.kind == dsa::Kind::kLoad) {
    task.engine = engines_.Dma(0);
    task.amount = static_cast<double>(computation.results[0].region->elements() * element_bytes());
  } else {
    task.engine = engines_.Unit({0, computation.core}, *computation.unit);
    task.unit = static_cast<int16_t>(UnitNumber(*computation.unit));
    task.amount = computation.work;
  }
  absl::InlinedVector<Block*, 8> reads, writes;
  for (const Operand& operand : computation.operands) reads.push_back(operand.held.block);
  for (const Operand& result : computation.results) writes.push_back(result.held.block);
  Add(task, reads, writes);
  if (!instructions_) return;
  dsa::Instruction& instruction = program_.instructions.emplace_back();
  instruction.kind = computation.kind;
  instruction.after = after_;
  if (computation.kind != dsa::Kind::kLoad) {
    instruction.place = {0, computation.core};
    instruction.unit = *computation.unit;
  }
  instruction.accumulate = computation.accumulate;
  dsa::ExpressionPart& part = instruction.part;
  part.expression = computation.expression;
  part.work = computation.work;
  part.reduce_begin = computation.reduce.begin;
  part.reduce_end = computation.reduce.end;
  for (const Operand& result : computation.results) part.outputs.push_back(result.input);
  if (static_cast<int>(part.outputs.size()) == computation.expression_outputs) part.outputs.clear();
  const auto slice = [&](const Operand& operand) {
    std::vector<int64_t>& at = part.origins.emplace_back();
    for (const Range& range : operand.region->ranges) at.push_back(range.begin);
    return SliceOf(operand.held, *operand.region);
  };
  for (size_t r = 0; r < computation.results.size(); ++r) {
    dsa::Slice to = slice(computation.results[r]);
    if (r == 0) {
      instruction.to = std::move(to);
    } else {
      instruction.also.push_back(std::move(to));
    }
  }
  for (const Operand& operand : computation.operands) {
    instruction.from.push_back(slice(operand));
    part.inputs.push_back(operand.input);
  }
}

void Emitter::Sync() {
  last_sync_ = static_cast<int>(workload_.size());
  workload_.Add({dsa::Kind::kSync, -1, 0, 0}, {});
  if (!instructions_) return;
  dsa::Instruction& instruction = program_.instructions.emplace_back();
  instruction.kind = dsa::Kind::kSync;
  instruction.cluster = 0;
}

int Emitter::AddExpression(const std::string& name, const std::string& text) {
  program_.expressions.push_back({name, text});
  return static_cast<int>(program_.expressions.size()) - 1;
}

}  // namespace fusion::graph_turbo
