#include "runtime/devices/dsa_sim/execute.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/exact_integer.h"
#include "runtime/devices/dsa_sim/memories.h"
#include "runtime/devices/dsa_sim/slice.h"

namespace fusion::dsa {
namespace {

// A slice that is all of a buffer.
Slice WholeOf(const Program& program, int buffer) { return {buffer, 0, {{program.buffers[buffer].elements, 1}}}; }

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

// Computes expressions. The memory of requests stays from one instruction to the next.
class ExpressionRunner {
 public:
  ExpressionRunner(Evaluator* evaluator, Memories* memories) : evaluator_(evaluator), memories_(*memories) {}

  absl::Status Run(const Instruction& instruction) {
    if (evaluator_ == nullptr) {
      return absl::InvalidArgumentError("the program has expressions, and there is no evaluator");
    }
    Fill(instruction);
    ASSIGN_OR_RETURN(std::vector<std::vector<float>> values, evaluator_->Evaluate(request_));
    if (values.size() != request_.results.size()) return Mismatch();
    for (size_t r = 0; r < values.size(); ++r) {
      const Slice& to = r == 0 ? instruction.to : instruction.also[r - 1];
      if (static_cast<int64_t>(values[r].size()) != to.elements()) return Mismatch();
      if (instruction.accumulate) RETURN_IF_ERROR(AddBefore(to, r, &values[r]));
      memories_.Write(to, values[r]);
    }
    return absl::OkStatus();
  }

 private:
  static absl::Status Mismatch() {
    return absl::InternalError("the evaluator returns other results than the instruction has");
  }

  void Fill(const Instruction& instruction) {
    const ExpressionPart& part = instruction.part;
    request_.expression = part.expression;
    request_.outputs = part.outputs;
    request_.inputs = part.inputs;
    request_.reduce_begin = part.reduce_begin;
    request_.reduce_end = part.reduce_end;
    request_.results.clear();
    request_.operands.clear();
    size_t origin = 0;
    request_.results.push_back(BoxOf(instruction.to, part.origins[origin++]));
    for (const Slice& to : instruction.also) request_.results.push_back(BoxOf(to, part.origins[origin++]));
    request_.values.resize(instruction.from.size());
    for (size_t o = 0; o < instruction.from.size(); ++o) {
      request_.operands.push_back(BoxOf(instruction.from[o], part.origins[origin++]));
      memories_.Read(instruction.from[o], &request_.values[o]);
    }
  }

  absl::Status AddBefore(const Slice& to, size_t result, std::vector<float>* values) {
    memories_.Read(to, &before_);
    const bool integers = evaluator_->MakesIntegers(request_.expression, result);
    for (size_t i = 0; i < values->size(); ++i) {
      const double sum = static_cast<double>((*values)[i]) + static_cast<double>(before_[i]);
      if (integers && !IsExactAsFloat(static_cast<int64_t>(sum))) {
        return absl::UnimplementedError(absl::StrCat("a sum is ", InexactInWords(static_cast<int64_t>(sum))));
      }
      (*values)[i] += before_[i];
    }
    return absl::OkStatus();
  }

  Evaluator* const evaluator_;
  Memories& memories_;
  EvaluationRequest request_;
  std::vector<float> before_;
};

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
    memories->Write(WholeOf(program, b), it->second);
  }
  if (known != inputs.size()) return absl::InvalidArgumentError("an input is given that the program does not have");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Values> Execute(const Program& program, const Values& inputs, Evaluator* evaluator) {
  Memories memories(program);
  if (absl::Status status = SetInputs(program, inputs, &memories); !status.ok()) return status;
  ExpressionRunner expressions(evaluator, &memories);
  std::vector<float> moved;
  for (int i = 0; i < static_cast<int>(program.instructions.size()); ++i) {
    const Instruction& instruction = program.instructions[i];
    if (instruction.part.present()) {
      const absl::Status status = expressions.Run(instruction);
      if (!status.ok())
        return Annotate(status, absl::StrCat("instruction ", i, " (", PrintInstruction(program, i), ")"));
    } else if (instruction.kind == Kind::kMatrix) {
      Matrix(instruction, &memories);
    } else if (instruction.kind == Kind::kVector) {
      Vector(instruction, &memories);
    } else if (instruction.kind != Kind::kSync) {
      memories.Read(instruction.from[0], &moved);
      memories.Write(instruction.to, moved);
    }
  }
  Values outputs;
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b) {
    const Buffer& buffer = program.buffers[b];
    if (!buffer.output) continue;
    memories.Read(WholeOf(program, b), &outputs[buffer.name]);
  }
  return outputs;
}

}  // namespace fusion::dsa
