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

}  // namespace

absl::StatusOr<ValueLayouts> ShortestLayouts(const ecg::Graph& graph,
                                             const std::vector<std::vector<ecg::ValueId>>& groups,
                                             const std::vector<Layout>& others, ValueLayouts layouts,
                                             const LayoutCost& cost) {
  const size_t states = 1 + others.size();
  std::map<ecg::ValueId, Group> group_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (ecg::ValueId v : groups[g]) group_of[v] = static_cast<Group>(g);
  }
  std::vector<Lengths> tables;
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph.nodes().size()); ++id) {
    std::set<Group> touched;
    const auto touch = [&](ecg::ValueId v) {
      if (const auto it = group_of.find(v); it != group_of.end()) touched.insert(it->second);
    };
    for (ecg::ValueId v : graph.node(id).inputs) touch(v);
    for (ecg::ValueId v : graph.node(id).outputs) touch(v);
    if (touched.empty()) continue;
    Lengths& table = tables.emplace_back();
    table.groups.assign(touched.begin(), touched.end());
    if (table.groups.size() > kMostOfOperator) table.groups.resize(kMostOfOperator);
    for (size_t a = 0; a < Assignments(table.groups.size(), states); ++a) {
      for (size_t i = 0; i < table.groups.size(); ++i) {
        const size_t layout = LayoutIn(a, i, states);
        for (ecg::ValueId v : groups[table.groups[i]]) {
          if (layout > 0) layouts[v] = others[layout - 1];
        }
      }
      absl::StatusOr<double> length = cost(id, layouts);
      for (Group group : table.groups) {
        for (ecg::ValueId v : groups[group]) layouts.erase(v);
      }
      RETURN_IF_ERROR(length.status());
      table.of.push_back(*length);
    }
  }

  // Groups are decided one after another, those with the fewest neighbours first. The best time of a group's operators
  // becomes a table over its neighbours.
  std::vector<std::set<size_t>> tables_of(groups.size());
  std::vector<std::set<Group>> neighbours(groups.size());
  std::set<std::pair<size_t, Group>> open;  // each with its number of neighbours
  const auto add = [&](size_t t) {
    for (Group group : tables[t].groups) {
      tables_of[group].insert(t);
      neighbours[group].insert(tables[t].groups.begin(), tables[t].groups.end());
    }
  };
  for (size_t t = 0; t < tables.size(); ++t) add(t);
  for (size_t g = 0; g < groups.size(); ++g) {
    neighbours[g].erase(static_cast<Group>(g));
    open.insert({neighbours[g].size(), static_cast<Group>(g)});
  }
  std::vector<Choice> choices;
  while (!open.empty()) {
    const Group next = open.begin()->second;
    open.erase(open.begin());
    const std::vector<Group> beside(neighbours[next].begin(), neighbours[next].end());
    for (Group group : beside) open.erase({neighbours[group].size(), group});
    if (beside.size() + 1 > kMostTogether) {
      for (size_t t : tables_of[next]) tables[t] = WithPlain(tables[t], next, states);
    } else {
      std::vector<Group> all = beside;
      all.push_back(next);  // its digit is the highest
      std::vector<double> length(Assignments(all.size(), states), 0);
      for (size_t t : tables_of[next]) {
        for (size_t a = 0; a < length.size(); ++a) length[a] += tables[t].of[tables[t].IndexOf(all, a, states)];
      }
      for (size_t t : std::set<size_t>(tables_of[next])) {
        for (Group group : tables[t].groups) tables_of[group].erase(t);
      }
      Choice choice{next, {beside, {}}};
      Lengths best{beside, {}};
      const size_t rest = length.size() / states;
      for (size_t a = 0; a < rest; ++a) {
        size_t shortest = 0;
        for (size_t layout = 1; layout < states; ++layout) {
          if (length[a + layout * rest] < length[a + shortest * rest]) shortest = layout;
        }
        choice.layout.of.push_back(shortest);
        best.of.push_back(length[a + shortest * rest]);
      }
      choices.push_back(std::move(choice));
      tables.push_back(std::move(best));
      add(tables.size() - 1);
    }
    for (Group group : beside) {
      neighbours[group].erase(group);
      neighbours[group].erase(next);
      open.insert({neighbours[group].size(), group});
    }
  }

  std::vector<size_t> chosen(groups.size(), 0);
  for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
    size_t index = 0;
    const std::vector<Group>& beside = choice->layout.groups;
    for (size_t i = beside.size(); i-- > 0;) index = index * states + chosen[beside[i]];
    chosen[choice->group] = choice->layout.of[index];
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    if (chosen[g] == 0) continue;
    for (ecg::ValueId v : groups[g]) layouts[v] = others[chosen[g] - 1];
  }
  return layouts;
}

}  // namespace fusion
