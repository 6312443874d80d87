#include <map>

#include "compiler/onnx/structural/structural_op.h"

namespace fusion::onnx_import {
namespace {

constexpr std::vector<StructuralOp> (*kFamilies[])() = {ConstantOps, BranchOps,   LoopOps,         ScanOps,
                                                        SequenceOps, OptionalOps, FlexAttentionOps};

}  // namespace

StructuralImport FindStructural(const std::string& op) {
  static const auto& table = *[] {
    auto* ops = new std::map<std::string, StructuralImport>;
    for (auto family : kFamilies) {
      for (const StructuralOp& entry : family()) ops->emplace(entry.name, entry.import);
    }
    return ops;
  }();
  auto it = table.find(op);
  return it == table.end() ? nullptr : it->second;
}

}  // namespace fusion::onnx_import
