#include "compiler/backends/cpu/expr_printer.h"

#include <gtest/gtest.h>

#include "compiler/movement/vector_form.h"

namespace fusion::cpu {
namespace {

TEST(ExprPrinter, HasATextForExactlyTheOperationsWithAVectorForm) {
  const te::Axis lane{0, 16};
  const te::Scalar x = te::Load(0, DType::kF32, {te::Index(lane)});
  for (int op = 0; op <= static_cast<int>(te::Op::kSelect); ++op) {
    for (double exponent : {2.0, 2.5}) {
      te::ScalarNode node;
      node.kind = te::ScalarKind::kOp;
      node.op = static_cast<te::Op>(op);
      node.args.assign(te::GetOpInfo(node.op).arity, x);
      if (node.op == te::Op::kPow) node.args[1] = te::Imm(DType::kF32, exponent);
      const std::vector<std::string> args(node.args.size(), "t");
      EXPECT_EQ(movement::HasVectorForm(node), !VectorOpText(node, args).empty()) << te::GetOpInfo(node.op).name;
    }
  }
}

}  // namespace
}  // namespace fusion::cpu
