#include "compiler/rewrite/match.h"

#include <algorithm>
#include <cstring>

#include "compiler/rewrite/functions.h"

namespace fusion::rewrite {
namespace {

constexpr size_t kMaxOperands = 8;  // matching is exponential in them; longer chains match at their inner nodes
constexpr int kMaxSteps = 20000;    // per rule and root: a bound on backtracking

bool SameAttribute(const ecg::Attribute& attribute, const Term& wanted) {
  if (wanted.kind == Term::Kind::kString) {
    const auto* text = std::get_if<std::string>(&attribute);
    return text != nullptr && *text == wanted.text;
  }
  if (wanted.kind == Term::Kind::kNumber) {
    if (const auto* i = std::get_if<int64_t>(&attribute)) return static_cast<double>(*i) == wanted.number;
    const auto* f = std::get_if<double>(&attribute);
    return f != nullptr && *f == wanted.number;
  }
  return false;
}

class Matcher {
 public:
  using Next = absl::FunctionRef<bool()>;  // false stops the search

  Matcher(const WorkGraph& graph, const Rule& rule, bool reassociate, absl::FunctionRef<bool(const Match&)> visit)
      : graph_(graph), rule_(rule), reassociate_(reassociate), visit_(visit) {
    match_.variables.resize(rule.variables.size());
    match_.joined_by.resize(rule.variables.size());
    match_.attrs.resize(rule.attr_variables.size(), nullptr);
  }

  void Run(ecg::NodeId root) {
    const ecg::Node& node = graph_.node(root);
    if (node.outputs.size() != 1) return;
    match_.variables[0] = {true, {node.outputs[0]}};
    MatchOp(rule_.pattern, node.outputs[0], /*is_root=*/true, [&] { return visit_(match_); });
  }
  int steps() const { return steps_; }

 private:
  // All Match* return false when the search must stop. On a mismatch they return true without calling `next`.
  bool MatchTerm(const Term& term, ecg::ValueId value, Next next) {
    if (++steps_ > kMaxSteps) return false;
    switch (term.kind) {
      case Term::Kind::kVariable:
        if (value == ecg::kNone) return !term.optional || Bind(term.slot, {}, "", next);
        return (term.constant && !graph_.IsKnown(value)) || Bind(term.slot, {value}, "", next);
      case Term::Kind::kNumber:
        return value == ecg::kNone || !IsFilledWith(graph_.value(value), term.number) || next();
      case Term::Kind::kAbsent:
        return value != ecg::kNone || next();
      case Term::Kind::kOp:
        return value == ecg::kNone || MatchOp(term, value, false, next);
      default:
        return true;
    }
  }

  bool Bind(int slot, std::vector<ecg::ValueId> values, const std::string& joined_by, Next next) {
    Bound& bound = match_.variables[slot];
    if (bound.set) return match_.joined_by[slot] != joined_by || !Same(bound.values, values) || next();
    bound = {true, std::move(values)};
    match_.joined_by[slot] = joined_by;
    const bool go_on = next();
    match_.variables[slot] = {};
    return go_on;
  }

  bool Same(const std::vector<ecg::ValueId>& a, const std::vector<ecg::ValueId>& b) const {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [&](ecg::ValueId x, ecg::ValueId y) {
             if (x == y) return true;
             const std::optional<Tensor>&u = graph_.value(x).constant, &v = graph_.value(y).constant;
             return u.has_value() && v.has_value() && u->dtype() == v->dtype() && u->shape() == v->shape() &&
                    (u->data() == v->data() || std::memcmp(u->data(), v->data(), u->size_bytes()) == 0);
           });
  }

  bool MatchOp(const Term& term, ecg::ValueId value, bool is_root, Next next) {
    const ecg::NodeId producer = graph_.value(value).producer;
    if (producer == ecg::kNone) return true;
    const ecg::Node& node = graph_.node(producer);
    if (node.outputs.size() != 1 || std::find(term.ops.begin(), term.ops.end(), node.op) == term.ops.end()) return true;
    return MatchAttrs(term, node, [&] {
      const auto args = [&] {
        if (term.flat.empty()) return MatchArgs(term.args, node.inputs, 0, next);
        if (!reassociate_) return MatchEitherOrder(term, node, next);
        std::vector<ecg::ValueId> operands;
        CollectOperands(node, &operands);
        std::vector<bool> used(operands.size(), false);
        return MatchOperands(term, operands, 0, &used, is_root, next);
      };
      return term.slot < 0 ? args() : Bind(term.slot, {value}, "", args);
    });
  }

  bool MatchAttrs(const Term& term, const ecg::Node& node, Next next) {
    for (const auto& [name, wanted] : term.attrs) {
      const auto it = node.attrs.all().find(name);
      if (it == node.attrs.all().end() || !SameAttribute(it->second, wanted)) return true;
    }
    const bool others_allowed = term.ignore_attrs || term.attrs_slot >= 0;
    if (!others_allowed && node.attrs.all().size() != term.attrs.size()) return true;
    if (term.attrs_slot < 0) return next();
    const ecg::Attributes*& bound = match_.attrs[term.attrs_slot];
    if (bound != nullptr) return !SameAttributes(*bound, node.attrs) || next();
    bound = &node.attrs;
    const bool go_on = next();
    bound = nullptr;
    return go_on;
  }

  bool MatchArgs(const std::vector<Term>& terms, const std::vector<ecg::ValueId>& inputs, size_t i, Next next) {
    if (i == std::max(terms.size(), inputs.size())) return next();
    if (i >= terms.size()) return inputs[i] != ecg::kNone || MatchArgs(terms, inputs, i + 1, next);
    return MatchTerm(terms[i], i < inputs.size() ? inputs[i] : ecg::kNone,
                     [&] { return MatchArgs(terms, inputs, i + 1, next); });
  }

  bool MatchEitherOrder(const Term& term, const ecg::Node& node, Next next) {
    if (!MatchArgs(term.args, node.inputs, 0, next)) return false;
    if (term.args.size() != 2 || node.inputs.size() != 2) return true;
    return MatchArgs(term.args, {node.inputs[1], node.inputs[0]}, 0, next);
  }

  void CollectOperands(const ecg::Node& node, std::vector<ecg::ValueId>* operands) const {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ecg::ValueId input = node.inputs[i];
      const ecg::NodeId producer = graph_.value(input).producer;
      const bool nested = producer != ecg::kNone && graph_.node(producer).op == node.op && graph_.Uses(input) == 1 &&
                          operands->size() + node.inputs.size() - i < kMaxOperands;
      if (nested) {
        CollectOperands(graph_.node(producer), operands);
      } else {
        operands->push_back(input);
      }
    }
  }

  bool MatchOperands(const Term& term, const std::vector<ecg::ValueId>& operands, size_t i, std::vector<bool>* used,
                     bool is_root, Next next) {
    const auto left_over = [&] {
      std::vector<ecg::ValueId> rest;
      for (size_t k = 0; k < operands.size(); ++k) {
        if (!(*used)[k]) rest.push_back(operands[k]);
      }
      return rest;
    };
    if (i == term.flat.size()) {
      std::vector<ecg::ValueId> rest = left_over();
      if (!rest.empty() && !is_root) return true;
      match_.rest = is_root ? std::move(rest) : match_.rest;
      return next();
    }
    const Term& wanted = term.flat[i];
    // Below the root the last variable takes all remaining operands.
    if (!is_root && i + 1 == term.flat.size() && wanted.kind == Term::Kind::kVariable && !wanted.constant) {
      std::vector<ecg::ValueId> rest = left_over();
      if (rest.size() > 1) {
        std::sort(rest.begin(), rest.end());
        return Bind(wanted.slot, std::move(rest), term.ops[0], next);
      }
    }
    for (size_t k = 0; k < operands.size(); ++k) {
      const bool tried = (*used)[k] || [&] {  // equal operands need one try
        for (size_t j = 0; j < k; ++j) {
          if (!(*used)[j] && operands[j] == operands[k]) return true;
        }
        return false;
      }();
      if (tried) continue;
      (*used)[k] = true;
      const bool go_on =
          MatchTerm(wanted, operands[k], [&] { return MatchOperands(term, operands, i + 1, used, is_root, next); });
      (*used)[k] = false;
      if (!go_on) return false;
    }
    return true;
  }

  const WorkGraph& graph_;
  const Rule& rule_;
  const bool reassociate_;
  absl::FunctionRef<bool(const Match&)> visit_;
  Match match_;
  int steps_ = 0;
};

}  // namespace

int FindMatches(const WorkGraph& graph, const Rule& rule, ecg::NodeId root, bool reassociate,
                absl::FunctionRef<bool(const Match&)> visit) {
  Matcher matcher(graph, rule, reassociate, visit);
  matcher.Run(root);
  return matcher.steps();
}

}  // namespace fusion::rewrite
