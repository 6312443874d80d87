#include "compiler/onnx/function_bodies.h"

#include <google/protobuf/unknown_field_set.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/model_file.h"
#include "compiler/onnx/node_order.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

using AttributeMap = std::map<std::string, onnx::AttributeProto>;

std::string Domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// Reads FunctionProto.attribute_proto, which IR version 9 added and which the protobuf classes of the build may lack.
AttributeMap DefaultAttributes(const onnx::FunctionProto& function) {
  constexpr int kAttributeProtoField = 11;
  AttributeMap defaults;
  const auto& fields = function.GetReflection()->GetUnknownFields(function);
  for (int i = 0; i < fields.field_count(); ++i) {
    const auto& field = fields.field(i);
    onnx::AttributeProto attribute;
    if (field.number() == kAttributeProtoField &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        attribute.ParseFromString(field.length_delimited())) {
      defaults[attribute.name()] = attribute;
    }
  }
  return defaults;
}

// Takes what a copy costs. Returns false, and takes no more, once nothing is left.
bool Take(size_t bytes, int64_t* bytes_left) {
  if (*bytes_left >= 0) *bytes_left -= static_cast<int64_t>(bytes);
  return *bytes_left >= 0;
}

void Substitute(const AttributeMap& values, onnx::NodeProto* node, int64_t* bytes_left);

void Substitute(const AttributeMap& values, onnx::GraphProto* graph, int64_t* bytes_left) {
  for (auto& node : *graph->mutable_node()) Substitute(values, &node, bytes_left);
}

// Copies attributes as long as there are `bytes_left`.
void Substitute(const AttributeMap& values, onnx::NodeProto* node, int64_t* bytes_left) {
  auto* attributes = node->mutable_attribute();
  for (int a = attributes->size() - 1; a >= 0; --a) {
    onnx::AttributeProto* attribute = attributes->Mutable(a);
    if (!attribute->ref_attr_name().empty()) {
      auto value = values.find(attribute->ref_attr_name());
      if (value == values.end()) {
        attributes->DeleteSubrange(a, 1);
        continue;
      }
      if (!Take(value->second.SpaceUsedLong(), bytes_left)) return;
      const std::string name = attribute->name();
      *attribute = value->second;
      attribute->set_name(name);
      continue;
    }
    if (attribute->has_g()) Substitute(values, attribute->mutable_g(), bytes_left);
    for (auto& graph : *attribute->mutable_graphs()) Substitute(values, &graph, bytes_left);
  }
}

}  // namespace

FunctionBodies::FunctionBodies(const onnx::ModelProto& model) : bytes_left_(kMaxFunctionBytes) {
  for (const auto& function : model.functions()) {
    bytes_left_ += static_cast<int64_t>(function.SpaceUsedLong());
    functions_.emplace(std::pair(Domain(function.domain()), function.name()), &function);
  }
}

const onnx::FunctionProto* FunctionBodies::Find(const std::string& domain, const std::string& op) const {
  auto it = functions_.find({Domain(domain), op});
  return it == functions_.end() ? nullptr : it->second;
}

absl::StatusOr<FunctionBody*> FunctionBodies::BodyFor(const onnx::FunctionProto& function,
                                                      const onnx::NodeProto& call) {
  if (auto it = body_of_call_.find(&call); it != body_of_call_.end()) return it->second;
  if (call.input_size() > function.input_size() || call.output_size() > function.output_size()) {
    return absl::InvalidArgumentError(absl::StrCat(NodeTitle(call), " has ", call.input_size(), " inputs and ",
                                                   call.output_size(), " outputs, its function has ",
                                                   function.input_size(), " and ", function.output_size()));
  }
  const auto too_large = [&] {
    return absl::ResourceExhaustedError(absl::StrCat("functions are copied into their calls, and come to more than ",
                                                     kMaxFunctionBytes, " bytes at ", NodeTitle(call)));
  };
  if (!Take(function.SpaceUsedLong(), &bytes_left_)) return too_large();
  FunctionBody body;
  onnx::ModelProto versions;  // holds the function's opsets in the form that OpsetVersions checks
  *versions.mutable_opset_import() = function.opset_import();
  auto opsets = OpsetVersions(versions);
  if (!opsets.ok()) return Annotate(opsets.status(), absl::StrCat("the function of ", NodeTitle(call)));
  body.opsets = *std::move(opsets);
  body.graph.set_name(function.name());
  *body.graph.mutable_node() = function.node();
  for (const std::string& input : function.input()) body.graph.add_input()->set_name(input);
  for (int i = 0; i < call.output_size(); ++i) body.graph.add_output()->set_name(function.output(i));
  AttributeMap values = DefaultAttributes(function);
  for (const auto& attribute : call.attribute()) values[attribute.name()] = attribute;
  Substitute(values, &body.graph, &bytes_left_);
  if (bytes_left_ < 0) return too_large();
  bodies_.push_back(std::move(body));
  body_of_call_[&call] = &bodies_.back();
  return &bodies_.back();
}

}  // namespace fusion::onnx_import
