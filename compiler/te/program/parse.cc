// Reads the text that print.cc writes.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/te/program/program.h"
#include "compiler/te/program/text_reader.h"
#include "compiler/te/scalar/rounded.h"
#include "runtime/base/status_macros.h"

namespace fusion::te {
namespace {

class Parser : public TextReader {
 public:
  using TextReader::TextReader;

  absl::StatusOr<Program> Run() {
    ParseProgram();
    RETURN_IF_ERROR(status());
    if (absl::Status verified = Verify(program_); !verified.ok()) {
      return absl::InvalidArgumentError(std::string(verified.message()));
    }
    return std::move(program_);
  }

 private:
  // ---- program
  TensorInfo& Info(TensorId id) {
    if (id >= static_cast<int>(program_.tensors.size())) program_.tensors.resize(id + 1);
    return program_.tensors[id];
  }
  bool Known(TensorId id) {
    const auto it = defined_.find(id);
    if (it == defined_.end()) Fail(absl::StrCat("%", id, " is not defined"));
    return !failed();
  }
  void Define(TensorId id, DType dtype, Shape shape, Role role) {
    if (!defined_.insert({id, true}).second) Fail(absl::StrCat("%", id, " is defined twice"));
    if (failed()) return;
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
    while (!failed() && !AcceptWord("return")) ParseTe();
    if (!Looking("}")) {
      do {
        const TensorId id = Id("%");
        if (!Known(id)) return;
        program_.MarkOutput(id);
      } while (Accept(","));
    }
    Expect("}");
    if (!AtEnd()) Fail("expected the end");
  }

  void ParseInput() {
    const TensorId id = Id("%");
    Expect(":");
    const DType dtype = Type();
    const Shape shape = Ints("[", "]");
    const bool constant = AcceptWord("const");
    Define(id, dtype, shape, constant ? Role::kConstant : Role::kInput);
    if (failed()) return;
    program_.inputs.push_back(id);
    const absl::StatusOr<int64_t> bytes = CheckedSizeBytes(shape, dtype);
    if (!bytes.ok()) return Fail(std::string(bytes.status().message()));
    if (!Accept("{")) return;
    if (NumElements(shape) > kMaxPrintedConstant) return Fail("too many elements for a constant in text");
    Tensor value(dtype, shape);
    for (int64_t i = 0; i < value.num_elements() && !failed(); ++i) {
      if (i > 0) Expect(",");
      const Scalar element = Number(dtype);
      if (failed()) return;
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
      if (failed() || !axes_.emplace(axis.id, axis).second) Fail(absl::StrCat("axis i", axis.id, " is defined twice"));
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
    if (failed()) return;
    ParseReductionHead(&te);
    while (AcceptWord("let")) {
      const std::string name = Word();
      Expect("=");
      Scalar value = Expr();
      if (!failed() && !lets_.emplace(name, value).second) Fail(absl::StrCat(name, " is defined twice"));
    }
    const bool listed = te.reduction ? te.reduction->kind == ReductionKind::kGeneral : te.outputs.size() > 1;
    te.body = listed ? List() : std::vector<Scalar>{Expr()};
    if (AcceptWord("then")) te.then = List();
    if (failed()) return;
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
      if (!failed() && !bytes.ok()) return Fail(std::string(bytes.status().message()));
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
    if (failed()) return;
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
        if (failed()) return;
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
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.' ||
                                  ((text_[at_] == '-' || text_[at_] == '+') && text_[at_ - 1] == 'e'))) {
      ++at_;
    }
    const char *first = text_.data() + begin, *last = text_.data() + at_;
    if (typed && Accept(":")) dtype = Type();
    if (failed()) return nullptr;
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
    if (failed()) return nullptr;
    ++depth_;
    Scalar result = ExprInside();
    --depth_;
    if (!failed() && result == nullptr) Fail("expected an expression");
    return failed() ? nullptr : result;
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
      if (!failed() && yes->dtype != no->dtype) Fail("the branches of an if differ in type");
      return failed() ? nullptr : If(std::move(pred), yes, no);
    }
    const std::string name = Word();
    if (auto it = lets_.find(name); it != lets_.end()) return it->second;
    if (name == "cast") {
      Expect(".");
      const DType dtype = Type();
      std::vector<Scalar> args = List();
      if (!failed() && args.size() != 1) Fail("a cast has one argument");
      if (failed()) return nullptr;
      if (IsFloat(dtype) && args[0]->dtype == dtype) return Rounded(std::move(args[0]));
      return Cast(dtype, std::move(args[0]));
    }
    if (name == "index") {
      Expect("(");
      Index index = ParseIndex();
      Expect(")");
      return failed() ? nullptr : FromIndex(std::move(index));
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
      if (failed()) return nullptr;
      if (absl::Status status = CheckCall(op, args); !status.ok()) Fail(std::string(status.message()));
      return failed() ? nullptr : Call(op, std::move(args));
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
      if (!failed() && (pad->kind != ScalarKind::kImm || pad->dtype != dtype))
        Fail("a pad is an immediate of the type");
    }
    return failed() ? nullptr : Load(tensor, dtype, std::move(indices), std::move(pad));
  }

  // ---- indices
  const Axis* FindAxis(int id) const override {
    const auto it = axes_.find(id);
    return it == axes_.end() ? nullptr : &it->second;
  }

  // %t[…]{lo..hi}, with the declared range of the values.
  Index ParseIndexLoad() override {
    const TensorId tensor = Id("%");
    std::vector<Index> indices = ParseIndices();
    Expect("{");
    Interval range;
    range.lo = Int();
    Expect("..");
    range.hi = Int();
    Expect("}");
    return Known(tensor) ? Index::Load(tensor, std::move(indices), range) : Index(0);
  }

  Program program_;
  std::map<TensorId, bool> defined_;
  std::map<int, Axis> axes_;
  std::map<std::string, Scalar> lets_;
  std::vector<DType> acc_;
};

}  // namespace

absl::StatusOr<Program> Parse(const std::string& text) { return Parser(text).Run(); }

}  // namespace fusion::te
