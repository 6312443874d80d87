#include "compiler/onnx/bind_inputs.h"

#include <optional>
#include <set>
#include <utility>

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

std::string Title(const std::string& name) { return absl::StrCat("graph input ", Quoted(name)); }

class Binder {
 public:
  explicit Binder(const ImportRequest& request) : request_(request) {}

  absl::StatusOr<BoundInput> Bind(const std::string& name, const onnx::TypeProto& type) {
    if (type.has_tensor_type()) return BindTensor(name, type.tensor_type());
    BoundInput input{name, ImportedValue::Kind::kSequence, {}, {}};
    if (type.has_sequence_type()) {
      const std::optional<int64_t> length = Length(absl::StrCat(name, "[]"));
      if (!length.has_value()) {
        unbound_.push_back(
            absl::StrCat("input ", Quoted(name), " is a sequence of unknown length: --dim ", name, "[]=N"));
      }
      if (length.value_or(0) > kMaxNodes) {
        return absl::ResourceExhaustedError(
            absl::StrCat(Title(name), " has ", *length, " elements, at most ", kMaxNodes));
      }
      for (int64_t i = 0; i < length.value_or(0); ++i) {
        ASSIGN_OR_RETURN(BoundInput element,
                         Bind(ElementName(name, static_cast<size_t>(i)), type.sequence_type().elem_type()));
        input.elements.push_back(std::move(element));
      }
      return input;
    }
    if (type.has_optional_type()) {
      input.kind = ImportedValue::Kind::kOptional;
      if (Length(absl::StrCat(name, "?")).value_or(1) == 0) return input;
      ASSIGN_OR_RETURN(BoundInput element, Bind(name, type.optional_type().elem_type()));
      input.elements.push_back(std::move(element));
      return input;
    }
    return absl::UnimplementedError(absl::StrCat(Title(name), " is no tensor, sequence or optional"));
  }

  // Returns INVALID_ARGUMENT for unbound dimensions, listing all of them, and for a binding that binds nothing.
  absl::Status Check() const;

 private:
  absl::StatusOr<BoundInput> BindTensor(const std::string& name, const onnx::TypeProto::Tensor& type);
  Shape BindShape(const std::string& name, const onnx::TypeProto::Tensor& type, std::vector<std::string>* symbols);

  // Returns a bound length that is no dimension of a tensor.
  std::optional<int64_t> Length(const std::string& name) {
    lengths_.insert(name);
    auto given = request_.dims.find(name);
    return given == request_.dims.end() ? std::nullopt : std::optional(given->second);
  }

  const ImportRequest& request_;
  std::set<std::string> tensors_, symbols_, lengths_;
  std::vector<std::string> unbound_;
};

// Returns the model's shape with bindings applied; each dimension that stays unknown becomes a line of `unbound_`.
Shape Binder::BindShape(const std::string& name, const onnx::TypeProto::Tensor& type,
                        std::vector<std::string>* symbols) {
  Shape shape;
  if (!type.has_shape()) {
    unbound_.push_back(absl::StrCat("input ", Quoted(name), " has no shape: --shape ", name, "=NxM…"));
    return shape;
  }
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    auto bound = dim.has_dim_param() ? request_.dims.find(dim.dim_param()) : request_.dims.end();
    symbols->push_back(bound == request_.dims.end() ? "" : bound->first);
    if (bound != request_.dims.end()) {
      shape.push_back(bound->second);
    } else if (dim.has_dim_value() && dim.dim_value() >= 0) {
      shape.push_back(dim.dim_value());
    } else if (dim.has_dim_param() && !dim.dim_param().empty()) {
      unbound_.push_back(absl::StrCat("dimension ", i, " of input ", Quoted(name), " is ", Quoted(dim.dim_param()),
                                      ": --dim ", dim.dim_param(), "=N"));
    } else {
      unbound_.push_back(
          absl::StrCat("dimension ", i, " of input ", Quoted(name), " has no name: --shape ", name, "=NxM…"));
    }
  }
  return shape;
}

absl::StatusOr<BoundInput> Binder::BindTensor(const std::string& name, const onnx::TypeProto::Tensor& type) {
  tensors_.insert(name);
  auto dtype = DTypeFromOnnx(type.elem_type());
  if (!dtype.ok()) return Annotate(dtype.status(), Title(name));
  for (const auto& dim : type.shape().dim()) {
    if (dim.has_dim_param()) symbols_.insert(dim.dim_param());
  }
  Shape shape;
  std::vector<std::string> symbols;
  if (auto it = request_.constant_inputs.find(name); it != request_.constant_inputs.end()) {
    if (it->second.dtype() != *dtype) {
      return absl::InvalidArgumentError(absl::StrCat("the constant given for input ", Quoted(name), " is ",
                                                     DTypeName(it->second.dtype()), ", the model wants ",
                                                     DTypeName(*dtype)));
    }
    shape = it->second.shape();
  } else if (auto given = request_.shapes.find(name); given != request_.shapes.end()) {
    shape = given->second;
  } else {
    shape = BindShape(name, type, &symbols);
  }
  symbols.resize(shape.size());
  if (static_cast<int>(shape.size()) > kMaxRank) {
    return absl::InvalidArgumentError(absl::StrCat(Title(name), ": rank ", shape.size(), " exceeds ", kMaxRank));
  }
  if (auto bytes = CheckedSizeBytes(shape, *dtype); !bytes.ok()) return Annotate(bytes.status(), Title(name));
  return BoundInput{name, ImportedValue::Kind::kTensor, {*dtype, std::move(shape)}, {}, std::move(symbols)};
}

absl::Status Binder::Check() const {
  for (const auto& [name, extent] : request_.dims) {
    const bool length = lengths_.count(name) != 0;
    if (!length && symbols_.count(name) == 0) {
      std::set<std::string> all = symbols_;
      all.insert(lengths_.begin(), lengths_.end());
      return absl::InvalidArgumentError(absl::StrCat("the model has no symbolic dimension ", Quoted(name), "; it has ",
                                                     all.empty() ? "none" : NameList(all)));
    }
    const int least = length ? 0 : 1;
    if (extent < least) {
      return absl::InvalidArgumentError(absl::StrCat("--dim ", name, "=", extent, " must be at least ", least));
    }
  }
  std::set<std::string> named;
  for (const auto& [name, shape] : request_.shapes) named.insert(name);
  for (const auto& [name, tensor] : request_.constant_inputs) named.insert(name);
  for (const std::string& name : named) {
    if (tensors_.count(name) == 0) {
      return absl::InvalidArgumentError(absl::StrCat("the model has no input ", Quoted(name), "; it has ",
                                                     tensors_.empty() ? "none" : NameList(tensors_)));
    }
  }
  if (unbound_.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("shapes must be known to compile; bind them: ", absl::StrJoin(unbound_, "; ")));
}

}  // namespace

std::string ElementName(const std::string& name, size_t i) { return absl::StrCat(name, "[", i, "]"); }

absl::StatusOr<std::vector<BoundInput>> BindInputs(const onnx::GraphProto& graph, const ImportRequest& request) {
  std::set<std::string> initializers, seen;
  for (const auto& tensor : graph.initializer()) initializers.insert(tensor.name());
  std::vector<BoundInput> result;
  Binder binder(request);
  for (const auto& input : graph.input()) {
    if (initializers.count(input.name()) != 0) continue;  // up to IR version 3 initializers are inputs with a default
    if (!seen.insert(input.name()).second) {
      return absl::InvalidArgumentError(absl::StrCat(Title(input.name()), " is defined twice"));
    }
    ASSIGN_OR_RETURN(BoundInput bound, binder.Bind(input.name(), input.type()));
    result.push_back(std::move(bound));
  }
  RETURN_IF_ERROR(binder.Check());
  return result;
}

}  // namespace fusion::onnx_import
