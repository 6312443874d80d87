#include "compiler/movement/kernel.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/library_call_text.h"
#include "compiler/movement/prefix_reduction.h"
#include "runtime/base/status_macros.h"

namespace fusion::movement {
namespace {

constexpr int64_t kAlignBytes = 64;

class Printer {
 public:
  std::string Index(const te::Index& x) { return te::ToString(x); }

  std::string Pred(const te::Pred& pred) {
    static const char* const kText[] = {"<", ">=", "==", "!="};
    std::vector<std::string> parts;
    for (const te::Comparison& c : pred) {
      parts.push_back(absl::StrCat(Index(c.lhs), " ", kText[static_cast<int>(c.cmp)], " ", Index(c.rhs)));
    }
    return absl::StrJoin(parts, " and ");
  }

  // Numbers each distinct node once: `v3 = add(v1, v2)`.
  std::string Scalar(const te::Scalar& s) {
    auto it = numbers_.find(s.get());
    if (it != numbers_.end()) return absl::StrCat("v", it->second);
    std::vector<std::string> args;
    for (const te::Scalar& arg : s->args) args.push_back(Scalar(arg));
    std::string text;
    switch (s->kind) {
      case te::ScalarKind::kImm:
        return IsFloat(s->dtype) ? absl::StrFormat("%s:%a", DTypeName(s->dtype), s->fvalue)
                                 : absl::StrCat(DTypeName(s->dtype), ":", s->ivalue);
      case te::ScalarKind::kLoad:
        text = absl::StrCat("load b", s->tensor, "[", Index(s->indices[0]), "]");
        break;
      case te::ScalarKind::kIf:
        text = absl::StrCat("if ", Pred(s->pred), " then ", args[0], " else ", args[1]);
        break;
      case te::ScalarKind::kOp:
        text = absl::StrCat(te::GetOpInfo(s->op).name, "(", absl::StrJoin(args, ", "), ")");
        break;
      case te::ScalarKind::kCast:
        text = absl::StrCat("cast ", DTypeName(s->dtype), " ", args[0]);
        break;
      case te::ScalarKind::kFromIndex:
        text = absl::StrCat("index ", Index(s->index));
        break;
      case te::ScalarKind::kAcc:
        return absl::StrCat("acc", s->acc);
    }
    const int number = static_cast<int>(numbers_.size());
    numbers_[s.get()] = number;
    absl::StrAppend(&lines_, "      v", number, " = ", text, "\n");
    return absl::StrCat("v", number);
  }

  std::string TakeLines() { return std::exchange(lines_, ""); }

 private:
  std::map<const te::ScalarNode*, int> numbers_;
  std::string lines_;
};

// The shapes identify the matrices.
std::string TransformText(const ConstantTransform& transform) {
  std::string text;
  for (const auto& [dimension, matrix] : transform.by_dimension) {
    absl::StrAppend(&text, " through ", ShapeToString(matrix.shape()), " on ", dimension);
  }
  return text;
}

std::string AxisText(const te::Axis& axis) { return absl::StrCat("i", axis.id, "<", axis.extent); }

// Prints what the strategy adds to a step.
void PrintStrategy(const Step& step, std::string* text) {
  absl::StrAppend(text, StrategyName(step.strategy));
  if (step.strategy == Strategy::kTile) {
    absl::StrAppend(text, "{", step.tile.row_count, "x", step.tile.outer_count, " rows i", step.tile.row_axis,
                    " vectors i", step.tile.outer_axis, " lanes i", step.tile.lane_axis, " unroll ", step.tile.unroll,
                    step.tile.slide_axis >= 0 ? absl::StrCat(" slides i", step.tile.slide_axis) : "",
                    step.tile.dot_axis >= 0 ? absl::StrCat(" dot i", step.tile.dot_axis) : "", "}");
  } else if (step.strategy == Strategy::kThreadgroupTile) {
    absl::StrAppend(text, "{", step.threadgroup.rows, "x", step.threadgroup.columns, " of ", step.threadgroup.item_rows,
                    "x", step.threadgroup.item_columns, " rows i", step.threadgroup.row_axis, " columns i",
                    step.threadgroup.column_axis,
                    step.threadgroup.product.fragments()
                        ? absl::StrCat(" by ", step.threadgroup.product.rows, "x", step.threadgroup.product.columns,
                                       "x", step.threadgroup.product.depth, " of ", step.threadgroup.product.work_items,
                                       step.threadgroup.product.from_memory ? " from memory" : "")
                        : "",
                    step.threadgroup.buffers > 1 ? absl::StrCat(" buffers ", step.threadgroup.buffers) : "", "}");
  } else if (step.vec_axis >= 0) {
    absl::StrAppend(text, "{lanes i", step.vec_axis,
                    step.across_axis >= 0 ? absl::StrCat(" across i", step.across_axis) : "",
                    step.streaming_stores ? " streaming" : "", step.rest_in_vector ? " rest in a vector" : "", "}");
  }
  if (step.library) {
    absl::StrAppend(text, "{", LibraryCallText(*step.library), "}");
  }
  if (step.routine) {
    absl::StrAppend(
        text, " ", step.routine->name, ".", DTypeName(step.routine->element), "(",
        absl::StrJoin(step.routine->inputs, ", ", [](std::string* out, int b) { absl::StrAppend(out, "b", b); }), ") {",
        absl::StrJoin(step.routine->params, ", "), "}");
  }
  if (step.read_next.axis >= 0) {
    absl::StrAppend(
        text, " next i", step.read_next.axis,
        step.read_next.distance > 1 ? absl::StrCat(" + ", step.read_next.distance) : "", " of ",
        absl::StrJoin(step.read_next.buffers, ", ", [](std::string* out, int b) { absl::StrAppend(out, "b", b); }));
  }
}

void PrintReduction(const te::Reduction& reduction, Printer* printer, std::string* text) {
  static const char* const kKinds[] = {"sum", "prod", "max", "min", "general"};
  std::vector<std::string> axes;
  for (const te::Axis& axis : reduction.axes) axes.push_back(AxisText(axis));
  absl::StrAppend(text, "    reduce ", kKinds[static_cast<int>(reduction.kind)], ":", DTypeName(reduction.acc), "(",
                  absl::StrJoin(axes, ", "), ")", reduction.pred.empty() ? "" : " if ", printer->Pred(reduction.pred),
                  "\n");
  for (const te::Scalar& init : reduction.init) {
    const std::string value = printer->Scalar(init);
    absl::StrAppend(text, printer->TakeLines(), "      init ", value, "\n");
  }
}

void PrintStep(const Step& step, Printer* printer, std::string* text) {
  absl::StrAppend(text, "  step ");
  PrintStrategy(step, text);
  absl::StrAppend(text, " {\n");
  for (const Step& shared_copy : step.shared_copies) PrintStep(shared_copy, printer, text);
  for (const Prefetch& prefetch : step.tile.prefetch) {
    absl::StrAppend(text, "    prefetch b", prefetch.buffer);
    if (prefetch.ahead > 0) absl::StrAppend(text, " ahead ", prefetch.ahead);
    if (prefetch.panel > 0) {
      absl::StrAppend(text, " next panel of ", prefetch.panel, " by ", prefetch.tiles, " tiles from ",
                      printer->Index(prefetch.first));
    }
    absl::StrAppend(text, "\n");
  }
  for (const Loop& loop : step.loops) {
    absl::StrAppend(text, "    loop ", AxisText(loop.axis));
    if (loop.limit) absl::StrAppend(text, " while < ", printer->Index(*loop.limit));
    absl::StrAppend(text, "\n");
  }
  if (step.reduction) PrintReduction(*step.reduction, printer, text);
  for (const te::Scalar& s : step.body) {
    const std::string value = printer->Scalar(s);
    absl::StrAppend(text, printer->TakeLines(), "      body ", value, "\n");
  }
  for (const te::Scalar& s : step.then) {
    const std::string value = printer->Scalar(s);
    absl::StrAppend(text, printer->TakeLines(), "      then ", value, "\n");
  }
  for (const Store& store : step.stores) {
    absl::StrAppend(text, "    store b", store.buffer, "[", printer->Index(store.address), "]\n");
  }
  if (step.lane_limit >= 0) {
    absl::StrAppend(text, "    zero unless ", printer->Index(step.lane_mask_index), " < ", step.lane_limit, "\n");
  }
  if (step.store_limit >= 0) {
    absl::StrAppend(text, "    store if ", printer->Index(step.store_limit_index), " < ", step.store_limit, "\n");
  }
  absl::StrAppend(text, "  }\n");
}

}  // namespace

const char* StrategyName(Strategy strategy) {
  static const char* const kNames[] = {"scalar", "map",  "transpose",        "row_reduction",
                                       "prefix", "tile", "threadgroup_tile", "library"};
  return kNames[static_cast<int>(strategy)];
}

void VisitSteps(const Phase& phase, const std::function<void(const Step&)>& f) {
  for (const Step& step : phase.steps) {
    for (const Step& shared_copy : step.shared_copies) f(shared_copy);
    f(step);
  }
}

void VisitSteps(Phase* phase, const std::function<void(Step*)>& f) {
  for (Step& step : phase->steps) {
    for (Step& shared_copy : step.shared_copies) f(&shared_copy);
    f(&step);
  }
}

void VisitBuffers(const Step& step, const std::function<void(int)>& f) {
  const std::function<void(const te::Index&)> in_index = [&](const te::Index& index) {
    for (const te::Index::Part& part : index.parts()) {
      if (part.term.kind == te::TermKind::kLoad) f(part.term.tensor);
      for (const te::Index& inner : part.term.indices) in_index(inner);
      if (part.term.inner != nullptr) in_index(*part.term.inner);
    }
  };
  const auto in_pred = [&](const te::Pred& pred) {
    for (const te::Comparison& c : pred) in_index(c.lhs), in_index(c.rhs);
  };
  const auto in_scalar = [&](const te::Scalar& s) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind == te::ScalarKind::kLoad) f(node.tensor);
      for (const te::Index& index : node.indices) in_index(index);
      if (node.kind == te::ScalarKind::kFromIndex) in_index(node.index);
      in_pred(node.pred);
    });
  };
  for (const te::Scalar& s : step.body) in_scalar(s);
  for (const te::Scalar& s : step.then) in_scalar(s);
  if (step.reduction) {
    for (const te::Scalar& s : step.reduction->init) in_scalar(s);
    in_pred(step.reduction->pred);
  }
  if (step.routine) {
    for (int buffer : step.routine->inputs) f(buffer);
  }
  for (const Loop& loop : step.loops) {
    if (loop.limit) in_index(*loop.limit);
  }
  for (const Store& store : step.stores) {
    in_index(store.address);
    f(store.buffer);
  }
  in_index(step.lane_mask_index);
  in_index(step.store_limit_index);
}

const LibraryCall* LibraryCallOf(const Phase& phase) {
  return phase.steps.size() == 1 && phase.steps[0].library ? &*phase.steps[0].library : nullptr;
}

int64_t Phase::tasks() const {
  int64_t count = 1;
  for (const te::Axis& axis : grid) count *= axis.extent;
  return count;
}

int Kernel::num_args() const {
  int count = 0;
  for (const Buffer& buffer : buffers) count += buffer.scope != Scope::kBlock;
  return count;
}

namespace {

// The first and the last step, counted through all phases, that touch a buffer.
struct Lifetime {
  int first = std::numeric_limits<int>::max(), last = -1;
};

std::vector<Lifetime> Lifetimes(const Kernel& kernel) {
  std::vector<Lifetime> lifetimes(kernel.buffers.size());
  int number = 0;
  const auto touch = [&](int buffer) {
    lifetimes[buffer].first = std::min(lifetimes[buffer].first, number);
    lifetimes[buffer].last = number;
  };
  for (const Phase& phase : kernel.phases) {
    for (const Step& step : phase.steps) {
      // The shared-memory copies of a step run repeatedly while the step runs, so they have the step's number.
      for (const Step& shared_copy : step.shared_copies) VisitBuffers(shared_copy, touch);
      VisitBuffers(step, touch);
      ++number;
    }
  }
  return lifetimes;
}

// Adds one line of slack: whole-vector reads may pass the end, and pitches should be no multiple of 4096 bytes.
int64_t ScratchBytes(const Buffer& buffer) {
  return (SizeBytes(buffer) + kAlignBytes - 1) / kAlignBytes * kAlignBytes + kAlignBytes;
}

}  // namespace

std::vector<int64_t> Kernel::scratch_offset_bytes() const {
  const std::vector<Lifetime> lifetimes = Lifetimes(*this);
  std::vector<int64_t> offsets(buffers.size(), -1);
  std::vector<size_t> largest_first;
  for (size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].scope == Scope::kBlock) largest_first.push_back(b);
  }
  std::stable_sort(largest_first.begin(), largest_first.end(),
                   [&](size_t x, size_t y) { return ScratchBytes(buffers[x]) > ScratchBytes(buffers[y]); });
  for (const size_t b : largest_first) {
    // First fit among the buffers that are alive at the same time; a buffer that no step names is always alive.
    const auto meet = [&](const Lifetime& x, const Lifetime& y) {
      return x.last < 0 || y.last < 0 || (x.first <= y.last && y.first <= x.last);
    };
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const size_t other : largest_first) {
      if (offsets[other] >= 0 && meet(lifetimes[b], lifetimes[other])) {
        taken.emplace_back(offsets[other], offsets[other] + ScratchBytes(buffers[other]));
      }
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [begin, end] : taken) {
      if (begin - at >= ScratchBytes(buffers[b])) break;
      at = std::max(at, end);
    }
    offsets[b] = at;
  }
  return offsets;
}

int64_t Kernel::PlannedScratchBytes() const {
  int64_t bytes = 0;
  const std::vector<int64_t> offsets = scratch_offset_bytes();
  for (size_t b = 0; b < offsets.size(); ++b) {
    if (offsets[b] >= 0) bytes = std::max(bytes, offsets[b] + ScratchBytes(buffers[b]));
  }
  return bytes;
}

std::string Print(const Kernel& kernel) {
  std::string text;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const Buffer& buffer = kernel.buffers[b];
    absl::StrAppend(&text, "buffer b", b, " ", ScopeName(buffer.scope), " ", DTypeName(buffer.dtype), "[",
                    buffer.elements, "]", buffer.is_constant ? " const" : "", buffer.packed_from >= 0 ? " packed" : "",
                    "\n");
  }
  Printer printer;
  for (const Pack& pack : kernel.packs) {
    std::vector<std::string> axes;
    for (const te::Axis& axis : pack.axes) axes.push_back(AxisText(axis));
    absl::StrAppend(&text, "pack [", absl::StrJoin(axes, ", "), "] = source[", printer.Index(pack.address), "]",
                    pack.pred.empty() ? "" : " if ", printer.Pred(pack.pred), TransformText(pack.transform), "\n");
  }
  for (const Phase& phase : kernel.phases) {
    std::vector<std::string> grid;
    for (const te::Axis& axis : phase.grid) grid.push_back(AxisText(axis));
    absl::StrAppend(&text, "parallel (", absl::StrJoin(grid, ", "), ") {\n");
    for (const Step& step : phase.steps) {
      PrintStep(step, &printer, &text);
    }
    absl::StrAppend(&text, "}\n");
    if (&phase != &kernel.phases.back())
      absl::StrAppend(&text, kernel.persistent ? "sync device, persistent\n" : "sync device\n");
  }
  return text;
}

namespace {

bool IsAffine(const te::Index& x) {
  for (const te::Index::Part& part : x.parts()) {
    if (part.term.kind != te::TermKind::kAxis) return false;
  }
  return true;
}

// Visits loads that happen at every point, which excludes those in the branches of an `if`.
void VisitUnconditional(const te::Scalar& s, const std::function<void(const te::ScalarNode&)>& f) {
  f(*s);
  if (s->kind == te::ScalarKind::kIf) return;
  for (const te::Scalar& arg : s->args) VisitUnconditional(arg, f);
}

absl::Status CheckStrategy(const Step& step) {
  auto is_loop = [&](int axis) {
    return std::any_of(step.loops.begin(), step.loops.end(), [&](const Loop& loop) { return loop.axis.id == axis; });
  };
  bool ok = true;
  switch (step.strategy) {
    case Strategy::kScalar:
      break;
    case Strategy::kMapVec:
      ok = !step.reduction && !step.loops.empty() && step.loops.back().axis.id == step.vec_axis;
      break;
    case Strategy::kTranspose:
      ok = !step.reduction && !step.loops.empty() && step.loops.back().axis.id == step.vec_axis &&
           is_loop(step.across_axis) && step.across_axis != step.vec_axis && step.stores.size() == 1 &&
           step.lane_limit < 0;
      break;
    case Strategy::kRowReduction:
      ok = step.reduction && !step.reduction->axes.empty() && step.reduction->axes.back().id == step.vec_axis;
      break;
    case Strategy::kPrefix: {
      std::vector<te::Axis> axes;
      for (const Loop& loop : step.loops) axes.push_back(loop.axis);
      const std::optional<PrefixReduction> prefix =
          step.reduction ? PrefixReductionOf(*step.reduction, step.body, axes) : std::nullopt;
      ok = prefix && step.stores.size() == 1 && step.lane_limit < 0 && step.vec_axis != prefix->axis &&
           (step.vec_axis < 0 || is_loop(step.vec_axis));
      break;
    }
    case Strategy::kThreadgroupTile: {
      const ThreadgroupTile& threadgroup = step.threadgroup;
      const auto is_side = [&](const Loop& loop, int axis, int items, int each, int extent) {
        return loop.axis.id == axis && loop.axis.extent == int64_t{items} * each * extent;
      };
      const size_t n = step.loops.size();
      ok = step.reduction && !step.reduction->axes.empty() && n >= 2 && step.stores.size() == 1 &&
           step.body.size() == 1 &&
           is_side(step.loops[n - 2], threadgroup.row_axis, threadgroup.item_rows, threadgroup.rows,
                   threadgroup.product.rows) &&
           is_side(step.loops[n - 1], threadgroup.column_axis, threadgroup.item_columns, threadgroup.columns,
                   threadgroup.product.columns) &&
           threadgroup.buffers >= 1 && threadgroup.buffers <= 2 &&
           step.reduction->axes.back().extent % threadgroup.product.depth == 0 &&
           step.body[0]->kind == te::ScalarKind::kOp && step.body[0]->op == te::Op::kMul;
      break;
    }
    case Strategy::kLibrary:
      ok = step.reduction && step.library && step.stores.size() == 1 &&
           ResultOf(*step.library) == step.stores[0].buffer &&
           (step.reduction->axes.size() == 1 || !std::holds_alternative<LibraryProduct>(*step.library));
      break;
    case Strategy::kTile:
      ok = step.reduction && is_loop(step.tile.lane_axis) && (step.tile.row_axis < 0 || is_loop(step.tile.row_axis)) &&
           (step.tile.outer_axis < 0 || is_loop(step.tile.outer_axis));
      break;
  }
  if (ok) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("movement: step '", step.label, "': the lanes of a ",
                                          StrategyName(step.strategy), " step are none of its loops"));
}

// Checks the steps of a kernel in order, and which buffers are written before they are read.
class Verifier {
 public:
  explicit Verifier(const Kernel& kernel) : kernel_(kernel) {}

  absl::Status Check() {
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
      const Scope scope = kernel_.buffers[b].scope;
      if (scope == Scope::kKernel || scope == Scope::kDevice || scope == Scope::kBlock) continue;
      return absl::InternalError(absl::StrCat("movement: buffer b", b, " lives in scope '", ScopeName(scope),
                                              "'; buffers live in kernel, device or block"));
    }
    for (const Phase& phase : kernel_.phases) {
      // Scratch does not outlive its task.
      std::erase_if(written_, [&](int b) { return kernel_.buffers[b].scope == Scope::kBlock; });
      for (const Step& step : phase.steps) RETURN_IF_ERROR(CheckStepOf(phase, step));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status CheckStepOf(const Phase& phase, const Step& step) {
    const bool library = step.strategy == Strategy::kLibrary;
    if (library != step.library.has_value() ||
        (library && (kernel_.persistent || phase.steps.size() != 1 || !phase.grid.empty()))) {
      return absl::InternalError(
          absl::StrCat("movement: step '", step.label, "' of a library is not alone in a phase without a grid"));
    }
    std::vector<te::Axis> around;
    if (!step.shared_copies.empty() && step.reduction) {
      around.assign(step.reduction->axes.begin(), step.reduction->axes.end() - 1);
      for (const Loop& loop : step.loops) around.push_back(loop.axis);
    }
    for (const Step& shared_copy : step.shared_copies) RETURN_IF_ERROR(CheckStep(phase, shared_copy, around));
    return CheckStep(phase, step, {});
  }

  // `around`: the axes around a step's shared-memory copies.
  absl::Status CheckStep(const Phase& phase, const Step& step, const std::vector<te::Axis>& around) {
    std::set<int> axes;
    for (const te::Axis& axis : phase.grid) axes.insert(axis.id);
    for (const te::Axis& axis : around) axes.insert(axis.id);
    for (const Loop& loop : step.loops) axes.insert(loop.axis.id);
    std::set<int> with_reduction = axes;
    if (step.reduction) {
      for (const te::Axis& axis : step.reduction->axes) with_reduction.insert(axis.id);
    }
    status_ = absl::OkStatus();
    if (step.routine) RETURN_IF_ERROR(CheckRoutine(*step.routine));
    for (const te::Scalar& s : step.body) CheckScalar(step, s, with_reduction);
    for (const te::Scalar& s : step.then) CheckScalar(step, s, axes);
    for (const Store& store : step.stores) {
      if (!IsBuffer(store.buffer)) {
        return absl::InternalError(absl::StrCat("movement: step '", step.label, "' stores into no buffer"));
      }
      CheckIndex(step, store.address, axes, "a store");
      // A routine's addresses are where its tensors begin, even for tensors without elements.
      if (!step.routine) CheckBounds(phase, step, store.buffer, store.address);
      written_.insert(store.buffer);
    }
    for (const std::vector<te::Scalar>* scalars : {&step.body, &step.then}) {
      for (const te::Scalar& s : *scalars) {
        VisitUnconditional(s, [&](const te::ScalarNode& node) {
          if (!status_.ok() || node.kind != te::ScalarKind::kLoad) return;
          CheckBounds(phase, step, node.tensor, node.indices[0]);
        });
      }
    }
    if (status_.ok()) status_ = CheckStrategy(step);
    if (step.stores.size() != step.store_types.size() || step.stores.empty()) {
      status_ = absl::InternalError(absl::StrCat("movement: step '", step.label, "' has no consistent stores"));
    }
    return status_;
  }

  bool IsBuffer(int buffer) const { return buffer >= 0 && buffer < static_cast<int>(kernel_.buffers.size()); }
  bool MayBeRead(int buffer) const {
    return kernel_.buffers[buffer].scope == Scope::kKernel || written_.count(buffer);
  }

  absl::Status CheckRoutine(const RoutineCall& routine) const {
    for (int b : routine.inputs) {
      if (IsBuffer(b) && MayBeRead(b)) continue;
      return absl::InternalError(absl::StrCat("movement: routine '", routine.name, "' reads no buffer b", b));
    }
    return absl::OkStatus();
  }

  // `known`: the axes that loops bind.
  void CheckIndex(const Step& step, const te::Index& x, const std::set<int>& known, const char* what) {
    std::vector<te::Axis> used;
    te::CollectAxes(x, &used);
    for (const te::Axis& axis : used) {
      if (known.count(axis.id)) continue;
      status_ = absl::InternalError(absl::StrCat("movement: ", what, " of step '", step.label, "' uses axis i", axis.id,
                                                 ", which no loop binds"));
    }
  }

  void CheckScalar(const Step& step, const te::Scalar& s, const std::set<int>& known) {
    te::Visit(s, [&](const te::ScalarNode& node) {
      if (node.kind != te::ScalarKind::kLoad) return;
      if (!IsBuffer(node.tensor) || node.indices.size() != 1) {
        status_ = absl::InternalError(absl::StrCat("movement: step '", step.label, "' loads from no buffer"));
        return;
      }
      CheckIndex(step, node.indices[0], known, "a load");
      if (!MayBeRead(node.tensor)) {
        status_ = absl::InternalError(
            absl::StrCat("movement: step '", step.label, "' reads b", node.tensor, " before it is written"));
      }
    });
  }

  // Affine addresses are exact where nothing cuts the loops short; others are not checked.
  void CheckBounds(const Phase& phase, const Step& step, int buffer, const te::Index& address) {
    bool whole = step.lane_limit < 0 && step.store_limit < 0 && (!step.reduction || step.reduction->pred.empty());
    for (const Loop& loop : step.loops) whole = whole && !loop.limit;
    if (!whole || !IsAffine(address)) return;
    const te::Interval range = address.Range();
    // The last group of four in a row may reach into the slack behind the buffer; the other operand is zero there.
    const int64_t slack = step.tile.dot_axis >= 0 ? kDotLength - 1 : 0;
    if (range.lo > range.hi || (range.lo >= 0 && range.hi < kernel_.buffers[buffer].elements + slack)) return;
    bool empty = false;
    for (const te::Index::Part& part : address.parts()) empty = empty || part.term.axis.extent == 0;
    if (empty || phase.tasks() == 0) return;
    status_ = absl::InternalError(absl::StrCat("movement: step '", step.label, "' addresses b", buffer, "[", range.lo,
                                               "..", range.hi, "] of ", kernel_.buffers[buffer].elements, " elements"));
  }

  const Kernel& kernel_;
  std::set<int> written_;
  absl::Status status_;  // of the step that is being checked: its last fault
};

}  // namespace

absl::Status Verify(const Kernel& kernel) {
  if (kernel.persistent && kernel.phases.size() < 2) {
    return absl::InternalError("movement: a persistent kernel needs at least two phases");
  }
  return Verifier(kernel).Check();
}

}  // namespace fusion::movement
