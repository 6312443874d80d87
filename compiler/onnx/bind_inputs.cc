#include "compiler/onnx/bind_inputs.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/onnx/limits.h"
#include "compiler/onnx/tensor_import.h"
#include "runtime/base/status_macros.h"

namespace fusion::onnx_import {
namespace {

std::string NameList(const std::set<std::string>& names) {
  return absl::StrJoin(names, ", ", [](std::string* out, const std::string& name) { *out += Quoted(name); });
}

// The model's shape with bindings applied; each dimension that stays unknown becomes a line of `unbound`.
Shape BindShape(const onnx::ValueInfoProto& input, const ImportRequest& request, std::vector<std::string>* unbound) {
  Shape shape;
  const auto& proto = input.type().tensor_type();
  if (!proto.has_shape()) {
    unbound->push_back(absl::StrCat("input ", Quoted(input.name()), " has no shape: --shape ", input.name(), "=NxM…"));
    return shape;
  }
  for (int i = 0; i < proto.shape().dim_size(); ++i) {
    const auto& dim = proto.shape().dim(i);
    auto bound = dim.has_dim_param() ? request.dims.find(dim.dim_param()) : request.dims.end();
    if (bound != request.dims.end()) {
      shape.push_back(bound->second);
    } else if (dim.has_dim_value() && dim.dim_value() >= 0) {
      shape.push_back(dim.dim_value());
    } else if (dim.has_dim_param() && !dim.dim_param().empty()) {
      unbound->push_back(absl::StrCat("dimension ", i, " of input ", Quoted(input.name()), " is ",
                                      Quoted(dim.dim_param()), ": --dim ", dim.dim_param(), "=N"));
    } else {
      unbound->push_back(absl::StrCat("dimension ", i, " of input ", Quoted(input.name()), " has no name: --shape ",
                                      input.name(), "=NxM…"));
    }
  }
  return shape;
}

absl::Status CheckBindings(const std::set<std::string>& inputs, const std::set<std::string>& symbols,
                           const ImportRequest& request) {
  for (const auto& [name, extent] : request.dims) {
    if (symbols.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the model has no symbolic dimension ", Quoted(name), "; it has ",
                                                     symbols.empty() ? "none" : NameList(symbols)));
    }
    if (extent < 1) return absl::InvalidArgumentError(absl::StrCat("--dim ", name, "=", extent, " must be at least 1"));
  }
  std::set<std::string> named;
  for (const auto& [name, shape] : request.shapes) named.insert(name);
  for (const auto& [name, tensor] : request.constant_inputs) named.insert(name);
  for (const std::string& name : named) {
    if (inputs.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the model has no input ", Quoted(name), "; it has ",
                                                     inputs.empty() ? "none" : NameList(inputs)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::pair<std::string, ecg::ValueType>>> BindInputs(const onnx::GraphProto& graph,
                                                                               const ImportRequest& request) {
  std::set<std::string> initializers, inputs, symbols;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::vector<std::pair<std::string, ecg::ValueType>> result;
  std::vector<std::string> unbound;
  for (const auto& input : graph.input()) {
    if (initializers.count(input.name()) != 0) continue;  // up to IR version 3 initializers are inputs with a default
    if (!inputs.insert(input.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat("graph input ", Quoted(input.name()), " is defined twice"));
    }
    if (!input.type().has_tensor_type()) {
      return absl::UnimplementedError(absl::StrCat("graph input ", Quoted(input.name()), " is no tensor"));
    }
    auto dtype = DTypeFromOnnx(input.type().tensor_type().elem_type());
    if (!dtype.ok()) return Annotate(dtype.status(), absl::StrCat("graph input ", Quoted(input.name())));
    for (const auto& dim : input.type().tensor_type().shape().dim()) {
      if (dim.has_dim_param()) symbols.insert(dim.dim_param());
    }
    Shape shape;
    if (auto it = request.constant_inputs.find(input.name()); it != request.constant_inputs.end()) {
      if (it->second.dtype() != *dtype) {
        return absl::InvalidArgumentError(absl::StrCat("the constant given for input ", Quoted(input.name()), " is ",
                                                       DTypeName(it->second.dtype()), ", the model wants ",
                                                       DTypeName(*dtype)));
      }
      shape = it->second.shape();
    } else if (auto given = request.shapes.find(input.name()); given != request.shapes.end()) {
      shape = given->second;
    } else {
      shape = BindShape(input, request, &unbound);
    }
    if (static_cast<int>(shape.size()) > kMaxRank) {
      return absl::InvalidArgumentError(
          absl::StrCat("graph input ", Quoted(input.name()), ": rank ", shape.size(), " exceeds ", kMaxRank));
    }
    if (auto bytes = CheckedSizeBytes(shape, *dtype); !bytes.ok()) {
      return Annotate(bytes.status(), absl::StrCat("graph input ", Quoted(input.name())));
    }
    result.emplace_back(input.name(), ecg::ValueType{*dtype, std::move(shape)});
  }
  RETURN_IF_ERROR(CheckBindings(inputs, symbols, request));
  if (!unbound.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("shapes must be known to compile; bind them: ", absl::StrJoin(unbound, "; ")));
  }
  return result;
}

}  // namespace fusion::onnx_import
