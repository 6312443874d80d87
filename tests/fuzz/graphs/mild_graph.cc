#include "tests/fuzz/graphs/mild_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "runtime/base/check.h"
#include "tests/fuzz/graphs/mild_values.h"

namespace fusion::fuzz {

using ecg::ValueId;

// A name says what the data are, so two inputs of one name would be one.
ValueId MildGraph::NewInput(const fusion::Shape& shape) {
  for (;;) {
    const std::string name = MildName(shape, &draw_);
    const bool taken = std::any_of(graph_.values().begin(), graph_.values().end(),
                                   [&](const ecg::Value& value) { return value.name == name; });
    if (!taken) return graph_.AddInput(name, {DType::kF32, shape});
  }
}

ValueId MildGraph::NewConstant(const fusion::Shape& shape) {
  return graph_.AddConstant(NewName("c"), MildConstant(shape, &draw_));
}

std::string MildGraph::NewName(const char* kind) const { return absl::StrCat(kind, graph_.values().size()); }

std::vector<ValueId> MildGraph::AddAll(const std::string& op, std::vector<ValueId> inputs, const ecg::Attributes& attrs,
                                       size_t results) {
  std::vector<const ecg::Value*> operands;
  for (const ValueId v : inputs) operands.push_back(&graph_.value(v));
  const std::string name;
  const auto types = ops::InferTypes(ops::OpContext(op, name, attrs, operands), static_cast<int>(results));
  FUSION_CHECK(types.ok(), "drawn shapes fit");
  std::vector<std::string> names;
  for (size_t i = 0; i < types->size(); ++i) {
    names.push_back(absl::StrCat(NewName("v"), i == 0 ? "" : absl::StrCat("_", i)));
  }
  return graph_.node(graph_.AddNode(op, "", std::move(inputs), attrs, *types, names)).outputs;
}

ValueId MildGraph::Add(const std::string& op, std::vector<ValueId> inputs, const ecg::Attributes& attrs) {
  return AddAll(op, std::move(inputs), attrs, 1)[0];
}

}  // namespace fusion::fuzz
