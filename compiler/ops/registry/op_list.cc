#include "compiler/ops/registry/op_list.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace fusion::ops {
namespace {

#define FUSION_LIST_FAMILY(family) family,
constexpr std::vector<OpDef> (*kFamilies[])() = {FUSION_OP_FAMILIES(FUSION_LIST_FAMILY)};
#undef FUSION_LIST_FAMILY

const std::map<std::string, OpDef>& Table() {
  static const auto& table = *[] {
    auto* ops = new std::map<std::string, OpDef>;
    for (auto family : kFamilies) {
      for (OpDef& op : family()) {
        std::string name = op.name;
        ops->emplace(std::move(name), std::move(op));
      }
    }
    return ops;
  }();
  return table;
}

}  // namespace

const OpDef* FindOp(const std::string& name) {
  const auto it = Table().find(name);
  return it == Table().end() ? nullptr : &it->second;
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> ops;
  for (const auto& [name, op] : Table()) {
    if (!op.internal) ops.push_back(&op);
  }
  return ops;
}

}  // namespace fusion::ops
