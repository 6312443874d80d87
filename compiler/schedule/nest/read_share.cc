#include "compiler/schedule/nest/read_share.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace fusion {
namespace {

using Sites = std::vector<const te::ScalarNode*>;  // loads at distinct indices

void AddSites(const Sites& more, Sites* sites) {
  for (const te::ScalarNode* load : more) {
    const bool known = std::any_of(sites->begin(), sites->end(),
                                   [&](const te::ScalarNode* site) { return site->indices == load->indices; });
    if (!known) sites->push_back(load);
  }
}

// The loads by which one evaluation of `s` reads the tensor, at most: an `if` takes only one of its branches.
const Sites& SitesOf(const te::Scalar& s, te::TensorId tensor, std::map<const te::ScalarNode*, Sites>* known) {
  const auto it = known->find(s.get());
  if (it != known->end()) return it->second;
  Sites sites;
  if (s->kind == te::ScalarKind::kLoad && s->tensor == tensor) sites.push_back(s.get());
  if (s->kind == te::ScalarKind::kIf) {
    const Sites &a = SitesOf(s->args[0], tensor, known), &b = SitesOf(s->args[1], tensor, known);
    sites = a.size() > b.size() ? a : b;
  } else {
    for (const te::Scalar& arg : s->args) AddSites(SitesOf(arg, tensor, known), &sites);
  }
  return (*known)[s.get()] = std::move(sites);
}

// Walks a te and keeps, by axis, the range of the points at which it stands.
class ShareWalk {
 public:
  ShareWalk(const te::Te& te, te::TensorId tensor) : tensor_(tensor) {
    for (const te::Axis& axis : te.axes) ranges_[axis.id] = {0, axis.extent};
    for (const te::Scalar& s : te.body) share_ = std::max(share_, Of(s, 1));
    for (const te::Scalar& s : te.then) share_ = std::max(share_, Of(s, 1));
  }
  double share() const { return visits_ > kMostVisits ? 1 : std::min(1.0, share_); }

 private:
  static constexpr int kMostVisits = 10000;  // a shared expression is walked again for each range

  // `points`: the share of all points at which `s` is evaluated.
  double Of(const te::Scalar& s, double points) {
    if (++visits_ > kMostVisits || SitesOf(s, tensor_, &known_).empty()) return 0;
    if (s->kind == te::ScalarKind::kLoad) return points;
    double share = 0;
    if (s->kind == te::ScalarKind::kIf) {
      const std::optional<te::AxisCut> found = te::CutOf(s->pred);
      if (found && ranges_.count(found->axis.id)) {
        const int axis = found->axis.id;
        const std::pair<int64_t, int64_t> all = ranges_[axis];
        const int64_t cut = std::clamp(found->at, all.first, all.second);
        const auto part = [&](const te::Scalar& branch, int64_t begin, int64_t end) {
          if (begin == end) return;
          ranges_[axis] = {begin, end};
          share += Of(branch, points * static_cast<double>(end - begin) / static_cast<double>(all.second - all.first));
        };
        part(s->args[0], all.first, cut);
        part(s->args[1], cut, all.second);
        ranges_[axis] = all;
        return share;
      }
    }
    for (const te::Scalar& arg : s->args) share = std::max(share, Of(arg, points));
    return share;
  }

  const te::TensorId tensor_;
  std::map<int, std::pair<int64_t, int64_t>> ranges_;  // by axis: the range of the points where the walk is
  std::map<const te::ScalarNode*, Sites> known_;
  double share_ = 0;
  int visits_ = 0;
};

}  // namespace

double ReadsPerPoint(const te::Te& te, te::TensorId tensor) {
  std::map<const te::ScalarNode*, Sites> known;
  Sites sites;
  for (const te::Scalar& s : te.body) AddSites(SitesOf(s, tensor, &known), &sites);
  for (const te::Scalar& s : te.then) AddSites(SitesOf(s, tensor, &known), &sites);
  return static_cast<double>(std::max<size_t>(1, sites.size()));
}

double ReadShare(const te::Te& te, te::TensorId tensor) { return ShareWalk(te, tensor).share(); }

}  // namespace fusion
