#include "compiler/movement/kernel.h"

#include <algorithm>
#include <functional>
#include <iterator>
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

std::string BufferNames(const std::vector<int>& buffers) {
  return absl::StrJoin(buffers, ", ", [](std::string* out, int b) { absl::StrAppend(out, "b", b); });
}

// What the strategy adds to a step's first line.
std::string StrategyText(const ScalarLoops&) { return ""; }

std::string StrategyText(const VectorMap& map) {
  const ReadNext& next = map.read_next;
  return absl::StrCat(
      "{lanes i", map.axis, map.streaming_stores ? " streaming" : "", map.rest_in_vector ? " rest in a vector" : "",
      "}",
      next.axis < 0 ? ""
                    : absl::StrCat(" next i", next.axis, next.distance > 1 ? absl::StrCat(" + ", next.distance) : "",
                                   " of ", BufferNames(next.buffers)));
}

std::string StrategyText(const BlockedTranspose& transpose) {
  return absl::StrCat("{lanes i", transpose.axis, " across i", transpose.across_axis,
                      transpose.streaming_stores ? " streaming" : "", "}");
}

std::string StrategyText(const RowReduction& row) { return absl::StrCat("{lanes i", row.axis, "}"); }

std::string StrategyText(const PrefixPass& prefix) {
  return prefix.vector_axis < 0 ? "" : absl::StrCat("{lanes i", prefix.vector_axis, "}");
}

std::string StrategyText(const RegisterTile& tile) {
  return absl::StrCat("{", tile.row_count, "x", tile.outer_count, " rows i", tile.row_axis, " vectors i",
                      tile.outer_axis, " lanes i", tile.lane_axis, " unroll ", tile.unroll,
                      tile.slide_axis >= 0 ? absl::StrCat(" slides i", tile.slide_axis) : "",
                      tile.dot_axis >= 0 ? absl::StrCat(" dot i", tile.dot_axis) : "", "}");
}

std::string StrategyText(const ThreadgroupTile& tile) {
  const FragmentProduct& product = tile.product;
  return absl::StrCat("{", tile.rows, "x", tile.columns, " of ", tile.item_rows, "x", tile.item_columns, " rows i",
                      tile.row_axis, " columns i", tile.column_axis,
                      product.fragments()
                          ? absl::StrCat(" by ", product.rows, "x", product.columns, "x", product.depth, " of ",
                                         product.work_items, product.from_memory ? " from memory" : "")
                          : "",
                      tile.buffers > 1 ? absl::StrCat(" buffers ", tile.buffers) : "", "}");
}

std::string StrategyText(const LibraryCall& call) { return absl::StrCat("{", LibraryCallText(call), "}"); }

std::string StrategyText(const RoutineCall& call) {
  return absl::StrCat(" ", call.name, ".", DTypeName(call.element), "(", BufferNames(call.inputs), ") {",
                      absl::StrJoin(call.params, ", "), "}");
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
  absl::StrAppend(text, StrategyName(step),
                  std::visit([](const auto& strategy) { return StrategyText(strategy); }, step.strategy), " {\n");
  for (const Step& shared_copy : SharedCopiesOf(step)) PrintStep(shared_copy, printer, text);
  const RegisterTile* const tile = step.As<RegisterTile>();
  for (const Prefetch& prefetch : tile != nullptr ? tile->prefetch : std::vector<Prefetch>()) {
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
  if (step.lane_limit) {
    absl::StrAppend(text, "    zero unless ", printer->Index(step.lane_limit->index), " < ", step.lane_limit->limit,
                    "\n");
  }
  if (const Bound* const limit = StoreLimitOf(step)) {
    absl::StrAppend(text, "    store if ", printer->Index(limit->index), " < ", limit->limit, "\n");
  }
  absl::StrAppend(text, "  }\n");
}

}  // namespace

const char* StrategyName(const Step& step) {
  // A routine is "scalar" with its call behind, as in the texts of which stored keys are the hashes.
  static const char* const kNames[] = {"scalar",           "map",     "transpose", "row_reduction", "prefix", "tile",
                                       "threadgroup_tile", "library", "scalar"};
  static_assert(std::size(kNames) == std::variant_size_v<Strategy>);
  return kNames[step.strategy.index()];
}

int VectorAxisOf(const Step& step) {
  if (const auto* map = step.As<VectorMap>()) return map->axis;
  if (const auto* transpose = step.As<BlockedTranspose>()) return transpose->axis;
  if (const auto* row = step.As<RowReduction>()) return row->axis;
  const auto* prefix = step.As<PrefixPass>();
  return prefix != nullptr ? prefix->vector_axis : -1;
}

bool HasStreamingStores(const Step& step) {
  const auto* map = step.As<VectorMap>();
  const auto* transpose = step.As<BlockedTranspose>();
  return (map != nullptr && map->streaming_stores) || (transpose != nullptr && transpose->streaming_stores);
}

const std::vector<Step>& SharedCopiesOf(const Step& step) {
  static const std::vector<Step>* const kNone = new std::vector<Step>();
  const auto* threadgroup = step.As<ThreadgroupTile>();
  return threadgroup != nullptr ? threadgroup->shared_copies : *kNone;
}

const Bound* StoreLimitOf(const Step& step) {
  const auto* tile = step.As<RegisterTile>();
  const auto* threadgroup = step.As<ThreadgroupTile>();
  const std::optional<Bound>* limit = tile != nullptr          ? &tile->store_limit
                                      : threadgroup != nullptr ? &threadgroup->store_limit
                                                               : nullptr;
  return limit != nullptr && *limit ? &**limit : nullptr;
}

void VisitSteps(const Phase& phase, const std::function<void(const Step&)>& f) {
  for (const Step& step : phase.steps) {
    for (const Step& shared_copy : SharedCopiesOf(step)) f(shared_copy);
    f(step);
  }
}

void VisitSteps(Phase* phase, const std::function<void(Step*)>& f) {
  for (Step& step : phase->steps) {
    if (auto* threadgroup = step.As<ThreadgroupTile>()) {
      for (Step& shared_copy : threadgroup->shared_copies) f(&shared_copy);
    }
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
  if (const auto* routine = step.As<RoutineCall>()) {
    for (int buffer : routine->inputs) f(buffer);
  }
  for (const Loop& loop : step.loops) {
    if (loop.limit) in_index(*loop.limit);
  }
  for (const Store& store : step.stores) {
    in_index(store.address);
    f(store.buffer);
  }
  if (step.lane_limit) in_index(step.lane_limit->index);
  if (const Bound* const limit = StoreLimitOf(step)) in_index(limit->index);
}

const LibraryCall* LibraryCallOf(const Phase& phase) {
  return phase.steps.size() == 1 ? phase.steps[0].As<LibraryCall>() : nullptr;
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
      for (const Step& shared_copy : SharedCopiesOf(step)) VisitBuffers(shared_copy, touch);
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

bool IsLoop(const Step& step, int axis) {
  return std::any_of(step.loops.begin(), step.loops.end(), [&](const Loop& loop) { return loop.axis.id == axis; });
}

bool IsInnermostLoop(const Step& step, int axis) { return !step.loops.empty() && step.loops.back().axis.id == axis; }

// Are the axes of a step's strategy its loops, and does the step have the form that the strategy needs?
bool Fits(const Step&, const ScalarLoops&) { return true; }

bool Fits(const Step& step, const VectorMap& map) { return !step.reduction && IsInnermostLoop(step, map.axis); }

bool Fits(const Step& step, const BlockedTranspose& transpose) {
  return !step.reduction && IsInnermostLoop(step, transpose.axis) && IsLoop(step, transpose.across_axis) &&
         transpose.across_axis != transpose.axis && step.stores.size() == 1 && !step.lane_limit;
}

bool Fits(const Step& step, const RowReduction& row) {
  return step.reduction && !step.reduction->axes.empty() && step.reduction->axes.back().id == row.axis;
}

bool Fits(const Step& step, const PrefixPass& pass) {
  std::vector<te::Axis> axes;
  for (const Loop& loop : step.loops) axes.push_back(loop.axis);
  const std::optional<PrefixReduction> prefix =
      step.reduction ? PrefixReductionOf(*step.reduction, step.body, axes) : std::nullopt;
  return prefix && step.stores.size() == 1 && !step.lane_limit && pass.vector_axis != prefix->axis &&
         (pass.vector_axis < 0 || IsLoop(step, pass.vector_axis));
}

bool Fits(const Step& step, const RegisterTile& tile) {
  return step.reduction && IsLoop(step, tile.lane_axis) && (tile.row_axis < 0 || IsLoop(step, tile.row_axis)) &&
         (tile.outer_axis < 0 || IsLoop(step, tile.outer_axis));
}

bool Fits(const Step& step, const ThreadgroupTile& tile) {
  const auto is_side = [&](const Loop& loop, int axis, int items, int each, int extent) {
    return loop.axis.id == axis && loop.axis.extent == int64_t{items} * each * extent;
  };
  const size_t n = step.loops.size();
  return step.reduction && !step.reduction->axes.empty() && n >= 2 && step.stores.size() == 1 &&
         step.body.size() == 1 &&
         is_side(step.loops[n - 2], tile.row_axis, tile.item_rows, tile.rows, tile.product.rows) &&
         is_side(step.loops[n - 1], tile.column_axis, tile.item_columns, tile.columns, tile.product.columns) &&
         tile.buffers >= 1 && tile.buffers <= 2 && step.reduction->axes.back().extent % tile.product.depth == 0 &&
         step.body[0]->kind == te::ScalarKind::kOp && step.body[0]->op == te::Op::kMul;
}

bool Fits(const Step& step, const LibraryCall& call) {
  return step.reduction && step.stores.size() == 1 && ResultOf(call) == step.stores[0].buffer &&
         (step.reduction->axes.size() == 1 || !std::holds_alternative<LibraryProduct>(call));
}

bool Fits(const Step&, const RoutineCall&) { return true; }

absl::Status CheckStrategy(const Step& step) {
  if (std::visit([&](const auto& strategy) { return Fits(step, strategy); }, step.strategy)) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("movement: step '", step.label, "': the lanes of a ", StrategyName(step),
                                          " step are none of its loops"));
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
    if (step.Is<LibraryCall>() && (kernel_.persistent || phase.steps.size() != 1 || !phase.grid.empty())) {
      return absl::InternalError(
          absl::StrCat("movement: step '", step.label, "' of a library is not alone in a phase without a grid"));
    }
    std::vector<te::Axis> around;
    if (!SharedCopiesOf(step).empty() && step.reduction) {
      around.assign(step.reduction->axes.begin(), step.reduction->axes.end() - 1);
      for (const Loop& loop : step.loops) around.push_back(loop.axis);
    }
    for (const Step& shared_copy : SharedCopiesOf(step)) RETURN_IF_ERROR(CheckStep(phase, shared_copy, around));
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
    const auto* routine = step.As<RoutineCall>();
    if (routine != nullptr) RETURN_IF_ERROR(CheckRoutine(*routine));
    for (const te::Scalar& s : step.body) CheckScalar(step, s, with_reduction);
    for (const te::Scalar& s : step.then) CheckScalar(step, s, axes);
    for (const Store& store : step.stores) {
      if (!IsBuffer(store.buffer)) {
        return absl::InternalError(absl::StrCat("movement: step '", step.label, "' stores into no buffer"));
      }
      CheckIndex(step, store.address, axes, "a store");
      // A routine's addresses are where its tensors begin, even for tensors without elements.
      if (routine == nullptr) CheckBounds(phase, step, store.buffer, store.address);
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
    bool whole = !step.lane_limit && StoreLimitOf(step) == nullptr && (!step.reduction || step.reduction->pred.empty());
    for (const Loop& loop : step.loops) whole = whole && !loop.limit;
    if (!whole || !IsAffine(address)) return;
    const te::Interval range = address.Range();
    // The last group of four in a row may reach into the slack behind the buffer; the other operand is zero there.
    const auto* tile = step.As<RegisterTile>();
    const int64_t slack = tile != nullptr && tile->dot_axis >= 0 ? kDotLength - 1 : 0;
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
