// A rewrite rule as data (DNNFusion §4.2). The text form is described in README.md.
#ifndef FUSION_COMPILER_REWRITE_RULE_H_
#define FUSION_COMPILER_REWRITE_RULE_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace fusion::rewrite {

// What a rule promises about its result.
enum class MathClass : uint8_t {
  kExact,         // the same bits for every input, infinities and NaNs included (any NaN equals any other)
  kReassociates,  // finite stays finite and within rounding, NaN and infinities stay what they are (README.md)
  kRelaxed,       // equal in real arithmetic; where floats leave the range, or a domain, anything may come out
};
const char* MathClassName(MathClass math_class);  // "exact"

// Which rules may fire. kStrict: `exact`. kFast: `reassociates` too, where their demands are proven. kRelaxed: all, and
// demands count as met.
enum class MathLevel : uint8_t { kStrict, kFast, kRelaxed };

struct TermAttribute;

// A pattern, a replacement, or a value inside guards and attributes.
struct Term {
  enum class Kind : uint8_t {
    kOp,        // Mul(A, B){attributes}
    kVariable,  // A, `const A`, `A?`
    kNumber,    // 1.5: pattern: a constant filled with it; replacement: a scalar constant
    kString,    // "LEFT": only as an attribute
    kAbsent,    // _: an absent optional input
    kList,      // [-1, 2]: integers
    kCall,      // shape(A): a function of functions.h
  };
  Kind kind = Kind::kAbsent;
  std::vector<std::string> ops;  // kOp: alternatives (a pattern may name several: Reshape|Flatten)
  std::string text;              // name of the variable or function, the string; kOp: the variable bound to its value
  int slot = -1;                 // where the variable named by `text` stands in Rule::variables
  bool constant = false;         // kVariable in a pattern: known at compile time
  bool optional = false;         // kVariable in a pattern: may be absent
  double number = 0;
  std::vector<Term> args;
  // Attributes. In a pattern: all of the node's are bound to `attrs_slot`, or ignored ({_}), or must be exactly those
  // given. In a replacement: a copy of those bound, then those given.
  std::vector<TermAttribute> attrs;
  std::string attrs_name;
  int attrs_slot = -1;
  bool ignore_attrs = false;
  // Pattern under an associative and commutative operator: nested arguments of the same operator in one list, the most
  // selective first; empty otherwise.
  std::vector<Term> flat;
};

struct TermAttribute {
  std::string name;
  Term value;
};

struct Guard {
  std::string relation;  // "", "=", "!=", "<", "<=": empty: `left` is a predicate call
  Term left, right;
};

struct Rule {
  std::string id;
  std::string where;  // "associative.rules:12"
  Term pattern, replacement;
  std::vector<std::pair<int, Term>> lets;  // `with k = …`: slot and value, in order
  std::vector<Guard> guards;
  std::vector<Guard> demands;  // `provided`: what must be proven of the numbers
  MathClass math_class = MathClass::kExact;
  // Recognises one operator in several: judged by the number of nodes, before all other rules.
  bool composite = false;
  std::vector<std::string> variables;       // slot 0 is `out`, the root's value
  std::vector<std::string> attr_variables;  // `{a}`
};

// Rules of one text; `name` stands in errors. INVALID_ARGUMENT "name:line: what" on a malformed rule, an unknown
// operator or function, or an unbound variable.
absl::StatusOr<std::vector<Rule>> ParseRules(std::string_view name, std::string_view text);

// INVALID_ARGUMENT when two rules share an id, or one undoes another (undoes.h).
absl::Status CheckRuleSet(const std::vector<Rule>& rules);

// All rules that are built in, checked; read once.
const absl::StatusOr<std::vector<Rule>>& BuiltInRules();

// How many there are, a line a file, as a table in Markdown: rules as written (families count once) and as applied, and
// how many of these are of each class.
absl::StatusOr<std::string> CountRules();

// Is it a binary (or variadic) operator that is associative and commutative?
bool IsAssociativeCommutative(const std::string& op);

// With variables numbered by first appearance: equal for terms that differ in names alone.
std::string Print(const Term& term);
std::string PrintDirection(const Term& from, const Term& to);  // "from -> to"

}  // namespace fusion::rewrite

#endif  // FUSION_COMPILER_REWRITE_RULE_H_
