#include "tests/fuzz/graphs/random_recurrence.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/ops/control/loop.h"
#include "tests/fuzz/graphs/mild_graph.h"

namespace fusion::fuzz {
namespace {

using ecg::ValueId;
using Ints = std::vector<int64_t>;

class Generator : private MildGraph {
 public:
  explicit Generator(uint64_t seed) : MildGraph(seed) {}

  ecg::Graph Make() {
    rows_ = draw_.OneOf(Ints{1, 1, 2, 4});
    width_ = draw_.Chance(0.85) ? draw_.OneOf(Ints{16, 16, 32, 48, 64}) : draw_.OneOf(Ints{5, 24, 33});
    trips_ = draw_.OneOf(Ints{4, 5, 7, 12});
    ValueId all = NewInput({trips_, rows_, width_});
    if (draw_.Chance(0.5)) all = AddMap(all);
    std::vector<ValueId> results = AddLoop(all);
    if (draw_.Chance(0.4)) {  // another layer, or a loop that depends on none of the first one's results
      const std::vector<ValueId> more = AddLoop(draw_.Chance(0.7) ? results.back() : all);
      results.insert(results.end(), more.begin(), more.end());
    }
    for (const ValueId v : results) {
      const ValueId out = draw_.Chance(0.5) ? AddMap(v) : v;
      if (!graph_.IsOutput(out)) graph_.AddOutput(out, absl::StrCat("o", graph_.outputs().size()));
    }
    return std::move(graph_);
  }

 private:
  // The last states, and behind them what is stacked, of shape [trips, rows, width].
  std::vector<ValueId> AddLoop(ValueId scanned) {
    ops::LoopForm form;
    form.trips = trips_;
    form.carried = draw_.OneOf(std::vector<int>{1, 1, 2, 3});
    std::vector<ValueId> begins;
    for (int i = 0; i < form.carried; ++i) begins.push_back(NewInput({rows_, width_}));
    for (int64_t i = draw_.OneOf(Ints{0, 1, 1, 2}); i > 0; --i) {
      begins.push_back(i == 1 ? scanned : AddMap(scanned));
      form.reversed.push_back(draw_.Chance(0.3) ? 1 : 0);
    }
    const std::vector<ValueId> inside =
        AddAll(ops::kLoopBegin, begins, ops::LoopAttributes(loops_, form), begins.size());
    const ValueId token = inside[0];
    std::vector<ValueId> pool = inside;  // values of an iteration, of shape [rows, width]
    for (int64_t i = draw_.OneOf(Ints{1, 2, 3, 4, 6}); i > 0; --i) pool.push_back(AddStep(pool));
    std::vector<ValueId> ends{token};
    for (int i = 0; i < form.carried; ++i) {
      const ValueId next = i == 0 || draw_.Chance(0.7) ? pool.back() : draw_.OneOf(pool);
      ends.push_back(draw_.Chance(0.8) ? Add("Tanh", {next}) : next);
    }
    form.reversed.clear();
    for (int64_t i = draw_.OneOf(Ints{1, 1, 2}); i > 0; --i) {
      ends.push_back(draw_.Chance(0.6) ? ends[1] : draw_.OneOf(pool));
      form.reversed.push_back(draw_.Chance(0.3) ? 1 : 0);
    }
    return AddAll(ops::kLoopEnd, ends, ops::LoopAttributes(loops_++, form), ends.size() - 1);
  }

  // An operator of the body, or a few that belong together.
  ValueId AddStep(const std::vector<ValueId>& pool) {
    const ValueId x = draw_.Chance(0.6) ? pool.back() : draw_.OneOf(pool), y = draw_.OneOf(pool);
    switch (draw_.OneOf(Ints{0, 0, 1, 2, 3, 4, 5, 6})) {
      case 0:
        return Add("MatMul", {x, NewConstant({width_, width_})});
      case 1:
        return Add("Add", {x, y});
      case 2:
        return Add("Mul", {Add("Sigmoid", {x}), y});
      case 3: {  // a gate of what is behind one product of both
        ecg::Attributes last;
        last.Set("axis", int64_t{-1});
        const ValueId both = Add("Concat", {x, y}, last);
        return Add("MatMul", {both, NewConstant({2 * width_, width_})});
      }
      case 4: {
        ecg::Attributes last;
        last.Set("axis", int64_t{-1});
        return Add("Softmax", {x}, last);
      }
      case 5: {
        const ValueId mean =
            Add("ReduceMean", {x, graph_.AddConstant(NewName("c"), Tensor::From<int64_t>(DType::kI64, {1}, {1}))});
        return Add("Sub", {x, mean});
      }
      default:
        return Add("Tanh", {Add("Add", {x, NewConstant({width_})})});
    }
  }

  // Outside of loops.
  ValueId AddMap(ValueId x) {
    if (draw_.Chance(0.4)) return Add("MatMul", {x, NewConstant({width_, width_})});
    return draw_.Chance(0.5) ? Add("Tanh", {x}) : Add("Mul", {x, NewConstant({width_})});
  }

  int64_t rows_ = 1, width_ = 16, trips_ = 4;
  int64_t loops_ = 1;  // the next one's number
};

}  // namespace

ecg::Graph RandomRecurrence(uint64_t seed) { return Generator(seed).Make(); }

}  // namespace fusion::fuzz
