#include "compiler/pipeline/layout_path.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Groups of one operator and groups that are decided together; those beyond are taken as plain.
constexpr size_t kMostOfOperator = 4, kMostTogether = 12;

using Group = int;

// A length for each assignment to `groups`: bit i of the index is groups[i], set where it is blocked.
struct Table {
  std::vector<Group> groups;  // ascending
  std::vector<double> length;

  // The index into this table of an assignment to `others`, a superset.
  size_t IndexOf(const std::vector<Group>& others, size_t assignment) const {
    size_t index = 0;
    for (size_t i = 0; i < groups.size(); ++i) {
      const auto at = std::find(others.begin(), others.end(), groups[i]) - others.begin();
      index |= (assignment >> at & 1) << i;
    }
    return index;
  }
};

// The table with `group` plain.
Table WithPlain(const Table& table, Group group) {
  Table rest;
  for (Group g : table.groups) {
    if (g != group) rest.groups.push_back(g);
  }
  if (rest.groups.size() == table.groups.size()) return table;
  rest.length.resize(size_t{1} << rest.groups.size());
  for (size_t a = 0; a < table.length.size(); ++a) {
    const auto at = std::find(table.groups.begin(), table.groups.end(), group) - table.groups.begin();
    if ((a >> at & 1) == 0) rest.length[rest.IndexOf(table.groups, a)] = table.length[a];
  }
  return rest;
}

// Which layout a group takes, by the layouts of those that are decided after it.
struct Choice {
  Group group = -1;
  Table blocked;  // lengths: 1 where the group is
};

}  // namespace

absl::StatusOr<ValueLayouts> ShortestLayouts(const ecg::Graph& graph,
                                             const std::vector<std::vector<ecg::ValueId>>& groups,
                                             const Layout& blocked, ValueLayouts layouts, const LayoutCost& cost) {
  std::map<ecg::ValueId, Group> group_of;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (ecg::ValueId v : groups[g]) group_of[v] = static_cast<Group>(g);
  }
  std::vector<Table> tables;
  for (ecg::NodeId id = 0; id < static_cast<ecg::NodeId>(graph.nodes().size()); ++id) {
    std::set<Group> touched;
    const auto touch = [&](ecg::ValueId v) {
      if (const auto it = group_of.find(v); it != group_of.end()) touched.insert(it->second);
    };
    for (ecg::ValueId v : graph.node(id).inputs) touch(v);
    for (ecg::ValueId v : graph.node(id).outputs) touch(v);
    if (touched.empty()) continue;
    Table& table = tables.emplace_back();
    table.groups.assign(touched.begin(), touched.end());
    if (table.groups.size() > kMostOfOperator) table.groups.resize(kMostOfOperator);
    for (size_t a = 0; a < size_t{1} << table.groups.size(); ++a) {
      for (size_t i = 0; i < table.groups.size(); ++i) {
        for (ecg::ValueId v : groups[table.groups[i]]) {
          if ((a >> i & 1) != 0) layouts[v] = blocked;
        }
      }
      absl::StatusOr<double> length = cost(id, layouts);
      for (Group group : table.groups) {
        for (ecg::ValueId v : groups[group]) layouts.erase(v);
      }
      RETURN_IF_ERROR(length.status());
      table.length.push_back(*length);
    }
  }

  // Groups are decided one after another, those with the fewest neighbours first: what the operators of one take at
  // best becomes a table of its neighbours.
  std::vector<std::set<size_t>> tables_of(groups.size());
  std::vector<std::set<Group>> neighbours(groups.size());
  std::set<std::pair<size_t, Group>> open;  // by how many neighbours they have
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
      for (size_t t : tables_of[next]) tables[t] = WithPlain(tables[t], next);
    } else {
      std::vector<Group> all = beside;
      all.push_back(next);  // its bit is the highest
      std::vector<double> length(size_t{1} << all.size(), 0);
      for (size_t t : tables_of[next]) {
        for (size_t a = 0; a < length.size(); ++a) length[a] += tables[t].length[tables[t].IndexOf(all, a)];
      }
      for (size_t t : std::set<size_t>(tables_of[next])) {
        for (Group group : tables[t].groups) tables_of[group].erase(t);
      }
      Choice choice{next, {beside, {}}};
      Table best{beside, {}};
      const size_t half = length.size() / 2;
      for (size_t a = 0; a < half; ++a) {
        choice.blocked.length.push_back(length[a + half] < length[a] ? 1 : 0);
        best.length.push_back(std::min(length[a], length[a + half]));
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

  std::vector<bool> is_blocked(groups.size(), false);
  for (auto choice = choices.rbegin(); choice != choices.rend(); ++choice) {
    size_t index = 0;
    const std::vector<Group>& beside = choice->blocked.groups;
    for (size_t i = 0; i < beside.size(); ++i) index |= static_cast<size_t>(is_blocked[beside[i]]) << i;
    is_blocked[choice->group] = choice->blocked.length[index] > 0;
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    if (!is_blocked[g]) continue;
    for (ecg::ValueId v : groups[g]) layouts[v] = blocked;
  }
  return layouts;
}

}  // namespace fusion
