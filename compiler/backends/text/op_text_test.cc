#include "compiler/backends/text/op_text.h"

#include <gtest/gtest.h>

#include "compiler/movement/vector_form.h"
#include "compiler/te/program/program.h"

namespace fusion::text {
namespace {

TEST(OpText, HasATextForTheOperationsWithAVectorForm) {
  const te::Axis lane{0, 16};
  for (const DType dtype : {DType::kF32, DType::kI32, DType::kBool}) {
    const te::Scalar x = te::Load(0, dtype, {te::Index(lane)});
    for (int i = 0; i <= static_cast<int>(te::Op::kSelect); ++i) {
      const te::Op op = static_cast<te::Op>(i);
      for (double exponent : {2.0, 2.5}) {
        std::vector<te::Scalar> args(te::GetOpInfo(op).arity, x);
        if (op == te::Op::kPow) args[1] = te::Imm(dtype, exponent);
        if (op == te::Op::kSelect) args[0] = te::Load(1, DType::kBool, {te::Index(lane)});
        if (!te::CheckCall(op, args).ok()) continue;
        const te::Scalar call = te::Call(op, args);
        if (call->kind != te::ScalarKind::kOp || call->op != op) continue;
        const std::vector<std::string> texts(args.size(), "t");
        const bool has_text = !VectorOpText(*call, texts).empty();
        const std::string title = std::string(te::GetOpInfo(op).name) + " of " + DTypeName(dtype);
        if (movement::HasVectorForm(*call)) EXPECT_TRUE(has_text) << title;
        // Masks and integers share texts, of which schedules use only a part.
        if (dtype == DType::kF32 && !movement::HasVectorForm(*call)) EXPECT_FALSE(has_text) << title;
      }
    }
  }
}

std::string ScalarText(te::Op op, DType dtype, const std::vector<std::string>& texts) {
  te::ScalarNode call;
  call.op = op;
  call.dtype = dtype;
  for (size_t a = 0; a < texts.size(); ++a) call.args.push_back(te::Acc(static_cast<int>(a), dtype));
  return ScalarOpText(call, texts);
}

TEST(OpText, OnSingleElementsFollowsTheType) {
  EXPECT_EQ(ScalarText(te::Op::kAdd, DType::kF32, {"a", "b"}), "(float)(a + b)");
  EXPECT_EQ(ScalarText(te::Op::kAdd, DType::kI32, {"a", "b"}), "(i32)((u64)a + (u64)b)");
  EXPECT_EQ(ScalarText(te::Op::kMin, DType::kBF16, {"a", "b"}), "smin_f32(a, b)");
  EXPECT_EQ(ScalarText(te::Op::kRsqrt, DType::kF16, {"a"}), "1.f / sqrt_f32(a)");
  EXPECT_EQ(ScalarText(te::Op::kRsqrt, DType::kF64, {"a"}), "1.0 / sqrt_f64(a)");
  EXPECT_EQ(ScalarText(te::Op::kFloor, DType::kI8, {"a"}), "a");
}

}  // namespace
}  // namespace fusion::text
