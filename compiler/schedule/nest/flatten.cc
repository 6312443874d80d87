#include "compiler/schedule/nest/flatten.h"

#include <map>
#include <utility>

#include "compiler/te/index/reciprocals.h"
#include "compiler/te/scalar/rounded.h"

namespace fusion {
namespace {

using te::Index;
using te::Scalar;

// `inside` predicate of a padded load, without comparisons that always hold. With a mask (limit >= 0) a comparison on
// the mask's index counts for lanes below the limit only, because the results of other lanes are thrown away.
te::Pred InsideBox(const std::vector<Index>& indices, const Shape& shape, const Index& mask_index, int64_t mask_limit) {
  te::Pred pred;
  for (size_t d = 0; d < indices.size(); ++d) {
    const te::Interval range = indices[d].Range();
    const bool masked = mask_limit >= 0 && mask_limit <= shape[d] && indices[d] == mask_index;
    if (range.lo < 0) pred.push_back({indices[d], te::Cmp::kGe, Index(0)});
    if (range.hi >= shape[d] && !masked) pred.push_back({indices[d], te::Cmp::kLt, Index(shape[d])});
  }
  return pred;
}

Index MapIndexLoads(const Index& index, const AddressOf& address_of) {
  Index result(index.constant());
  for (const Index::Part& part : index.parts()) {
    const te::Term& term = part.term;
    Index value;
    switch (term.kind) {
      case te::TermKind::kAxis:
        value = Index(term.axis);
        break;
      case te::TermKind::kFloorDiv:
        value = te::FloorDiv(MapIndexLoads(*term.inner, address_of), term.divisor);
        break;
      case te::TermKind::kMod:
        value = te::Mod(MapIndexLoads(*term.inner, address_of), term.divisor);
        break;
      case te::TermKind::kLoad: {
        std::vector<Index> inner;
        for (const Index& i : term.indices) inner.push_back(MapIndexLoads(i, address_of));
        const movement::Store place = address_of(term.tensor, inner);
        value = Index::Load(place.buffer, {place.address}, term.load_range);
        break;
      }
    }
    result = result + value * part.coefficient;
  }
  return result;
}

class Flattener {
 public:
  Flattener(const te::Program& program, const PhysicalTe& physical, const AddressOf& address_of)
      : program_(program), physical_(physical), address_of_(address_of) {}

  Scalar Rewrite(const Scalar& s) {
    auto it = memo_.find(s.get());
    if (it != memo_.end()) return it->second;
    Scalar result = Compute(s);
    memo_[s.get()] = result;
    keep_.push_back(s);
    return result;
  }

  te::Pred Rewrite(const te::Pred& pred) {
    te::Pred result = pred;
    for (te::Comparison& c : result) {
      c.lhs = MapIndexLoads(c.lhs, address_of_);
      c.rhs = MapIndexLoads(c.rhs, address_of_);
    }
    return result;
  }

 private:
  Scalar Compute(const Scalar& s) {
    switch (s->kind) {
      case te::ScalarKind::kImm:
      case te::ScalarKind::kAcc:
        return s;
      case te::ScalarKind::kFromIndex:
        return te::FromIndex(MapIndexLoads(s->index, address_of_));
      case te::ScalarKind::kCast:
        return te::CastOf(*s, Rewrite(s->args[0]));
      case te::ScalarKind::kIf:
        return te::If(Rewrite(s->pred), Rewrite(s->args[0]), Rewrite(s->args[1]));
      case te::ScalarKind::kOp: {
        std::vector<Scalar> args;
        for (const Scalar& arg : s->args) args.push_back(Rewrite(arg));
        return te::Call(s->op, std::move(args));
      }
      case te::ScalarKind::kLoad: {
        std::vector<Index> indices;
        for (const Index& index : s->indices) indices.push_back(MapIndexLoads(index, address_of_));
        const movement::Store place = address_of_(s->tensor, indices);
        Scalar load = te::Load(place.buffer, s->dtype, {place.address});
        if (s->pad == nullptr) return load;
        te::Pred inside =
            InsideBox(indices, program_.tensors[s->tensor].shape, physical_.mask_index, physical_.mask_limit);
        return inside.empty() ? load : te::If(std::move(inside), load, s->pad);
      }
    }
    return s;
  }

  const te::Program& program_;
  const PhysicalTe& physical_;
  const AddressOf& address_of_;
  std::map<const te::ScalarNode*, Scalar> memo_;
  std::vector<Scalar> keep_;
};

}  // namespace

Nest Flatten(const te::Program& program, const PhysicalTe& physical, const AddressOf& address_of) {
  Nest nest;
  const te::Te& te = physical.te;
  nest.label = program.tensors[te.outputs[0]].name;
  nest.axes = te.axes;
  nest.reduction = te.reduction;
  Flattener flattener(program, physical, address_of);
  for (const Scalar& s : te::MergeReciprocals(te.body)) nest.body.push_back(flattener.Rewrite(s));
  for (const Scalar& s : te::MergeReciprocals(te.then)) nest.then.push_back(flattener.Rewrite(s));
  if (nest.reduction) {
    nest.reduction->pred = flattener.Rewrite(nest.reduction->pred);
    for (Scalar& s : nest.reduction->init) s = flattener.Rewrite(s);
  }
  for (size_t o = 0; o < te.outputs.size(); ++o) {
    nest.stores.push_back(address_of(te.outputs[o], physical.coordinates[o]));
    nest.store_types.push_back(program.tensors[te.outputs[o]].dtype);
  }
  nest.mask_index = physical.mask_index;
  nest.mask_limit = physical.mask_limit;
  return nest;
}

}  // namespace fusion
