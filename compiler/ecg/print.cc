#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/graph.h"
#include "compiler/ecg/text.h"
#include "runtime/base/sha256.h"

namespace fusion::ecg {
namespace {

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  std::string text;
  for (int digits : {6, 9, 17}) {
    text = absl::StrFormat("%.*g", digits, value);
    if (std::strtod(text.c_str(), nullptr) == value) break;
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string Quoted(const std::string& text) { return absl::StrCat("\"", absl::CHexEscape(text), "\""); }

std::string Identifier(const std::string& name, const std::string& otherwise) {
  if (name.empty() || !(absl::ascii_isalpha(name[0]) || name[0] == '_') || name == "_") return otherwise;
  return std::all_of(name.begin(), name.end(), IsIdentifierChar) ? name : otherwise;
}

// Returns a unique printable name for every value.
std::vector<std::string> ValueNames(const Graph& graph) {
  std::vector<std::string> names(graph.values().size());
  std::set<std::string> taken;
  for (size_t id = 0; id < names.size(); ++id) {
    const std::string name = Identifier(graph.values()[id].name, "");
    if (!name.empty() && taken.insert(name).second) names[id] = name;
  }
  for (size_t id = 0; id < names.size(); ++id) {
    if (!names[id].empty()) continue;
    names[id] = absl::StrCat("v", id);
    while (!taken.insert(names[id]).second) names[id] += "_";
  }
  return names;
}

std::string TensorText(const Tensor& tensor) {
  const int64_t count = tensor.num_elements();
  if (count > kMaxPrintedElements) return absl::StrCat("#", absl::StrFormat("%016x", ConstantDigest(tensor)));
  std::vector<std::string> elements;
  for (int64_t i = 0; i < count; ++i) {
    elements.push_back(IsFloat(tensor.dtype()) ? FloatText(tensor.GetDouble(i)) : absl::StrCat(tensor.GetInt(i)));
  }
  return absl::StrCat("{", absl::StrJoin(elements, ", "), "}");
}

std::string TypeText(const ValueType& type) { return absl::StrCat(DTypeName(type.dtype), ShapeToString(type.shape)); }

struct AttributeText {
  std::string operator()(int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return FloatText(value); }
  std::string operator()(const std::string& value) const { return Quoted(value); }
  std::string operator()(const std::vector<int64_t>& values) const {
    return absl::StrCat("ints[", absl::StrJoin(values, ", "), "]");
  }
  std::string operator()(const std::vector<double>& values) const {
    return absl::StrCat("floats[",
                        absl::StrJoin(values, ", ", [](std::string* out, double v) { *out += FloatText(v); }), "]");
  }
  std::string operator()(const std::vector<std::string>& values) const {
    return absl::StrCat("strings[",
                        absl::StrJoin(values, ", ", [](std::string* out, const std::string& v) { *out += Quoted(v); }),
                        "]");
  }
  std::string operator()(const Tensor& tensor) const {
    return absl::StrCat(TypeText({tensor.dtype(), tensor.shape()}), " ", TensorText(tensor));
  }
};

// Returns text like "[_, %n]", or "" where no dimension has an extent.
std::string ExtentsText(const Graph& graph, int output, const std::vector<std::string>& names) {
  std::vector<std::string> dims(graph.value(graph.outputs()[output]).type.shape.size(), "_");
  bool any = false;
  for (const OutputExtent& extent : graph.output_extents()) {
    if (extent.output != output) continue;
    dims[extent.dim] = absl::StrCat("%", names[graph.outputs()[extent.extent]]);
    any = true;
  }
  return any ? absl::StrCat("[", absl::StrJoin(dims, ", "), "]") : "";
}

}  // namespace

uint64_t ConstantDigest(const Tensor& tensor) {
  const auto* bytes = static_cast<const char*>(tensor.data());
  const size_t count = static_cast<size_t>(tensor.size_bytes());
  if (count == 0) return 0;
  uint64_t first = 0;
  std::memcpy(&first, bytes, std::min<size_t>(count, 8));
  bool filled = count >= 8;
  for (size_t i = 8; filled && i < count; ++i) filled = bytes[i] == bytes[i - 8];
  if (filled) return first;
  uint64_t digest = 0;
  (void)absl::SimpleHexAtoi(Sha256Hex(absl::string_view(bytes, count)).substr(0, 16), &digest);
  return tensor.dtype() == DType::kBool ? digest & 0x0101010101010101u : digest;
}

std::string Print(const Attributes& attributes) {
  return absl::StrJoin(attributes.all(), ", ", [](std::string* out, const auto& attribute) {
    absl::StrAppend(out, attribute.first, " = ", std::visit(AttributeText(), attribute.second));
  });
}

std::string Print(const Graph& graph) {
  const std::vector<std::string> names = ValueNames(graph);
  auto typed = [&](ValueId id) { return absl::StrCat("%", names[id], ": ", TypeText(graph.value(id).type)); };
  std::string text = absl::StrCat("graph ", Identifier(graph.name, "g"), "(");
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ", ", typed(graph.inputs()[i]));
  }
  text += ") {\n";
  for (size_t id = 0; id < names.size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.constant.has_value())
      absl::StrAppend(&text, "  ", typed(id), value.opaque ? " = opaque " : " = const ", TensorText(*value.constant),
                      "\n");
  }
  for (const Node& node : graph.nodes()) {
    std::vector<std::string> outputs, inputs;
    for (ValueId id : node.outputs) outputs.push_back(typed(id));
    for (ValueId id : node.inputs) inputs.push_back(id == kNone ? "_" : absl::StrCat("%", names[id]));
    absl::StrAppend(&text, "  ", absl::StrJoin(outputs, ", "), " = ", node.op, "(", absl::StrJoin(inputs, ", "), ")");
    if (!node.attrs.all().empty()) absl::StrAppend(&text, " {", Print(node.attrs), "}");
    text += "\n";
  }
  text += "  return ";
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    if (graph.output_names()[i].empty()) continue;  // this output is only an extent
    const std::string& printed = names[graph.outputs()[i]];
    absl::StrAppend(&text, i == 0 ? "%" : ", %", printed, ExtentsText(graph, static_cast<int>(i), names));
    if (graph.output_names()[i] != printed) absl::StrAppend(&text, " as ", Quoted(graph.output_names()[i]));
  }
  return text + "\n}\n";
}

}  // namespace fusion::ecg
