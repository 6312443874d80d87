#include "compiler/backends/cpu/print_kernel.h"

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/backends/cpu/expr_printer.h"
#include "compiler/backends/cpu/print_tile.h"
#include "compiler/movement/in_place.h"
#include "compiler/te/routine.h"

namespace fusion::cpu {
namespace {

using te::Axis;
using te::Scalar;

// Not "i": i8, i16, i32 and i64 are types.
std::string Name(int axis) { return absl::StrCat("x", axis); }

class StepPrinter {
 public:
  StepPrinter(const movement::Kernel& kernel, const movement::Step& step, int64_t lanes, int* next_temp,
              CodeWriter* out)
      : kernel_(kernel), step_(step), lanes_(lanes), next_temp_(next_temp), out_(out) {}

  void Print() {
    switch (step_.strategy) {
      case movement::Strategy::kScalar:
        return PrintScalar();
      case movement::Strategy::kMapVec:
        return PrintMap();
      case movement::Strategy::kRowFold:
        return PrintRowFold();
      case movement::Strategy::kTile:
        return PrintTile(kernel_, step_, lanes_, next_temp_, out_);
    }
  }

 private:
  std::string Limit(const movement::Loop& loop) {
    if (!loop.limit) return absl::StrCat(loop.axis.extent);
    return absl::StrCat("smin<i64>(", loop.axis.extent, ", ", IndexText(*loop.limit, Name, kernel_), ")");
  }

  void OpenLoop(const movement::Loop& loop) {
    const std::string i = Name(loop.axis.id);
    out_->Open(absl::StrCat("for (i64 ", i, " = 0, e_", i, " = ", Limit(loop), "; ", i, " < e_", i, "; ++", i, ")"));
  }

  std::string Place(const movement::Store& store) {
    return absl::StrCat("b", store.buffer, "[", IndexText(store.address, Name, kernel_), "]");
  }

  ExprPrinter::Options ScalarOptions(std::vector<Value> accs = {}) {
    return {&kernel_, Name, -1, 1, "", std::move(accs), next_temp_};
  }

  // Lanes past a blocked layout's logical extent get zero, and nothing is loaded for them.
  void OpenUnmasked() {
    if (step_.lane_limit < 0) return out_->Open("");
    out_->Open(absl::StrCat("if (!(", IndexText(step_.lane_mask_index, Name, kernel_), " < ", step_.lane_limit, "))"));
    for (const movement::Store& store : step_.stores)
      out_->Line(StoreText(kernel_.buffers[store.buffer], Place(store), "0"));
    out_->Close();
    out_->Open("else");
  }

  // Stores one element of every output.
  void StoreScalars(const std::vector<Scalar>& values, const std::vector<Value>& accs) {
    ExprPrinter printer(out_, ScalarOptions(accs));
    for (size_t o = 0; o < step_.stores.size(); ++o) {
      const std::string value = values.empty() ? accs[o].text : printer.Emit(values[o]).text;
      out_->Line(StoreText(kernel_.buffers[step_.stores[o].buffer], Place(step_.stores[o]), value));
    }
  }

  void PrintScalar() {
    for (const movement::Loop& loop : step_.loops) OpenLoop(loop);
    OpenUnmasked();
    if (!step_.fold) {
      StoreScalars(step_.body, {});
    } else {
      PrintScalarFold();
    }
    out_->Close();
    for (size_t i = 0; i < step_.loops.size(); ++i) out_->Close();
  }

  static std::string Combine(te::FoldKind kind, const std::string& acc, const std::string& x, DType dtype) {
    switch (kind) {
      case te::FoldKind::kSum:
        return IsFloat(dtype) ? absl::StrCat(acc, " += ", x, ";")
                              : absl::StrCat(acc, " = (", CType(dtype), ")((u64)", acc, " + (u64)", x, ");");
      case te::FoldKind::kProd:
        return IsFloat(dtype) ? absl::StrCat(acc, " *= ", x, ";")
                              : absl::StrCat(acc, " = (", CType(dtype), ")((u64)", acc, " * (u64)", x, ");");
      case te::FoldKind::kMax:
        return absl::StrCat(acc, " = smax<", CType(dtype), ">(", x, ", ", acc, ");");
      case te::FoldKind::kMin:
        return absl::StrCat(acc, " = smin<", CType(dtype), ">(", x, ", ", acc, ");");
      case te::FoldKind::kGeneral:
        break;
    }
    return "";
  }

  void PrintScalarFold() {
    const te::Fold& fold = *step_.fold;
    const bool general = fold.kind == te::FoldKind::kGeneral;
    std::vector<Value> accs;
    const size_t count = general ? fold.init.size() : 1;
    for (size_t a = 0; a < count; ++a) {
      const std::string acc = absl::StrCat("a", (*next_temp_)++);
      const DType dtype = general ? fold.init[a]->dtype : fold.acc;
      std::string init;
      if (general) {
        ExprPrinter printer(out_, ScalarOptions());
        init = printer.Emit(fold.init[a]).text;
      } else {
        init = FoldIdentity(fold.kind, dtype);
      }
      out_->Line(absl::StrCat(CType(dtype), " ", acc, " = ", init, ";"));
      accs.push_back({acc, false});
    }
    for (const Axis& axis : fold.axes) OpenLoop({axis, std::nullopt});
    out_->Open(fold.pred.empty() ? "" : absl::StrCat("if (", PredText(fold.pred, Name, kernel_), ")"));
    ExprPrinter printer(out_, ScalarOptions(accs));
    if (general) {
      std::vector<std::string> next;
      for (const Scalar& s : step_.body) next.push_back(printer.Emit(s).text);
      std::vector<std::string> fresh;
      for (size_t a = 0; a < count; ++a) {
        fresh.push_back(absl::StrCat("n", (*next_temp_)++));
        out_->Line(absl::StrCat("const ", CType(fold.init[a]->dtype), " ", fresh[a], " = ", next[a], ";"));
      }
      for (size_t a = 0; a < count; ++a) out_->Line(absl::StrCat(accs[a].text, " = ", fresh[a], ";"));
    } else {
      out_->Line(Combine(fold.kind, accs[0].text, printer.Emit(step_.body[0]).text, fold.acc));
    }
    for (size_t i = 0; i < fold.axes.size() + 1; ++i) out_->Close();
    StoreScalars(step_.then, accs);
  }

  void PrintMap() {
    for (size_t i = 0; i + 1 < step_.loops.size(); ++i) OpenLoop(step_.loops[i]);
    const movement::Loop& inner = step_.loops.back();
    const std::string i = Name(inner.axis.id);
    const bool whole = !inner.limit && inner.axis.extent % lanes_ == 0;
    out_->Line(absl::StrCat("const i64 e_", i, " = ", Limit(inner), ";"));
    if (!whole) out_->Line(absl::StrCat("i64 ", i, " = 0;"));
    out_->Open(whole ? absl::StrCat("for (i64 ", i, " = 0; ", i, " < e_", i, "; ", i, " += ", lanes_, ")")
                     : absl::StrCat("for (; ", i, " + ", lanes_, " <= e_", i, "; ", i, " += ", lanes_, ")"));
    {
      ExprPrinter printer(out_, {&kernel_, Name, inner.axis.id, lanes_, "", {}, next_temp_});
      for (size_t o = 0; o < step_.stores.size(); ++o) {
        std::string value = printer.EmitVector(step_.body[o]);
        if (step_.lane_limit >= 0) {
          value = absl::StrCat("(iota() < bi((int)(", step_.lane_limit, " - (",
                               IndexText(step_.lane_mask_index, Name, kernel_), "))) ? ", value, " : ",
                               VectorZero(step_.store_types[o]), ")");
        }
        out_->Line(VectorStoreText(
            step_.store_types[o],
            absl::StrCat("b", step_.stores[o].buffer, " + ", IndexText(step_.stores[o].address, Name, kernel_)),
            value));
      }
    }
    out_->Close();
    if (!whole) {
      out_->Open(absl::StrCat("for (; ", i, " < e_", i, "; ++", i, ")"));
      OpenUnmasked();
      StoreScalars(step_.body, {});
      out_->Close();
      out_->Close();
    }
    for (size_t l = 0; l + 1 < step_.loops.size(); ++l) out_->Close();
  }

  // Four vector accumulators along the contiguous fold axis, then one vector, then single elements, then one horizontal
  // step.
  void PrintRowFold() {
    for (const movement::Loop& loop : step_.loops) OpenLoop(loop);
    OpenUnmasked();
    const te::Fold& fold = *step_.fold;
    const std::string init = BroadcastText(fold.acc, FoldIdentity(fold.kind, fold.acc));
    const std::string tag = absl::StrCat((*next_temp_)++);
    const std::string v = absl::StrCat("v", tag, "_");
    const Axis inner = fold.axes.back();
    const int64_t wide = 4 * lanes_;
    for (int a = 0; a < 4; ++a) out_->Line(absl::StrCat(VectorType(fold.acc), " ", v, a, " = ", init, ";"));
    const std::string acc = absl::StrCat("a", tag);
    out_->Line(absl::StrCat(CType(fold.acc), " ", acc, " = ", FoldIdentity(fold.kind, fold.acc), ";"));
    for (size_t f = 0; f + 1 < fold.axes.size(); ++f) OpenLoop({fold.axes[f], std::nullopt});
    const std::string i = Name(inner.id);
    auto vector_body = [&](int64_t offset, int a) {
      auto name = [&](int axis) {
        return axis == inner.id && offset != 0 ? absl::StrCat("(", i, " + ", offset, ")") : Name(axis);
      };
      ExprPrinter printer(out_, {&kernel_, name, inner.id, lanes_, "", {}, next_temp_});
      out_->Line(VectorCombine(fold, absl::StrCat(v, a), printer.EmitVector(step_.body[0])));
    };
    out_->Line(absl::StrCat("i64 ", i, " = 0;"));
    if (inner.extent >= wide) {
      out_->Open(absl::StrCat("for (; ", i, " + ", wide, " <= ", inner.extent, "; ", i, " += ", wide, ")"));
      for (int a = 0; a < 4; ++a) vector_body(a * lanes_, a);
      out_->Close();
    }
    if (inner.extent % wide >= lanes_) {
      out_->Open(absl::StrCat("for (; ", i, " + ", lanes_, " <= ", inner.extent, "; ", i, " += ", lanes_, ")"));
      vector_body(0, 0);
      out_->Close();
    }
    if (inner.extent % lanes_ != 0) {
      out_->Open(absl::StrCat("for (; ", i, " < ", inner.extent, "; ++", i, ")"));
      ExprPrinter printer(out_, ScalarOptions());
      out_->Line(Combine(fold.kind, acc, printer.Emit(step_.body[0]).text, fold.acc));
      out_->Close();
    }
    for (size_t f = 0; f + 1 < fold.axes.size(); ++f) out_->Close();
    // The four vectors become one, and its lanes one element.
    for (const auto& [into, from] : {std::pair(0, 1), std::pair(2, 3), std::pair(0, 2)}) {
      out_->Line(VectorCombine(fold, absl::StrCat(v, into), absl::StrCat(v, from)));
    }
    switch (fold.kind) {
      case te::FoldKind::kSum:
        out_->Line(Combine(fold.kind, acc, absl::StrCat("hadd(", v, "0)"), fold.acc));
        break;
      case te::FoldKind::kProd:
        out_->Line(absl::StrCat("for (int l = 0; l < ", lanes_, "; ++l) ",
                                Combine(fold.kind, acc, absl::StrCat(v, "0[l]"), fold.acc)));
        break;
      default:
        out_->Line(Combine(fold.kind, acc, absl::StrCat(fold.kind == te::FoldKind::kMax ? "hmax(" : "hmin(", v, "0)"),
                           fold.acc));
    }
    StoreScalars(step_.then, {{acc, false}});
    out_->Close();
    for (size_t l = 0; l < step_.loops.size(); ++l) out_->Close();
  }

  const movement::Kernel& kernel_;
  const movement::Step& step_;
  const int64_t lanes_;
  int* next_temp_;
  CodeWriter* out_;
};

void PrintRoutine(const movement::Step& step, CodeWriter* out) {
  const movement::RoutineCall& call = *step.routine;
  std::vector<std::string> operands;
  for (int b : call.inputs) operands.push_back(absl::StrCat("(void*)b", b));
  for (const movement::Store& store : step.stores) operands.push_back(absl::StrCat("(void*)b", store.buffer));
  out->Line(absl::StrCat("void* const operands[] = {", absl::StrJoin(operands, ", "), "};"));
  out->Line(absl::StrCat("const i64 params[] = {", absl::StrJoin(call.params, ", "), "};"));
  out->Line(absl::StrCat(te::RoutineInstance(call.name, call.element), "(operands, scratch, begin, end, params);"));
}

}  // namespace

std::set<std::string> RoutinesOf(const movement::Kernel& kernel) {
  std::set<std::string> names;
  for (const movement::Phase& phase : kernel.phases) {
    for (const movement::Step& step : phase.steps) {
      if (step.routine) names.insert(step.routine->name);
    }
  }
  return names;
}

std::string PhaseSymbol(const std::string& symbol, int phase) { return absl::StrCat(symbol, "_p", phase); }

std::string PrintKernel(const movement::Kernel& kernel, const std::string& symbol, const DeviceModel& device) {
  const int64_t lanes = device.vector_bytes / 4;
  const std::vector<int64_t> scratch = kernel.scratch_offset_bytes();
  std::set<int> may_alias;
  for (const movement::InPlacePair& pair : movement::InPlacePairs(kernel)) may_alias.insert({pair.out, pair.in});
  CodeWriter out;
  for (size_t p = 0; p < kernel.phases.size(); ++p) {
    const movement::Phase& phase = kernel.phases[p];
    std::set<int> written;
    for (const movement::Step& step : phase.steps) {
      for (const movement::Store& store : step.stores) written.insert(store.buffer);
    }
    out.Open(absl::StrCat("extern \"C\" __attribute__((visibility(\"default\"))) void ",
                          PhaseSymbol(symbol, static_cast<int>(p)),
                          "(void* const* args, void* scratch, i64 begin, i64 end)"));
    int arg = 0;
    for (size_t b = 0; b < kernel.buffers.size(); ++b) {
      const movement::Buffer& buffer = kernel.buffers[b];
      const std::string type =
          absl::StrCat(written.count(static_cast<int>(b)) ? "" : "const ", StorageType(buffer.dtype), "*",
                       may_alias.count(static_cast<int>(b)) ? "" : " __restrict");
      const std::string place = buffer.scope == movement::BufferScope::kBlock
                                    ? absl::StrCat("((char*)scratch + ", scratch[b], ")")
                                    : absl::StrCat("args[", arg++, "]");
      out.Line(absl::StrCat(type, " b", b, " = (", StorageType(buffer.dtype), "*)", place, "; (void)b", b, ";"));
    }
    out.Line("(void)args; (void)scratch;");
    if (phase.tasks() == 0) {  // an empty tensor
      out.Line("(void)begin; (void)end;");
      out.Close();
      continue;
    }
    if (phase.steps.size() == 1 && phase.steps[0].routine) {
      PrintRoutine(phase.steps[0], &out);
      out.Close();
      continue;
    }
    out.Open("for (i64 task = begin; task < end; ++task)");
    int64_t inner = phase.tasks();
    for (const Axis& axis : phase.grid) {
      inner /= axis.extent;
      out.Line(absl::StrCat("const i64 ", Name(axis.id), " = task / ", inner, " % ", axis.extent, ";"));
    }
    int next_temp = 0;
    for (const movement::Step& step : phase.steps) {
      out.Open("");
      StepPrinter(kernel, step, lanes, &next_temp, &out).Print();
      out.Close();
    }
    out.Close();
    out.Close();
  }
  return out.text();
}

}  // namespace fusion::cpu
