// Parses the text form of rules; README.md has the grammar.
#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "compiler/ops/registry/op_def.h"
#include "compiler/rewrite/functions.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/rule_lexer.h"
#include "compiler/rewrite/undoes.h"
#include "runtime/base/status_macros.h"

namespace fusion::rewrite {
namespace {

using Kind = Token::Kind;

absl::Status Error(const std::string& message) { return absl::InvalidArgumentError(message); }

// Returns the index of `name` in `names`, -1 when absent.
int Find(const std::vector<std::string>& names, const std::string& name) {
  const auto it = std::find(names.begin(), names.end(), name);
  return it == names.end() ? -1 : static_cast<int>(it - names.begin());
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) { rule_.variables = {"out"}; }

  absl::StatusOr<Rule> ParseRule() {
    if (Peek().kind != Kind::kName) return Error("a rule begins with its id");
    rule_.id = Take().text;
    RETURN_IF_ERROR(Expect(":"));
    in_pattern_ = true;
    ASSIGN_OR_RETURN(rule_.pattern, ParseTerm());
    if (rule_.pattern.kind != Term::Kind::kOp) return Error("a pattern must be an operator");
    in_pattern_ = false;
    RETURN_IF_ERROR(Expect("->"));
    // The replacement uses names that `with` defines behind it, so `with` is read first.
    const size_t replacement_at = position_;
    while (!AtKeyword("with") && !AtKeyword("where") && !AtKeyword("provided") && Peek(1).kind != Kind::kEnd) Take();
    if (AtKeyword("with")) RETURN_IF_ERROR(ParseLets());
    const size_t after_lets = position_;
    position_ = replacement_at;
    ASSIGN_OR_RETURN(rule_.replacement, ParseTerm());
    if (!rule_.lets.empty() && !AtKeyword("with")) return Error(Unexpected("'with'"));
    if (AtKeyword("with")) position_ = after_lets;
    if (AtKeyword("where")) RETURN_IF_ERROR(ParseGuards(&rule_.guards));
    if (AtKeyword("provided")) RETURN_IF_ERROR(ParseGuards(&rule_.demands));
    RETURN_IF_ERROR(ParseClass());
    if (!rule_.demands.empty() && rule_.math_class != MathClass::kReassociates) {
      return Error("only a rule that reassociates makes demands");
    }
    if (AtKeyword("composite")) {
      Take();
      rule_.composite = true;
    }
    if (Peek().kind != Kind::kEnd) return Error(Unexpected("the end of the rule"));
    Flatten(&rule_.pattern);
    return std::move(rule_);
  }

 private:
  const Token& Peek(size_t ahead = 0) const { return tokens_[std::min(position_ + ahead, tokens_.size() - 1)]; }
  Token Take() { return tokens_[std::min(position_++, tokens_.size() - 1)]; }
  bool At(const char* punctuation) const { return Peek().kind == Kind::kPunctuation && Peek().text == punctuation; }
  bool AtKeyword(const char* word) const { return Peek().kind == Kind::kName && Peek().text == word; }
  bool Accept(const char* punctuation) {
    if (!At(punctuation)) return false;
    Take();
    return true;
  }
  std::string Unexpected(const std::string& wanted) const {
    return absl::StrCat("expected ", wanted, ", found ",
                        Peek().kind == Kind::kEnd ? "the end" : absl::StrCat("'", Peek().text, "'"));
  }
  absl::Status Expect(const char* punctuation) {
    if (Accept(punctuation)) return absl::OkStatus();
    return Error(Unexpected(absl::StrCat("'", punctuation, "'")));
  }

  absl::Status ParseLets() {
    Take();  // with
    do {
      const std::string name = Take().text;
      RETURN_IF_ERROR(Expect("="));
      ASSIGN_OR_RETURN(Term value, ParseTerm());
      if (Find(rule_.variables, name) >= 0) return Error(absl::StrCat("'", name, "' is defined twice"));
      rule_.variables.push_back(name);
      rule_.lets.emplace_back(static_cast<int>(rule_.variables.size()) - 1, std::move(value));
    } while (Accept(","));
    return absl::OkStatus();
  }

  absl::Status ParseGuards(std::vector<Guard>* guards) {
    do {
      Take();  // where, provided, and
      Guard guard;
      ASSIGN_OR_RETURN(guard.left, ParseTerm());
      for (const char* relation : {"=", "!=", "<=", "<"}) {
        if (Accept(relation)) guard.relation = relation;
      }
      const bool predicate = guard.left.kind == Term::Kind::kCall && FindFunction(guard.left.text)->predicate;
      if (guard.relation.empty() != predicate) {
        return Error(predicate ? absl::StrCat("predicate ", guard.left.text, " is not compared")
                               : "a guard is a predicate or a comparison");
      }
      if (!guard.relation.empty()) {
        ASSIGN_OR_RETURN(guard.right, ParseTerm());
      }
      for (const Term* side : {&guard.left, &guard.right}) {
        if (side->kind == Term::Kind::kOp || side->kind == Term::Kind::kVariable) {
          return Error("a guard compares values, not tensors; see functions.h");
        }
      }
      guards->push_back(std::move(guard));
    } while (AtKeyword("and"));
    return absl::OkStatus();
  }

  absl::Status ParseClass() {
    for (MathClass c : {MathClass::kExact, MathClass::kReassociates, MathClass::kRelaxed}) {
      if (AtKeyword(MathClassName(c))) {
        Take();
        rule_.math_class = c;
        return absl::OkStatus();
      }
    }
    return Error(Unexpected("'where', 'provided' or a class (exact, reassociates, relaxed)"));
  }

  absl::StatusOr<Term> ParseTerm() {
    if (++depth_ > 32) return Error("terms are nested too deeply");
    absl::StatusOr<Term> term = ParseTermInner();
    --depth_;
    return term;
  }

  absl::StatusOr<Term> ParseTermInner() {
    Term term;
    if (Peek().kind == Kind::kNumber) {
      term.kind = Term::Kind::kNumber;
      term.number = Take().number;
      return term;
    }
    if (Peek().kind == Kind::kString) {
      term.kind = Term::Kind::kString;
      term.text = Take().text;
      return term;
    }
    if (Accept("[")) {
      term.kind = Term::Kind::kList;
      RETURN_IF_ERROR(ParseArgs("]", &term.args));
      return term;
    }
    if (Peek().kind != Kind::kName) return Error(Unexpected("a term"));
    std::string name = Take().text;
    if (name == "_") return term;
    if (name == "const" && Peek().kind == Kind::kName) {
      if (!in_pattern_) return Error("'const' belongs in a pattern");
      term.constant = true;
      name = Take().text;
      if (At("(")) return Error("'const' stands before a variable");
    } else if (At("(") || At("|")) {
      return absl::ascii_isupper(name[0]) ? ParseOp("", name) : ParseCall(name);
    } else if (in_pattern_ && Accept(":")) {
      return ParseOp(name, Take().text);
    }
    term.kind = Term::Kind::kVariable;
    term.text = name;
    term.optional = Accept("?");
    ASSIGN_OR_RETURN(term.slot, Variable(name));
    return term;
  }

  absl::StatusOr<int> Variable(const std::string& name) {
    int slot = Find(rule_.variables, name);
    if (slot < 0 && !in_pattern_) return Error(absl::StrCat("variable '", name, "' is not bound by the pattern"));
    if (slot == 0 && in_pattern_) return Error("'out' stands for the value that the pattern computes");
    if (slot < 0) {
      slot = static_cast<int>(rule_.variables.size());
      rule_.variables.push_back(name);
    }
    return slot;
  }

  absl::Status ParseArgs(const char* close, std::vector<Term>* args) {
    if (Accept(close)) return absl::OkStatus();
    do {
      ASSIGN_OR_RETURN(Term arg, ParseTerm());
      args->push_back(std::move(arg));
    } while (Accept(","));
    return Expect(close);
  }

  absl::StatusOr<Term> ParseOp(const std::string& binding, const std::string& name) {
    Term term;
    term.kind = Term::Kind::kOp;
    term.text = binding;
    if (!binding.empty()) {
      ASSIGN_OR_RETURN(term.slot, Variable(binding));
    }
    term.ops = {name};
    while (Accept("|")) term.ops.push_back(Take().text);
    if (term.ops.size() > 1 && !in_pattern_) return Error("a replacement names one operator, not alternatives");
    RETURN_IF_ERROR(Expect("("));
    RETURN_IF_ERROR(ParseArgs(")", &term.args));
    for (const std::string& op : term.ops) {
      const ops::OpDef* def = ops::FindOp(op);
      if (def == nullptr) return Error(absl::StrCat("unknown operator '", op, "'"));
      // An optional argument may belong to another alternative of the pattern.
      const int given = static_cast<int>(term.args.size());
      const int required = given - static_cast<int>(std::count_if(term.args.begin(), term.args.end(),
                                                                  [](const Term& arg) { return arg.optional; }));
      if (def->max_inputs >= 0 && required > def->max_inputs) {
        return Error(absl::StrCat(op, " takes at most ", def->max_inputs, " inputs, ", required, " are given"));
      }
      if (given < def->min_inputs) {
        return Error(absl::StrCat(op, " takes at least ", def->min_inputs, " inputs, ", given, " are given"));
      }
    }
    if (Accept("{")) RETURN_IF_ERROR(ParseAttrs(&term));
    return term;
  }

  absl::Status ParseAttrs(Term* term) {
    do {
      if (Peek().kind != Kind::kName) return Error(Unexpected("an attribute"));
      const std::string name = Take().text;
      if (Accept("=")) {
        ASSIGN_OR_RETURN(Term value, ParseTerm());
        RETURN_IF_ERROR(CheckAttr(*term, name));
        term->attrs.push_back({name, std::move(value)});
      } else if (name == "_") {
        if (!in_pattern_) return Error("'{_}' belongs in a pattern");
        term->ignore_attrs = true;
      } else {
        term->attrs_name = name;
        ASSIGN_OR_RETURN(term->attrs_slot, AttrVariable(name));
      }
    } while (Accept(","));
    return Expect("}");
  }

  absl::Status CheckAttr(const Term& term, const std::string& name) {
    for (const std::string& op : term.ops) {
      const std::vector<ops::AttrSpec>& specs = ops::FindOp(op)->attrs;
      if (std::none_of(specs.begin(), specs.end(), [&](const ops::AttrSpec& s) { return s.name == name; })) {
        return Error(absl::StrCat(op, " has no attribute '", name, "'"));
      }
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> AttrVariable(const std::string& name) {
    int slot = Find(rule_.attr_variables, name);
    if (slot < 0 && !in_pattern_) return Error(absl::StrCat("attributes '", name, "' are not bound by the pattern"));
    if (slot < 0) {
      slot = static_cast<int>(rule_.attr_variables.size());
      rule_.attr_variables.push_back(name);
    }
    return slot;
  }

  absl::StatusOr<Term> ParseCall(const std::string& name) {
    const FunctionInfo* info = FindFunction(name);
    if (info == nullptr) return Error(absl::StrCat("unknown function '", name, "'"));
    if (in_pattern_) return Error(absl::StrCat("function '", name, "' belongs in a replacement or a guard"));
    Term term;
    term.kind = Term::Kind::kCall;
    term.text = name;
    RETURN_IF_ERROR(Expect("("));
    for (const char* kind = info->signature; *kind != '\0'; ++kind) {
      if (kind != info->signature) RETURN_IF_ERROR(Expect(","));
      Term arg;
      if (*kind == 'a' || *kind == 's') {
        if (Peek().kind != Kind::kName) return Error(Unexpected("a name"));
        arg.text = Take().text;
        if (*kind == 'a') {
          ASSIGN_OR_RETURN(arg.attrs_slot, AttrVariable(arg.text));
        }
      } else {
        ASSIGN_OR_RETURN(arg, ParseTerm());
        const bool variable = arg.kind == Term::Kind::kVariable;
        if (variable != (*kind == 'v') || arg.kind == Term::Kind::kOp) {
          return Error(absl::StrCat("argument ", kind - info->signature + 1, " of ", name, " must be a ",
                                    *kind == 'v' ? "variable" : "value"));
        }
      }
      term.args.push_back(std::move(arg));
    }
    RETURN_IF_ERROR(Expect(")"));
    return term;
  }

  // Orders operands by selectivity: operators, then constants, then free variables, with one optional absorber last.
  static void Flatten(Term* term) {
    for (Term& arg : term->args) Flatten(&arg);
    if (term->kind != Term::Kind::kOp || term->ops.size() != 1 || !IsAssociativeCommutative(term->ops[0])) return;
    for (const Term& arg : term->args) {
      const bool nested = arg.kind == Term::Kind::kOp && arg.ops == term->ops && arg.slot < 0;
      for (const Term& leaf : nested ? arg.flat : std::vector<Term>{arg}) term->flat.push_back(leaf);
    }
    const auto rank = [](const Term& t) {
      if (t.kind == Term::Kind::kOp) return 0;
      if (t.kind == Term::Kind::kNumber) return 1;
      return t.constant ? 2 : 3;
    };
    std::stable_sort(term->flat.begin(), term->flat.end(),
                     [&](const Term& a, const Term& b) { return rank(a) < rank(b); });
  }

  std::vector<Token> tokens_;
  size_t position_ = 0;
  int depth_ = 0;
  bool in_pattern_ = false;
  Rule rule_;
};

void Append(const Term& term, std::vector<std::string>* names, std::string* text) {
  const auto canonical = [&](const std::string& name) {
    int index = Find(*names, name);
    if (index < 0) {
      index = static_cast<int>(names->size());
      names->push_back(name);
    }
    return absl::StrCat("v", index);
  };
  switch (term.kind) {
    case Term::Kind::kAbsent:
      absl::StrAppend(text, "_");
      return;
    case Term::Kind::kNumber:
      absl::StrAppend(text, term.number);
      return;
    case Term::Kind::kString:
      absl::StrAppend(text, "\"", term.text, "\"");
      return;
    case Term::Kind::kVariable:
      absl::StrAppend(text, canonical(term.text));
      return;
    case Term::Kind::kOp:
      for (size_t i = 0; i < term.ops.size(); ++i) absl::StrAppend(text, i == 0 ? "" : "|", term.ops[i]);
      break;
    case Term::Kind::kList:
    case Term::Kind::kCall:
      absl::StrAppend(text, term.text);
      break;
  }
  absl::StrAppend(text, "(");
  for (size_t i = 0; i < term.args.size(); ++i) {
    if (i != 0) absl::StrAppend(text, ", ");
    Append(term.args[i], names, text);
  }
  absl::StrAppend(text, ")");
  for (const auto& [name, value] : term.attrs) {
    absl::StrAppend(text, "{", name, "=");
    Append(value, names, text);
    absl::StrAppend(text, "}");
  }
}

// Expands `… for F in Exp, Tanh`: one line for each name, which replaces $F (in lower case in the id).
absl::StatusOr<std::vector<std::string>> ExpandFamily(absl::string_view line) {
  const std::vector<absl::string_view> parts = absl::StrSplit(line, " for ");
  if (parts.size() == 1) return std::vector<std::string>{std::string(line)};
  const std::vector<absl::string_view> sides = absl::StrSplit(parts.back(), " in ");
  const std::string name = absl::StrCat("$", absl::StripAsciiWhitespace(sides[0]));
  const size_t colon = line.find(':');
  if (parts.size() != 2 || sides.size() != 2 || colon == absl::string_view::npos || colon > parts[0].size()) {
    return Error("a family reads `id-$F: … class for F in First, Second`");
  }
  std::vector<std::string> lines;
  for (absl::string_view member : absl::StrSplit(sides[1], ',')) {
    member = absl::StripAsciiWhitespace(member);
    lines.push_back(
        absl::StrCat(absl::StrReplaceAll(parts[0].substr(0, colon), {{name, absl::AsciiStrToLower(member)}}),
                     absl::StrReplaceAll(parts[0].substr(colon), {{name, member}})));
  }
  return lines;
}

}  // namespace

const char* MathClassName(MathClass math_class) {
  switch (math_class) {
    case MathClass::kExact:
      return "exact";
    case MathClass::kReassociates:
      return "reassociates";
    case MathClass::kRelaxed:
      return "relaxed";
  }
  return "?";
}

bool IsAssociativeCommutative(const std::string& op) {
  const ops::OpDef* def = ops::FindOp(op);
  return def != nullptr && def->math.associative && def->math.commutative &&
         (def->max_inputs == -1 || (def->min_inputs == 2 && def->max_inputs == 2));
}

std::string Print(const Term& term) {
  std::vector<std::string> names;
  std::string text;
  Append(term, &names, &text);
  return text;
}

absl::StatusOr<std::vector<Rule>> ParseRules(std::string_view name, std::string_view text) {
  std::vector<Rule> rules;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    const std::string where = absl::StrCat(absl::string_view(name.data(), name.size()), ":", line_number);
    auto members = ExpandFamily(line);
    if (!members.ok()) return Annotate(members.status(), where);
    for (const std::string& member : *members) {
      auto tokens = Tokenize(member);
      if (!tokens.ok()) return Annotate(tokens.status(), where);
      auto rule = Parser(*std::move(tokens)).ParseRule();
      if (!rule.ok()) return Annotate(rule.status(), where);
      rule->where = where;
      rules.push_back(*std::move(rule));
    }
  }
  return rules;
}

std::string PrintDirection(const Term& from, const Term& to) {
  std::vector<std::string> names;
  std::string text;
  Append(from, &names, &text);
  absl::StrAppend(&text, " -> ");
  Append(to, &names, &text);
  return text;
}

absl::Status CheckRuleSet(const std::vector<Rule>& rules) {
  std::map<std::string, const Rule*> ids;
  std::multimap<std::string, const Rule*> by_root;  // of the pattern
  for (const Rule& rule : rules) {
    const auto [same, is_new] = ids.emplace(rule.id, &rule);
    if (!is_new) {
      return Error(absl::StrCat(rule.where, ": rule '", rule.id, "' is already defined at ", same->second->where));
    }
    for (const std::string& op : rule.pattern.ops) by_root.emplace(op, &rule);
  }
  // A rule that undoes another has that rule's replacement as its pattern.
  for (const Rule& rule : rules) {
    if (rule.replacement.kind != Term::Kind::kOp) continue;
    const auto [begin, end] = by_root.equal_range(rule.replacement.ops[0]);
    for (auto it = begin; it != end; ++it) {
      if (!Undoes(*it->second, rule)) continue;
      const bool later = std::less<>()(&rule, it->second);
      const Rule &first = later ? rule : *it->second, &second = later ? *it->second : rule;
      return Error(
          absl::StrCat(second.where, ": rule '", second.id, "' undoes '", first.id, "'; keep the cheaper form"));
    }
  }
  return absl::OkStatus();
}

}  // namespace fusion::rewrite
