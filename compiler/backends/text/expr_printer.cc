#include "compiler/backends/text/expr_printer.h"

#include "absl/strings/str_cat.h"
#include "compiler/movement/vector_form.h"
#include "runtime/base/narrow_float.h"

namespace fusion::text {

using te::Index;
using te::Scalar;
using te::ScalarKind;

void CodeWriter::Line(const std::string& text) {
  text_.append(2 * depth_, ' ');
  text_ += text;
  text_ += '\n';
}

std::string ExprPrinter::Temp(const std::string& type, const std::string& expression) {
  std::string name = absl::StrCat("t", (*options_.next_temp)++);
  out_->Line(absl::StrCat("const ", type, " ", name, " = ", expression, ";"));
  return name;
}

std::string ExprPrinter::AsVector(const PrintedValue& value, DType dtype) {
  return value.varying ? value.text : BroadcastText(dtype, value.text);
}

std::string ExprPrinter::EmitVector(const Scalar& s) { return AsVector(Emit(s), s->dtype); }

PrintedValue ExprPrinter::Emit(const Scalar& s) {
  auto it = memo_.find(s.get());
  if (it != memo_.end()) return it->second;
  PrintedValue value = Compute(s);
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

// Does the cast turn a run of i64 along the lanes into f32? Preludes have a function for that.
bool ExprPrinter::CastsRunOfI64(const te::ScalarNode& cast) const {
  if (cast.kind != ScalarKind::kCast || cast.dtype != DType::kF32 || !options_.valid_lanes.empty()) return false;
  const te::ScalarNode& load = *cast.args[0];
  if (load.kind != ScalarKind::kLoad || load.dtype != DType::kI64) return false;
  const te::Axis lane{options_.lane_axis, options_.lanes << 20};
  return te::ClassifyLanes(load.indices[0], lane, options_.lanes) == te::LaneAccess::kContiguous;
}

PrintedValue ExprPrinter::EmitLaneByLane(const Scalar& s) {
  if (CastsRunOfI64(*s)) {
    const te::ScalarNode& load = *s->args[0];
    const std::string address = IndexText(load.indices[0], options_.axis_name, *options_.kernel);
    return {Temp("vf", absl::StrCat("ld_i64_f32(b", load.tensor, " + ", address, ")")), true};
  }
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

PrintedValue ExprPrinter::Compute(const Scalar& s) {
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
      PrintedValue x = Emit(s->args[0]);
      const DType from = s->args[0]->dtype, to = s->dtype;
      if (x.varying) return {Temp(VectorType(to), VectorCastText(*s, x.text)), true};
      std::string text;
      if (from == to) {
        text = absl::StrCat("rounded_", TypeSuffix(to), "(", x.text, ")");
      } else if (to == DType::kF16) {
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

PrintedValue ExprPrinter::EmitLoad(const Scalar& s) {
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
    if (options_.part)
      return {Temp(VectorType(buffer.dtype), PartLoadText(buffer.dtype, place, options_.valid_lanes)), true};
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

PrintedValue ExprPrinter::EmitStepped(const movement::SteppedLoad& stepped) {
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

PrintedValue ExprPrinter::EmitIf(const Scalar& s) {
  const std::string name = absl::StrCat("t", (*options_.next_temp)++);
  // The text of the branches decides whether the result is a vector, so it is printed aside first.
  CodeWriter* outer = out_;
  auto branch = [&](const Scalar& arm, CodeWriter* text) {
    const size_t mark = order_.size();
    out_ = text;
    PrintedValue value = Emit(arm);
    out_ = outer;
    while (order_.size() > mark) {
      memo_.erase(order_.back());
      order_.pop_back();
    }
    return value;
  };
  CodeWriter then_text, else_text;
  const PrintedValue then_value = branch(s->args[0], &then_text), else_value = branch(s->args[1], &else_text);
  const bool varying = then_value.varying || else_value.varying;
  const std::string type = varying ? VectorType(s->dtype) : CType(s->dtype);
  auto operand = [&](const PrintedValue& value) { return varying ? AsVector(value, s->dtype) : value.text; };
  out_->Line(absl::StrCat(type, " ", name, ";"));
  out_->Open(absl::StrCat("if (", PredText(s->pred, options_.axis_name, *options_.kernel), ")"));
  out_->Line(then_text.text() + absl::StrCat(name, " = ", operand(then_value), ";"));
  out_->Close();
  out_->Open("else");
  out_->Line(else_text.text() + absl::StrCat(name, " = ", operand(else_value), ";"));
  out_->Close();
  return {name, varying};
}

PrintedValue ExprPrinter::EmitOp(const Scalar& s) {
  std::vector<PrintedValue> values;
  bool varying = false;
  for (const Scalar& arg : s->args) {
    values.push_back(Emit(arg));
    varying = varying || values.back().varying;
  }
  std::vector<std::string> args;
  if (!varying) {
    for (const PrintedValue& value : values) args.push_back(value.text);
    std::string text = ScalarOpText(*s, args);
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
