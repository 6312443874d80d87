#include "compiler/schedule/rewrite/split_reductions.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "compiler/te/program/transform.h"

namespace fusion {
namespace {

using te::Axis;
using te::Index;
using te::Op;
using te::ReductionKind;
using te::Scalar;
using te::ScalarKind;
using te::Te;
using te::TensorId;

// The most chunks, as a multiple of those that are wanted, where an axis has no divisor nearer to them.
constexpr int64_t kMostMoreChunks = 4;

bool IsCall(const Scalar& s, Op op) { return s->kind == ScalarKind::kOp && s->op == op; }

// The exponential of a difference to a maximum. The minimum tells kernels that the operand is never above 0.
Scalar ExpOfDifference(const Scalar& difference) {
  return te::Call(Op::kExp, {te::Call(Op::kMin, {te::Imm(difference->dtype, 0), difference})});
}

// The operand beside 0 of such a minimum; any other value itself.
const Scalar& BelowZero(const Scalar& x) {
  const bool minimum = IsCall(x, Op::kMin) && x->args[0]->kind == ScalarKind::kImm && x->args[0]->fvalue == 0;
  return minimum ? x->args[1] : x;
}

// Returns the immediate's value, or nullopt.
std::optional<double> ImmediateOf(const Scalar& s) {
  if (s->kind != ScalarKind::kImm) return std::nullopt;
  return s->fvalue;
}

// Is the te the mean of the values that it sums?
bool IsMean(const Te& te) {
  if (te.reduction->kind != ReductionKind::kSum || te.then.size() != 1) return false;
  double count = 1;
  for (const Axis& axis : te.reduction->axes) count *= static_cast<double>(axis.extent);
  const Scalar& then = te.then[0];
  const auto matches = [&](double factor) { return std::abs(factor * count - 1) < 1e-6; };
  const auto is_sum = [](const Scalar& s) { return s->kind == ScalarKind::kAcc; };
  for (const int side : {0, 1}) {
    if (!IsCall(then, Op::kMul) || !is_sum(then->args[side])) continue;
    const std::optional<double> factor = ImmediateOf(then->args[1 - side]);
    return factor && matches(*factor);
  }
  if (!IsCall(then, Op::kDiv) || !is_sum(then->args[0])) return false;
  const std::optional<double> divisor = ImmediateOf(then->args[1]);
  return divisor && *divisor != 0 && matches(1 / *divisor);
}

// The smallest divisor of `extent` that is at least `chunks`, or 1 where that is far more.
int64_t ChunksOf(int64_t extent, int64_t chunks) {
  for (int64_t count = chunks; count <= std::min(extent, kMostMoreChunks * chunks); ++count) {
    if (extent % count == 0) return count;
  }
  return 1;
}

// Replaces axes by indices.
struct AxisMap {
  std::map<int, Index> to;
  Scalar operator()(const Scalar& s) const {
    return te::Substitute(s, [&](const Axis& axis) -> const Index* {
      const auto it = to.find(axis.id);
      return it == to.end() ? nullptr : &it->second;
    });
  }
};

// A reduction that is split.
struct Split {
  Te whole;          // as it was, with maps between it and what it reads inlined
  TensorId partial;  // its results for chunks, the chunk's number first
  size_t axis;       // position of the reduction axis that is cut
  int64_t chunks;
  double chunk_points;  // terms of a chunk
};

// How a reduction depends on another one's result over the same values.
enum class Dependence : uint8_t { kShiftedExponentials, kSquaredDeviations };

struct Dependent {
  Dependence how;
  const Split* on;
  Scalar value;   // x
  Scalar result;  // the load of the other reduction's result
};

class Splitter {
 public:
  Splitter(const te::Program& program, const CutTest& is_cut, const Chunks& wanted)
      : given_(program), inlined_(program), result_(program), is_cut_(is_cut), wanted_(wanted) {
    InlineMaps();
  }

  std::optional<SplitProgram> Run() {
    for (const Te& te : std::exchange(result_.tes, {})) {
      if (!Add(te)) result_.tes.push_back(te);
    }
    if (splits_.empty()) return std::nullopt;
    SplitProgram split{std::move(result_), std::move(partials_), 1};
    for (const auto& [tensor, reduction] : splits_) split.chunks = std::max(split.chunks, reduction.chunks);
    InlineLeftMaps(&split.program);
    return split;
  }

 private:
  // Inlines each map whose results no barrier hands over, so that a reduction's body is over what does cross one.
  void InlineMaps() {
    for (size_t t = inlined_.tes.size(); t-- > 0;) {
      const Te te = inlined_.tes[t];
      if (te.IsMap() && te.outputs.size() == 1 && !IsCutAnywhere(te.outputs[0]) && StaysSmall(te)) {
        te::Inline(&inlined_, te.outputs[0]).IgnoreError();  // a tensor that stays is one that no part may read
      }
    }
  }

  // A chain of maps of which each reads the one before at several places (the elimination of a determinant) would grow
  // by that number with every map.
  bool StaysSmall(const Te& te) const {
    constexpr int64_t kMostNodes = 4096;
    int64_t nodes = 0, most = 0;
    te::Visit(te.body[0], [&](const te::ScalarNode&) { ++nodes; });
    for (const Te& reader : inlined_.tes) {
      int64_t places = 0;
      for (const std::vector<Scalar>* scalars : {&reader.body, &reader.then}) {
        for (const Scalar& s : *scalars) {
          te::Visit(s, [&](const te::ScalarNode& node) {
            places += node.kind == te::ScalarKind::kLoad && node.tensor == te.outputs[0];
          });
        }
      }
      most = std::max(most, places);
    }
    return nodes * most <= kMostNodes;
  }

  // A map that only one other map is left to read, at as many points, costs less there than in memory.
  void InlineLeftMaps(te::Program* program) const {
    te::RemoveDead(program);
    for (size_t t = program->tes.size(); t-- > 0;) {
      const Te te = program->tes[t];
      if (!te.IsMap() || te.outputs.size() != 1 || IsCutAnywhere(te.outputs[0])) continue;
      const std::vector<TensorId>& outputs = program->outputs;
      if (std::count(outputs.begin(), outputs.end(), te.outputs[0]) > 0) continue;
      std::vector<const Te*> now, before;
      for (const Te& reader : program->tes) CollectReader(reader, te.outputs[0], &now);
      for (const Te& reader : given_.tes) CollectReader(reader, te.outputs[0], &before);
      if (now.size() != 1 || before.size() == 1 || !now[0]->IsMap() || now[0]->axes.size() != te.axes.size()) continue;
      te::Inline(program, te.outputs[0]).IgnoreError();  // a tensor that is read in an index stays
    }
  }

  static void CollectReader(const Te& te, TensorId tensor, std::vector<const Te*>* readers) {
    bool reads = false;
    te::VisitTensors(te, [&](TensorId t) { reads = reads || t == tensor; });
    if (reads) readers->push_back(&te);
  }

  bool IsCutAnywhere(TensorId tensor) const {
    return std::any_of(given_.tes.begin(), given_.tes.end(), [&](const Te& te) { return is_cut_(tensor, te); });
  }

  // Replaces the te by one for chunks and one that combines them. Returns false where it stays whole.
  bool Add(const Te& te) {
    const std::optional<Te> whole = Candidate(te);
    if (!whole) return false;
    std::optional<Dependent> dependent;
    if (DependsOnSplit(*whole)) {
      dependent = DependenceOf(*whole);
      if (!dependent) return false;
    }
    const std::vector<Axis>& axes = whole->reduction->axes;
    Split split{*whole, -1, 0, 1, 1};
    if (dependent) {
      split.axis = dependent->on->axis;
      split.chunks = dependent->on->chunks;
    } else {
      split.axis =
          std::max_element(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.extent < b.extent; }) -
          axes.begin();
      split.chunks = ChunksOf(axes[split.axis].extent, wanted_.count);
    }
    if (split.chunks == 1) return false;
    for (const Axis& axis : axes) split.chunk_points *= static_cast<double>(axis.extent);
    split.chunk_points /= static_cast<double>(split.chunks);
    if (split.chunk_points < static_cast<double>(wanted_.least)) return false;
    AddPartial(dependent, &split);
    AddCombination(te, dependent, split);
    partials_.insert(split.partial);
    splits_[te.outputs[0]] = std::move(split);
    return true;
  }

  // Returns the te with its maps inlined, if it is a reduction that reads something across a barrier.
  std::optional<Te> Candidate(const Te& te) const {
    if (te.outputs.size() != 1) return std::nullopt;
    const auto found = std::find_if(inlined_.tes.begin(), inlined_.tes.end(),
                                    [&](const Te& other) { return other.outputs == te.outputs; });
    if (found == inlined_.tes.end() || !found->reduction || found->reduction->axes.empty()) return std::nullopt;
    const te::Reduction& reduction = *found->reduction;
    if (reduction.kind == ReductionKind::kGeneral || reduction.acc != DType::kF32 || !reduction.pred.empty()) {
      return std::nullopt;
    }
    bool across = false;
    te::Visit(found->body[0], [&](const te::ScalarNode& node) {
      across = across || (node.kind == ScalarKind::kLoad && given_.DefiningTe(node.tensor) >= 0 &&
                          splits_.count(node.tensor) == 0 && is_cut_(node.tensor, *found));
    });
    if (!across) return std::nullopt;
    return *found;
  }

  bool DependsOnSplit(const Te& te) const {
    bool depends = false;
    te::Visit(te.body[0], [&](const te::ScalarNode& node) {
      depends = depends || (node.kind == ScalarKind::kLoad && splits_.count(node.tensor) > 0);
    });
    return depends;
  }

  // Matches exp(x − max x) and (x − mean x)², where the other reduction is over the same x.
  std::optional<Dependent> DependenceOf(const Te& te) const {
    if (te.reduction->kind != ReductionKind::kSum) return std::nullopt;
    const Scalar& body = te.body[0];
    const bool exponential = IsCall(body, Op::kExp);
    const bool square = IsCall(body, Op::kMul) && te::StructurallyEqual(body->args[0], body->args[1]);
    if (!exponential && !square) return std::nullopt;
    const Scalar& difference = exponential ? BelowZero(body->args[0]) : body->args[0];
    if (!IsCall(difference, Op::kSub) || difference->args[1]->kind != ScalarKind::kLoad) return std::nullopt;
    const Scalar& result = difference->args[1];
    const auto found = splits_.find(result->tensor);
    if (found == splits_.end() || result->pad != nullptr) return std::nullopt;
    const Te& on = found->second.whole;
    const bool maximum = on.reduction->kind == ReductionKind::kMax && on.then.empty();
    if (exponential ? !maximum : !IsMean(on)) return std::nullopt;
    if (!IsOver(on, result->indices, te, difference->args[0])) return std::nullopt;
    return Dependent{exponential ? Dependence::kShiftedExponentials : Dependence::kSquaredDeviations, &found->second,
                     difference->args[0], result};
  }

  // Does `on` reduce the values of `x`, which may be rounded before an extremum is subtracted (extrema.h), along the
  // same axes as `te`?
  static bool IsOver(const Te& on, const std::vector<Index>& at, const Te& te, const Scalar& x) {
    const std::vector<Axis>&from = on.reduction->axes, &to = te.reduction->axes;
    if (from.size() != to.size() || at.size() != on.axes.size()) return false;
    AxisMap map;
    for (size_t k = 0; k < from.size(); ++k) {
      if (from[k].extent != to[k].extent) return false;
      map.to[from[k].id] = Index(to[k]);
    }
    for (size_t d = 0; d < at.size(); ++d) map.to[on.axes[d].id] = at[d];
    const bool rounded = x->kind == ScalarKind::kCast && x->dtype == x->args[0]->dtype;
    return te::StructurallyEqual(map(on.body[0]), rounded ? x->args[0] : x);
  }

  Scalar PartialOf(const Split& split, const Index& number, const std::vector<Index>& at) const {
    std::vector<Index> indices = {number};
    indices.insert(indices.end(), at.begin(), at.end());
    return te::Load(split.partial, DType::kF32, indices);
  }

  // The value that a chunk subtracts from its values: its own maximum or mean. A chunk of nothing but −inf subtracts 0,
  // because −inf − −inf is no number, though its exponentials are 0 in a row that has a maximum elsewhere.
  Scalar ShiftOf(const Dependent& dependent, const Scalar& own) const {
    if (dependent.how == Dependence::kSquaredDeviations) {
      return own * te::Imm(DType::kF32, 1 / dependent.on->chunk_points);
    }
    const Scalar least = te::Imm(DType::kF32, -INFINITY);
    return te::Select(te::Call(Op::kEq, {own, least}), te::Imm(DType::kF32, 0), own);
  }

  // Adds the reduction of each chunk.
  void AddPartial(const std::optional<Dependent>& dependent, Split* split) {
    Te part = split->whole;
    const Axis number = result_.NewAxis(split->chunks);
    AxisMap renamed;
    for (std::vector<Axis>* axes : {&part.axes, &part.reduction->axes}) {
      for (Axis& axis : *axes) {
        const bool cut = axes == &part.reduction->axes && &axis == &(*axes)[split->axis];
        const Axis fresh = result_.NewAxis(cut ? axis.extent / split->chunks : axis.extent);
        renamed.to[axis.id] = cut ? Index(number) * fresh.extent + Index(fresh) : Index(fresh);
        axis = fresh;
      }
    }
    if (dependent) {
      const Scalar x = renamed(dependent->value), result = renamed(dependent->result);
      const Scalar shifted = x - ShiftOf(*dependent, PartialOf(*dependent->on, Index(number), result->indices));
      part.body = {dependent->how == Dependence::kSquaredDeviations ? shifted * shifted : ExpOfDifference(shifted)};
    } else {
      part.body = {renamed(part.body[0])};
    }
    part.then.clear();
    part.axes.insert(part.axes.begin(), number);
    Shape shape;
    for (const Axis& axis : part.axes) shape.push_back(axis.extent);
    split->partial = result_.AddTensor("partial", DType::kF32, shape, te::Role::kIntermediate);
    part.outputs = {split->partial};
    result_.tes.push_back(std::move(part));
  }

  // Adds the reduction over chunks, with what followed the whole one.
  void AddCombination(Te te, const std::optional<Dependent>& dependent, const Split& split) {
    const Axis number = result_.NewAxis(split.chunks);
    std::vector<Index> here;
    for (const Axis& axis : te.axes) here.push_back(Index(axis));
    Scalar term = PartialOf(split, Index(number), here);
    if (dependent) {
      const Scalar own = PartialOf(*dependent->on, Index(number), dependent->result->indices);
      if (dependent->how == Dependence::kSquaredDeviations) {
        const Scalar shift = ShiftOf(*dependent, own) - dependent->result;
        term = term + shift * shift * te::Imm(DType::kF32, split.chunk_points);
      } else {
        term = term * ExpOfDifference(own - dependent->result);
      }
    }
    te.reduction->axes = {number};
    te.body = {term};
    result_.tes.push_back(std::move(te));
  }

  const te::Program& given_;
  te::Program inlined_;
  te::Program result_;
  const CutTest& is_cut_;
  const Chunks wanted_;
  std::map<TensorId, Split> splits_;  // by the result of the whole reduction
  std::set<TensorId> partials_;
};

}  // namespace

std::optional<SplitProgram> SplitReductions(const te::Program& program, const CutTest& is_cut, const Chunks& wanted) {
  return Splitter(program, is_cut, wanted).Run();
}

}  // namespace fusion
