#include "compiler/backends/dsa/unit_code_of.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/te/interpreter/interpreter.h"
#include "compiler/te/scalar/op_table.h"
#include "runtime/base/random_inputs.h"
#include "runtime/devices/dsa_sim/unit_evaluator.h"
#include "runtime/devices/dsa_sim/unit_op.h"

namespace fusion::dsa {
namespace {

using ::testing::HasSubstr;

std::vector<float> Floats(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    values.push_back(IsFloat(tensor.dtype()) ? static_cast<float>(tensor.GetDouble(i))
                                             : static_cast<float>(tensor.GetInt(i)));
  }
  return values;
}

UnitBox Whole(const te::Program& program, te::TensorId tensor) {
  const Shape& shape = program.tensors[tensor].shape;
  return {tensor, std::vector<int64_t>(shape.size(), 0), shape};
}

// Runs the program as unit code that went through its text, and expects exactly what the interpreter computes.
void ExpectSameNumbers(const te::Program& program, const std::vector<Tensor>& inputs) {
  auto code = UnitCodeOf(program);
  ASSERT_TRUE(code.ok()) << code.status();
  EvaluationRequest request;
  Program holder;
  Instruction instruction;
  instruction.part.expression = 0;
  const auto add = [&](te::TensorId tensor, std::vector<UnitBox>* boxes) {
    boxes->push_back(Whole(program, tensor));
    Slice slice;
    for (const int64_t extent : boxes->back().extents) slice.strides.push_back({extent, 1});
    return slice;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    instruction.from.push_back(add(program.inputs[i], &code->operands));
    request.values.push_back(Floats(inputs[i]));
  }
  for (size_t o = 0; o < program.outputs.size(); ++o) {
    const Slice slice = add(program.outputs[o], &code->results);
    if (o == 0) instruction.to = slice;
    if (o > 0) instruction.also.push_back(slice);
  }
  holder.expressions.push_back({"e", PrintUnitCode(*code)});
  holder.instructions.push_back(instruction);
  auto evaluator = UnitEvaluator::Create(holder);
  ASSERT_TRUE(evaluator.ok()) << evaluator.status() << "\n" << holder.expressions[0].text;
  const auto values = evaluator->Evaluate(request);
  ASSERT_TRUE(values.ok()) << values.status();
  const auto expected = te::Interpret(program, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (size_t o = 0; o < expected->size(); ++o) {
    const std::vector<float> wanted = Floats((*expected)[o]);
    ASSERT_EQ((*values)[o].size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_TRUE((*values)[o][i] == wanted[i] || (std::isnan(wanted[i]) && std::isnan((*values)[o][i])))
          << "element " << i << " is " << (*values)[o][i] << ", expected " << wanted[i] << "\n"
          << te::Print(program);
    }
  }
}

TEST(UnitCodeOf, EveryOperationHasAName) {
  for (const std::string& name : NamedUnitOps()) EXPECT_NE(FindUnitOp(name), nullptr) << name;
}

TEST(UnitCodeOf, EveryOperationOnEveryTypeGivesTheInterpretersNumbers) {
  int checked = 0;
  for (const te::OpRow& row : te::op_table::kRows) {
    for (const DType dtype :
         {DType::kF32, DType::kF16, DType::kI64, DType::kI32, DType::kI8, DType::kU8, DType::kBool}) {
      if (!te::IsDefinedOn(row, dtype)) continue;
      const Shape shape = {300};  // more than a strip
      te::Program program;
      std::vector<te::TensorId> operands;
      std::vector<Tensor> inputs;
      const int arity = row.info.arity;
      for (int a = 0; a < arity; ++a) {
        const DType type = row.op == te::Op::kSelect && a == 0 ? DType::kBool : dtype;
        operands.push_back(program.AddTensor(absl::StrCat("x", a), type, shape, te::Role::kInput));
        inputs.push_back(RandomTensor(type, shape, DeriveSeed(static_cast<uint64_t>(row.op), a), 5));
      }
      te::Builder builder(&program);
      const DType result = te::YieldsBool(row) ? DType::kBool : dtype;
      program.MarkOutput(builder.Map("y", result, shape, [&](const te::Builder::Idx& i) {
        std::vector<te::Scalar> args;
        for (const te::TensorId operand : operands) args.push_back(builder.At(operand, i));
        return te::Call(row.op, args);
      }));
      SCOPED_TRACE(absl::StrCat(row.info.name, " on ", DTypeName(dtype)));
      ExpectSameNumbers(program, inputs);
      ++checked;
    }
  }
  EXPECT_GT(checked, 100);
}

TEST(UnitCodeOf, ReductionsWindowsBranchesAndCasts) {
  const char* const kPrograms[] = {
      R"(te p(%0: f32[5, 7]) {
        %1[i0<5, i1<7]: f32 = max.f32(i2<3) %0[i0, i1 + i2 - 1]?-1.0
        %2[i3<5]: f32 = sum.f32(i4<7) mul(%1[i3, i4], %0[i3, i4])
        return %2
      })",
      R"(te p(%0: f32[4, 6], %1: f32[6, 3]) {
        %2[i0<4, i1<3]: f32 = sum.f32(i2<6) mul(%0[i0, i2], %1[i2, i1])
        %3[i3<12]: f32 = exp(%2[i3//3, i3%3])
        return %3
      })",
      R"(te p(%0: f32[9]) {
        %1[i0<9]: f32 = if i0 < 4 then %0[i0 + 5] else %0[i0 - 4]
        return %1
      })"};
  for (const char* text : kPrograms) {
    const auto program = te::Parse(text);
    ASSERT_TRUE(program.ok()) << program.status() << text;
    std::vector<Tensor> inputs;
    for (const te::TensorId input : program->inputs) {
      inputs.push_back(RandomTensor(DType::kF32, program->tensors[input].shape, DeriveSeed(7, inputs.size())));
    }
    ExpectSameNumbers(*program, inputs);
  }
}

TEST(UnitCodeOf, RefusesARoutine) {
  te::Program program;
  const te::TensorId x = program.AddTensor("x", DType::kF32, {4}, te::Role::kInput);
  te::Te te;
  te.routine = te::Routine{"top_k", {x}, {}, 1, 0};
  te.outputs = {program.AddTensor("y", DType::kF32, {4}, te::Role::kOutput)};
  program.tes.push_back(te);
  const auto code = UnitCodeOf(program);
  EXPECT_EQ(code.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(code.status().message()), HasSubstr("the routine 'top_k'"));
}

}  // namespace
}  // namespace fusion::dsa
