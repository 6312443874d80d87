#include "compiler/ops/registry/schema.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/ecg/rounded.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

bool Matches(AttrKind kind, const ecg::Attribute& value) {
  switch (kind) {
    case AttrKind::kInt:
      return std::holds_alternative<int64_t>(value);
    case AttrKind::kFloat:
      return std::holds_alternative<double>(value);
    case AttrKind::kString:
      return std::holds_alternative<std::string>(value);
    case AttrKind::kInts:
      return std::holds_alternative<std::vector<int64_t>>(value);
    case AttrKind::kFloats:
      return std::holds_alternative<std::vector<double>>(value);
    case AttrKind::kStrings:
      return std::holds_alternative<std::vector<std::string>>(value);
    case AttrKind::kTensor:
      return std::holds_alternative<Tensor>(value);
  }
  return false;
}

const AttrSpec* FindAttr(const OpDef& def, const std::string& name) {
  const auto spec = std::find_if(def.attrs.begin(), def.attrs.end(), [&](const AttrSpec& s) { return s.name == name; });
  return spec == def.attrs.end() ? nullptr : &*spec;
}

absl::Status CheckChoice(const AttrSpec& spec, const ecg::Attribute& value, const OpContext& context) {
  const std::string* text = std::get_if<std::string>(&value);
  if (text == nullptr || spec.choices.empty()) return absl::OkStatus();
  if (std::find(spec.choices.begin(), spec.choices.end(), *text) != spec.choices.end()) return absl::OkStatus();
  return context.Error(absl::StrCat("attribute '", spec.name, "' is '", absl::Utf8SafeCHexEscape(*text), "', one of ",
                                    absl::StrJoin(spec.choices, ", "), " is required"));
}

}  // namespace

absl::Status CheckSchema(const OpDef& def, const OpContext& context, int num_outputs) {
  const int given = static_cast<int>(context.inputs.size());
  if (def.max_inputs >= 0 && given > def.max_inputs) {
    return context.Error(absl::StrCat("has ", given, " inputs, at most ", def.max_inputs, " are allowed"));
  }
  // Every input of an operator with any number of inputs must be present.
  for (int i = 0; i < (def.max_inputs < 0 ? std::max(def.min_inputs, given) : def.min_inputs); ++i) {
    if (!context.Has(i)) return context.Error(absl::StrCat("input ", i, " is missing"));
  }
  if (def.num_outputs >= 0 && num_outputs > def.num_outputs) {
    return context.Error(absl::StrCat("has ", num_outputs, " outputs, at most ", def.num_outputs, " are allowed"));
  }
  for (const auto& [name, value] : context.attrs.all()) {
    if (name == ecg::kRounded) continue;  // InferTypes checks it, by the types of the results
    const AttrSpec* const spec = FindAttr(def, name);
    if (spec == nullptr) return context.Error(absl::StrCat("unknown attribute '", absl::Utf8SafeCHexEscape(name), "'"));
    if (!Matches(spec->kind, value)) return context.Error(absl::StrCat("attribute '", name, "' has the wrong type"));
    RETURN_IF_ERROR(CheckChoice(*spec, value, context));
  }
  for (const AttrSpec& spec : def.attrs) {
    if (spec.required && !context.attrs.Has(spec.name)) {
      return context.Error(absl::StrCat("attribute '", spec.name, "' is missing"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion::ops
