#include "compiler/movement/live_values.h"

#include <algorithm>
#include <unordered_map>

namespace fusion::movement {
namespace {

using te::Scalar;
using te::ScalarKind;
using te::ScalarNode;

bool TakesRegister(const ScalarNode& node) {
  return node.kind != ScalarKind::kImm && node.kind != ScalarKind::kFromIndex && node.kind != ScalarKind::kAcc;
}

// Counts the values that straight-line code keeps at once. Operands that need most registers are evaluated first (Sethi
// and Ullman, 1970), and a shared value lives until its last use.
class LiveValues {
 public:
  explicit LiveValues(const std::vector<Scalar>& roots) {
    for (const Scalar& root : roots) Count(*root);
    for (const Scalar& root : roots) {
      Evaluate(*root);
      Use(*root);  // the store is its last use
    }
  }
  int most() const { return most_; }

 private:
  struct Info {
    int uses = 0, need = 0;
    bool done = false;
  };
  int Count(const ScalarNode& node) {
    Info& info = info_[&node];
    if (info.uses++ > 0) return info.need;
    std::vector<int> needs;
    for (const Scalar& arg : node.args) needs.push_back(Count(*arg));
    std::sort(needs.rbegin(), needs.rend());
    int need = TakesRegister(node) ? 1 : 0;
    for (size_t i = 0; i < needs.size(); ++i) need = std::max(need, needs[i] + static_cast<int>(i));
    return info_[&node].need = need;
  }
  void Evaluate(const ScalarNode& node) {
    if (info_[&node].done) return;
    info_[&node].done = true;
    std::vector<const ScalarNode*> args;
    for (const Scalar& arg : node.args) args.push_back(arg.get());
    std::stable_sort(args.begin(), args.end(),
                     [&](const ScalarNode* a, const ScalarNode* b) { return info_[a].need > info_[b].need; });
    for (const ScalarNode* arg : args) Evaluate(*arg);
    for (const ScalarNode* arg : args) Use(*arg);
    if (TakesRegister(node)) most_ = std::max(most_, ++live_);
  }
  void Use(const ScalarNode& node) {
    if (--info_[&node].uses == 0 && TakesRegister(node)) --live_;
  }

  std::unordered_map<const ScalarNode*, Info> info_;
  int live_ = 0, most_ = 0;
};

}  // namespace

int ValuesAtOnce(const std::vector<te::Scalar>& scalars) { return LiveValues(scalars).most(); }

int AccumulatorsOf(const Step& step) {
  const auto* const tile = step.As<RegisterTile>();
  return tile != nullptr ? tile->row_count * tile->outer_count : step.reduction ? 1 : 0;
}

int ValuesAtOnce(const Step& step) {
  return AccumulatorsOf(step) + std::max(ValuesAtOnce(step.body), ValuesAtOnce(step.then));
}

}  // namespace fusion::movement
