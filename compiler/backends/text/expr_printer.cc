#include "compiler/backends/text/expr_printer.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/vector_form.h"
#include "runtime/base/narrow_float.h"

namespace fusion::text {

using movement::LaneKind;
using movement::LaneKindOf;
using te::Index;
using te::Op;
using te::Scalar;
using te::ScalarKind;

void CodeWriter::Line(const std::string& text) {
  text_.append(2 * depth_, ' ');
  text_ += text;
  text_ += '\n';
}

const char* CType(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "double";
    case DType::kBool:
      return "bool";
    case DType::kI4:
    case DType::kI2:
      return "i8";
    case DType::kU4:
    case DType::kU2:
      return "u8";
    default:
      return IsFloat(dtype) ? "float" : DTypeName(dtype);
  }
}

const char* StorageType(DType dtype) {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16:
      return "u16";
    case DType::kBool:
      return "u8";
    default:
      return IsByteFloat(dtype) ? "u8" : CType(dtype);
  }
}

std::string TypedName(const std::string& name, DType dtype) {
  return absl::StrCat(name, "_", IsNarrowFloat(dtype) ? "f32" : IsFloat(dtype) ? DTypeName(dtype) : CType(dtype));
}

std::string PointerType(const movement::Buffer& buffer, bool read_only) {
  return absl::StrCat(buffer.scope == Scope::kBlock ? "SCRATCH " : "GLOBAL ", read_only ? "const " : "",
                      StorageType(buffer.dtype), "*");
}

std::string LoadText(const movement::Buffer& buffer, const std::string& place) {
  switch (buffer.dtype) {
    case DType::kF16:
      return absl::StrCat("h2f(", place, ")");
    case DType::kBF16:
      return absl::StrCat("bf2f(", place, ")");
    case DType::kBool:
      return absl::StrCat("(", place, " != 0)");
    default:
      return IsByteFloat(buffer.dtype) ? absl::StrCat("from_", DTypeName(buffer.dtype), "(", place, ")") : place;
  }
}

std::string StoreText(const movement::Buffer& buffer, const std::string& place, const std::string& value) {
  switch (buffer.dtype) {
    case DType::kF16:
      return absl::StrCat(place, " = f2h(", value, ");");
    case DType::kBF16:
      return absl::StrCat(place, " = f2bf(", value, ");");
    default:
      if (IsByteFloat(buffer.dtype)) return absl::StrCat(place, " = to_", DTypeName(buffer.dtype), "(", value, ");");
      return absl::StrCat(place, " = (", StorageType(buffer.dtype), ")(", value, ");");
  }
}

std::string KeptBits(DType dtype, const std::string& x) {
  const int bits = DTypeBits(dtype);
  if (!IsSigned(dtype)) return absl::StrCat("(u8)((", x, ") & ", (1 << bits) - 1, ")");
  return absl::StrCat("(i8)((((", x, ") & ", (1 << bits) - 1, ") ^ ", 1 << (bits - 1), ") - ", 1 << (bits - 1), ")");
}

std::string ImmText(const te::ScalarNode& imm) {
  if (!IsFloat(imm.dtype)) {
    if (imm.dtype == DType::kBool) return imm.ivalue != 0 ? "true" : "false";
    return absl::StrFormat("(%s)%dUL", CType(imm.dtype), static_cast<uint64_t>(imm.ivalue));
  }
  const bool f64 = imm.dtype == DType::kF64;
  if (std::isnan(imm.fvalue)) return f64 ? "nan_f64" : "nan_f32";
  if (std::isinf(imm.fvalue)) {
    return absl::StrCat("(", imm.fvalue < 0 ? "-" : "", f64 ? "inf_f64)" : "inf_f32)");
  }
  if (f64) return absl::StrFormat("%a", imm.fvalue);
  const double rounded = static_cast<double>(static_cast<float>(imm.fvalue));
  if (std::isinf(rounded)) return rounded < 0 ? "(-inf_f32)" : "inf_f32";
  const std::string text = absl::StrFormat("%af", rounded);
  return std::signbit(rounded) ? absl::StrCat("(", text, ")") : text;
}

const char* VectorType(DType dtype) { return LaneKindOf(dtype) == LaneKind::kFloat ? "vf" : "vi"; }

std::string VectorZero(DType dtype) { return LaneKindOf(dtype) == LaneKind::kFloat ? "bc(0.f)" : "bi(0)"; }

std::string BroadcastText(DType dtype, const std::string& scalar) {
  switch (LaneKindOf(dtype)) {
    case LaneKind::kFloat:
      return absl::StrCat("bc(", scalar, ")");
    case LaneKind::kMask:
      return absl::StrCat("bi(", scalar, " ? -1 : 0)");
    default:
      return absl::StrCat("bi((int)", scalar, ")");
  }
}

namespace {

// Wraps integers of fewer bits than a lane, and rounds f16 and bf16.
std::string Narrowed(DType dtype, const std::string& x) {
  switch (dtype) {
    case DType::kI8:
    case DType::kU8:
    case DType::kI16:
    case DType::kU16:
      return absl::StrCat("wrap_", DTypeName(dtype), "(", x, ")");
    case DType::kF16:
    case DType::kBF16:
      return absl::StrCat("round_", DTypeName(dtype), "(", x, ")");
    case DType::kU4:
    case DType::kU2:
      return absl::StrCat("(", x, ") & bi(", (1 << DTypeBits(dtype)) - 1, ")");
    case DType::kI4:
    case DType::kI2: {
      const int sign = 1 << (DTypeBits(dtype) - 1);
      return absl::StrCat("isub(((", x, ") & bi(", 2 * sign - 1, ")) ^ bi(", sign, "), bi(", sign, "))");
    }
    default:
      return x;
  }
}

}  // namespace

std::string LaneText(DType dtype, const std::string& vector, const std::string& lane) {
  return absl::StrCat("lane_", VectorType(dtype), "(", vector, ", ", lane, ")");
}

std::string VectorLoadText(DType dtype, const std::string& place) {
  return absl::StrCat("ld_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "(", place, ")");
}

std::string PartLoadText(DType dtype, const std::string& place, const std::string& count) {
  return absl::StrCat("ld_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "_part(", place, ", ", count, ")");
}

std::string PartStoreText(DType dtype, const std::string& place, const std::string& value, const std::string& count) {
  return absl::StrCat("st_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "_part(", place, ", ", value, ", ",
                      count, ");");
}

std::string VectorStoreText(DType dtype, const std::string& place, const std::string& value) {
  return absl::StrCat("st_", IsNarrowInt(dtype) ? CType(dtype) : DTypeName(dtype), "(", place, ", ", value, ");");
}

std::string VectorCastText(const te::ScalarNode& cast, const std::string& x) {
  const DType from = cast.args[0]->dtype, to = cast.dtype;
  if (from == to) return x;
  switch (LaneKindOf(to)) {
    case LaneKind::kFloat: {
      const std::string real = LaneKindOf(from) == LaneKind::kFloat ? x
                               : LaneKindOf(from) == LaneKind::kInt ? absl::StrCat("vi2f(", x, ")")
                                                                    : absl::StrCat("vsel(", x, ", bc(1.f), bc(0.f))");
      return Narrowed(to, real);
    }
    case LaneKind::kInt: {
      if (LaneKindOf(from) == LaneKind::kMask) return absl::StrCat(x, " & 1");
      const bool same_values = to == DType::kI32 || (from == DType::kI8 && to == DType::kI16) ||
                               (from == DType::kU8 && (to == DType::kI16 || to == DType::kU16));
      const char* const from_float = !movement::FitsI32(*cast.args[0])          ? "vf2i_any("
                                     : !same_values && DTypeBits(to) <= 16 ? "vf2i_low("
                                                                           : "vf2i(";
      const std::string whole = LaneKindOf(from) != LaneKind::kFloat ? x : absl::StrCat(from_float, x, ")");
      return same_values ? whole : Narrowed(to, whole);
    }
    default:
      return LaneKindOf(from) == LaneKind::kFloat ? absl::StrCat(x, " != bc(0.f)") : absl::StrCat(x, " != bi(0)");
  }
}

std::string FoldIdentity(te::FoldKind kind, DType dtype) {
  te::ScalarNode imm;
  imm.dtype = dtype;
  switch (kind) {
    case te::FoldKind::kSum:
      break;
    case te::FoldKind::kProd:
      imm.fvalue = 1, imm.ivalue = 1;
      break;
    case te::FoldKind::kMax:
    case te::FoldKind::kMin: {
      const bool max = kind == te::FoldKind::kMax;
      imm.fvalue = max ? -__builtin_inf() : __builtin_inf();
      const int bits = DTypeBits(dtype);
      if (dtype == DType::kBool) {
        imm.ivalue = max ? 0 : 1;
      } else if (IsSigned(dtype)) {
        imm.ivalue = max ? INT64_MIN >> (64 - bits) : INT64_MAX >> (64 - bits);
      } else {
        imm.ivalue = max ? 0 : static_cast<int64_t>(UINT64_MAX >> (64 - bits));
      }
      break;
    }
    case te::FoldKind::kGeneral:
      break;
  }
  return ImmText(imm);
}

std::string VectorCombine(const te::Fold& fold, const std::string& acc, const std::string& x) {
  const bool is_float = IsFloat(fold.acc);
  switch (fold.kind) {
    case te::FoldKind::kSum:
      return is_float ? absl::StrCat(acc, " += ", x, ";") : absl::StrCat(acc, " = iadd(", acc, ", ", x, ");");
    case te::FoldKind::kProd:
      return is_float ? absl::StrCat(acc, " *= ", x, ";") : absl::StrCat(acc, " = imul(", acc, ", ", x, ");");
    case te::FoldKind::kMax:
      return absl::StrCat(acc, is_float ? " = amax_f32(" : " = amax_i32(", acc, ", ", x, ");");
    default:
      return absl::StrCat(acc, is_float ? " = amin_f32(" : " = amin_i32(", acc, ", ", x, ");");
  }
}

std::string IndexText(const Index& index, const AxisName& name, const movement::Kernel& kernel) {
  std::string text;
  for (const Index::Part& part : index.parts()) {
    std::string term;
    switch (part.term.kind) {
      case te::TermKind::kAxis:
        term = name(part.term.axis.id);
        break;
      case te::TermKind::kFloorDiv:
      case te::TermKind::kMod: {
        const std::string inner = IndexText(*part.term.inner, name, kernel);
        const bool division = part.term.kind == te::TermKind::kFloorDiv;
        if (part.term.inner->Range().lo >= 0) {
          term = absl::StrCat("((", inner, ")", division ? "/" : "%", part.term.divisor, ")");
        } else {
          term = absl::StrCat(division ? "fdiv(" : "fmodi(", inner, ", ", part.term.divisor, ")");
        }
        break;
      }
      case te::TermKind::kLoad:
        term = absl::StrCat("(i64)b", part.term.tensor, "[", IndexText(part.term.indices[0], name, kernel), "]");
        break;
    }
    if (!text.empty()) text += " + ";
    if (part.coefficient == 1) {
      text += term;
    } else {
      absl::StrAppend(&text, part.coefficient, "L*", term);
    }
  }
  if (text.empty()) return absl::StrCat(index.constant(), "L");
  if (index.constant() != 0) absl::StrAppend(&text, " + ", index.constant(), "L");
  return text;
}

std::string PredText(const te::Pred& pred, const AxisName& name, const movement::Kernel& kernel) {
  static const char* const kText[] = {"<", ">=", "==", "!="};
  if (pred.empty()) return "true";
  std::vector<std::string> parts;
  for (const te::Comparison& c : pred) {
    parts.push_back(absl::StrCat("(", IndexText(c.lhs, name, kernel), ") ", kText[static_cast<int>(c.cmp)], " (",
                                 IndexText(c.rhs, name, kernel), ")"));
  }
  return absl::StrJoin(parts, " && ");
}

std::string ExprPrinter::Temp(const std::string& type, const std::string& expression) {
  std::string name = absl::StrCat("t", (*options_.next_temp)++);
  out_->Line(absl::StrCat("const ", type, " ", name, " = ", expression, ";"));
  return name;
}

std::string ExprPrinter::AsVector(const Value& value, DType dtype) {
  return value.varying ? value.text : BroadcastText(dtype, value.text);
}

std::string ExprPrinter::EmitVector(const Scalar& s) { return AsVector(Emit(s), s->dtype); }

Value ExprPrinter::Emit(const Scalar& s) {
  auto it = memo_.find(s.get());
  if (it != memo_.end()) return it->second;
  Value value = Compute(s);
  memo_[s.get()] = value;
  order_.push_back(s.get());
  return value;
}

bool ExprPrinter::MovesWithLanes(const Scalar& s) const {
  bool moves = false;
  te::Visit(s, [&](const te::ScalarNode& node) {
    moves = moves || (node.kind == ScalarKind::kFromIndex && node.index.UsesAxis(options_.lane_axis));
    moves = moves || (node.kind == ScalarKind::kLoad && node.indices[0].UsesAxis(options_.lane_axis));
  });
  return moves;
}

Value ExprPrinter::EmitLaneByLane(const Scalar& s) {
  const std::string name = absl::StrCat("t", (*options_.next_temp)++);
  out_->Line(absl::StrCat(VectorType(s->dtype), " ", name, " = ", VectorZero(s->dtype), ";"));
  out_->Open(absl::StrCat("for (int l = 0; l < ",
                          options_.valid_lanes.empty() ? absl::StrCat(options_.lanes) : options_.valid_lanes,
                          "; ++l)"));
  Options one = options_;
  one.lane_axis = -1;
  one.axis_name = [this](int axis) {
    const std::string text = options_.axis_name(axis);
    return axis == options_.lane_axis ? absl::StrCat("(", text, " + l)") : text;
  };
  const std::string value = ExprPrinter(out_, std::move(one)).Emit(s).text;
  out_->Line(absl::StrCat(LaneText(s->dtype, name, "l"), " = ", s->dtype == DType::kBool ? "-" : "", value, ";"));
  out_->Close();
  return {name, true};
}

Value ExprPrinter::Compute(const Scalar& s) {
  if (options_.lane_axis >= 0 && movement::IsLaneByLane(*s) && MovesWithLanes(s)) return EmitLaneByLane(s);
  if (options_.lane_axis >= 0 && options_.loaded.count(s.get()) == 0) {
    const movement::SteppedLoad stepped = movement::SteppedLoadOf(*s, options_.lane_axis);
    if (stepped.load != nullptr) return EmitStepped(stepped);
  }
  switch (s->kind) {
    case ScalarKind::kImm:
      return {ImmText(*s), false};
    case ScalarKind::kAcc:
      return options_.accs[s->acc];
    case ScalarKind::kFromIndex:
      return {Temp("i64", IndexText(s->index, options_.axis_name, *options_.kernel)), false};
    case ScalarKind::kLoad:
      return EmitLoad(s);
    case ScalarKind::kIf:
      return EmitIf(s);
    case ScalarKind::kOp:
      return EmitOp(s);
    case ScalarKind::kCast: {
      Value x = Emit(s->args[0]);
      const DType from = s->args[0]->dtype, to = s->dtype;
      if (from == to) return x;
      if (x.varying) return {Temp(VectorType(to), VectorCastText(*s, x.text)), true};
      std::string text;
      if (to == DType::kF16) {
        text = absl::StrCat("h2f(f2h((float)", x.text, "))");
      } else if (to == DType::kBF16) {
        text = absl::StrCat("bf2f(f2bf((float)", x.text, "))");
      } else if (IsByteFloat(to)) {
        text = absl::StrCat("from_", DTypeName(to), "(to_", DTypeName(to), "((float)", x.text, "))");
      } else if (to == DType::kBool) {
        text = absl::StrCat("(", x.text, " != 0)");
      } else if (IsNarrowInt(to)) {
        text = KeptBits(to, IsFloat(from) ? absl::StrCat("f2i(", x.text, ")") : x.text);
      } else if (IsFloat(from) && !IsFloat(to)) {
        text = absl::StrCat("(", CType(to), to == DType::kU64 ? ")f2u(" : ")f2i(", x.text, ")");
      } else {
        text = absl::StrCat("(", CType(to), ")(", x.text, ")");
      }
      return {Temp(CType(to), text), false};
    }
  }
  return {"0", false};
}

Value ExprPrinter::EmitLoad(const Scalar& s) {
  if (const auto it = options_.loaded.find(s.get()); it != options_.loaded.end()) return {it->second, true};
  const movement::Buffer& buffer = options_.kernel->buffers[s->tensor];
  const Index& address = s->indices[0];
  const std::string base = absl::StrCat("b", s->tensor);
  if (options_.lane_axis < 0 || !address.UsesAxis(options_.lane_axis)) {
    return {
        Temp(CType(s->dtype),
             LoadText(buffer, absl::StrCat(base, "[", IndexText(address, options_.axis_name, *options_.kernel), "]"))),
        false};
  }
  // The axis' extent does not matter: what holds for a long axis holds for this one.
  const te::Axis lane{options_.lane_axis, options_.lanes << 20};
  const te::LaneAccess access = te::ClassifyLanes(address, lane, options_.lanes);
  if (access == te::LaneAccess::kInvariant) {
    return {
        Temp(CType(s->dtype),
             LoadText(buffer, absl::StrCat(base, "[", IndexText(address, options_.axis_name, *options_.kernel), "]"))),
        false};
  }
  if (access == te::LaneAccess::kContiguous) {
    const std::string place = absl::StrCat(base, " + ", IndexText(address, options_.axis_name, *options_.kernel));
    if (options_.part) return {Temp(VectorType(buffer.dtype), PartLoadText(buffer.dtype, place, options_.valid_lanes)), true};
    return {Temp(VectorType(buffer.dtype), VectorLoadText(buffer.dtype, place)), true};
  }
  const std::string name = absl::StrCat("t", (*options_.next_temp)++);
  auto in_lane = [&](int axis) {
    return axis == options_.lane_axis ? absl::StrCat("(", options_.axis_name(axis), " + l)") : options_.axis_name(axis);
  };
  out_->Line(absl::StrCat(VectorType(buffer.dtype), " ", name, " = ", VectorZero(buffer.dtype), ";"));
  const std::string element =
      LoadText(buffer, absl::StrCat(base, "[", IndexText(address, in_lane, *options_.kernel), "]"));
  out_->Line(absl::StrCat(
      "for (int l = 0; l < ", options_.valid_lanes.empty() ? absl::StrCat(options_.lanes) : options_.valid_lanes,
      "; ++l) ", LaneText(buffer.dtype, name, "l"), " = ", buffer.dtype == DType::kBool ? "-" : "", element, ";"));
  return {name, true};
}

Value ExprPrinter::EmitStepped(const movement::SteppedLoad& stepped) {
  const auto index = [&](const Index& x) { return IndexText(x, options_.axis_name, *options_.kernel); };
  const auto tightest = [&](const std::vector<Index>& bounds, const char* of_two, std::string otherwise) {
    std::string text = bounds.empty() ? std::move(otherwise) : index(bounds[0]);
    for (size_t b = 1; b < bounds.size(); ++b) text = absl::StrCat(of_two, "(", text, ", ", index(bounds[b]), ")");
    return text;
  };
  const auto place = [&](const AxisName& axis_name) {
    return absl::StrCat("b", stepped.load->tensor, " + ",
                        IndexText(stepped.load->indices[0], axis_name, *options_.kernel));
  };
  const std::string name = absl::StrCat("t", (*options_.next_temp)++);
  if (stepped.zipped) {
    const AxisName next = [&](int axis) {
      const std::string text = options_.axis_name(axis);
      return axis == options_.lane_axis ? absl::StrCat("(", text, " + 1)") : text;
    };
    const std::string lanes = options_.valid_lanes.empty() ? absl::StrCat(options_.lanes) : options_.valid_lanes;
    out_->Line(absl::StrCat("vf ", name, " = bc(0.f), ", name, "_ = ", name, ";"));
    out_->Line(absl::StrCat("ld_inside_f32(&", name, ", ", place(options_.axis_name), ", 0, (", lanes, " + 1) / 2);"));
    out_->Line(absl::StrCat("ld_inside_f32(&", name, "_, ", place(next), ", 0, (", lanes, ") / 2);"));
    out_->Line(absl::StrCat(name, " = zip_low(", name, ", ", name, "_);"));
    return {name, true};
  }
  out_->Line(absl::StrCat("vf ", name, " = bc(", stepped.outside != nullptr ? ImmText(*stepped.outside) : "0.f", ");"));
  const std::string guard =
      stepped.still.empty() ? ""
                            : absl::StrCat("if (", PredText(stepped.still, options_.axis_name, *options_.kernel), ") ");
  // The buffer may end behind the last lane's element.
  const std::string end = options_.valid_lanes.empty()
                              ? absl::StrCat((options_.lanes - 1) * stepped.stride + 1)
                              : absl::StrCat("(", options_.valid_lanes, " - 1) * ", stepped.stride, " + 1");
  constexpr int64_t kMostNamed = 3;  // strides that the prelude has functions of their own for
  const std::string function = stepped.stride == 1            ? "ld"
                               : stepped.stride <= kMostNamed ? absl::StrCat("ld", stepped.stride)
                                                              : "ldn";
  const std::string stride = stepped.stride <= kMostNamed ? "" : absl::StrCat(stepped.stride, ", ");
  out_->Line(absl::StrCat(guard, function, "_inside_f32(&", name, ", ", place(options_.axis_name), ", ", stride,
                          tightest(stepped.from, "smax_i64", "0"), ", ", tightest(stepped.to, "smin_i64", end), ");"));
  return {name, true};
}

Value ExprPrinter::EmitIf(const Scalar& s) {
  const std::string name = absl::StrCat("t", (*options_.next_temp)++);
  // The text of the branches decides whether the result is a vector, so it is printed aside first.
  CodeWriter* outer = out_;
  auto branch = [&](const Scalar& arm, CodeWriter* text) {
    const size_t mark = order_.size();
    out_ = text;
    Value value = Emit(arm);
    out_ = outer;
    while (order_.size() > mark) {
      memo_.erase(order_.back());
      order_.pop_back();
    }
    return value;
  };
  CodeWriter then_text, else_text;
  const Value then_value = branch(s->args[0], &then_text), else_value = branch(s->args[1], &else_text);
  const bool varying = then_value.varying || else_value.varying;
  const std::string type = varying ? VectorType(s->dtype) : CType(s->dtype);
  auto operand = [&](const Value& value) { return varying ? AsVector(value, s->dtype) : value.text; };
  out_->Line(absl::StrCat(type, " ", name, ";"));
  out_->Open(absl::StrCat("if (", PredText(s->pred, options_.axis_name, *options_.kernel), ")"));
  out_->Line(then_text.text() + absl::StrCat(name, " = ", operand(then_value), ";"));
  out_->Close();
  out_->Open("else");
  out_->Line(else_text.text() + absl::StrCat(name, " = ", operand(else_value), ";"));
  out_->Close();
  return {name, varying};
}

namespace {

std::string ScalarOp(const te::ScalarNode& s, const std::vector<std::string>& a) {
  const DType in = s.args[0]->dtype;
  const bool f = IsFloat(in);
  const std::string cast = absl::StrCat("(", CType(s.dtype), ")");
  auto infix = [&](const char* op) { return absl::StrCat(cast, "(", a[0], " ", op, " ", a[1], ")"); };
  auto call = [&](const std::string& name) { return absl::StrCat(name, "(", absl::StrJoin(a, ", "), ")"); };
  // Calls the helper for operands of this type.
  auto typed = [&](const char* name) { return call(TypedName(name, in)); };
  const bool small_int = !f && in != DType::kBool;
  // Signed overflow wraps: the operation uses the widest unsigned type, and the result is cut to the type.
  auto wrapped = [&](const char* op) {
    return small_int ? absl::StrCat(cast, "((u64)", a[0], " ", op, " (u64)", a[1], ")") : infix(op);
  };
  switch (s.op) {
    case Op::kAdd:
      return wrapped("+");
    case Op::kSub:
      return wrapped("-");
    case Op::kMul:
      return wrapped("*");
    case Op::kDiv:
      return f ? infix("/") : typed("idiv");
    case Op::kMod:
      return typed("mod");
    case Op::kFMod:
      return f ? typed("fmod") : typed("irem");
    case Op::kMin:
      return typed("smin");
    case Op::kMax:
      return typed("smax");
    case Op::kPow:
      return f ? typed("pow") : typed("ipow");
    case Op::kNeg:
      return f ? absl::StrCat("-", a[0]) : absl::StrCat(cast, "(0 - (u64)", a[0], ")");
    case Op::kAbs:
      return typed("sabs");
    case Op::kSign:
      return typed("ssign");
    case Op::kFloor:
      return f ? typed("floor") : a[0];
    case Op::kCeil:
      return f ? typed("ceil") : a[0];
    case Op::kRound:
      return f ? typed("round") : a[0];
    case Op::kSqrt:
      return typed("sqrt");
    case Op::kRsqrt:
      return absl::StrCat(in == DType::kF64 ? "1.0 / " : "1.f / ", typed("sqrt"));
    case Op::kExp:
      return typed("exp");
    case Op::kLog:
      return typed("log");
    case Op::kErf:
      return typed("erf");
    case Op::kSin:
      return typed("sin");
    case Op::kCos:
      return typed("cos");
    case Op::kTan:
      return typed("tan");
    case Op::kAsin:
      return typed("asin");
    case Op::kAcos:
      return typed("acos");
    case Op::kAtan:
      return typed("atan");
    case Op::kSinh:
      return typed("sinh");
    case Op::kCosh:
      return typed("cosh");
    case Op::kTanh:
      return typed("tanh");
    case Op::kAsinh:
      return typed("asinh");
    case Op::kAcosh:
      return typed("acosh");
    case Op::kAtanh:
      return typed("atanh");
    case Op::kIsNan:
      return f ? absl::StrCat("(", a[0], " != ", a[0], ")") : "false";
    case Op::kIsInf:
      return f ? absl::StrCat("(", typed("sabs"), in == DType::kF64 ? " == inf_f64)" : " == inf_f32)") : "false";
    case Op::kEq:
      return infix("==");
    case Op::kNe:
      return infix("!=");
    case Op::kLt:
      return infix("<");
    case Op::kLe:
      return infix("<=");
    case Op::kGt:
      return infix(">");
    case Op::kGe:
      return infix(">=");
    case Op::kAnd:
      return infix("&");
    case Op::kOr:
      return infix("|");
    case Op::kXor:
      return infix("^");
    case Op::kNot:
      return absl::StrCat("!", a[0]);
    case Op::kBitAnd:
      return infix("&");
    case Op::kBitOr:
      return infix("|");
    case Op::kBitXor:
      return infix("^");
    case Op::kBitNot:
      return absl::StrCat(cast, "~", a[0]);
    case Op::kShl:
      return typed("shl");
    case Op::kShr:
      return typed("shr");
    case Op::kSelect:
      return absl::StrCat("(", a[0], " ? ", a[1], " : ", a[2], ")");
  }
  return "0";
}

// These avoid the language's `?:`, which some languages lack for vectors.
std::string Larger(const std::string& a, const std::string& b) {
  return absl::StrCat("vsel(", a, " > ", b, ", ", a, ", ", b, ")");
}
std::string Smaller(const std::string& a, const std::string& b) {
  return absl::StrCat("vsel(", a, " < ", b, ", ", a, ", ", b, ")");
}

std::string FloatVectorOp(const te::ScalarNode& s, const std::vector<std::string>& a) {
  auto infix = [&](const char* op) { return absl::StrCat(a[0], " ", op, " ", a[1]); };
  auto call = [&](const char* name) { return absl::StrCat(name, "(", absl::StrJoin(a, ", "), ")"); };
  const bool first_imm = s.args[0]->kind == ScalarKind::kImm;
  switch (s.op) {
    case Op::kAdd:
      return infix("+");
    case Op::kSub:
      return infix("-");
    case Op::kMul:
      return infix("*");
    case Op::kDiv:
      return infix("/");
    // An immediate is never NaN here: with the immediate first, one instruction keeps the other operand's NaN.
    case Op::kMax: {
      if (first_imm) return Larger(a[0], a[1]);
      if (s.args[1]->kind == ScalarKind::kImm) return Larger(a[1], a[0]);
      return call("vmax");
    }
    case Op::kMin: {
      if (first_imm) return Smaller(a[0], a[1]);
      if (s.args[1]->kind == ScalarKind::kImm) return Smaller(a[1], a[0]);
      return call("vmin");
    }
    case Op::kPow: {
      const bool constant = s.args[1]->kind == ScalarKind::kImm;
      const double e = s.args[1]->fvalue;
      if (constant && e == 2) return absl::StrCat(a[0], " * ", a[0]);
      if (constant && e == 3) return absl::StrCat(a[0], " * ", a[0], " * ", a[0]);
      return call("vpow");
    }
    case Op::kMod:
      return call("vmod");
    case Op::kFMod:
      return call("vfmod");
    case Op::kNeg:
      return absl::StrCat("-", a[0]);
    case Op::kAbs:
      return call("vabs");
    case Op::kSign:
      return call("vsign");
    case Op::kFloor:
      return call("vfloor");
    case Op::kCeil:
      return call("vceil");
    case Op::kRound:
      return call("vround");
    case Op::kSqrt:
      return call("vsqrt");
    case Op::kRsqrt:
      return call("vrsqrt");
    case Op::kExp:
      return call("vexp");
    case Op::kLog:
      return call("vlog");
    case Op::kErf:
      return call("verf");
    case Op::kTanh:
      return call("vtanh");
    case Op::kAtan:
      return call("vatan");
    case Op::kSin:
      return call("vsin");
    case Op::kCos:
      return call("vcos");
    case Op::kAsin:
      return call("vasin");
    case Op::kAcos:
      return call("vacos");
    case Op::kIsNan:
      return absl::StrCat(a[0], " != ", a[0]);
    case Op::kIsInf:
      return absl::StrCat("vabs(", a[0], ") == bc(inf_f32)");
    case Op::kEq:
      return infix("==");
    case Op::kNe:
      return infix("!=");
    case Op::kLt:
      return infix("<");
    case Op::kLe:
      return infix("<=");
    case Op::kGt:
      return infix(">");
    case Op::kGe:
      return infix(">=");
    default:
      return "";
  }
}

// An operation on lanes that hold integers or masks. Overflow wraps.
std::string IntVectorOp(const te::ScalarNode& s, const std::vector<std::string>& a) {
  auto infix = [&](const char* op) { return absl::StrCat(a[0], " ", op, " ", a[1]); };
  auto call = [&](const char* name) { return absl::StrCat(name, "(", absl::StrJoin(a, ", "), ")"); };
  switch (s.op) {
    case Op::kAdd:
      return call("iadd");
    case Op::kSub:
      return call("isub");
    case Op::kMul:
      return call("imul");
    case Op::kMin:
      return Smaller(a[0], a[1]);
    case Op::kMax:
      return Larger(a[0], a[1]);
    case Op::kNeg:
      return absl::StrCat("isub(bi(0), ", a[0], ")");
    case Op::kAbs:
      return absl::StrCat("vsel(", a[0], " < bi(0), isub(bi(0), ", a[0], "), ", a[0], ")");
    case Op::kEq:
      return infix("==");
    case Op::kNe:
      return infix("!=");
    case Op::kLt:
      return infix("<");
    case Op::kLe:
      return infix("<=");
    case Op::kGt:
      return infix(">");
    case Op::kGe:
      return infix(">=");
    case Op::kAnd:
    case Op::kBitAnd:
      return infix("&");
    case Op::kOr:
    case Op::kBitOr:
      return infix("|");
    case Op::kXor:
    case Op::kBitXor:
      return infix("^");
    case Op::kNot:
    case Op::kBitNot:
      return absl::StrCat("~", a[0]);
    case Op::kSelect:
      return call("vsel");
    default:
      return "";
  }
}

}  // namespace

std::string VectorOpText(const te::ScalarNode& s, const std::vector<std::string>& args) {
  const bool on_floats = LaneKindOf(s.args[0]->dtype) == LaneKind::kFloat;
  const std::string text = on_floats ? FloatVectorOp(s, args) : IntVectorOp(s, args);
  return s.op == Op::kSelect || text.empty() ? text : Narrowed(s.dtype, text);
}

Value ExprPrinter::EmitOp(const Scalar& s) {
  std::vector<Value> values;
  bool varying = false;
  for (const Scalar& arg : s->args) {
    values.push_back(Emit(arg));
    varying = varying || values.back().varying;
  }
  std::vector<std::string> args;
  if (!varying) {
    for (const Value& value : values) args.push_back(value.text);
    std::string text = ScalarOp(*s, args);
    // Half-precision and narrow results are rounded to their type here; integers narrower than a byte keep their low
    // bits.
    if (s->dtype == DType::kF16) text = absl::StrCat("h2f(f2h(", text, "))");
    if (s->dtype == DType::kBF16) text = absl::StrCat("bf2f(f2bf(", text, "))");
    if (IsByteFloat(s->dtype))
      text = absl::StrCat("from_", DTypeName(s->dtype), "(to_", DTypeName(s->dtype), "(", text, "))");
    if (IsNarrowInt(s->dtype)) text = KeptBits(s->dtype, text);
    return {Temp(CType(s->dtype), text), false};
  }
  for (size_t i = 0; i < values.size(); ++i) args.push_back(AsVector(values[i], s->args[i]->dtype));
  return {Temp(VectorType(s->dtype), VectorOpText(*s, args)), true};
}

}  // namespace fusion::text
