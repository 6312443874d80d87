#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/rewriter.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

void AppendBytes(const void* data, size_t count, std::string* key) {
  absl::StrAppend(key, count, ":");
  if (count > 0) key->append(static_cast<const char*>(data), count);
}

void AppendTensor(const Tensor& tensor, std::string* key) {
  absl::StrAppend(key, DTypeName(tensor.dtype()), ShapeToString(tensor.shape()));
  AppendBytes(tensor.data(), static_cast<size_t>(tensor.size_bytes()), key);
}

// Injective: each part is delimited or length-prefixed.
struct AttributeKey {
  std::string* key;
  void operator()(int64_t value) const { absl::StrAppend(key, "i", value); }
  void operator()(double value) const { *key += 'f', AppendBytes(&value, sizeof(value), key); }
  void operator()(const std::string& value) const { *key += 's', AppendBytes(value.data(), value.size(), key); }
  void operator()(const std::vector<int64_t>& v) const {
    *key += 'I', AppendBytes(v.data(), v.size() * sizeof(v[0]), key);
  }
  void operator()(const std::vector<double>& v) const {
    *key += 'F', AppendBytes(v.data(), v.size() * sizeof(v[0]), key);
  }
  void operator()(const std::vector<std::string>& values) const {
    absl::StrAppend(key, "S", values.size(), ":");
    for (const std::string& value : values) AppendBytes(value.data(), value.size(), key);
  }
  void operator()(const Tensor& tensor) const { *key += 't', AppendTensor(tensor, key); }
};

std::string NodeKey(const ecg::Graph& graph, const ecg::Node& node, const std::vector<ecg::ValueId>& inputs) {
  std::string key = absl::StrCat(node.op, "(", absl::StrJoin(inputs, ","), ")");
  for (ecg::ValueId id : node.outputs) {
    const ecg::ValueType& type = graph.value(id).type;
    absl::StrAppend(&key, DTypeName(type.dtype), ShapeToString(type.shape));
  }
  for (const auto& [name, value] : node.attrs.all()) {
    AppendBytes(name.data(), name.size(), &key);
    std::visit(AttributeKey{&key}, value);
  }
  return key;
}

// Finds equal constants: looks them up by type and a sample of their bytes, then compares them in full. Hashing every
// weight would cost more than sharing saves.
class ConstantTable {
 public:
  // Returns the id of an equal constant seen before, else `id`.
  ecg::ValueId Intern(const Tensor& tensor, ecg::ValueId id) {
    const auto* bytes = static_cast<const char*>(tensor.data());
    const auto count = static_cast<size_t>(tensor.size_bytes());
    std::string key = absl::StrCat(DTypeName(tensor.dtype()), ShapeToString(tensor.shape()));
    const size_t sampled = std::min<size_t>(count, 64);
    for (size_t offset : {size_t{0}, count / 2 - std::min(sampled, count / 2), count - sampled}) {
      if (sampled > 0) key.append(bytes + offset, std::min(sampled, count - offset));
    }
    for (const auto& [other, other_id] : seen_[key]) {
      if (count == 0 || other.data() == tensor.data() || std::memcmp(other.data(), bytes, count) == 0) return other_id;
    }
    seen_[key].emplace_back(tensor, id);
    return id;
  }

 private:
  std::map<std::string, std::vector<std::pair<Tensor, ecg::ValueId>>> seen_;
};

}  // namespace

ecg::Graph ShareEqual(const ecg::Graph& graph) {
  ecg::Rewriter rewriter(graph);
  ConstantTable constants;
  for (size_t id = 0; id < graph.values().size(); ++id) {
    const ecg::Value& value = graph.values()[id];
    if (!value.constant.has_value() || value.consumers.empty()) continue;
    const ecg::ValueId first = constants.Intern(*value.constant, static_cast<ecg::ValueId>(id));
    if (first != static_cast<ecg::ValueId>(id)) rewriter.Bind(static_cast<ecg::ValueId>(id), rewriter.Map(first));
  }
  std::map<std::string, ecg::NodeId> seen;
  for (const ecg::Node& node : graph.nodes()) {
    std::vector<ecg::ValueId> inputs = rewriter.MapInputs(node);
    const std::string key = NodeKey(graph, node, inputs);
    if (auto it = seen.find(key); it != seen.end()) {
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        rewriter.Bind(node.outputs[i], rewriter.graph()->node(it->second).outputs[i]);
      }
    } else {
      seen.emplace(key, rewriter.CopyWith(node, std::move(inputs)));
    }
  }
  return rewriter.Finish();
}

}  // namespace fusion::simplify
