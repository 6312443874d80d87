#include "runtime/devices/dsa_sim/unit_code.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/unit_op.h"

namespace fusion::dsa {
namespace {

constexpr const char* kLists[] = {"once", "pre", "init", "each", "post"};
constexpr const char* kWidths[] = {"constant", "one", "lanes"};
// Limits of one tensor and of the registers of one step: a damaged text must not ask for all memory.
constexpr int64_t kMostElements = int64_t{1} << 32;
constexpr int kMostRegisters = 1 << 16;

std::string Extents(const std::vector<int64_t>& extents) {
  return absl::StrCat("[", absl::StrJoin(extents, ", "), "]");
}

void PrintBox(const char* what, const UnitBox& box, std::string* text) {
  absl::StrAppend(text, what, " ", box.tensor, " at ", Extents(box.at), " box ", Extents(box.extents), "\n");
}

// The words of one line; "[1, 2]" is two.
class Line {
 public:
  Line(int number, absl::string_view text)
      : number_(number),
        words_(absl::StrSplit(text.substr(0, text.find('#')), absl::ByAnyChar(" ,[]\t\r"), absl::SkipEmpty())) {}

  bool AtEnd() const { return at_ == words_.size(); }
  bool Take(absl::string_view word) {
    if (AtEnd() || words_[at_] != word) return false;
    ++at_;
    return true;
  }
  absl::string_view Word() { return AtEnd() ? absl::string_view() : words_[at_++]; }
  template <typename T>
  absl::Status Integer(T* value) {
    if (AtEnd() || !absl::SimpleAtoi(words_[at_], value)) return Expected("an integer");
    ++at_;
    return absl::OkStatus();
  }
  absl::Status Real(double* value) {
    if (AtEnd() || !absl::SimpleAtod(words_[at_], value)) return Expected("a number");
    ++at_;
    return absl::OkStatus();
  }
  absl::Status Integers(std::vector<int64_t>* values) {  // as far as there are
    int64_t value = 0;
    for (; !AtEnd() && absl::SimpleAtoi(words_[at_], &value); ++at_) values->push_back(value);
    return absl::OkStatus();
  }
  absl::Status Expected(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", number_, " of unit code: expected ", what,
                                                   AtEnd() ? "" : absl::StrCat(" instead of '", words_[at_], "'")));
  }

 private:
  const int number_;
  const std::vector<absl::string_view> words_;
  size_t at_ = 0;
};

class Parser {
 public:
  absl::StatusOr<UnitCode> Run(absl::string_view text) {
    int number = 0;
    for (absl::string_view one : absl::StrSplit(text, '\n')) {
      Line line(++number, one);
      if (line.AtEnd()) continue;
      RETURN_IF_ERROR(Read(&line));
      if (!line.AtEnd()) return line.Expected("the end of the line");
    }
    return std::move(code_);
  }

 private:
  absl::Status Read(Line* line) {
    if (line->Take("tensor")) return ReadTensor(line);
    if (line->Take("operand")) return ReadBox(line, &code_.operands.emplace_back());
    if (line->Take("result")) return ReadBox(line, &code_.results.emplace_back());
    if (line->Take("step")) return ReadStep(line);
    if (code_.steps.empty()) return line->Expected("tensor, operand, result or step");
    UnitStep& step = code_.steps.back();
    if (line->Take("axis")) return ReadAxis(line, step, &step.axes.emplace_back());
    if (line->Take("reduce")) return ReadAxis(line, step, &step.reduction.emplace_back());
    if (line->Take("store")) return ReadStore(line, &step);
    for (int list = 0; list < UnitStep::kLists; ++list) {
      if (!line->Take(kLists[list])) continue;
      list_ = list;
      return absl::OkStatus();
    }
    if (list_ < 0) return line->Expected("axis, reduce, store or a list of instructions");
    return ReadInstruction(line, step, &step.lists[list_].emplace_back());
  }

  absl::Status ReadTensor(Line* line) {
    UnitTensor& tensor = code_.tensors.emplace_back();
    const std::optional<DType> dtype = ParseDType(std::string(line->Word()));
    if (!dtype) return line->Expected("an element type");
    tensor.dtype = *dtype;
    RETURN_IF_ERROR(line->Integers(&tensor.extents));
    int64_t elements = 1;
    for (const int64_t extent : tensor.extents) {
      if (extent < 0 || (elements > 0 && extent > kMostElements / elements)) return line->Expected("smaller extents");
      elements *= extent;
    }
    return absl::OkStatus();
  }

  absl::Status CheckTensor(Line* line, int tensor) const {
    if (tensor >= 0 && tensor < static_cast<int>(code_.tensors.size())) return absl::OkStatus();
    return line->Expected(absl::StrCat("one of ", code_.tensors.size(), " tensors, not ", tensor));
  }

  absl::Status ReadBox(Line* line, UnitBox* box) {
    RETURN_IF_ERROR(line->Integer(&box->tensor));
    RETURN_IF_ERROR(CheckTensor(line, box->tensor));
    if (!line->Take("at")) return line->Expected("at");
    RETURN_IF_ERROR(line->Integers(&box->at));
    if (!line->Take("box")) return line->Expected("box");
    RETURN_IF_ERROR(line->Integers(&box->extents));
    const std::vector<int64_t>& whole = code_.tensors[box->tensor].extents;
    bool inside = box->at.size() == whole.size() && box->extents.size() == whole.size();
    for (size_t d = 0; inside && d < whole.size(); ++d) {
      inside =
          box->at[d] >= 0 && box->extents[d] >= 0 && box->at[d] <= whole[d] && box->extents[d] <= whole[d] - box->at[d];
    }
    return inside ? absl::OkStatus() : line->Expected(absl::StrCat("a box inside ", Extents(whole)));
  }

  absl::Status ReadStep(Line* line) {
    if (!line->Take("registers")) return line->Expected("registers");
    UnitStep& step = code_.steps.emplace_back();
    list_ = -1;
    RETURN_IF_ERROR(line->Integer(&step.doubles));
    RETURN_IF_ERROR(line->Integer(&step.integers));
    if (step.doubles < 0 || step.integers < 1 || step.doubles > kMostRegisters || step.integers > kMostRegisters) {
      return line->Expected("a number of registers");
    }
    return absl::OkStatus();
  }

  absl::Status ReadAxis(Line* line, const UnitStep& step, UnitAxis* axis) {
    RETURN_IF_ERROR(line->Integer(&axis->reg));
    RETURN_IF_ERROR(line->Integer(&axis->extent));
    if (axis->reg < 0 || axis->reg >= step.integers) return line->Expected("an integer register");
    return axis->extent < 0 || axis->extent > kMostElements ? line->Expected("an extent") : absl::OkStatus();
  }

  absl::Status ReadStore(Line* line, UnitStep* step) {
    UnitStep::Store& store = step->stores.emplace_back();
    RETURN_IF_ERROR(line->Integer(&store.tensor));
    RETURN_IF_ERROR(line->Integer(&store.reg));
    RETURN_IF_ERROR(CheckTensor(line, store.tensor));
    const UnitTensor& tensor = code_.tensors[store.tensor];
    const int registers = IsFloat(tensor.dtype) ? step->doubles : step->integers;
    if (store.reg < 0 || store.reg >= registers) return line->Expected("a register");
    int64_t points = 1;
    for (const UnitAxis& axis : step->axes) points = points > kMostElements ? points : points * axis.extent;
    if (points != tensor.elements()) {
      return line->Expected(absl::StrCat("a tensor of ", points, " elements, as the step has points"));
    }
    return absl::OkStatus();
  }

  absl::Status ReadInstruction(Line* line, const UnitStep& step, UnitInstruction* made) {
    made->op = FindUnitOp(line->Word());
    if (made->op == nullptr) return line->Expected("an operation of units before it");
    const absl::string_view width = line->Word();
    const auto found = std::find(std::begin(kWidths), std::end(kWidths), width);
    if (found == std::end(kWidths)) return line->Expected("constant, one or lanes before it");
    made->width = static_cast<UnitWidth>(found - std::begin(kWidths));
    for (int* reg : {&made->dst, &made->a, &made->b, &made->c}) RETURN_IF_ERROR(line->Integer(reg));
    RETURN_IF_ERROR(line->Integer(&made->imm));
    RETURN_IF_ERROR(line->Integer(&made->imm2));
    RETURN_IF_ERROR(line->Real(&made->fimm));
    RETURN_IF_ERROR(line->Integer(&made->tensor));
    const auto fits = [&](char kind, int reg) {
      return kind == '-' || (reg >= 0 && reg < (kind == 'f' ? step.doubles : step.integers));
    };
    // Integer register 0 holds zeros for those that write nothing there.
    const bool writes_zero = made->op->dst == 'i' && made->dst == 0;
    if (writes_zero || !fits(made->op->dst, made->dst) || !fits(made->op->a, made->a) || !fits(made->op->b, made->b) ||
        !fits(made->op->c, made->c)) {
      return line->Expected("registers that the step has");
    }
    const absl::string_view name = made->op->name;
    if ((name == "floor_div" || name == "floor_mod") && made->imm <= 0) return line->Expected("a divisor above 0");
    return made->op->reads_tensor ? CheckTensor(line, made->tensor) : absl::OkStatus();
  }

  UnitCode code_;
  int list_ = -1;
};

}  // namespace

int64_t UnitTensor::elements() const {
  int64_t elements = 1;
  for (const int64_t extent : extents) elements *= extent;
  return elements;
}

std::string PrintUnitCode(const UnitCode& code) {
  std::string text;
  for (const UnitTensor& tensor : code.tensors) {
    absl::StrAppend(&text, "tensor ", DTypeName(tensor.dtype), " ", Extents(tensor.extents), "\n");
  }
  for (const UnitBox& box : code.operands) PrintBox("operand", box, &text);
  for (const UnitBox& box : code.results) PrintBox("result", box, &text);
  for (const UnitStep& step : code.steps) {
    absl::StrAppend(&text, "step registers ", step.doubles, " ", step.integers, "\n");
    for (const UnitAxis& axis : step.axes) absl::StrAppend(&text, "  axis ", axis.reg, " ", axis.extent, "\n");
    for (const UnitAxis& axis : step.reduction) absl::StrAppend(&text, "  reduce ", axis.reg, " ", axis.extent, "\n");
    for (int list = 0; list < UnitStep::kLists; ++list) {
      if (step.lists[list].empty()) continue;
      absl::StrAppend(&text, "  ", kLists[list], "\n");
      for (const UnitInstruction& one : step.lists[list]) {
        // Parsing must give the same double again.
        absl::StrAppendFormat(&text, "    %s %s %d %d %d %d %d %d %.17g %d\n", one.op->name,
                              kWidths[static_cast<int>(one.width)], one.dst, one.a, one.b, one.c, one.imm, one.imm2,
                              one.fimm, one.tensor);
      }
    }
    for (const UnitStep::Store& store : step.stores) {
      absl::StrAppend(&text, "  store ", store.tensor, " ", store.reg, "\n");
    }
  }
  return text;
}

absl::StatusOr<UnitCode> ParseUnitCode(absl::string_view text) { return Parser().Run(text); }

}  // namespace fusion::dsa
