#include "compiler/onnx/function_bodies.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/onnx/model_text.h"

namespace fusion::onnx_import {
namespace {

using ::testing::HasSubstr;

template <typename Proto>
Proto Parsed(const std::string& text) {
  Proto proto;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &proto)) << text;
  return proto;
}

// A model with one function, `own.F`, of two inputs and two outputs.
onnx::ModelProto WithFunction(const std::string& nodes, int opset = 17) {
  return Parsed<onnx::ModelProto>(
      absl::StrCat("ir_version: 8 functions { name: 'F' domain: 'own' input: 'a' input: 'b' output: 'y' output: 'z' "
                   "attribute: 'alpha' opset_import { domain: '' version: ",
                   opset, " } ", nodes, " }"));
}

constexpr char kNodes[] =
    "node { op_type: 'LeakyRelu' input: 'a' output: 'y' attribute { name: 'alpha' ref_attr_name: 'alpha' type: FLOAT } "
    "}"
    "node { op_type: 'If' input: 'b' output: 'z' attribute { name: 'then_branch' type: GRAPH g { node { op_type: "
    "'LeakyRelu' input: 'a' output: 'w' attribute { name: 'slope' ref_attr_name: 'alpha' type: FLOAT } } } } }";

onnx::NodeProto Call(const std::string& more = "") {
  return Parsed<onnx::NodeProto>("op_type: 'F' domain: 'own' name: 'call' input: 'x' output: 'r' " + more);
}

TEST(FunctionBodies, FindsByDomainAndName) {
  onnx::ModelProto model = WithFunction(kNodes);
  model.mutable_functions(0)->set_domain("ai.onnx");
  const FunctionBodies bodies(model);
  EXPECT_EQ(bodies.Find("", "F"), &model.functions(0)) << "the default domain has two names";
  EXPECT_EQ(bodies.Find("own", "F"), nullptr);
  EXPECT_EQ(bodies.Find("", "G"), nullptr);
}

TEST(FunctionBodies, ABodyHasTheCallsAttributesAlsoInsideSubgraphs) {
  const onnx::ModelProto model = WithFunction(kNodes);
  FunctionBodies bodies(model);
  const onnx::NodeProto call = Call("attribute { name: 'alpha' type: FLOAT f: 0.5 }");
  const auto body = bodies.BodyFor(model.functions(0), call);
  ASSERT_TRUE(body.ok()) << body.status();
  const onnx::GraphProto& graph = (*body)->graph;
  EXPECT_EQ(graph.node(0).attribute(0).f(), 0.5);
  const onnx::AttributeProto& inner = graph.node(1).attribute(0).g().node(0).attribute(0);
  EXPECT_EQ(inner.name(), "slope") << "the name is the reader's, not the call's";
  EXPECT_EQ(inner.f(), 0.5);
  EXPECT_EQ(graph.input_size(), 2);
  EXPECT_EQ(graph.output_size(), 1) << "the call takes one of two results";
  EXPECT_EQ((*body)->opsets.at(""), 17);
  EXPECT_EQ(*bodies.BodyFor(model.functions(0), call), *body) << "made once for each call";
}

TEST(FunctionBodies, WithoutAValueAnAttributeIsTheDefaultOrLeftOut) {
  onnx::ModelProto model = WithFunction(kNodes);
  {
    FunctionBodies bodies(model);
    const onnx::NodeProto call = Call();
    EXPECT_EQ((*bodies.BodyFor(model.functions(0), call))->graph.node(0).attribute_size(), 0);
  }
  onnx::FunctionProto* function = model.mutable_functions(0);
  constexpr int kAttributeProtoField = 11;  // which the protobuf classes of the build may lack
  const auto preset = Parsed<onnx::AttributeProto>("name: 'alpha' type: FLOAT f: 0.25");
  if (onnx::FunctionProto::descriptor()->FindFieldByNumber(kAttributeProtoField) == nullptr) {
    function->GetReflection()->MutableUnknownFields(function)->AddLengthDelimited(kAttributeProtoField,
                                                                                  preset.SerializeAsString());
    FunctionBodies bodies(model);
    const onnx::NodeProto plain = Call(), own = Call("attribute { name: 'alpha' type: FLOAT f: 0.5 }");
    EXPECT_EQ((*bodies.BodyFor(*function, plain))->graph.node(0).attribute(0).f(), 0.25);
    EXPECT_EQ((*bodies.BodyFor(*function, own))->graph.node(0).attribute(0).f(), 0.5);
  }
}

TEST(FunctionBodies, RefusesCallsThatDoNotFit) {
  const onnx::ModelProto model = WithFunction(kNodes), old = WithFunction(kNodes, 99);
  const onnx::NodeProto many = Call("input: 'x' input: 'x'"), plain = Call();
  const absl::Status inputs = FunctionBodies(model).BodyFor(model.functions(0), many).status();
  EXPECT_EQ(inputs.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(inputs.message(), "F \"call\" has 3 inputs and 1 outputs, its function has 2 and 2");
  const absl::Status opset = FunctionBodies(old).BodyFor(old.functions(0), plain).status();
  EXPECT_EQ(opset.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(opset.message()), HasSubstr("the function of F \"call\""));
}

// Each function hands the next one a graph that contains what it was given twice. Forty of them, in a file of some
// kilobytes, would make an attribute of 2^40 nodes.
TEST(FunctionBodies, AttributesThatGrowWithEachCallAreRefused) {
  std::string functions;
  constexpr int kDepth = 40;
  for (int f = 0; f < kDepth; ++f) {
    const std::string twice =
        "attribute { name: 'g' type: GRAPH g { node { op_type: 'A' attribute { name: 'h' ref_attr_name: 'g' type: "
        "GRAPH } "
        "} node { op_type: 'B' attribute { name: 'h' ref_attr_name: 'g' type: GRAPH } } } }";
    absl::StrAppend(&functions, "functions { name: 'F", f,
                    "' domain: 'own' input: 'a' output: 'b' attribute: 'g' opset_import { domain: '' version: 17 } "
                    "opset_import { domain: 'own' version: 1 } ",
                    f + 1 < kDepth ? absl::StrCat("node { op_type: 'F", f + 1,
                                                  "' domain: 'own' input: 'a' output: 'b' ", twice, " }")
                                   : std::string("node { op_type: 'Identity' input: 'a' output: 'b' }"),
                    " }\n");
  }
  onnx::ModelProto model = Parsed<onnx::ModelProto>(absl::StrCat(
      "ir_version: 8 opset_import { domain: '' version: 17 } opset_import { domain: 'own' version: 1 } ", functions,
      " graph { name: 'g' ", TensorInfo("input", "x", {"2"}), TensorInfo("output", "y", {"2"}),
      "node { op_type: 'F0' domain: 'own' input: 'x' output: 'y' attribute { name: 'g' type: GRAPH g { node { op_type: "
      "'Leaf' } } } } }"));
  const absl::Status status = ImportBytes(model.SerializeAsString()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("functions are copied into their calls"));
}

}  // namespace
}  // namespace fusion::onnx_import
