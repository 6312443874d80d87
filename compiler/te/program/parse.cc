// Reads the text that print.cc writes.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/te/program/program.h"
#include "compiler/te/scalar/rounded.h"
#include "runtime/base/status_macros.h"

namespace fusion::te {
namespace {

constexpr int kMaxDepth = 2000;
constexpr int kMaxId = 1 << 20;

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  absl::StatusOr<Program> Run() {
    ParseProgram();
    if (failed_) return absl::InvalidArgumentError(error_);
    if (absl::Status status = Verify(program_); !status.ok()) {
      return absl::InvalidArgumentError(std::string(status.message()));
    }
    return std::move(program_);
  }

 private:
  // ---- characters. After a failure every reader returns at once, and loops end because nothing more is accepted.
  void Fail(const std::string& message) {
    if (failed_) return;
    failed_ = true;
    int line = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    error_ = absl::StrCat("line ", line, ": ", message, ", found '", text_.substr(at_, 12), "'");
  }
  void Space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
  }
  bool Looking(const char* token) {
    Space();
    return !failed_ && text_.compare(at_, std::char_traits<char>::length(token), token) == 0;
  }
  bool Accept(const char* token) {
    if (!Looking(token)) return false;
    at_ += std::char_traits<char>::length(token);
    return true;
  }
  void Expect(const char* token) {
    if (!Accept(token)) Fail(absl::StrCat("expected '", token, "'"));
  }
  static bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
  bool AcceptWord(const char* word) {
    if (!Looking(word)) return false;
    const size_t end = at_ + std::char_traits<char>::length(word);
    if (end < text_.size() && IsWord(text_[end])) return false;
    at_ = end;
    return true;
  }
  std::string Word() {
    Space();
    const size_t begin = at_;
    while (!failed_ && at_ < text_.size() && IsWord(text_[at_])) ++at_;
    if (begin == at_) Fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }
  int64_t Int() {
    Space();
    int64_t value = 0;
    const std::from_chars_result r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (failed_ || r.ec != std::errc()) {
      Fail("expected an integer");
      return 0;
    }
    at_ = r.ptr - text_.data();
    return value;
  }
  int Id(const char* prefix) {
    Expect(prefix);
    const int64_t id = Int();
    if (id < 0 || id > kMaxId) Fail("expected a number below 2^20");
    return failed_ ? 0 : static_cast<int>(id);
  }
  DType Type() {
    const std::string name = Word();
    const std::optional<DType> dtype = ParseDType(name);
    if (!dtype) Fail(absl::StrCat("'", name, "' is not an element type"));
    return dtype.value_or(DType::kF32);
  }

  // ---- program
  TensorInfo& Info(TensorId id) {
    if (id >= static_cast<int>(program_.tensors.size())) program_.tensors.resize(id + 1);
    return program_.tensors[id];
  }
  bool Known(TensorId id) {
    const auto it = defined_.find(id);
    if (it == defined_.end()) Fail(absl::StrCat("%", id, " is not defined"));
    return !failed_;
  }
  void Define(TensorId id, DType dtype, Shape shape, Role role) {
    if (!defined_.insert({id, true}).second) Fail(absl::StrCat("%", id, " is defined twice"));
    if (failed_) return;
    TensorInfo& info = Info(id);
    info.dtype = dtype;
    info.shape = std::move(shape);
    info.role = role;
  }

  void ParseProgram() {
    Expect("te");
    Word();
    Expect("(");
    if (!Looking(")")) {
      do ParseInput();
      while (Accept(","));
    }
    Expect(")");
    Expect("{");
    while (!failed_ && !AcceptWord("return")) ParseTe();
    if (!Looking("}")) {
      do {
        const TensorId id = Id("%");
        if (!Known(id)) return;
        program_.MarkOutput(id);
      } while (Accept(","));
    }
    Expect("}");
    Space();
    if (at_ != text_.size()) Fail("expected the end");
  }

  std::vector<int64_t> Ints(const char* open, const char* close) {
    std::vector<int64_t> ints;
    Expect(open);
    if (!Looking(close)) {
      do ints.push_back(Int());
      while (Accept(","));
    }
    Expect(close);
    return ints;
  }

  void ParseInput() {
    const TensorId id = Id("%");
    Expect(":");
    const DType dtype = Type();
    const Shape shape = Ints("[", "]");
    const bool constant = AcceptWord("const");
    Define(id, dtype, shape, constant ? Role::kConstant : Role::kInput);
    if (failed_) return;
    program_.inputs.push_back(id);
    const absl::StatusOr<int64_t> bytes = CheckedSizeBytes(shape, dtype);
    if (!bytes.ok()) return Fail(std::string(bytes.status().message()));
    if (!Accept("{")) return;
    if (NumElements(shape) > kMaxPrintedConstant) return Fail("too many elements for a constant in text");
    Tensor value(dtype, shape);
    for (int64_t i = 0; i < value.num_elements() && !failed_; ++i) {
      if (i > 0) Expect(",");
      const Scalar element = Number(dtype);
      if (failed_) return;
      if (IsFloat(dtype)) {
        value.SetDouble(i, element->fvalue);
      } else {
        value.SetInt(i, element->ivalue);
      }
    }
    Expect("}");
    Info(id).constant = std::move(value);
  }

  std::vector<Axis> ParseAxes(const char* end) {
    std::vector<Axis> axes;
    if (Looking(end)) return axes;
    do {
      Axis axis;
      axis.id = Id("i");
      Expect("<");
      axis.extent = Int();
      if (failed_ || !axes_.emplace(axis.id, axis).second) Fail(absl::StrCat("axis i", axis.id, " is defined twice"));
      program_.next_axis = std::max(program_.next_axis, axis.id + 1);
      axes.push_back(axis);
    } while (Accept(","));
    return axes;
  }

  void ParseTe() {
    Te te;
    axes_.clear();
    lets_.clear();
    acc_.clear();
    do te.outputs.push_back(Id("%"));
    while (Accept(","));
    if (Accept(":")) return ParseRoutine(std::move(te));
    Expect("[");
    te.axes = ParseAxes("]");
    Expect("]");
    Expect(":");
    std::vector<DType> types;
    do types.push_back(Type());
    while (Accept(","));
    Expect("=");
    if (types.size() != te.outputs.size()) Fail("expected one type per output");
    if (failed_) return;
    ParseReductionHead(&te);
    while (AcceptWord("let")) {
      const std::string name = Word();
      Expect("=");
      Scalar value = Expr();
      if (!failed_ && !lets_.emplace(name, value).second) Fail(absl::StrCat(name, " is defined twice"));
    }
    const bool listed = te.reduction ? te.reduction->kind == ReductionKind::kGeneral : te.outputs.size() > 1;
    te.body = listed ? List() : std::vector<Scalar>{Expr()};
    if (AcceptWord("then")) te.then = List();
    if (failed_) return;
    Shape shape;
    for (const Axis& axis : te.axes) shape.push_back(axis.extent);
    for (size_t o = 0; o < te.outputs.size(); ++o) Define(te.outputs[o], types[o], shape, Role::kIntermediate);
    program_.tes.push_back(std::move(te));
  }

  // Parses what follows `%3, %4:`.
  void ParseRoutine(Te te) {
    std::vector<std::pair<DType, Shape>> types;
    do {
      const DType dtype = Type();
      types.emplace_back(dtype, Ints("[", "]"));
      const absl::StatusOr<int64_t> bytes = CheckedSizeBytes(types.back().second, dtype);
      if (!failed_ && !bytes.ok()) return Fail(std::string(bytes.status().message()));
    } while (Accept(","));
    Expect("=");
    Expect("routine");
    Routine routine;
    routine.name = Word();
    Expect("(");
    if (!Looking(")")) {
      do {
        const TensorId id = Id("%");
        if (!Known(id)) return;
        routine.inputs.push_back(id);
      } while (Accept(","));
    }
    Expect(")");
    routine.params = Ints("{", "}");
    Expect("tasks");
    routine.tasks = Int();
    Expect("scratch");
    routine.scratch_bytes = Int();
    if (types.size() != te.outputs.size()) Fail("expected one type per output");
    if (failed_) return;
    for (size_t o = 0; o < te.outputs.size(); ++o) {
      Define(te.outputs[o], types[o].first, types[o].second, Role::kIntermediate);
    }
    te.routine = std::move(routine);
    program_.tes.push_back(std::move(te));
  }

  void ParseReductionHead(Te* te) {
    static constexpr const char* kNames[] = {"sum.", "prod.", "max.", "min.", "reduce("};
    for (int kind = 0; kind < 5; ++kind) {
      if (!Accept(kNames[kind])) continue;
      Reduction reduction;
      reduction.kind = static_cast<ReductionKind>(kind);
      const bool general = reduction.kind == ReductionKind::kGeneral;
      if (!general) {
        reduction.acc = Type();
        acc_ = {reduction.acc};
        Expect("(");
      }
      reduction.axes = ParseAxes(")");
      if (AcceptWord("if")) reduction.pred = ParsePred();
      Expect(")");
      if (general) {
        reduction.init = List();
        if (failed_) return;
        for (const Scalar& init : reduction.init) acc_.push_back(init->dtype);
        Expect("->");
      }
      te->reduction = std::move(reduction);
      return;
    }
  }

  // ---- scalars
  std::vector<Scalar> List() {
    std::vector<Scalar> list;
    Expect("(");
    if (Accept(")")) return list;
    do list.push_back(Expr());
    while (Accept(","));
    Expect(")");
    return list;
  }

  Scalar Number(DType dtype, bool typed = false) {
    Space();
    const size_t begin = at_;
    if (at_ < text_.size() && text_[at_] == '-') ++at_;
    while (at_ < text_.size() && (IsWord(text_[at_]) || text_[at_] == '.' ||
                                  ((text_[at_] == '-' || text_[at_] == '+') && text_[at_ - 1] == 'e'))) {
      ++at_;
    }
    const char *first = text_.data() + begin, *last = text_.data() + at_;
    if (typed && Accept(":")) dtype = Type();
    if (failed_) return nullptr;
    std::from_chars_result r{};
    Scalar result;
    if (IsFloat(dtype)) {
      double value = 0;
      r = std::from_chars(first, last, value);
      result = Imm(dtype, value);
    } else if (dtype == DType::kU64) {
      uint64_t value = 0;
      r = std::from_chars(first, last, value);
      result = ImmInt(dtype, static_cast<int64_t>(value));
      if (r.ec != std::errc()) {  // a printed element of a u64 constant may be negative
        int64_t wrapped = 0;
        r = std::from_chars(first, last, wrapped);
        result = ImmInt(dtype, wrapped);
      }
    } else {
      int64_t value = 0;
      r = std::from_chars(first, last, value);
      result = ImmInt(dtype, value);
    }
    if (r.ec != std::errc() || r.ptr != last) {
      at_ = begin;
      Fail("expected a number");
      return nullptr;
    }
    return result;
  }

  Scalar Expr() {
    if (depth_ >= kMaxDepth) Fail("expression nested too deeply");
    if (failed_) return nullptr;
    ++depth_;
    Scalar result = ExprInside();
    --depth_;
    if (!failed_ && result == nullptr) Fail("expected an expression");
    return failed_ ? nullptr : result;
  }

  Scalar ExprInside() {
    Space();
    if (at_ >= text_.size()) return nullptr;
    const char c = text_[at_];
    if (c == '%') return ParseLoad();
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c)) || Looking("inf") || Looking("nan")) {
      return Number(DType::kF32, /*typed=*/true);
    }
    if (AcceptWord("true")) return ImmInt(DType::kBool, 1);
    if (AcceptWord("false")) return ImmInt(DType::kBool, 0);
    if (AcceptWord("if")) {
      Pred pred = ParsePred();
      Expect("then");
      Scalar yes = Expr();
      Expect("else");
      Scalar no = Expr();
      if (!failed_ && yes->dtype != no->dtype) Fail("the branches of an if differ in type");
      return failed_ ? nullptr : If(std::move(pred), yes, no);
    }
    const std::string name = Word();
    if (auto it = lets_.find(name); it != lets_.end()) return it->second;
    if (name == "cast") {
      Expect(".");
      const DType dtype = Type();
      std::vector<Scalar> args = List();
      if (!failed_ && args.size() != 1) Fail("a cast has one argument");
      if (failed_) return nullptr;
      if (IsFloat(dtype) && args[0]->dtype == dtype) return Rounded(std::move(args[0]));
      return Cast(dtype, std::move(args[0]));
    }
    if (name == "index") {
      Expect("(");
      Index index = ParseIndex();
      Expect(")");
      return failed_ ? nullptr : FromIndex(std::move(index));
    }
    for (size_t a = 0; a < acc_.size(); ++a) {
      if (name == absl::StrCat("acc", a)) return Acc(static_cast<int>(a), acc_[a]);
    }
    return ParseCall(name);
  }

  Scalar ParseCall(const std::string& name) {
    for (int o = 0; o <= static_cast<int>(Op::kSelect); ++o) {
      const Op op = static_cast<Op>(o);
      const OpInfo& info = GetOpInfo(op);
      if (name != info.name) continue;
      std::vector<Scalar> args = List();
      if (failed_) return nullptr;
      if (absl::Status status = CheckCall(op, args); !status.ok()) Fail(std::string(status.message()));
      return failed_ ? nullptr : Call(op, std::move(args));
    }
    Fail(absl::StrCat("'", name, "' is not an operation"));
    return nullptr;
  }

  Scalar ParseLoad() {
    const TensorId tensor = Id("%");
    std::vector<Index> indices = ParseIndices();
    if (!Known(tensor)) return nullptr;
    const DType dtype = program_.tensors[tensor].dtype;
    Scalar pad;
    if (Accept("?")) {
      pad = Expr();
      if (!failed_ && (pad->kind != ScalarKind::kImm || pad->dtype != dtype)) Fail("a pad is an immediate of the type");
    }
    return failed_ ? nullptr : Load(tensor, dtype, std::move(indices), std::move(pad));
  }

  // ---- indices
  std::vector<Index> ParseIndices() {
    std::vector<Index> indices;
    Expect("[");
    if (Accept("]")) return indices;
    do indices.push_back(ParseIndex());
    while (Accept(","));
    Expect("]");
    return indices;
  }

  Index ParseIndex() {
    if (depth_ >= kMaxDepth) Fail("index nested too deeply");
    if (failed_) return 0;
    ++depth_;
    Index sum = 0;
    int64_t sign = Accept("-") ? -1 : 1;
    while (!failed_) {
      sum = sum + ParseFactor() * sign;
      if (Accept("+")) {
        sign = 1;
      } else if (Accept("-")) {
        sign = -1;
      } else {
        break;
      }
    }
    --depth_;
    return failed_ ? Index(0) : sum;
  }

  Index ParseFactor() {
    Space();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      const int64_t value = Int();
      return Accept("*") ? ParseAtom() * value : Index(value);
    }
    return ParseAtom();
  }

  Index ParseAtom() {
    Index atom = 0;
    if (Accept("(")) {
      atom = ParseIndex();
      Expect(")");
    } else if (Looking("%")) {
      const TensorId tensor = Id("%");
      std::vector<Index> indices = ParseIndices();
      Expect("{");
      Interval range;
      range.lo = Int();
      Expect("..");
      range.hi = Int();
      Expect("}");
      if (!Known(tensor)) return 0;
      atom = Index::Load(tensor, std::move(indices), range);
    } else {
      const int id = Id("i");
      const auto it = axes_.find(id);
      if (it == axes_.end()) Fail(absl::StrCat("axis i", id, " is not defined here"));
      if (failed_) return 0;
      atom = it->second;
    }
    while (!failed_) {
      const bool division = Accept("//");
      if (!division && !Accept("%")) break;
      const int64_t divisor = Int();
      if (divisor <= 0) Fail("expected a positive divisor");
      if (failed_) return 0;
      atom = division ? FloorDiv(atom, divisor) : Mod(atom, divisor);
    }
    return failed_ ? Index(0) : atom;
  }

  Pred ParsePred() {
    Pred pred;
    if (AcceptWord("true")) return pred;
    do {
      Comparison c;
      c.lhs = ParseIndex();
      c.cmp = Accept("<") ? Cmp::kLt : Accept(">=") ? Cmp::kGe : Accept("==") ? Cmp::kEq : (Expect("!="), Cmp::kNe);
      c.rhs = ParseIndex();
      pred.push_back(std::move(c));
    } while (!failed_ && AcceptWord("and"));
    return pred;
  }

  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;
  bool failed_ = false;
  std::string error_;
  Program program_;
  std::map<TensorId, bool> defined_;
  std::map<int, Axis> axes_;
  std::map<std::string, Scalar> lets_;
  std::vector<DType> acc_;
};

}  // namespace

absl::StatusOr<Program> Parse(const std::string& text) { return Parser(text).Run(); }

}  // namespace fusion::te
