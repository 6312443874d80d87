// Canonical numbering. Each tensor gets a hash of its computation that does not depend on ids, names or the order of
// independent expressions. Tes are ordered by (depth, hash) and commutative operands by hash; then everything is
// renumbered in that order. A hash collision can make equal computations print differently, but never different ones
// equally.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "compiler/te/program/program.h"
#include "compiler/te/program/transform.h"

namespace fusion::te {
namespace {

uint64_t Mix(uint64_t h, uint64_t x) {  // splitmix64's finaliser over both values
  h += 0x9e3779b97f4a7c15 + (x ^ (x << 32));
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9;
  h = (h ^ (h >> 27)) * 0x94d049bb133111eb;
  return h ^ (h >> 31);
}
template <typename... T>
uint64_t Hash(uint64_t first, T... rest) {
  uint64_t h = Mix(0, first);
  ((h = Mix(h, static_cast<uint64_t>(rest))), ...);
  return h;
}

// Hashes within one te: an axis by its position, a tensor by its hash.
class TeHasher {
 public:
  TeHasher(const Te& te, const std::vector<uint64_t>& tensor_hash) : tensor_hash_(tensor_hash) {
    for (size_t a = 0; a < te.axes.size(); ++a) axis_[te.axes[a].id] = a;
    if (!te.reduction) return;
    for (size_t a = 0; a < te.reduction->axes.size(); ++a) axis_[te.reduction->axes[a].id] = 1000 + a;
  }

  uint64_t Of(const Index& x) {
    uint64_t sum = 0;  // the order of parts depends on ids
    for (const Index::Part& part : x.parts()) sum += Hash(1, part.coefficient, OfTerm(part.term));
    return Hash(2, x.constant(), sum);
  }
  uint64_t Of(const Pred& pred) {
    uint64_t sum = 0;
    for (const Comparison& c : pred) sum += Hash(3, static_cast<int>(c.cmp), Of(c.lhs), Of(c.rhs));
    return sum;
  }
  uint64_t Of(const Scalar& s) {
    if (auto it = known_.find(s.get()); it != known_.end()) return it->second;
    uint64_t h = Hash(4, static_cast<int>(s->kind), static_cast<int>(s->dtype));
    switch (s->kind) {
      case ScalarKind::kImm:
        h = Hash(h, std::bit_cast<uint64_t>(s->fvalue), s->ivalue);
        break;
      case ScalarKind::kLoad:
        h = Hash(h, tensor_hash_[s->tensor], s->pad ? Of(s->pad) : 0);
        for (const Index& index : s->indices) h = Hash(h, Of(index));
        break;
      case ScalarKind::kIf:
        h = Hash(h, Of(s->pred), Of(s->args[0]), Of(s->args[1]));
        break;
      case ScalarKind::kOp: {
        std::vector<uint64_t> args;
        for (const Scalar& arg : s->args) args.push_back(Of(arg));
        if (GetOpInfo(s->op).commutative) std::sort(args.begin(), args.end());
        h = Hash(h, static_cast<int>(s->op));
        for (uint64_t arg : args) h = Hash(h, arg);
        break;
      }
      case ScalarKind::kCast:
        h = Hash(h, Of(s->args[0]));
        break;
      case ScalarKind::kFromIndex:
        h = Hash(h, Of(s->index));
        break;
      case ScalarKind::kAcc:
        h = Hash(h, s->acc);
        break;
    }
    return known_[s.get()] = h;
  }
  uint64_t Of(const Te& te) {
    uint64_t h = 5;
    if (te.routine) {
      for (char c : te.routine->name) h = Hash(h, c);
      for (TensorId input : te.routine->inputs) h = Hash(h, tensor_hash_[input]);
      for (int64_t param : te.routine->params) h = Hash(h, param);
    }
    for (const Axis& axis : te.axes) h = Hash(h, axis.extent);
    if (te.reduction) {
      h = Hash(h, 6, static_cast<int>(te.reduction->kind), static_cast<int>(te.reduction->acc), Of(te.reduction->pred));
      for (const Axis& axis : te.reduction->axes) h = Hash(h, axis.extent);
    }
    VisitScalars(te, [&](const Scalar& s) { h = Hash(h, Of(s)); });
    return h;
  }

 private:
  uint64_t OfTerm(const Term& term) {
    switch (term.kind) {
      case TermKind::kAxis: {
        auto it = axis_.find(term.axis.id);
        return Hash(7, it == axis_.end() ? 0 : it->second, term.axis.extent);
      }
      case TermKind::kLoad: {
        uint64_t h = Hash(8, tensor_hash_[term.tensor], term.load_range.lo, term.load_range.hi);
        for (const Index& index : term.indices) h = Hash(h, Of(index));
        return h;
      }
      default:
        return Hash(9, static_cast<int>(term.kind), term.divisor, Of(*term.inner));
    }
  }

  const std::vector<uint64_t>& tensor_hash_;
  std::unordered_map<int, uint64_t> axis_;
  std::unordered_map<const ScalarNode*, uint64_t> known_;
};

struct Hashes {
  std::vector<uint64_t> tensor, te;
};

// Hashes bottom-up. `input` distinguishes inputs of one type whose readers differ.
Hashes HashProgram(const Program& program, const std::vector<uint64_t>& input) {
  Hashes hashes;
  hashes.tensor = input;
  for (const Te& te : program.tes) {
    const uint64_t h = TeHasher(te, hashes.tensor).Of(te);
    hashes.te.push_back(h);
    for (size_t o = 0; o < te.outputs.size(); ++o) {
      const TensorInfo& info = program.tensors[te.outputs[o]];
      hashes.tensor[te.outputs[o]] = Hash(h, o, static_cast<int>(info.dtype), input[te.outputs[o]]);
    }
  }
  return hashes;
}

// Adds to each tensor's hash what its readers tell: in which te, and where in it, the tensor is read.
std::vector<uint64_t> HashUses(const Program& program, const Hashes& hashes, std::vector<uint64_t> from) {
  constexpr uint64_t kMark = 0x5555;
  std::vector<uint64_t> marked = hashes.tensor;
  std::vector<uint64_t> uses(program.tensors.size(), 0);
  for (size_t t = program.tes.size(); t-- > 0;) {
    const Te& te = program.tes[t];
    std::vector<TensorId> reads;
    VisitTensors(te, [&](TensorId tensor) { reads.push_back(tensor); });
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    uint64_t te_uses = hashes.te[t];
    for (TensorId output : te.outputs) te_uses = Hash(te_uses, uses[output]);
    for (TensorId tensor : reads) {
      const uint64_t before = std::exchange(marked[tensor], kMark);
      uses[tensor] += Hash(te_uses, TeHasher(te, marked).Of(te));
      marked[tensor] = before;
    }
  }
  for (size_t t = 0; t < from.size(); ++t) from[t] = Hash(from[t], uses[t]);
  return from;
}

// Sorts commutative operands by hash and shares equal nodes.
class Rebuilder {
 public:
  explicit Rebuilder(TeHasher* hasher) : hasher_(hasher) {}
  Scalar Rebuild(const Scalar& s) {
    if (auto it = done_.find(s.get()); it != done_.end()) return it->second;
    auto node = std::make_shared<ScalarNode>(*s);
    for (Scalar& arg : node->args) arg = Rebuild(arg);
    if (s->kind == ScalarKind::kOp && GetOpInfo(s->op).commutative) {
      std::stable_sort(node->args.begin(), node->args.end(),
                       [&](const Scalar& a, const Scalar& b) { return hasher_->Of(a) < hasher_->Of(b); });
    }
    Scalar result = std::move(node);
    kept_.push_back(s);
    kept_.push_back(result);
    for (const Scalar& other : same_hash_[hasher_->Of(result)]) {
      if (SameNode(*other, *result)) return done_[s.get()] = other;
    }
    same_hash_[hasher_->Of(result)].push_back(result);
    return done_[s.get()] = result;
  }

 private:
  static bool SameNode(const ScalarNode& a, const ScalarNode& b) {  // the arguments of both nodes are already shared
    if (a.kind != b.kind || a.dtype != b.dtype || a.args != b.args || a.op != b.op || a.acc != b.acc) return false;
    if (std::bit_cast<uint64_t>(a.fvalue) != std::bit_cast<uint64_t>(b.fvalue) || a.ivalue != b.ivalue) return false;
    if (a.tensor != b.tensor || a.indices != b.indices || !(a.index == b.index)) return false;
    if ((a.pad == nullptr) != (b.pad == nullptr) || (a.pad && !SameNode(*a.pad, *b.pad))) return false;
    return std::equal(
        a.pred.begin(), a.pred.end(), b.pred.begin(), b.pred.end(),
        [](const Comparison& x, const Comparison& y) { return x.cmp == y.cmp && x.lhs == y.lhs && x.rhs == y.rhs; });
  }

  TeHasher* hasher_;
  std::vector<Scalar> kept_;  // maps here and in the hasher use addresses as keys: no node may be freed
  std::unordered_map<const ScalarNode*, Scalar> done_;
  std::unordered_map<uint64_t, std::vector<Scalar>> same_hash_;
};

std::vector<int> CanonicalOrder(const Program& program, const Hashes& hashes) {
  std::vector<int> depth_of_tensor(program.tensors.size(), 0), depth(program.tes.size(), 0);
  for (size_t t = 0; t < program.tes.size(); ++t) {
    VisitTensors(program.tes[t], [&](TensorId tensor) { depth[t] = std::max(depth[t], depth_of_tensor[tensor]); });
    for (TensorId output : program.tes[t].outputs) depth_of_tensor[output] = depth[t] + 1;
  }
  // Tensors that are computed equally are distinguished by their readers.
  std::vector<uint64_t> key(program.tes.size());
  for (size_t t = 0; t < program.tes.size(); ++t) key[t] = hashes.tensor[program.tes[t].outputs[0]];
  std::vector<int> order(program.tes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return std::make_pair(depth[a], key[a]) < std::make_pair(depth[b], key[b]); });
  return order;
}

// Hashes that tell tensors apart by their types, by how they are computed and by their readers.
Hashes HashesOf(const Program& program) {
  std::vector<uint64_t> input(program.tensors.size(), 0);
  for (size_t t = 0; t < program.tensors.size(); ++t) {
    const TensorInfo& info = program.tensors[t];
    input[t] = Hash(10, static_cast<int>(info.dtype), info.role == Role::kConstant);
    for (int64_t extent : info.shape) input[t] = Hash(input[t], extent);
  }
  for (TensorId output : program.outputs) input[output] = Hash(input[output], 11);
  Hashes hashes = HashProgram(program, input);
  for (int round = 0; round < 2; ++round) {
    hashes = HashProgram(program, HashUses(program, hashes, input));
  }
  return hashes;
}

// Copies a program's expressions in canonical order, with tensors and axes numbered in the order of their first use.
class Renumberer {
 public:
  explicit Renumberer(const Program& program)
      : program_(program), hashes_(HashesOf(program)), renumbered_(program.tensors.size(), -1) {}

  Program Run() {
    for (int t : CanonicalOrder(program_, hashes_)) Add(program_.tes[t]);
    for (TensorId output : program_.outputs) {
      if (renumbered_[output] < 0) Define(output, program_.tensors[output].role);  // an input that is passed through
    }
    result_.outputs.clear();
    for (TensorId output : program_.outputs) result_.outputs.push_back(renumbered_[output]);
    std::sort(result_.outputs.begin(), result_.outputs.end());
    return std::move(result_);
  }

 private:
  TensorId Define(TensorId tensor, Role role) {
    if (renumbered_[tensor] < 0) {
      renumbered_[tensor] = result_.AddTensor("", program_.tensors[tensor].dtype, program_.tensors[tensor].shape, role);
    }
    return renumbered_[tensor];
  }

  bool IsOutput(TensorId tensor) const {
    return std::count(program_.outputs.begin(), program_.outputs.end(), tensor) > 0;
  }

  void Add(Te te) {
    OrderOperands(&te);
    DefineReads(te);
    for (TensorId output : te.outputs) Define(output, IsOutput(output) ? Role::kOutput : Role::kIntermediate);
    te = CopyTe(te, [&](TensorId tensor) { return renumbered_[tensor]; }, &result_);
    result_.tes.push_back(std::move(te));
  }

  void OrderOperands(Te* te) const {
    TeHasher hasher(*te, hashes_.tensor);
    Rebuilder rebuilder(&hasher);
    for (std::vector<Scalar>* list : {&te->body, &te->then}) {
      for (Scalar& s : *list) s = rebuilder.Rebuild(s);
    }
    if (te->reduction) {
      for (Scalar& s : te->reduction->init) s = rebuilder.Rebuild(s);
    }
  }

  void DefineReads(const Te& te) {
    std::vector<TensorId> reads;
    VisitTensors(te, [&](TensorId tensor) { reads.push_back(tensor); });
    std::stable_sort(reads.begin(), reads.end(),
                     [&](TensorId a, TensorId b) { return hashes_.tensor[a] < hashes_.tensor[b]; });
    for (TensorId tensor : reads) Define(tensor, program_.tensors[tensor].role);
  }

  const Program& program_;
  const Hashes hashes_;
  std::vector<TensorId> renumbered_;
  Program result_;
};

Program Renumber(const Program& original) {
  Program program = original;
  RemoveDead(&program);
  return Renumberer(program).Run();
}

}  // namespace

// Renumbering normalises indices and folds scalars again, which may change hashes; the second pass sees the final ones.
Program Canonicalize(const Program& program) { return Renumber(Renumber(program)); }

}  // namespace fusion::te
