#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/rewrite/rule.h"

namespace fusion::rewrite {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const auto rules = ParseRules("r", text);
  return rules.ok() ? "" : std::string(rules.status().message());
}

TEST(ParseRules, ReadsAllParts) {
  const auto rules =
      ParseRules("r.rules",
                 "# maths\n\na-b: Transpose(Transpose(A){p}){q} -> Transpose(A){perm=compose(perm(p, A), "
                 "perm(q, A))} where rank(A) <= 4 and float(A) exact\n");
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 1u);
  const Rule& rule = rules->at(0);
  EXPECT_EQ(rule.id, "a-b");
  EXPECT_EQ(rule.where, "r.rules:3");
  EXPECT_EQ(rule.guards.size(), 2u);
  EXPECT_EQ(rule.math_class, MathClass::kExact);
  EXPECT_EQ(rule.attr_variables, (std::vector<std::string>{"p", "q"}));
}

TEST(ParseRules, FlattensAssociativeOperators) {
  const auto rules = ParseRules("r", "x: Mul(A, Mul(Sqrt(B), Add(A, B))) -> A relaxed");
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_EQ(rules->at(0).pattern.flat.size(), 3u);
  EXPECT_EQ(rules->at(0).pattern.flat[2].text, "A");  // the free variable comes last
}

TEST(ParseRules, ExpandsFamilies) {
  const auto rules = ParseRules("r", "twice-$F: $F($F(A)) -> $F(A) exact for F in Abs, Relu\n");
  ASSERT_TRUE(rules.ok()) << rules.status();
  ASSERT_EQ(rules->size(), 2u);
  EXPECT_EQ(rules->at(1).id, "twice-relu");
  EXPECT_EQ(Print(rules->at(1).pattern), "Relu(Relu(v0))");
}

TEST(ParseRules, ErrorsNameLineAndCause) {
  EXPECT_THAT(ErrorOf("\nx: Mull(A, B) -> A exact"), HasSubstr("r:2: unknown operator 'Mull'"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B) -> C exact"), HasSubstr("variable 'C' is not bound"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B, C) -> A exact"), HasSubstr("Mul takes at most 2 inputs"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B -> A exact"), HasSubstr("expected ')', found '->'"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B) -> A"), HasSubstr("a class"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B) -> A always"), HasSubstr("found 'always'"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B) -> A where large(A) exact"), HasSubstr("unknown function 'large'"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B) -> A where shape(A) exact"), HasSubstr("a guard is a predicate or a comparison"));
  EXPECT_THAT(ErrorOf("x: A -> A exact"), HasSubstr("a pattern must be an operator"));
  EXPECT_THAT(ErrorOf("x: Transpose(A){p} -> Transpose(A){q} exact"), HasSubstr("attributes 'q' are not bound"));
  EXPECT_THAT(ErrorOf("x: Transpose(A){axis=1} -> A exact"), HasSubstr("Transpose has no attribute 'axis'"));
  EXPECT_THAT(ErrorOf("x: Mul(A, B) -> Add|Sub(A, B) exact"), HasSubstr("one operator"));
}

TEST(CheckRuleSet, RefusesDuplicatesAndReversals) {
  const auto check = [](const std::string& text) {
    return std::string(CheckRuleSet(ParseRules("r", text).value()).message());
  };
  EXPECT_EQ(check("a: Mul(A, B) -> Mul(B, A) exact"), "r:1: rule 'a' undoes 'a'; keep the cheaper form");
  EXPECT_THAT(check("a: Neg(Neg(A)) -> A exact\na: Abs(Abs(A)) -> Abs(A) exact"), HasSubstr("already defined at r:1"));
  EXPECT_THAT(check("a: Add(A, Neg(B)) -> Sub(A, B) exact\nb: Sub(X, Y) -> Add(X, Neg(Y)) exact"),
              HasSubstr("r:2: rule 'b' undoes 'a'"));
  // The reversal may use another order of operands, be more general than the reverse, or be one of a pattern's
  // alternatives.
  EXPECT_THAT(check("a: Add(A, Neg(B)) -> Sub(A, B) exact\nb: Sub(X, Y) -> Add(Neg(Y), X) exact"),
              HasSubstr("r:2: rule 'b' undoes 'a'"));
  EXPECT_THAT(check("a: Exp(Add(X, Y)) -> Mul(Exp(Y), Exp(X)) exact\nb: Mul(Exp(A), Exp(A)) -> Exp(Add(A, A)) exact"),
              HasSubstr("r:2: rule 'b' undoes 'a'"));
  EXPECT_THAT(check("a: Abs(Neg|Abs(A)) -> Abs(A) exact\nb: Abs(A) -> Abs(Neg(A)) exact"),
              HasSubstr("r:2: rule 'b' undoes 'a'"));
  EXPECT_THAT(check("a: Slice(Neg(A), B, C) -> Neg(Slice(A, B, C)) where rank(A) = 1 exact\n"
                    "b: Neg(Slice(A, B, C)) -> Slice(Neg(A), B, C) exact"),
              HasSubstr("r:2: rule 'b' undoes 'a'"));
}

TEST(CheckRuleSet, AllowsWhatEnds) {
  for (const char* text :
       {"a: Mul(Neg(A), const B) -> Mul(A, Neg(B)) exact",  // the constant is the second factor, then it folds
        "a: Transpose(Neg(A)){p} -> Neg(Transpose(A){p}) exact\nb: Neg(Neg(A)) -> A exact",
        "a: ReduceSum(Neg(A)) -> Neg(ReduceSum(A)) exact\nb: ReduceMax(Neg(A)) -> Neg(ReduceMin(A)) exact",
        "a: BitShift(A, B){direction=\"LEFT\"} -> BitShift(B, A){direction=\"RIGHT\"} exact"}) {
    EXPECT_TRUE(CheckRuleSet(ParseRules("r", text).value()).ok()) << text;
  }
}

TEST(BuiltInRules, Load) {
  const auto& rules = BuiltInRules();
  EXPECT_TRUE(rules.ok()) << rules.status();
}

}  // namespace
}  // namespace fusion::rewrite
