#include "compiler/ops/control/loop.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/ops/registry/def_parts.h"
#include "compiler/ops/registry/op_list.h"
#include "runtime/base/status_macros.h"

namespace fusion::ops {
namespace {

using Types = std::vector<ecg::ValueType>;

LoopForm FormOf(const ecg::Attributes& attrs) {
  return {attrs.Int("trips"), static_cast<int>(attrs.Int("carried")), attrs.Ints("reversed")};
}

// Checks the form of a boundary, whose carried and scanned inputs begin at `first`.
absl::StatusOr<LoopForm> CheckedForm(const OpContext& context, size_t first) {
  LoopForm form = FormOf(context.attrs);
  if (form.trips < 1 || form.carried < 0) {
    return context.Error(absl::StrCat("has ", form.trips, " iterations and ", form.carried, " carried values"));
  }
  const size_t expected = first + static_cast<size_t>(form.carried) + form.reversed.size();
  if (context.inputs.size() != expected) {
    return context.Error(absl::StrCat("has ", context.inputs.size(), " inputs, its attributes say ", expected));
  }
  for (int i = 0; i < static_cast<int>(context.inputs.size()); ++i) {
    if (!context.Has(i)) return context.Error(absl::StrCat("input ", i, " is absent"));
  }
  return form;
}

absl::StatusOr<Types> InferBegin(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const LoopForm form, CheckedForm(context, 0));
  Types types;
  for (int i = 0; i < static_cast<int>(context.inputs.size()); ++i) {
    ecg::ValueType type = context.Type(i);
    if (i >= form.carried) {
      if (type.shape.empty() || type.shape[0] != form.trips) {
        return context.Error(absl::StrCat("scans ", ShapeToString(type.shape), " in ", form.trips, " iterations"));
      }
      type.shape.erase(type.shape.begin());
    }
    types.push_back(std::move(type));
  }
  return types;
}

absl::StatusOr<Types> InferEnd(const OpContext& context, int) {
  ASSIGN_OR_RETURN(const LoopForm form, CheckedForm(context, 1));
  Types types;
  for (int i = 1; i < static_cast<int>(context.inputs.size()); ++i) {
    ecg::ValueType type = context.Type(i);
    if (i > form.carried) type.shape.insert(type.shape.begin(), form.trips);
    types.push_back(std::move(type));
  }
  return types;
}

absl::Status LowerBegin(LowerContext& context) {
  const LoopForm form = FormOf(context.attrs);
  for (int o = 0; o < static_cast<int>(context.output_types.size()); ++o) {
    DefineMap(context, o, [&](te::Builder::Idx i) {
      if (o >= form.carried) {
        const bool reversed = form.reversed[static_cast<size_t>(o - form.carried)] != 0;
        i.insert(i.begin(), te::Index(reversed ? form.trips - 1 : 0));
      }
      return context.builder->At(context.in[o], std::move(i));
    });
  }
  return absl::OkStatus();
}

absl::Status LowerEnd(LowerContext& context) {
  const LoopForm form = FormOf(context.attrs);
  for (int o = 0; o < static_cast<int>(context.output_types.size()); ++o) {
    DefineMap(context, o, [&](te::Builder::Idx i) {
      if (o >= form.carried) i.erase(i.begin());
      return context.builder->At(context.in[o + 1], std::move(i));
    });
  }
  return absl::OkStatus();
}

OpDef Boundary(const char* name) {
  OpDef def;
  def.name = name;
  def.min_inputs = 1;
  def.max_inputs = -1;
  def.num_outputs = -1;
  def.attrs = {{"loop", AttrKind::kInt, /*required=*/true},
               {"trips", AttrKind::kInt, /*required=*/true},
               {"carried", AttrKind::kInt, /*required=*/true},
               {"reversed", AttrKind::kInts, /*required=*/true}};
  def.internal = true;
  def.narrow_types = true;
  def.mapping = [](const OpContext&, int) { return MappingType::kManyToMany; };
  def.flops = NoFlops;
  return def;
}

}  // namespace

bool IsLoopBoundary(const ecg::Node& node) { return node.op == kLoopBegin || node.op == kLoopEnd; }

LoopForm LoopFormOf(const ecg::Node& boundary) { return FormOf(boundary.attrs); }

ecg::Attributes LoopAttributes(int64_t loop, const LoopForm& form) {
  ecg::Attributes attrs;
  attrs.Set("loop", loop);
  attrs.Set("trips", form.trips);
  attrs.Set("carried", static_cast<int64_t>(form.carried));
  attrs.Set("reversed", form.reversed);
  return attrs;
}

std::vector<OpDef> LoopBoundaryOps() {
  OpDef begin = Boundary(kLoopBegin);
  begin.infer = InferBegin;
  begin.lower = LowerBegin;
  OpDef end = Boundary(kLoopEnd);
  end.infer = InferEnd;
  end.lower = LowerEnd;
  OpDef copy;
  copy.name = kLoopCopy;
  copy.min_inputs = copy.max_inputs = 2;
  copy.internal = true;
  copy.narrow_types = true;
  copy.infer = [](const OpContext& context, int) -> absl::StatusOr<Types> { return Types{context.Type(0)}; };
  copy.mapping = [](const OpContext&, int) { return MappingType::kOneToOne; };
  copy.flops = NoFlops;
  copy.lower = [](LowerContext& context) {
    DefineMap(context, 0, [&](te::Builder::Idx i) { return context.builder->At(context.in[0], std::move(i)); });
    return absl::OkStatus();
  };
  return {begin, end, copy};
}

}  // namespace fusion::ops
