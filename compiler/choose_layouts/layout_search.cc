#include "compiler/choose_layouts/layout_search.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Most groups of one operator, and most groups that are decided together; further groups are taken as plain.
constexpr size_t kMostOfOperator = 4, kMostTogether = 8;

using Group = int;

// Layouts are numbered; 0 is plain. An assignment to some groups is a number in base `layouts`, with the first group's
// layout as its lowest digit.
size_t LayoutIn(size_t assignment, size_t at, size_t layouts) {
  for (; at > 0; --at) assignment /= layouts;
  return assignment % layouts;
}

size_t Assignments(size_t groups, size_t layouts) {
  size_t number = 1;
  for (; groups > 0; --groups) number *= layouts;
  return number;
}

// One element for each assignment to `groups`.
template <typename T>
struct Table {
  std::vector<Group> groups;
  std::vector<T> of;  // indexed by assignment

  // Converts an assignment to `others`, a superset, into one to these groups.
  size_t IndexOf(const std::vector<Group>& others, size_t assignment, size_t layouts) const {
    size_t index = 0;
    for (size_t i = groups.size(); i-- > 0;) {
      const auto at = std::find(others.begin(), others.end(), groups[i]) - others.begin();
      index = index * layouts + LayoutIn(assignment, static_cast<size_t>(at), layouts);
    }
    return index;
  }
};
using Lengths = Table<double>;

// Returns the table restricted to assignments in which `group` is plain.
Lengths WithPlain(const Lengths& table, Group group, size_t layouts) {
  const auto found = std::find(table.groups.begin(), table.groups.end(), group);
  if (found == table.groups.end()) return table;
  const auto at = static_cast<size_t>(found - table.groups.begin());
  Lengths rest = table;
  rest.groups.erase(rest.groups.begin() + static_cast<std::ptrdiff_t>(at));
  rest.of.resize(Assignments(rest.groups.size(), layouts));
  for (size_t a = 0; a < table.of.size(); ++a) {
    if (LayoutIn(a, at, layouts) == 0) rest.of[rest.IndexOf(table.groups, a, layouts)] = table.of[a];
  }
  return rest;
}

// The layout that a group takes, given the layouts of the groups that are decided after it.
struct Choice {
  Group group = -1;
  Table<size_t> layout;
};

class LayoutSearch {
 public:
  LayoutSearch(const ecg::Graph& graph, const std::vector<std::vector<ecg::ValueId>>& groups,
               const std::vector<Layout>& others, ValueLayouts layouts, const LayoutCost& cost)
      : graph_(graph),
        groups_(groups),
        others_(others),
        cost_(cost),
        states_(1 + others.size()),
        layouts_(std::move(layouts)),
        tables_of_(groups.size()),
        neighbours_(groups.size()) {}

  absl::StatusOr<ValueLayouts> Run() {
    RETURN_IF_ERROR(EstimateOperators());
    OpenGroups();
    while (!open_.empty()) DecideNext();
    TakeChoices();
    return std::move(layouts_);
  }

 private:
  // Makes a table for each operator that touches groups: its time for each assignment to them.
  absl::Status EstimateOperators() {
    std::map<ecg::ValueId, Group> group_of;
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (ecg::ValueId v : groups_[g]) group_of[v] = static_cast<Group>(g);
    }
    for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph_.nodes().size()); ++id) {
      std::set<Group> touched;
      const auto touch = [&](ecg::ValueId v) {
        if (const auto it = group_of.find(v); it != group_of.end()) touched.insert(it->second);
      };
      for (ecg::ValueId v : graph_.node(id).inputs) touch(v);
      for (ecg::ValueId v : graph_.node(id).outputs) touch(v);
      if (touched.empty()) continue;
      Lengths& table = tables_.emplace_back();
      table.groups.assign(touched.begin(), touched.end());
      if (table.groups.size() > kMostOfOperator) table.groups.resize(kMostOfOperator);
      for (size_t a = 0; a < Assignments(table.groups.size(), states_); ++a) {
        ASSIGN_OR_RETURN(const double length, LengthOf(id, table.groups, a));
        table.of.push_back(length);
      }
    }
    return absl::OkStatus();
  }

  // Returns the operator's time under an assignment to these groups; other groups are plain.
  absl::StatusOr<double> LengthOf(ecg::NodeId id, const std::vector<Group>& groups, size_t assignment) {
    for (size_t i = 0; i < groups.size(); ++i) {
      const size_t layout = LayoutIn(assignment, i, states_);
      for (ecg::ValueId v : groups_[groups[i]]) {
        if (layout > 0) layouts_[v] = others_[layout - 1];
      }
    }
    absl::StatusOr<double> length = cost_(id, layouts_);
    for (Group group : groups) {
      for (ecg::ValueId v : groups_[group]) layouts_.erase(v);
    }
    return length;
  }

  // Groups are decided one after another, those with the fewest neighbours first.
  void OpenGroups() {
    for (size_t t = 0; t < tables_.size(); ++t) IndexTable(t);
    for (size_t g = 0; g < groups_.size(); ++g) {
      neighbours_[g].erase(static_cast<Group>(g));
      open_.insert({neighbours_[g].size(), static_cast<Group>(g)});
    }
  }

  void IndexTable(size_t t) {
    for (Group group : tables_[t].groups) {
      tables_of_[group].insert(t);
      neighbours_[group].insert(tables_[t].groups.begin(), tables_[t].groups.end());
    }
  }

  void DecideNext() {
    const Group next = open_.begin()->second;
    open_.erase(open_.begin());
    const std::vector<Group> beside(neighbours_[next].begin(), neighbours_[next].end());
    for (Group group : beside) open_.erase({neighbours_[group].size(), group});
    if (beside.size() + 1 > kMostTogether) {
      for (size_t t : tables_of_[next]) tables_[t] = WithPlain(tables_[t], next, states_);
    } else {
      Eliminate(next, beside);
    }
    for (Group group : beside) {
      neighbours_[group].erase(group);
      neighbours_[group].erase(next);
      open_.insert({neighbours_[group].size(), group});
    }
  }

  // Replaces the tables of `group` by one over its neighbours: the best time of the group's operators. Records the
  // layout with which the group has it.
  void Eliminate(Group group, const std::vector<Group>& beside) {
    std::vector<Group> all = beside;
    all.push_back(group);  // its digit is the highest
    std::vector<double> length(Assignments(all.size(), states_), 0);
    for (size_t t : tables_of_[group]) {
      for (size_t a = 0; a < length.size(); ++a) length[a] += tables_[t].of[tables_[t].IndexOf(all, a, states_)];
    }
    for (size_t t : std::set<size_t>(tables_of_[group])) {
      for (Group other : tables_[t].groups) tables_of_[other].erase(t);
    }
    Choice choice{group, {beside, {}}};
    Lengths best{beside, {}};
    const size_t rest = length.size() / states_;
    for (size_t a = 0; a < rest; ++a) {
      size_t shortest = 0;
      for (size_t layout = 1; layout < states_; ++layout) {
        if (length[a + layout * rest] < length[a + shortest * rest]) shortest = layout;
      }
      choice.layout.of.push_back(shortest);
      best.of.push_back(length[a + shortest * rest]);
    }
    choices_.push_back(std::move(choice));
    tables_.push_back(std::move(best));
    IndexTable(tables_.size() - 1);
  }

  // Goes back through the choices: each depends on groups that were decided after it.
  void TakeChoices() {
    std::vector<size_t> chosen(groups_.size(), 0);
    for (auto choice = choices_.rbegin(); choice != choices_.rend(); ++choice) {
      size_t index = 0;
      const std::vector<Group>& beside = choice->layout.groups;
      for (size_t i = beside.size(); i-- > 0;) index = index * states_ + chosen[beside[i]];
      chosen[choice->group] = choice->layout.of[index];
    }
    for (size_t g = 0; g < groups_.size(); ++g) {
      if (chosen[g] == 0) continue;
      for (ecg::ValueId v : groups_[g]) layouts_[v] = others_[chosen[g] - 1];
    }
  }

  const ecg::Graph& graph_;
  const std::vector<std::vector<ecg::ValueId>>& groups_;
  const std::vector<Layout>& others_;
  const LayoutCost& cost_;
  const size_t states_;  // layouts of a group, plain included
  ValueLayouts layouts_;
  std::vector<Lengths> tables_;
  std::vector<std::set<size_t>> tables_of_;  // by group
  std::vector<std::set<Group>> neighbours_;  // by group: those that share a table with it
  std::set<std::pair<size_t, Group>> open_;  // each with its number of neighbours
  std::vector<Choice> choices_;
};

}  // namespace

absl::StatusOr<ValueLayouts> ShortestLayouts(const ecg::Graph& graph,
                                             const std::vector<std::vector<ecg::ValueId>>& groups,
                                             const std::vector<Layout>& others, ValueLayouts layouts,
                                             const LayoutCost& cost) {
  return LayoutSearch(graph, groups, others, std::move(layouts), cost).Run();
}

}  // namespace fusion
