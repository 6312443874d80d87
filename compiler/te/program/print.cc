// The textual form; compiler/te/README.md has the grammar, parse.cc reads it.
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/te/program/program.h"

namespace fusion::te {
namespace {

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[32];
  const std::to_chars_result result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  std::string text(buffer, result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// An f32 literal has a point, an exponent or a name; literals of other types carry their type.
std::string ImmText(const ScalarNode& s) {
  if (s.dtype == DType::kBool) return s.ivalue ? "true" : "false";
  if (s.dtype == DType::kF32) return FloatText(s.fvalue);
  const std::string value = IsFloat(s.dtype)         ? FloatText(s.fvalue)
                            : s.dtype == DType::kU64 ? absl::StrCat(static_cast<uint64_t>(s.ivalue))
                                                     : absl::StrCat(s.ivalue);
  return absl::StrCat(value, ":", DTypeName(s.dtype));
}

std::string IndexText(const Index& x);

std::string IndexListText(const std::vector<Index>& indices) {
  return absl::StrCat("[", absl::StrJoin(indices, ", ", [](std::string* out, const Index& i) { *out += IndexText(i); }),
                      "]");
}

std::string TermText(const Term& term) {
  switch (term.kind) {
    case TermKind::kAxis:
      return absl::StrCat("i", term.axis.id);
    case TermKind::kLoad:
      return absl::StrCat("%", term.tensor, IndexListText(term.indices), "{", term.load_range.lo, "..",
                          term.load_range.hi, "}");
    default: {
      const bool plain =
          term.inner->constant() == 0 && term.inner->parts().size() == 1 && term.inner->parts()[0].coefficient == 1;
      const std::string inner = IndexText(*term.inner);
      return absl::StrCat(plain ? inner : absl::StrCat("(", inner, ")"), term.kind == TermKind::kMod ? "%" : "//",
                          term.divisor);
    }
  }
}

std::string IndexText(const Index& x) {
  std::string text;
  for (const Index::Part& part : x.parts()) {
    const int64_t c = part.coefficient;
    if (!text.empty()) {
      text += c < 0 ? " - " : " + ";
    } else if (c < 0) {
      text += "-";
    }
    if (c != 1 && c != -1) absl::StrAppend(&text, c < 0 ? -c : c, "*");
    text += TermText(part.term);
  }
  if (text.empty()) return absl::StrCat(x.constant());
  if (x.constant() != 0) absl::StrAppend(&text, x.constant() < 0 ? " - " : " + ", std::abs(x.constant()));
  return text;
}

std::string PredText(const Pred& pred) {
  static constexpr const char* kCmp[] = {" < ", " >= ", " == ", " != "};
  if (pred.empty()) return "true";
  return absl::StrJoin(pred, " and ", [](std::string* out, const Comparison& c) {
    absl::StrAppend(out, IndexText(c.lhs), kCmp[static_cast<int>(c.cmp)], IndexText(c.rhs));
  });
}

std::string AxesText(const std::vector<Axis>& axes) {
  return absl::StrJoin(axes, ", ",
                       [](std::string* out, const Axis& a) { absl::StrAppend(out, "i", a.id, "<", a.extent); });
}

// Prints the bodies of one te. Operations used more than once become `let v0 = …`, so that a shared graph prints in
// linear size.
class BodyPrinter {
 public:
  void Count(const Scalar& root) {
    ++uses_[root.get()];
    Visit(root, [&](const ScalarNode& node) {
      if (!seen_.insert({&node, true}).second) return;
      for (const Scalar& arg : node.args) ++uses_[arg.get()];
    });
  }
  std::string Text(const Scalar& s) {
    auto it = names_.find(s.get());
    if (it != names_.end()) return it->second;
    std::string text = NodeText(*s);
    if (uses_[s.get()] < 2 || s->args.empty()) return text;
    std::string name = absl::StrCat("v", names_.size());
    absl::StrAppend(&lets_, "    let ", name, " = ", text, "\n");
    names_[s.get()] = name;
    return name;
  }
  std::string List(const std::vector<Scalar>& list) {
    std::vector<std::string> texts;
    for (const Scalar& s : list) texts.push_back(Text(s));
    return absl::StrCat("(", absl::StrJoin(texts, ", "), ")");
  }
  const std::string& lets() const { return lets_; }

 private:
  std::string NodeText(const ScalarNode& s) {
    switch (s.kind) {
      case ScalarKind::kImm:
        return ImmText(s);
      case ScalarKind::kLoad:
        return absl::StrCat("%", s.tensor, IndexListText(s.indices), s.pad ? "?" : "", s.pad ? ImmText(*s.pad) : "");
      case ScalarKind::kIf: {
        const std::string yes = Text(s.args[0]);
        return absl::StrCat("if ", PredText(s.pred), " then ", yes, " else ", Text(s.args[1]));
      }
      case ScalarKind::kOp:
        return absl::StrCat(GetOpInfo(s.op).name, List(s.args));
      case ScalarKind::kCast:
        return absl::StrCat("cast.", DTypeName(s.dtype), "(", Text(s.args[0]), ")");
      case ScalarKind::kFromIndex:
        return absl::StrCat("index(", IndexText(s.index), ")");
      case ScalarKind::kAcc:
        return absl::StrCat("acc", s.acc);
    }
    return "";
  }

  std::unordered_map<const ScalarNode*, int> uses_;
  std::unordered_map<const ScalarNode*, bool> seen_;
  std::unordered_map<const ScalarNode*, std::string> names_;
  std::string lets_;
};

// "sum.f32(i2<4 if i2 < 3)", "reduce(i2<4)(0.0, 0:i64) ->"
std::string ReductionHeadText(const Te& te) {
  static constexpr const char* kNames[] = {"sum", "prod", "max", "min", "reduce"};
  const Reduction& reduction = *te.reduction;
  std::string text = kNames[static_cast<int>(reduction.kind)];
  const bool general = reduction.kind == ReductionKind::kGeneral;
  if (!general) absl::StrAppend(&text, ".", DTypeName(reduction.acc));
  absl::StrAppend(&text, "(", AxesText(reduction.axes));
  if (!reduction.pred.empty()) absl::StrAppend(&text, " if ", PredText(reduction.pred));
  text += ")";
  if (general) text += BodyPrinter().List(reduction.init) + " ->";
  return text;
}

std::string TypeText(const TensorInfo& info) {
  return absl::StrCat(DTypeName(info.dtype), "[", absl::StrJoin(info.shape, ", "), "]");
}

std::string ConstantText(const Tensor& value) {
  std::string text = " {";
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    if (i > 0) text += ", ";
    if (IsFloat(value.dtype())) {
      text += FloatText(value.GetDouble(i));
    } else {
      absl::StrAppend(&text, value.GetInt(i));
    }
  }
  return text + "}";
}

std::string RoutineText(const Program& program, const Te& te) {
  const Routine& routine = *te.routine;
  const auto tensor = [](std::string* out, TensorId id) { absl::StrAppend(out, "%", id); };
  std::vector<std::string> types;
  for (TensorId output : te.outputs) types.push_back(TypeText(program.tensors[output]));
  return absl::StrCat(absl::StrJoin(te.outputs, ", ", tensor), ": ", absl::StrJoin(types, ", "), " = routine ",
                      routine.name, "(", absl::StrJoin(routine.inputs, ", ", tensor), ") {",
                      absl::StrJoin(routine.params, ", "), "} tasks ", routine.tasks, " scratch ",
                      routine.scratch_bytes);
}

}  // namespace

std::string PrintTe(const Program& program, const Te& te) {
  if (te.routine) return RoutineText(program, te);
  std::string head, types;
  for (TensorId output : te.outputs) {
    absl::StrAppend(&head, head.empty() ? "" : ", ", "%", output);
    absl::StrAppend(&types, types.empty() ? "" : ", ", DTypeName(program.tensors[output].dtype));
  }
  absl::StrAppend(&head, "[", AxesText(te.axes), "]: ", types, " =");
  if (te.reduction) absl::StrAppend(&head, " ", ReductionHeadText(te));

  BodyPrinter printer;
  for (const std::vector<Scalar>* list : {&te.body, &te.then}) {
    for (const Scalar& s : *list) printer.Count(s);
  }
  const bool listed = te.reduction ? te.reduction->kind == ReductionKind::kGeneral : te.outputs.size() > 1;
  std::string body = listed || te.body.size() != 1 ? printer.List(te.body) : printer.Text(te.body[0]);
  if (!te.then.empty()) body += " then " + printer.List(te.then);
  if (printer.lets().empty()) return absl::StrCat(head, " ", body);
  return absl::StrCat(head, "\n", printer.lets(), "    ", body);
}

std::string Print(const Program& program, const std::string& name) {
  std::string text = absl::StrCat("te ", name, "(");
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    const TensorInfo& info = program.tensors[program.inputs[i]];
    absl::StrAppend(&text, i == 0 ? "" : ", ", "%", program.inputs[i], ": ", TypeText(info),
                    info.role == Role::kConstant ? " const" : "");
    if (info.constant && info.constant->num_elements() <= kMaxPrintedConstant) text += ConstantText(*info.constant);
  }
  text += ") {\n";
  for (const Te& te : program.tes) absl::StrAppend(&text, "  ", PrintTe(program, te), "\n");
  return absl::StrCat(
      text, "  return ",
      absl::StrJoin(program.outputs, ", ", [](std::string* out, TensorId id) { absl::StrAppend(out, "%", id); }),
      "\n}\n");
}

}  // namespace fusion::te
