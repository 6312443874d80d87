#include "runtime/devices/dsa_sim/execute.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/exact_integer.h"
#include "runtime/devices/dsa_sim/slice.h"

namespace fusion::dsa {
namespace {

class Memories {
 public:
  explicit Memories(const Program& program) : program_(program) {
    for (const Buffer& buffer : program.buffers) {
      std::vector<uint8_t>& bytes = bytes_[Key(buffer)];
      bytes.resize(std::max<size_t>(bytes.size(), buffer.offset_bytes + buffer.size_bytes()));
    }
    for (const Buffer& buffer : program.buffers) base_.push_back(bytes_[Key(buffer)].data() + buffer.offset_bytes);
  }

  float Get(int buffer, int64_t element) const {
    const uint8_t* const at = base_[buffer] + element * DTypeBytes(program_.buffers[buffer].dtype);
    if (program_.buffers[buffer].dtype == DType::kF32) {
      float value;
      std::memcpy(&value, at, sizeof(value));
      return value;
    }
    uint16_t bits;
    std::memcpy(&bits, at, sizeof(bits));
    return program_.buffers[buffer].dtype == DType::kF16 ? HalfToFloat(bits) : BFloat16ToFloat(bits);
  }
  void Set(int buffer, int64_t element, float value) {
    uint8_t* const at = base_[buffer] + element * DTypeBytes(program_.buffers[buffer].dtype);
    if (program_.buffers[buffer].dtype == DType::kF32) {
      std::memcpy(at, &value, sizeof(value));
      return;
    }
    const uint16_t bits = program_.buffers[buffer].dtype == DType::kF16 ? FloatToHalf(value) : FloatToBFloat16(value);
    std::memcpy(at, &bits, sizeof(bits));
  }

 private:
  static std::tuple<int, int, int> Key(const Buffer& buffer) {
    return {static_cast<int>(buffer.memory.level), buffer.memory.place.cluster, buffer.memory.place.core};
  }

  const Program& program_;
  std::map<std::tuple<int, int, int>, std::vector<uint8_t>> bytes_;
  std::vector<uint8_t*> base_;  // of each buffer, into bytes_
};

void Transfer(const Instruction& instruction, Memories* memories) {
  const Slice &to = instruction.to, &from = instruction.from[0];
  const std::vector<int64_t> writes = Offsets(to.strides), reads = Offsets(from.strides);
  for (size_t i = 0; i < writes.size(); ++i) {
    memories->Set(to.buffer, to.first + writes[i], memories->Get(from.buffer, from.first + reads[i]));
  }
}

void Matrix(const Instruction& instruction, Memories* memories) {
  const auto outer = [](const Slice& slice) {
    return Offsets(std::vector<Stride>(slice.strides.begin(), slice.strides.end() - 1));
  };
  const Slice &to = instruction.to, &a = instruction.from[0], &b = instruction.from[1];
  const std::vector<int64_t> to_rows = outer(to), a_rows = outer(a);
  const Stride n = to.strides.back(), k = a.strides.back(), b_k = b.strides[0], b_n = b.strides[1];
  for (size_t row = 0; row < to_rows.size(); ++row) {
    for (int64_t j = 0; j < n.count; ++j) {
      const int64_t target = to.first + to_rows[row] + j * n.stride;
      float sum = instruction.accumulate ? memories->Get(to.buffer, target) : 0;
      for (int64_t i = 0; i < k.count; ++i) {
        sum += memories->Get(a.buffer, a.first + a_rows[row] + i * k.stride) *
               memories->Get(b.buffer, b.first + i * b_k.stride + j * b_n.stride);
      }
      memories->Set(to.buffer, target, sum);
    }
  }
}

void Vector(const Instruction& instruction, Memories* memories) {
  const Slice& to = instruction.to;
  const std::vector<int64_t> writes = Offsets(to.strides);
  std::vector<std::vector<int64_t>> reads;
  for (const Slice& from : instruction.from) reads.push_back(Offsets(from.strides));
  const auto get = [&](size_t operand, size_t i) {
    const Slice& from = instruction.from[operand];
    return memories->Get(from.buffer, from.first + reads[operand][i]);
  };
  const int64_t reduced = GetVectorOpInfo(instruction.op).reduces ? instruction.from[0].strides.back().count : 1;
  for (size_t i = 0; i < writes.size(); ++i) {
    float value = static_cast<float>(instruction.immediate);
    if (!instruction.from.empty()) value = get(0, i * reduced);
    if (reduced == 1) {
      // A reduction over one element is the element itself.
      const bool reduces = GetVectorOpInfo(instruction.op).reduces;
      if (!reduces) value = ApplyVectorOp(instruction.op, value, instruction.from.size() > 1 ? get(1, i) : 0);
    } else {
      for (int64_t r = 1; r < reduced; ++r) value = ApplyVectorOp(instruction.op, value, get(0, i * reduced + r));
    }
    memories->Set(to.buffer, to.first + writes[i], value);
  }
}

TensorBox BoxOf(const Slice& slice, const std::vector<int64_t>& origin) {
  TensorBox box{origin, {}};
  for (const Stride& stride : slice.strides) box.extents.push_back(stride.count);
  return box;
}

absl::Status ComputeExpression(const Instruction& instruction, Evaluator* evaluator, Memories* memories) {
  if (evaluator == nullptr) return absl::InvalidArgumentError("the program has expressions, and there is no evaluator");
  const ExpressionPart& part = instruction.part;
  std::vector<Slice> results = {instruction.to};
  results.insert(results.end(), instruction.also.begin(), instruction.also.end());
  EvaluationRequest request;
  request.expression = part.expression;
  request.outputs = part.outputs;
  request.inputs = part.inputs;
  request.reduce_begin = part.reduce_begin;
  request.reduce_end = part.reduce_end;
  for (size_t r = 0; r < results.size(); ++r) request.results.push_back(BoxOf(results[r], part.origins[r]));
  for (size_t o = 0; o < instruction.from.size(); ++o) {
    const Slice& from = instruction.from[o];
    request.operands.push_back(BoxOf(from, part.origins[results.size() + o]));
    std::vector<float>& values = request.values.emplace_back();
    for (const int64_t offset : Offsets(from.strides))
      values.push_back(memories->Get(from.buffer, from.first + offset));
  }
  ASSIGN_OR_RETURN(const std::vector<std::vector<float>> values, evaluator->Evaluate(request));
  for (size_t r = 0; r < results.size(); ++r) {
    const Slice& to = results[r];
    const std::vector<int64_t> writes = Offsets(to.strides);
    if (values.size() != results.size() || values[r].size() != writes.size()) {
      return absl::InternalError("the evaluator returns other results than the instruction has");
    }
    const bool integers = instruction.accumulate && evaluator->MakesIntegers(part.expression, r);
    for (size_t i = 0; i < writes.size(); ++i) {
      const int64_t target = to.first + writes[i];
      if (!instruction.accumulate) {
        memories->Set(to.buffer, target, values[r][i]);
        continue;
      }
      const float before = memories->Get(to.buffer, target);
      const double sum = static_cast<double>(values[r][i]) + static_cast<double>(before);
      if (integers && !IsExactAsFloat(static_cast<int64_t>(sum))) {
        return absl::UnimplementedError(absl::StrCat("a sum is ", InexactInWords(static_cast<int64_t>(sum))));
      }
      memories->Set(to.buffer, target, values[r][i] + before);
    }
  }
  return absl::OkStatus();
}

absl::Status SetInputs(const Program& program, const Values& inputs, Memories* memories) {
  size_t known = 0;
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (!buffer.input) continue;
    auto it = inputs.find(buffer.name);
    if (it == inputs.end()) return absl::InvalidArgumentError(absl::StrCat("the input ", buffer.name, " is missing"));
    if (static_cast<int64_t>(it->second.size()) != buffer.elements) {
      return absl::InvalidArgumentError(absl::StrCat("the input ", buffer.name, " has ", it->second.size(),
                                                     " values; the program takes ", buffer.elements));
    }
    ++known;
    for (int64_t i = 0; i < buffer.elements; ++i) memories->Set(b, i, it->second[i]);
  }
  if (known != inputs.size()) return absl::InvalidArgumentError("an input is given that the program does not have");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Values> Execute(const Program& program, const Values& inputs, Evaluator* evaluator) {
  Memories memories(program);
  if (absl::Status status = SetInputs(program, inputs, &memories); !status.ok()) return status;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.part.present()) {
      const absl::Status status = ComputeExpression(instruction, evaluator, &memories);
      if (!status.ok())
        return Annotate(status, absl::StrCat("instruction ", i, " (", PrintInstruction(program, i), ")"));
    } else if (instruction.kind == Kind::kMatrix) {
      Matrix(instruction, &memories);
    } else if (instruction.kind == Kind::kVector) {
      Vector(instruction, &memories);
    } else if (instruction.kind != Kind::kSync) {
      Transfer(instruction, &memories);
    }
  }
  Values outputs;
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (!buffer.output) continue;
    std::vector<float>& values = outputs[buffer.name];
    for (int64_t i = 0; i < buffer.elements; ++i) values.push_back(memories.Get(b, i));
  }
  return outputs;
}

}  // namespace fusion::dsa
