#include "compiler/onnx/attribute_import.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "onnx/onnx_pb.h"

namespace fusion::onnx_import {
namespace {

using onnx::AttributeProto;

// Files before IR version 2 leave the type out; there the field that is set gives the type.
AttributeProto::AttributeType TypeOf(const AttributeProto& proto) {
  if (proto.type() != AttributeProto::UNDEFINED) return proto.type();
  if (proto.has_f()) return AttributeProto::FLOAT;
  if (proto.has_i()) return AttributeProto::INT;
  if (proto.has_s()) return AttributeProto::STRING;
  if (proto.has_t()) return AttributeProto::TENSOR;
  if (proto.floats_size() > 0) return AttributeProto::FLOATS;
  if (proto.ints_size() > 0) return AttributeProto::INTS;
  if (proto.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

}  // namespace

absl::StatusOr<ecg::Attribute> TakeAttribute(AttributeProto* proto, const std::string& node) {
  const std::string what = absl::StrCat(node, ": attribute ", Quoted(proto->name()));
  switch (TypeOf(*proto)) {
    case AttributeProto::FLOAT:
      return ecg::Attribute(static_cast<double>(proto->f()));
    case AttributeProto::INT:
      return ecg::Attribute(static_cast<int64_t>(proto->i()));
    case AttributeProto::STRING:
      return ecg::Attribute(proto->s());
    case AttributeProto::FLOATS:
      return ecg::Attribute(std::vector<double>(proto->floats().begin(), proto->floats().end()));
    case AttributeProto::INTS:
      return ecg::Attribute(std::vector<int64_t>(proto->ints().begin(), proto->ints().end()));
    case AttributeProto::STRINGS:
      return ecg::Attribute(std::vector<std::string>(proto->strings().begin(), proto->strings().end()));
    case AttributeProto::TENSOR: {
      auto tensor = TakeTensor(proto->mutable_t(), what, nullptr);
      if (!tensor.ok()) return tensor.status();
      return ecg::Attribute(*std::move(tensor));
    }
    default:
      return absl::UnimplementedError(absl::StrCat(what, " is of a kind that is not supported"));
  }
}

absl::StatusOr<Tensor> TakeConstantValue(AttributeProto* proto, const std::string& node, ExternalFiles* files) {
  const std::string& name = proto->name();
  if (name == "value" && proto->has_t()) return TakeTensor(proto->mutable_t(), node, files);
  if (name == "value_float") return Tensor::From(DType::kF32, {}, std::vector<float>{proto->f()});
  if (name == "value_int") return Tensor::From(DType::kI64, {}, std::vector<int64_t>{proto->i()});
  if (name == "value_floats") {
    return Tensor::From(DType::kF32, {proto->floats_size()},
                        std::vector<float>(proto->floats().begin(), proto->floats().end()));
  }
  if (name == "value_ints") {
    return Tensor::From(DType::kI64, {proto->ints_size()},
                        std::vector<int64_t>(proto->ints().begin(), proto->ints().end()));
  }
  return absl::UnimplementedError(absl::StrCat(node, ": attribute ", Quoted(name), " is not supported"));
}

}  // namespace fusion::onnx_import
