#include "compiler/movement/print.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/movement/library_call_text.h"

namespace fusion::movement {
namespace {

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

// The words that the strategy adds to a step's first line.
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

std::string RingText(const Ring& ring) {
  return absl::StrCat(" ring of ", ring.rows, " of ", ring.of, " rows by ", ring.pitch);
}

void PrintTurn(const Turn& turn, Printer* printer, std::string* text) {
  absl::StrAppend(text, "    turn ", AxisText(turn.axis), " from ", turn.first, "\n");
  const auto print_rows = [&](const char* verb, const std::vector<RingRows>& all) {
    for (const RingRows& rows : all) {
      absl::StrAppend(text, "    ", verb, " b", rows.buffer, " ", rows.rows, " rows from ", printer->Index(rows.first),
                      "\n");
    }
  };
  print_rows("reads", turn.reads);
  print_rows("writes", turn.writes);
}

void PrintStep(const Step& step, Printer* printer, std::string* text) {
  absl::StrAppend(text, "  step ");
  absl::StrAppend(text, StrategyName(step),
                  std::visit([](const auto& strategy) { return StrategyText(strategy); }, step.strategy), " {\n");
  if (step.turn) PrintTurn(*step.turn, printer, text);
  if (step.runs_if) {
    absl::StrAppend(text, "    runs ", step.runs_if->finite ? "if" : "unless", " finite b", step.runs_if->buffer, "\n");
  }
  for (const Step& shared_copy : SharedCopiesOf(step)) PrintStep(shared_copy, printer, text);
  const RegisterTile* const tile = step.As<RegisterTile>();
  for (const Prefetch& prefetch : tile != nullptr ? tile->prefetch : std::vector<Prefetch>()) {
    absl::StrAppend(text, "    prefetch b", prefetch.buffer);
    if (prefetch.next_rows) absl::StrAppend(text, " next rows");
    if (prefetch.ahead > 0) absl::StrAppend(text, " ahead ", prefetch.ahead);
    if (prefetch.panel > 0) {
      absl::StrAppend(text, " next panel of ", prefetch.panel, " by ", prefetch.tiles, " tiles from ",
                      printer->Index(prefetch.first));
    }
    absl::StrAppend(text, "\n");
  }
  if (step.look) {
    absl::StrAppend(text, "    look b", step.look->buffer, "[", printer->Index(step.look->address), "]\n");
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

std::string Print(const Kernel& kernel) {
  std::string text;
  for (size_t b = 0; b < kernel.buffers.size(); ++b) {
    const Buffer& buffer = kernel.buffers[b];
    absl::StrAppend(&text, "buffer b", b, " ", ScopeName(buffer.scope), " ", DTypeName(buffer.dtype), "[",
                    buffer.elements, "]", buffer.is_constant ? " const" : "", buffer.packed_from >= 0 ? " packed" : "",
                    buffer.ring ? RingText(*buffer.ring) : "",
                    buffer.moves_with >= 0 ? absl::StrCat(" moves with loop ", buffer.moves_with) : "", "\n");
  }
  Printer printer;
  for (const Pack& pack : kernel.packs) {
    std::vector<std::string> axes;
    for (const te::Axis& axis : pack.axes) axes.push_back(AxisText(axis));
    absl::StrAppend(&text, "pack [", absl::StrJoin(axes, ", "), "] = source[", printer.Index(pack.address), "]",
                    pack.pred.empty() ? "" : " if ", printer.Pred(pack.pred), TransformText(pack.transform), "\n");
  }
  for (const Phase& phase : kernel.phases) {
    const size_t number = static_cast<size_t>(&phase - kernel.phases.data());
    for (const PhaseLoop& loop : kernel.phase_loops) {
      if (loop.first == number) absl::StrAppend(&text, "repeat ", loop.trips, " {\n");
    }
    std::vector<std::string> grid;
    for (const te::Axis& axis : phase.grid) grid.push_back(AxisText(axis));
    absl::StrAppend(&text, "parallel (", absl::StrJoin(grid, ", "), ") {\n");
    for (int s = 0; s < static_cast<int>(phase.steps.size()); ++s) {
      const TaskLoop* const loop = TaskLoopOf(phase, s);
      if (loop != nullptr && s == loop->first) absl::StrAppend(&text, "  iterate ", loop->iterations, " {\n");
      const RowNest* const nest = RowNestOf(phase, s);
      if (nest != nullptr && s == nest->first) {
        absl::StrAppend(&text, "  rows of ", nest->loops, " loops",
                        nest->team > 1 ? absl::StrCat(" by ", nest->team) : "", " {\n");
      }
      PrintStep(phase.steps[s], &printer, &text);
      if (nest != nullptr && s == nest->first + nest->count - 1) absl::StrAppend(&text, "  }\n");
      if (loop != nullptr && s == loop->first + loop->count - 1) absl::StrAppend(&text, "  }\n");
    }
    absl::StrAppend(&text, "}\n");
    for (const PhaseLoop& loop : kernel.phase_loops) {
      if (loop.end == number + 1) absl::StrAppend(&text, "}\n");
    }
    if (&phase == &kernel.phases.back()) continue;
    const char* barrier = kernel.persistent ? "sync device, persistent\n" : "sync device\n";
    absl::StrAppend(&text, (&phase)[1].beside ? "beside\n" : barrier);
  }
  return text;
}

}  // namespace fusion::movement
