// A rewrite rule as data (DNNFusion §4.2). README.md describes the text form.
#ifndef FUSION_COMPILER_REWRITE_RULE_H_
#define FUSION_COMPILER_REWRITE_RULE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion::rewrite {

// The promise of a rule about its result.
enum class MathClass : uint8_t {
  kExact,         // the same bits for every input, infinities and NaNs included (any NaN equals any other)
  kReassociates,  // finite stays finite and within rounding, NaN and infinities stay as they are (README.md)
  kRelaxed,       // equal in real arithmetic; where floats leave the range, or a domain, any result may occur
};
const char* MathClassName(MathClass math_class);  // "exact"

// The rules that may fire. kStrict: `exact`. kFast: also `reassociates`, where their demands are proven. kRelaxed: all,
// and demands count as met.
enum class MathLevel : uint8_t { kStrict, kFast, kRelaxed };

struct TermAttribute;

// A pattern, a replacement, or a value inside guards and attributes.
struct Term {
  enum class Kind : uint8_t {
    kOp,        // Mul(A, B){attributes}
    kVariable,  // A, `const A`, `A?`
    kNumber,    // 1.5: in a pattern a constant filled with it, in a replacement a scalar constant
    kString,    // "LEFT": only as an attribute
    kAbsent,    // _: an absent optional input
    kList,      // [-1, 2]: integers
    kCall,      // shape(A): a function of functions.h
  };
  Kind kind = Kind::kAbsent;
  std::vector<std::string> ops;  // kOp: alternatives (a pattern may name several: Reshape|Flatten)
  std::string text;              // name of the variable or function, the string; kOp: the variable bound to its value
  int slot = -1;                 // index in Rule::variables of the variable that `text` names
  bool constant = false;         // kVariable in a pattern: known at compile time
  bool optional = false;         // kVariable in a pattern: may be absent
  double number = 0;
  std::vector<Term> args;
  // Attributes. In a pattern: all of the node's are bound to `attrs_slot`, or they are ignored ({_}), or they must be
  // exactly those given. In a replacement: a copy of those bound, changed by those given.
  std::vector<TermAttribute> attrs;
  std::string attrs_name;
  int attrs_slot = -1;
  bool ignore_attrs = false;
  // For a pattern under an associative and commutative operator: nested arguments of the same operator in one list, the
  // most selective first; empty otherwise.
  std::vector<Term> flat;
};

struct TermAttribute {
  std::string name;
  Term value;
};

struct Guard {
  std::string relation;  // "", "=", "!=", "<", "<="; if empty, `left` is a predicate call
  Term left, right;
};

struct Rule {
  std::string id;
  std::string where;  // "associative.rules:12"
  Term pattern, replacement;
  std::vector<std::pair<int, Term>> lets;  // `with k = …`: slot and value, in order
  std::vector<Guard> guards;
  std::vector<Guard> demands;  // `provided`: conditions on numbers that must be proven
  MathClass math_class = MathClass::kExact;
  // Whether the rule recognises one operator in several. Such rules come before all others and are ranked by the number
  // of nodes.
  bool composite = false;
  std::vector<std::string> variables;       // slot 0 is `out`, the root's value
  std::vector<std::string> attr_variables;  // `{a}`
};

// Parses the rules of one text; `name` stands in errors. INVALID_ARGUMENT "name:line: what" on a malformed rule, an
// unknown operator or function, or an unbound variable.
absl::StatusOr<std::vector<Rule>> ParseRules(std::string_view name, std::string_view text);

// Returns INVALID_ARGUMENT when two rules share an id, or one undoes another (undoes.h).
absl::Status CheckRuleSet(const std::vector<Rule>& rules);

// Returns all built-in rules, checked. They are read once.
const absl::StatusOr<std::vector<Rule>>& BuiltInRules();

// Returns the numbers of rules as a table in Markdown, one line per file: rules as written (a family counts once) and
// as applied, and the latter by class.
absl::StatusOr<std::string> CountRules();

// Returns whether it is a binary (or variadic) operator that is associative and commutative.
bool IsAssociativeCommutative(const std::string& op);

// Prints with variables numbered by first appearance, so that terms that differ in names alone print equally.
std::string Print(const Term& term);
std::string PrintDirection(const Term& from, const Term& to);  // "from -> to"

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_RULE_H_
