#include "compiler/movement/parse.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/movement/strategy_reader.h"
#include "compiler/movement/verify.h"
#include "compiler/te/program/program.h"
#include "runtime/base/status_macros.h"

namespace fusion::movement {
namespace {

using te::Axis;
using te::Index;
using te::Scalar;

// The types of a step's accumulators, by their numbers.
using Accumulators = std::vector<DType>;

class Parser : public StrategyReader {
 public:
  using StrategyReader::StrategyReader;

  absl::StatusOr<Kernel> Run() {
    while (!failed() && AcceptWord("buffer")) ParseBuffer();
    while (!failed() && AcceptWord("pack")) ParsePack();
    bool beside = false;
    while (!failed()) {
      if (AcceptWord("repeat")) {
        ParsePhaseLoop();
      } else if (!AcceptWord("parallel")) {
        break;
      } else {
        beside = ParsePhase(beside);
      }
    }
    if (!failed() && in_loop_) Fail("expected the end of a phase loop");
    if (!failed() && packed_ != kernel_.packs.size()) Fail("there is not one pack for each packed buffer");
    if (!failed() && !AtEnd()) Fail("expected 'parallel' or the end");
    RETURN_IF_ERROR(status());
    for (const auto& [id, axis] : axes_) kernel_.next_axis = std::max(kernel_.next_axis, id + 1);
    kernel_.scratch_bytes = kernel_.PlannedScratchBytes();
    if (const absl::Status verified = Verify(kernel_); !verified.ok()) {
      return absl::InvalidArgumentError(std::string(verified.message()));
    }
    return std::move(kernel_);
  }

 private:
  void ParseBuffer() {
    if (Id("b") != static_cast<int>(kernel_.buffers.size())) Fail("expected buffers in the order of their numbers");
    Buffer buffer;
    const std::string scope = Word();
    bool known = false;
    for (const Scope each : {Scope::kKernel, Scope::kDevice, Scope::kBlock, Scope::kWarp}) {
      if (scope != ScopeName(each)) continue;
      buffer.scope = each;
      known = true;
    }
    if (!known) Fail(absl::StrCat("'", scope, "' is no scope of a buffer"));
    buffer.dtype = Type();
    Expect("[");
    buffer.elements = Int();
    if (buffer.elements < 0 || buffer.elements > kMostElements) Fail("expected a number of elements");
    Expect("]");
    buffer.is_constant = AcceptWord("const");
    if (AcceptWord("packed")) buffer.packed_from = static_cast<int>(packed_++);
    if (AcceptWord("ring")) buffer.ring = ParseRing();
    if (AcceptWord("moves")) {
      Expect("with");
      Expect("loop");
      buffer.moves_with = static_cast<int>(Int());
    }
    kernel_.buffers.push_back(buffer);
  }

  Ring ParseRing() {
    Ring ring;
    Expect("of");
    ring.rows = Int();
    Expect("of");
    ring.of = Int();
    Expect("rows by");
    ring.pitch = Int();
    return ring;
  }

  void ParsePack() {
    Pack pack;
    pack.axes = ParseAxes("[", "]");
    Expect("=");
    Expect("source");
    Expect("[");
    pack.address = ParseIndex();
    Expect("]");
    if (AcceptWord("if")) pack.pred = ParsePred();
    while (AcceptWord("through")) {
      const Shape shape = Ints("[", "]");
      Expect("on");
      const int64_t dimension = Int();
      const absl::StatusOr<int64_t> bytes = CheckedSizeBytes(shape, DType::kF32);
      if (!failed() && (!bytes.ok() || *bytes > kMostMatrixBytes)) Fail("expected the shape of a small matrix");
      if (failed()) return;
      pack.transform.by_dimension.emplace_back(static_cast<int>(dimension), Tensor(DType::kF32, shape));
    }
    kernel_.packs.push_back(std::move(pack));
  }

  // The phases of a loop follow, up to the one that closes it.
  void ParsePhaseLoop() {
    if (in_loop_) Fail("phase loops do not nest");
    kernel_.persistent = true;
    kernel_.phase_loops.push_back({kernel_.phases.size(), 0, Int()});
    Expect("{");
    in_loop_ = true;
    if (!Looking("parallel")) Fail("expected 'parallel'");
  }

  // Returns whether the next phase runs beside this one.
  bool ParsePhase(bool beside) {
    Phase phase;
    phase.beside = beside;
    phase.grid = ParseAxes("(", ")");
    Expect("{");
    while (!failed()) {
      if (AcceptWord("rows")) {
        ParseRowNest(&phase);
      } else if (AcceptWord("iterate")) {
        ParseTaskLoop(&phase);
      } else if (AcceptWord("step")) {
        phase.steps.push_back(ParseStep());
      } else {
        break;
      }
    }
    Expect("}");
    kernel_.phases.push_back(std::move(phase));
    if (in_loop_ && Accept("}")) {
      kernel_.phase_loops.back().end = kernel_.phases.size();
      in_loop_ = false;
    }
    const bool before_beside = AcceptWord("beside");
    if (!before_beside && !AcceptWord("sync")) return false;
    if (!before_beside) Expect("device");
    if (!before_beside && Accept(",")) {
      Expect("persistent");
      kernel_.persistent = true;
    }
    if (!Looking("parallel") && (in_loop_ || !Looking("repeat"))) Fail("expected 'parallel'");
    return before_beside;
  }

  void ParseRowNest(Phase* phase) {
    RowNest nest;
    nest.first = static_cast<int>(phase->steps.size());
    Expect("of");
    nest.loops = Count();
    Expect("loops");
    if (AcceptWord("by")) nest.team = Count();
    Expect("{");
    for (; !failed() && AcceptWord("step"); ++nest.count) phase->steps.push_back(ParseStep());
    Expect("}");
    phase->row_nests.push_back(nest);
  }

  void ParseTaskLoop(Phase* phase) {
    TaskLoop loop;
    loop.first = static_cast<int>(phase->steps.size());
    loop.iterations = Int();
    Expect("{");
    for (; !failed() && AcceptWord("step"); ++loop.count) phase->steps.push_back(ParseStep());
    Expect("}");
    phase->task_loops.push_back(loop);
  }

  Turn ParseTurn() {
    Turn turn;
    turn.axis = ParseAxis();
    Expect("from");
    turn.first = Int();
    return turn;
  }

  RingRows ParseRingRows() {
    RingRows rows;
    rows.buffer = ParseBufferId();
    rows.rows = Int();
    Expect("rows from");
    rows.first = ParseIndex();
    return rows;
  }

  Step ParseStep() {
    Step step;
    step.strategy = ParseStrategy();
    Expect("{");
    Accumulators accumulators;
    while (!failed() && !Accept("}")) {
      const std::string word = Word();
      if (word == "step") {
        // Deeper copies than those of a step's operands do not exist.
        if (++depth_ > kMostCopiesInside) Fail("a step inside a copy");
        auto* threadgroup = step.As<ThreadgroupTile>();
        if (threadgroup == nullptr) Fail("only a threadgroup tile has copies");
        if (!failed()) threadgroup->shared_copies.push_back(ParseStep());
        --depth_;
      } else if (word == "turn") {
        step.turn = ParseTurn();
      } else if ((word == "reads" || word == "writes") && step.turn) {
        (word == "reads" ? step.turn->reads : step.turn->writes).push_back(ParseRingRows());
      } else if (word == "prefetch") {
        auto* tile = step.As<RegisterTile>();
        if (tile == nullptr) Fail("only a register tile prefetches panels");
        if (!failed()) tile->prefetch.push_back(ParsePrefetch());
      } else if (word == "look") {
        step.look = ParsePlace();
      } else if (word == "runs") {
        step.runs_if = ParseCondition();
      } else if (word == "loop") {
        Loop loop{ParseAxis(), std::nullopt};
        if (AcceptWord("while")) {
          Expect("<");
          loop.limit = ParseIndex();
        }
        step.loops.push_back(std::move(loop));
      } else if (word == "reduce") {
        step.reduction = ParseReduction();
        if (step.reduction->kind != te::ReductionKind::kGeneral) accumulators = {step.reduction->acc};
      } else if (word == "init" && step.reduction) {
        step.reduction->init.push_back(ParseValue({}));
        if (!failed()) accumulators.push_back(step.reduction->init.back()->dtype);
      } else if (word == "body") {
        step.body.push_back(ParseValue(accumulators));
      } else if (word == "then") {
        step.then.push_back(ParseValue(accumulators));
      } else if (word == "store") {
        AcceptWord("if") ? ParseStoreLimit(&step) : ParseStore(&step);
      } else if (word == "zero") {
        Expect("unless");
        step.lane_limit = ParseBound();
      } else {
        ParseDefinition(word, accumulators);
      }
    }
    return step;
  }

  // The element of a buffer: b3[i0*4].
  Store ParsePlace() {
    Store place;
    place.buffer = ParseBufferId();
    Expect("[");
    place.address = ParseIndex();
    Expect("]");
    return place;
  }

  Condition ParseCondition() {
    Condition condition;
    condition.finite = AcceptWord("if");
    if (!condition.finite) Expect("unless");
    Expect("finite");
    condition.buffer = ParseBufferId();
    return condition;
  }

  void ParseStore(Step* step) {
    const Store store = ParsePlace();
    if (failed()) return;
    step->stores.push_back(store);
    step->store_types.push_back(kernel_.buffers[store.buffer].dtype);
  }

  Bound ParseBound() {
    Bound bound;
    bound.index = ParseIndex();
    Expect("<");
    bound.limit = Int();
    if (bound.limit < 0) Fail("expected a limit of 0 or more");
    return bound;
  }

  void ParseStoreLimit(Step* step) {
    const Bound bound = ParseBound();
    if (auto* tile = step->As<RegisterTile>()) {
      tile->store_limit = bound;
    } else if (auto* threadgroup = step->As<ThreadgroupTile>()) {
      threadgroup->store_limit = bound;
    } else {
      Fail("only tiles leave out stores");
    }
  }

  Prefetch ParsePrefetch() {
    Prefetch prefetch;
    prefetch.buffer = ParseBufferId();
    if (AcceptWord("ahead")) prefetch.ahead = Int();
    if (!AcceptWord("next")) return prefetch;
    prefetch.next_rows = AcceptWord("rows");
    if (prefetch.next_rows) return prefetch;
    Expect("panel of");
    prefetch.panel = Int();
    Expect("by");
    prefetch.tiles = Int();
    Expect("tiles from");
    prefetch.first = ParseIndex();
    return prefetch;
  }

  te::Reduction ParseReduction() {
    static constexpr const char* kKinds[] = {"sum", "prod", "max", "min", "general"};
    te::Reduction reduction;
    const std::string kind = Word();
    const auto* const found = std::find(std::begin(kKinds), std::end(kKinds), kind);
    if (found == std::end(kKinds)) Fail(absl::StrCat("'", kind, "' is no kind of reduction"));
    reduction.kind = static_cast<te::ReductionKind>(found - std::begin(kKinds));
    Expect(":");
    reduction.acc = Type();
    reduction.axes = ParseAxes("(", ")");
    if (AcceptWord("if")) reduction.pred = ParsePred();
    return reduction;
  }

  // ---- values
  // A value that was defined, an accumulator or an immediate: v3, acc0, f32:0x1p+0. Null after an error.
  Scalar ParseValue(const Accumulators& accumulators) {
    const std::string name = Word();
    if (failed()) return nullptr;
    if (Accept(":")) return ParseImmediate(name);
    if (const auto it = values_.find(name); it != values_.end()) return it->second;
    for (size_t a = 0; a < accumulators.size(); ++a) {
      if (name == absl::StrCat("acc", a)) return te::Acc(static_cast<int>(a), accumulators[a]);
    }
    Fail(absl::StrCat("'", name, "' is not defined"));
    return nullptr;
  }

  Scalar ParseImmediate(const std::string& type) {
    const std::optional<DType> dtype = ParseDType(type);
    if (!dtype) Fail(absl::StrCat("'", type, "' is not an element type"));
    if (failed()) return nullptr;
    if (!IsFloat(*dtype)) return te::ImmInt(*dtype, Int());
    Space();
    const char* const begin = text_.c_str() + at_;
    char* end = nullptr;
    const double value = std::strtod(begin, &end);  // hexadecimal, as %a prints it
    if (end == begin) Fail("expected a number");
    at_ += end - begin;
    return failed() ? nullptr : te::Imm(*dtype, value);
  }

  // Reads the definition behind the name of a value: = mul(v0, v1).
  void ParseDefinition(const std::string& name, const Accumulators& accumulators) {
    if (name[0] != 'v') return Fail(absl::StrCat("'", name, "' is no part of a step"));
    Expect("=");
    const Scalar value = ParseOperation(accumulators);
    if (failed()) return;
    if (!values_.emplace(name, value).second) Fail(absl::StrCat(name, " is defined twice"));
  }

  Scalar ParseOperation(const Accumulators& accumulators) {
    const std::string name = Word();
    if (name == "load") {
      const int buffer = ParseBufferId();
      std::vector<Index> at = ParseIndices();
      if (at.size() != 1) Fail("an address is one index");
      return failed() ? nullptr : te::Load(buffer, kernel_.buffers[buffer].dtype, std::move(at));
    }
    if (name == "if") {
      te::Pred pred = ParsePred();
      Expect("then");
      const Scalar yes = ParseValue(accumulators);
      Expect("else");
      const Scalar no = ParseValue(accumulators);
      if (!failed() && yes->dtype != no->dtype) Fail("the branches of an if differ in type");
      return failed() ? nullptr : te::If(std::move(pred), yes, no);
    }
    if (name == "cast") {
      const DType dtype = Type();
      const Scalar value = ParseValue(accumulators);
      return failed() ? nullptr : te::Cast(dtype, value);
    }
    if (name == "index") {
      const Index index = ParseIndex();
      return failed() ? nullptr : te::FromIndex(index);
    }
    return ParseCall(name, accumulators);
  }

  Scalar ParseCall(const std::string& name, const Accumulators& accumulators) {
    for (int o = 0; o <= static_cast<int>(te::Op::kSelect); ++o) {
      const te::Op op = static_cast<te::Op>(o);
      if (failed() || name != te::GetOpInfo(op).name) continue;
      std::vector<Scalar> args;
      Expect("(");
      do args.push_back(ParseValue(accumulators));
      while (Accept(","));
      Expect(")");
      if (failed()) return nullptr;
      if (const absl::Status fits = te::CheckCall(op, args); !fits.ok()) Fail(std::string(fits.message()));
      return failed() ? nullptr : te::Call(op, std::move(args));
    }
    Fail(absl::StrCat("'", name, "' is not an operation"));
    return nullptr;
  }

  static constexpr int64_t kMostElements = int64_t{1} << 40;
  static constexpr int64_t kMostMatrixBytes = 1 << 20;
  static constexpr int kMostCopiesInside = 1;

  size_t packed_ = 0;  // packed buffers so far; their packs stand in the same order
  bool in_loop_ = false;  // a phase loop is open
  std::map<std::string, Scalar> values_;
};

}  // namespace

absl::StatusOr<Kernel> Parse(const std::string& text) { return Parser(text).Run(); }

}  // namespace fusion::movement
