#include "compiler/rewrite/undoes.h"

#include <algorithm>
#include <functional>
#include <map>

#include "absl/functional/function_ref.h"

namespace fusion::rewrite {
namespace {

bool IsLiteral(const Term& term) { return term.kind == Term::Kind::kNumber || term.kind == Term::Kind::kString; }

// Attributes that both terms give must agree; any others may have any value.
bool AttrsMayAgree(const Term& a, const Term& b) {
  return std::none_of(a.attrs.begin(), a.attrs.end(), [&](const auto& x) {
    return std::any_of(b.attrs.begin(), b.attrs.end(), [&](const auto& y) {
      return x.name == y.name && IsLiteral(x.value) && IsLiteral(y.value) &&
             (x.value.kind != y.value.kind || x.value.number != y.value.number || x.value.text != y.value.text);
    });
  });
}

// Binds the variables of one rule to terms of another, whose own variables count as constants here.
class TermMatcher {
 public:
  using Next = absl::FunctionRef<bool()>;  // true: found, the search stops

  // `fixed`: no variable of the pattern is bound; variables match only themselves.
  explicit TermMatcher(bool fixed) : fixed_(fixed) {}

  bool Match(const Term& pattern, const Term& term, Next next) {
    if (pattern.kind == Term::Kind::kVariable && !fixed_) {
      if (pattern.constant && !IsKnown(term)) return false;
      const auto [it, is_new] = bound_.emplace(pattern.slot, &term);
      if (!is_new) return Equal(*it->second, term) && next();
      if (next()) return true;
      bound_.erase(pattern.slot);
      return false;
    }
    if (pattern.kind != term.kind) return false;
    switch (pattern.kind) {
      case Term::Kind::kVariable:
        return pattern.slot == term.slot && next();
      case Term::Kind::kNumber:
        return pattern.number == term.number && next();
      case Term::Kind::kString:
        return pattern.text == term.text && next();
      case Term::Kind::kAbsent:
        return next();
      case Term::Kind::kList:
        return MatchArgs(pattern.args, term.args, 0, next);
      case Term::Kind::kCall:
        return pattern.text == term.text && MatchArgs(pattern.args, term.args, 0, next);
      case Term::Kind::kOp:
        break;
    }
    const bool same = std::any_of(term.ops.begin(), term.ops.end(), [&](const std::string& op) {
      return std::find(pattern.ops.begin(), pattern.ops.end(), op) != pattern.ops.end();
    });
    if (!same || !AttrsMayAgree(pattern, term)) return false;
    if (MatchArgs(pattern.args, term.args, 0, next)) return true;
    if (pattern.args.size() != 2 || term.args.size() != 2 || !IsAssociativeCommutative(pattern.ops[0])) return false;
    return MatchArgs(pattern.args, {term.args[1], term.args[0]}, 0, next);
  }

  // Returns the term with bound variables replaced.
  Term Instance(const Term& term) const {
    if (term.kind == Term::Kind::kVariable) {
      const auto it = bound_.find(term.slot);
      return it == bound_.end() ? term : *it->second;
    }
    Term instance = term;
    for (Term& arg : instance.args) arg = Instance(arg);
    return instance;
  }

 private:
  static bool Equal(const Term& a, const Term& b) {
    return TermMatcher(/*fixed=*/true).Match(a, b, [] { return true; });
  }

  static bool IsKnown(const Term& term) {
    if (term.kind == Term::Kind::kVariable) return term.constant;
    return std::all_of(term.args.begin(), term.args.end(), IsKnown);
  }

  bool MatchArgs(const std::vector<Term>& patterns, const std::vector<Term>& terms, size_t i, Next next) {
    if (patterns.size() != terms.size()) return false;
    if (i == patterns.size()) return next();
    return Match(patterns[i], terms[i], [&] { return MatchArgs(patterns, terms, i + 1, next); });
  }

  const bool fixed_;
  std::map<int, const Term*> bound_;  // by slot
};

// Marks the variables of a replacement as constant where the pattern requires it.
Term WithConstness(const Term& replacement, const Term& pattern) {
  std::map<int, bool> constant;
  const std::function<void(const Term&)> collect = [&](const Term& term) {
    if (term.kind == Term::Kind::kVariable) constant[term.slot] = constant[term.slot] || term.constant;
    for (const Term& arg : term.args) collect(arg);
  };
  collect(pattern);
  const std::function<Term(const Term&)> mark = [&](const Term& term) {
    Term marked = term;
    if (term.kind == Term::Kind::kVariable && constant.count(term.slot) != 0) marked.constant = constant[term.slot];
    for (Term& arg : marked.args) arg = mark(arg);
    return marked;
  };
  return mark(replacement);
}

}  // namespace

bool Undoes(const Rule& second, const Rule& first) {
  const bool guarded = !first.guards.empty() || !second.guards.empty();
  if (guarded)
    return PrintDirection(first.pattern, first.replacement) == PrintDirection(second.replacement, second.pattern);
  const Term made = WithConstness(first.replacement, first.pattern);
  TermMatcher matcher(/*fixed=*/false);
  return matcher.Match(second.pattern, made, [&] {
    const Term again = matcher.Instance(second.replacement);
    return TermMatcher(/*fixed=*/true).Match(first.pattern, again, [] { return true; });
  });
}

}  // namespace fusion::rewrite
