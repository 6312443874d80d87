#include "compiler/bundle/constant_pool.h"

#include "absl/strings/str_cat.h"
#include "compiler/ecg/rewriter.h"
#include "runtime/base/sha256.h"

namespace fusion {

ecg::Graph ConstantPool::Share(const ecg::Graph& graph) {
  ecg::Rewriter rewriter(graph);
  for (ecg::ValueId v = 0; v < static_cast<int>(graph.values().size()); ++v) {
    const ecg::Value& value = graph.value(v);
    if (!value.constant || (value.consumers.empty() && !graph.IsOutput(v))) continue;
    const Tensor& tensor = *value.constant;
    const std::string key =
        absl::StrCat(Sha256Hex({static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.size_bytes())}),
                     " ", DTypeName(tensor.dtype()), ShapeToString(tensor.shape()));
    rewriter.Bind(v, rewriter.graph()->AddConstant(value.name, tensors_.emplace(key, tensor).first->second));
  }
  for (const ecg::Node& node : graph.nodes()) rewriter.Copy(node);
  return rewriter.Finish();
}

}  // namespace fusion
