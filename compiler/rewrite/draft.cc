#include "compiler/rewrite/draft.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "absl/status/status.h"
#include "compiler/ops/registry/infer_types.h"
#include "compiler/ops/registry/op_def.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

// Converts a value to the kind of attribute that the operator's schema asks for.
absl::StatusOr<ecg::Attribute> ToAttribute(const std::string& op, const std::string& name, const FunctionValue& value) {
  for (const ops::AttrSpec& spec : ops::FindOp(op)->attrs) {
    if (name != spec.name) continue;
    if (const auto* text = std::get_if<std::string>(&value)) return ecg::Attribute(*text);
    if (const auto* list = std::get_if<Ints>(&value)) return ecg::Attribute(*list);
    const double number = std::get<double>(value);
    if (spec.kind == ops::AttrKind::kInt) return ecg::Attribute(static_cast<int64_t>(number));
    return ecg::Attribute(number);
  }
  return absl::InternalError(absl::StrCat(op, " has no attribute ", name));
}

}  // namespace

Scope Draft::ScopeOf(const Match& match, Ranges* ranges) const {
  Scope scope;
  scope.attrs = match.attrs;
  for (const ecg::ValueId id : bound_) {
    scope.values.push_back(id == ecg::kNone ? nullptr : &value(id));
    scope.known.push_back(id != ecg::kNone && IsKnown(id));
  }
  scope.reduced = [this](int slot) {
    const ecg::ValueId id = bound_[slot];
    return id != ecg::kNone && id < base_ && graph_->IsReduced(id);
  };
  scope.range = [this, ranges](int slot) {
    return bound_[slot] == ecg::kNone ? te::ValueRange() : RangeOf(bound_[slot], ranges);
  };
  return scope;
}

absl::StatusOr<Draft> Draft::Make(const WorkGraph& graph, const Rule& rule, const Match& match, Ranges* ranges) {
  Draft draft(graph);
  draft.root_ = match.variables[0].values[0];
  const size_t slots = rule.variables.size();
  draft.bound_.assign(slots, ecg::kNone);
  Scope scope = draft.ScopeOf(match, ranges);
  const auto bind = [&](size_t slot, ecg::ValueId id) {
    draft.bound_[slot] = id;
    scope.values[slot] = id == ecg::kNone ? nullptr : &draft.value(id);
    scope.known[slot] = id != ecg::kNone && draft.IsKnown(id);
  };
  for (size_t slot = 0; slot < slots; ++slot) {
    const std::vector<ecg::ValueId>& values = match.variables[slot].values;
    if (values.empty()) continue;
    ASSIGN_OR_RETURN(const ecg::ValueId joined, draft.Join(match.joined_by[slot], values));
    bind(slot, joined);
  }
  for (const Guard& guard : rule.guards) {
    ASSIGN_OR_RETURN(const bool holds, Holds(guard, scope));
    if (!holds) return absl::FailedPreconditionError("a guard does not hold");
  }
  const ecg::ValueType type = draft.value(draft.root_).type;
  for (const auto& [slot, term] : rule.lets) {
    ASSIGN_OR_RETURN(const ecg::ValueId id, draft.Build(term, match, scope, type.dtype));
    bind(slot, id);
  }
  ASSIGN_OR_RETURN(const ecg::ValueId built, draft.Build(rule.replacement, match, scope, type.dtype));
  std::vector<ecg::ValueId> operands = match.rest;
  operands.push_back(built);
  ASSIGN_OR_RETURN(draft.result_, draft.Join(rule.pattern.ops[0], std::move(operands)));
  if (draft.result_ == draft.root_) return absl::FailedPreconditionError("nothing would change");
  if (!(draft.value(draft.result_).type == type)) return absl::FailedPreconditionError("the type would change");
  return draft;
}

te::ValueRange Draft::RangeOf(ecg::ValueId id, Ranges* ranges) const {
  if (id < base_) return ranges->Of(id);
  const ecg::Value& wanted = value(id);
  if (wanted.constant.has_value()) return te::RangeOf(*wanted.constant);
  const ecg::Node& node = nodes_[wanted.producer];
  std::vector<const ecg::Value*> inputs;
  std::vector<te::ValueRange> known;
  for (const ecg::ValueId input : node.inputs) {
    inputs.push_back(input == ecg::kNone ? nullptr : &value(input));
    known.push_back(input == ecg::kNone ? te::ValueRange() : RangeOf(input, ranges));
  }
  std::vector<const te::ValueRange*> operands;
  for (size_t i = 0; i < known.size(); ++i) operands.push_back(inputs[i] == nullptr ? nullptr : &known[i]);
  return rewrite::RangeOf(node, inputs, operands, {wanted.type}, 0);
}

bool Draft::ComputesTame(const Rule& rule, const Match& match, Ranges* ranges) const {
  const auto tame = [&](ecg::ValueId id) { return !IsFloat(value(id).type.dtype) || IsTame(RangeOf(id, ranges)); };
  // Values bound to variables end the pattern. Values of an operator with a name (y:Conv) lie inside the pattern.
  std::set<int> inside{0};
  const std::function<void(const Term&)> note = [&](const Term& term) {
    if (term.kind == Term::Kind::kOp && term.slot >= 0) inside.insert(term.slot);
    for (const Term& arg : term.args) note(arg);
  };
  note(rule.pattern);
  std::set<ecg::ValueId> leaves(match.rest.begin(), match.rest.end());
  for (size_t slot = 0; slot < match.variables.size(); ++slot) {
    if (inside.count(static_cast<int>(slot)) != 0) continue;
    leaves.insert(match.variables[slot].values.begin(), match.variables[slot].values.end());
  }
  // The values that are read come first, because usually nothing is known of them, which ends the search.
  if (!std::all_of(leaves.begin(), leaves.end(), tame)) return false;
  std::set<ecg::ValueId> seen = leaves;
  std::vector<ecg::ValueId> stack{root_};
  while (!stack.empty()) {
    const ecg::ValueId id = stack.back();
    stack.pop_back();
    if (id == ecg::kNone || !seen.insert(id).second) continue;
    if (!tame(id)) return false;
    const ecg::NodeId producer = graph_->value(id).producer;
    if (producer == ecg::kNone) continue;
    const ecg::Node& node = graph_->node(producer);
    stack.insert(stack.end(), node.inputs.begin(), node.inputs.end());
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!tame(base_ + static_cast<ecg::ValueId>(i))) return false;
  }
  return true;
}

bool Draft::MeetsDemands(const Rule& rule, const Match& match, Ranges* ranges) const {
  // Regrouping moves operands that the pattern does not name: in (a·√b)·(√b·c) = b·(a·c) the product a·c may overflow.
  const bool regroups = !match.rest.empty() || std::any_of(match.joined_by.begin(), match.joined_by.end(),
                                                           [](const std::string& op) { return !op.empty(); });
  if (regroups && IsFloat(value(root_).type.dtype) && !ComputesTame(rule, match, ranges)) return false;
  Scope scope = ScopeOf(match, ranges);
  scope.tame = [&] { return ComputesTame(rule, match, ranges); };
  return std::all_of(rule.demands.begin(), rule.demands.end(), [&](const Guard& demand) {
    const absl::StatusOr<bool> holds = Holds(demand, scope);
    return holds.ok() && *holds;
  });
}

ecg::ValueId Draft::AddConstant(Tensor tensor) {
  ecg::Value value;
  value.type = {tensor.dtype(), tensor.shape()};
  value.constant = std::move(tensor);
  values_.push_back({std::move(value), true});
  return base_ + static_cast<ecg::ValueId>(values_.size()) - 1;
}

ecg::ValueId Draft::FindEqual(const std::string& op, const std::vector<ecg::ValueId>& inputs,
                              const ecg::Attributes& attrs) const {
  for (const ecg::Node& node : nodes_) {
    if (node.op == op && node.inputs == inputs && SameAttributes(node.attrs, attrs)) return node.outputs[0];
  }
  if (std::any_of(inputs.begin(), inputs.end(), [&](ecg::ValueId id) { return id >= base_; })) return ecg::kNone;
  const auto first = std::find_if(inputs.begin(), inputs.end(), [](ecg::ValueId id) { return id != ecg::kNone; });
  if (first == inputs.end()) return ecg::kNone;
  for (ecg::NodeId id : graph_->value(*first).consumers) {
    const ecg::Node& node = graph_->node(id);
    if (node.op == op && node.inputs == inputs && node.outputs.size() == 1 && SameAttributes(node.attrs, attrs)) {
      return node.outputs[0];
    }
  }
  return ecg::kNone;
}

absl::StatusOr<ecg::ValueId> Draft::AddNode(const std::string& op, std::vector<ecg::ValueId> inputs,
                                            ecg::Attributes attrs) {
  while (!inputs.empty() && inputs.back() == ecg::kNone) inputs.pop_back();
  const ecg::ValueId equal = FindEqual(op, inputs, attrs);
  if (equal != ecg::kNone) return equal;
  ecg::Node node;
  node.op = op;
  node.inputs = std::move(inputs);
  node.attrs = std::move(attrs);
  std::vector<const ecg::Value*> views;
  bool known = !node.inputs.empty();
  for (ecg::ValueId id : node.inputs) {
    views.push_back(id == ecg::kNone ? nullptr : &value(id));
    known = known && (id == ecg::kNone || IsKnown(id));
  }
  ASSIGN_OR_RETURN(const std::vector<ecg::ValueType> types,
                   ops::InferTypes(ops::OpContext(node.op, node.name, node.attrs, views), 1));
  DraftValue output;
  output.value.type = types[0];
  output.value.producer = static_cast<ecg::NodeId>(nodes_.size());
  output.known = known && IsFolded(node, views, {&output.value});
  values_.push_back(std::move(output));
  node.outputs = {base_ + static_cast<ecg::ValueId>(values_.size()) - 1};
  nodes_.push_back(std::move(node));
  return nodes_.back().outputs[0];
}

// Joins constants first, so that they fold, then small operands.
absl::StatusOr<ecg::ValueId> Draft::Join(const std::string& op, std::vector<ecg::ValueId> values) {
  std::stable_sort(values.begin(), values.end(), [&](ecg::ValueId a, ecg::ValueId b) {
    const int64_t x = NumElements(value(a).type.shape), y = NumElements(value(b).type.shape);
    return std::make_pair(!IsKnown(a), x) < std::make_pair(!IsKnown(b), y);
  });
  ecg::ValueId result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    ASSIGN_OR_RETURN(result, AddNode(op, {values[i], result}, {}));
  }
  return result;
}

absl::StatusOr<ecg::ValueId> Draft::Build(const Term& term, const Match& match, const Scope& scope, DType number_type) {
  switch (term.kind) {
    case Term::Kind::kAbsent:
      return ecg::kNone;
    case Term::Kind::kVariable:
      return bound_[term.slot];
    case Term::Kind::kOp: {
      // A number takes the type of the operand beside it.
      std::vector<ecg::ValueId> inputs(term.args.size(), ecg::kNone);
      const auto is_number = [](const Term& arg) {
        return arg.kind == Term::Kind::kNumber || arg.kind == Term::Kind::kCall;
      };
      DType beside = number_type;
      for (size_t i = term.args.size(); i-- > 0;) {
        if (is_number(term.args[i])) continue;
        ASSIGN_OR_RETURN(inputs[i], Build(term.args[i], match, scope, number_type));
        if (inputs[i] != ecg::kNone && term.args[i].kind != Term::Kind::kList) beside = value(inputs[i]).type.dtype;
      }
      for (size_t i = 0; i < term.args.size(); ++i) {
        if (!is_number(term.args[i])) continue;
        ASSIGN_OR_RETURN(inputs[i], Build(term.args[i], match, scope, beside));
      }
      ecg::Attributes attrs;
      if (term.attrs_slot >= 0) attrs = *match.attrs[term.attrs_slot];
      for (const auto& [name, value_term] : term.attrs) {
        ASSIGN_OR_RETURN(const FunctionValue function_value, Evaluate(value_term, scope));
        ASSIGN_OR_RETURN(ecg::Attribute attribute, ToAttribute(term.ops[0], name, function_value));
        attrs.Set(name, std::move(attribute));
      }
      return AddNode(term.ops[0], std::move(inputs), std::move(attrs));
    }
    case Term::Kind::kString:
      return absl::InternalError("a string is no tensor");
    default: {
      ASSIGN_OR_RETURN(const FunctionValue function_value, Evaluate(term, scope));
      if (const double* number = std::get_if<double>(&function_value)) {
        return AddConstant(Tensor::From<double>(number_type, {}, {*number}));
      }
      if (const Ints* list = std::get_if<Ints>(&function_value)) {
        return AddConstant(Tensor::From(DType::kI64, {static_cast<int64_t>(list->size())}, *list));
      }
      return absl::InternalError("a string is no tensor");
    }
  }
}

Cost Draft::Saving() const {
  Cost added;
  std::map<ecg::ValueId, int> uses;  // of the graph's values, as they would be after the replacement
  const auto uses_of = [&](ecg::ValueId id) -> int& { return uses.emplace(id, graph_->Uses(id)).first->second; };
  // Counts only what the result needs, because bindings may have built more.
  std::set<ecg::NodeId> needed;
  std::vector<ecg::ValueId> stack{result_};
  while (!stack.empty()) {
    const ecg::ValueId id = stack.back();
    stack.pop_back();
    if (id == ecg::kNone) continue;
    if (id < base_) {
      ++uses_of(id);
      continue;
    }
    const ecg::NodeId producer = values_[id - base_].value.producer;
    if (producer == ecg::kNone || !needed.insert(producer).second) continue;
    const ecg::Node& node = nodes_[producer];
    std::vector<const ecg::Value*> inputs;
    bool known = true;
    for (ecg::ValueId input : node.inputs) {
      inputs.push_back(input == ecg::kNone ? nullptr : &value(input));
      known = known && (input == ecg::kNone || IsKnown(input));
      stack.push_back(input);
    }
    added += CostOf(node, inputs, {&value(node.outputs[0])}, known);
  }

  Cost removed;
  uses_of(root_) = 0;
  stack = {root_};
  std::set<ecg::NodeId> dead;
  while (!stack.empty()) {
    const ecg::NodeId producer = graph_->value(stack.back()).producer;
    stack.pop_back();
    if (producer == ecg::kNone || dead.count(producer) != 0) continue;
    const ecg::Node& node = graph_->node(producer);
    if (std::any_of(node.outputs.begin(), node.outputs.end(), [&](ecg::ValueId id) { return uses_of(id) != 0; })) {
      continue;
    }
    dead.insert(producer);
    removed += graph_->NodeCost(producer);
    for (ecg::ValueId input : node.inputs) {
      if (input == ecg::kNone) continue;
      --uses_of(input);
      stack.push_back(input);
    }
  }
  return removed - added;
}

ecg::ValueId Draft::Commit(WorkGraph* graph) const {
  std::map<ecg::ValueId, ecg::ValueId> map;
  const int order = graph->Order(graph->value(root_).producer);
  const std::string node_name = graph->node(graph->value(root_).producer).name;
  for (size_t i = 0; i < values_.size(); ++i) {
    map[base_ + static_cast<ecg::ValueId>(i)] = graph->AddValue(values_[i].value);
  }
  const auto mapped = [&](ecg::ValueId id) { return id < base_ ? id : map.at(id); };
  std::vector<ecg::NodeId> added;
  for (const ecg::Node& draft_node : nodes_) {
    ecg::Node node = draft_node;
    node.name = node_name;
    for (ecg::ValueId& id : node.inputs) id = mapped(id);
    added.push_back(
        graph->AddNode(std::move(node), {mapped(draft_node.outputs[0])}, {value(draft_node.outputs[0]).type}, order));
  }
  const ecg::ValueId result = mapped(result_);
  graph->Replace(root_, result);
  for (ecg::NodeId id : added) graph->RemoveIfUnused(id);  // bindings that the replacement does not use
  return result;
}

}  // namespace fusion::rewrite
