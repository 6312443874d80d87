// Structural operators write down the structure of a graph (constants, control flow, sequences, optionals) and end with
// import. Each family is a file here and a line in structural_list.cc.
#ifndef FUSION_COMPILER_ONNX_STRUCTURAL_STRUCTURAL_OP_H_
#define FUSION_COMPILER_ONNX_STRUCTURAL_STRUCTURAL_OP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/onnx/imported_value.h"
#include "compiler/onnx/structural/structural_context.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {

struct StructuralNode {
  onnx::NodeProto* proto;
  std::string title;  // for errors
  int opset = 1;
  std::vector<ImportedValue> inputs;  // an absent one is a tensor kNone

  bool Has(size_t i) const { return i < inputs.size() && !IsAbsent(inputs[i]); }
  static bool IsAbsent(const ImportedValue& value) {
    return value.kind == ImportedValue::Kind::kTensor && value.tensor == ecg::kNone;
  }
  // Return INVALID_ARGUMENT and UNIMPLEMENTED errors that begin with the title.
  absl::Status Error(const std::string& message) const;
  absl::Status Unsupported(const std::string& message) const;

  // Returns nullptr when it is absent.
  onnx::AttributeProto* Attribute(const std::string& name) const;
  int64_t Int(const std::string& name, int64_t otherwise) const;
  std::vector<int64_t> Ints(const std::string& name) const;
  absl::StatusOr<onnx::GraphProto*> Graph(const std::string& name) const;  // a required attribute

  // Returns the input, which must be present and of this kind.
  absl::StatusOr<const ImportedValue*> Input(size_t i, ImportedValue::Kind kind) const;
  absl::StatusOr<ecg::ValueId> TensorInput(size_t i) const;
};

// Imports the node and returns its outputs, at least as many as it names.
using StructuralImport = absl::StatusOr<std::vector<ImportedValue>> (*)(StructuralContext& importer,
                                                                        const StructuralNode& node);
// Returns nullptr when the operator is not structural.
StructuralImport FindStructural(const std::string& op);

// The entries of the list, for the operators of this folder.
struct StructuralOp {
  const char* name;
  StructuralImport import;
};
std::vector<StructuralOp> ConstantOps();       // constant.cc: Constant, Identity
std::vector<StructuralOp> BranchOps();         // branch.cc: If
std::vector<StructuralOp> LoopOps();           // loop.cc: Loop
std::vector<StructuralOp> ScanOps();           // scan.cc: Scan
std::vector<StructuralOp> SequenceOps();       // sequence.cc: Sequence*, SplitToSequence, ConcatFromSequence
std::vector<StructuralOp> OptionalOps();       // optional.cc: Optional*
std::vector<StructuralOp> FlexAttentionOps();  // flex_attention.cc: FlexAttention, whose attributes are graphs

// Returns the value of a constant of one element; nullopt when it is computed at run time. INVALID_ARGUMENT when it has
// more than one element or is not an integer (bool counts as one).
absl::StatusOr<std::optional<int64_t>> KnownInt(StructuralContext& importer, const StructuralNode& node,
                                                ecg::ValueId value, const std::string& what);
// Returns `value`, which has one element, as a scalar.
absl::StatusOr<ecg::ValueId> AsScalar(StructuralContext& importer, ecg::ValueId value);

// Returns `a` where the scalar bool `condition` holds, else `b`. Both must have one element type and rank, and
// sequences one length; UNIMPLEMENTED, naming both, when they differ. Extents that differ depend on data from here on.
// `what` names the value in messages.
absl::StatusOr<ImportedValue> Select(StructuralContext& importer, const StructuralNode& node, ecg::ValueId condition,
                                     const ImportedValue& a, const ImportedValue& b, const std::string& what);

// Stacks the tensors (at least one) along a new axis.
absl::StatusOr<ecg::ValueId> Stack(StructuralContext& importer, const std::vector<ecg::ValueId>& tensors, int64_t axis);
// Returns the slices of extent 1 along `axis`, without that axis.
absl::StatusOr<std::vector<ecg::ValueId>> Unstack(StructuralContext& importer, ecg::ValueId tensor, int64_t axis);

}  // namespace fusion::onnx_import

#endif  // FUSION_COMPILER_ONNX_STRUCTURAL_STRUCTURAL_OP_H_
