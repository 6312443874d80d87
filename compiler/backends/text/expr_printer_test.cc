#include "compiler/backends/text/expr_printer.h"

#include <gtest/gtest.h>

#include "compiler/movement/vector_form.h"
#include "compiler/te/program/program.h"

namespace fusion::text {
namespace {

TEST(ExprPrinter, HasATextForTheOperationsWithAVectorForm) {
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

}  // namespace
}  // namespace fusion::text
