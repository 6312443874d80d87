#include "compiler/kernels/fusion_signature.h"

#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace fusion {
namespace {

class Signer {
 public:
  Signer(const ecg::Graph& graph, const ValueLayouts& layouts) : graph_(graph), layouts_(layouts) {}

  void AddNode(const ecg::Node& node) {
    absl::StrAppend(&signature.text, "\n", node.op, "{", ecg::Print(node.attrs), "}");
    for (ecg::ValueId id : node.inputs) Refer(id, /*outside=*/true);
    absl::StrAppend(&signature.text, ">");
    for (ecg::ValueId id : node.outputs) Refer(id, /*outside=*/false);
  }

  void AddResult(ecg::ValueId id) {
    absl::StrAppend(&signature.text, "\nresult");
    Refer(id, false);
    AddLayout(id);
  }

  void AddHandOver(const HandOver& hand_over, int64_t consumer) {
    absl::StrAppend(&signature.text, "\nto ", consumer, " ", ScopeName(hand_over.nearest), " ",
                    ScopeName(hand_over.furthest));
    Refer(hand_over.value, false);
  }

  void AddDirective(const Directive& directive, int64_t node) {
    absl::StrAppend(&signature.text, "\nwant ", node, " ", directive.choice, "=", directive.alternative);
  }

  FusionSignature signature;

 private:
  void Refer(ecg::ValueId id, bool outside) {
    if (id == ecg::kNone) {
      absl::StrAppend(&signature.text, " _");
      return;
    }
    const auto [number, fresh] = numbers_.emplace(id, signature.values.size());
    absl::StrAppend(&signature.text, " ", number->second);
    if (!fresh) return;
    signature.values.push_back(id);
    const ecg::Value& value = graph_.value(id);
    absl::StrAppend(&signature.text, ":", DTypeName(value.type.dtype), ShapeToString(value.type.shape));
    if (value.constant) {
      AddConstant(id, *value.constant);
    } else if (outside) {
      AddLayout(id);
    }
  }

  void AddConstant(ecg::ValueId id, const Tensor& tensor) {
    if (graph_.value(id).opaque) {
      absl::StrAppend(&signature.text, "?");
    } else if (tensor.num_elements() <= kMaxSignedElements) {
      absl::StrAppend(
          &signature.text, "=", tensor.size_bytes(), ":",
          absl::string_view(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.size_bytes())));
    } else if (tensor.dtype() == DType::kI32 || tensor.dtype() == DType::kI64) {
      absl::StrAppend(&signature.text, "@", reinterpret_cast<uintptr_t>(tensor.data()));
    } else {
      absl::StrAppend(&signature.text, "=");
      signature.weights.push_back(id);
    }
  }

  void AddLayout(ecg::ValueId id) {
    const auto layout = layouts_.find(id);
    if (layout == layouts_.end()) return;
    absl::StrAppend(&signature.text, "/", layout->second.axis, "*", layout->second.block);
  }

  const ecg::Graph& graph_;
  const ValueLayouts& layouts_;
  std::unordered_map<ecg::ValueId, size_t> numbers_;
};

}  // namespace

FusionSignature SignFusionBlock(const ecg::Graph& graph, const FusionBlock& fusion_block,
                                const std::vector<ecg::ValueId>& live_out, const ValueLayouts& layouts) {
  Signer signer(graph, layouts);
  const std::vector<ecg::NodeId> members = fusion_block.Members();
  for (ecg::NodeId id : members) signer.AddNode(graph.node(id));
  for (ecg::ValueId id : live_out) signer.AddResult(id);
  for (const HandOver& hand_over : fusion_block.inner) {
    const auto consumer = std::lower_bound(members.begin(), members.end(), hand_over.consumer);
    signer.AddHandOver(hand_over, consumer - members.begin());
  }
  // A node that is computed again is rounded (fusion_kernel.cc).
  for (ecg::NodeId id : fusion_block.recomputed) {
    const auto node = std::lower_bound(members.begin(), members.end(), id);
    absl::StrAppend(&signer.signature.text, "\nrecomputed ", node - members.begin());
  }
  for (const Directive& directive : fusion_block.directives) {
    const auto node = std::lower_bound(members.begin(), members.end(), directive.node);
    signer.AddDirective(directive, directive.node == ecg::kNone ? -1 : node - members.begin());
  }
  return std::move(signer.signature);
}

}  // namespace fusion
