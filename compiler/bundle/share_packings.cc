#include "compiler/bundle/share_packings.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "compiler/bundle/weight_forms.h"
#include "compiler/movement/cost.h"

namespace fusion {
namespace {

// Largest cost of sharing, as a share of a program's estimated time.
constexpr double kMostTime = 1e-2;
// A change that saves less is not worth another kernel.
constexpr int64_t kLeastBytes = 4096;

// Launches of a program that have the same kernel. They change together, so that the bundle gets no further text.
struct Alike {
  size_t program = 0;
  std::vector<size_t> launches;
};

class Sharing {
 public:
  Sharing(const DeviceModel& device, int threads, bool whatever_it_costs, const std::vector<SharingProgram>& programs)
      : device_(device), threads_(threads), whatever_it_costs_(whatever_it_costs), programs_(programs) {
    left_.more_ns.resize(programs.size());
    for (const SharingProgram& program : programs) {
      double& ns = all_ns_.emplace_back();
      for (const PlannedLaunch& launch : *program.launches) {
        ns += CostNs(launch.fusion_kernel) * static_cast<double>(1 + launch.others.size());
      }
    }
  }

  SharingLeft Run() {
    while (Step()) continue;
    Explain();
    return std::move(left_);
  }

 private:
  // Another schedule of some launches.
  struct Change {
    size_t alike = 0;  // which launches
    Choices choices;
    Forms forms;  // that they then read
    double more_ns = 0;
  };
  // Changes that save bytes together: the last readers of a form leave it at the same time.
  struct Move {
    std::vector<Change> changes;
    int64_t saved = 0;
    double more = 0;  // the largest share of a program's time
  };
  // The outcome of scheduling some launches again.
  struct Tried {
    std::vector<Change> changes;  // schedules that read other forms
    int made = 0;                 // schedules that there are
    std::string refusal;          // of the first that there is not
  };

  double CostNs(const FusionKernel& fusion_kernel) const {
    return movement::EstimateCost(fusion_kernel.kernel, device_, threads_).latency_ns;
  }

  std::vector<Alike> AllAlike() const {
    std::map<std::pair<size_t, std::string>, Alike> alike;
    for (size_t p = 0; p < programs_.size(); ++p) {
      const std::vector<PlannedLaunch>& launches = *programs_[p].launches;
      for (size_t l = 0; l < launches.size(); ++l) {
        Alike& one = alike[{p, launches[l].fusion_kernel.key}];
        one.program = p;
        one.launches.push_back(l);
      }
    }
    std::vector<Alike> all;
    for (auto& [key, one] : alike) all.push_back(std::move(one));
    return all;
  }

  Forms FormsOf(const Alike& alike) const {
    const SharingProgram& program = programs_[alike.program];
    Forms forms;
    for (const size_t l : alike.launches) {
      const PlannedLaunch& launch = (*program.launches)[l];
      AddForms(*program.graph, launch.fusion_kernel, &forms);
      for (const FusionKernel& other : launch.others) AddForms(*program.graph, other, &forms);
    }
    return forms;
  }

  // Makes the move that saves most. Returns false where none is left.
  bool Step() {
    all_ = AllAlike();
    forms_.clear();
    users_.clear();
    for (size_t a = 0; a < all_.size(); ++a) {
      for (const auto& [form, bytes] : forms_.emplace_back(FormsOf(all_[a]))) {
        users_[form].facts = bytes;
        users_[form].alike.push_back(a);
      }
    }
    std::map<const void*, std::pair<int64_t, int64_t>> covered;  // by source: bytes that are held, and that there are
    for (const auto& [form, users] : users_) {
      covered[form.source].first += users.facts.covered;
      covered[form.source].second = users.facts.source_bytes;
    }
    twice_.clear();
    for (const auto& [source, bytes] : covered) {
      if (bytes.first >= bytes.second + kLeastBytes) twice_.insert(source);
    }
    tried_.clear();  // the launches that read such a constant
    for (size_t a = 0; a < all_.size(); ++a) {
      for (const auto& [form, bytes] : forms_[a]) {
        if (!twice_.count(form.source)) continue;
        tried_.emplace(a, Changes(a));
        break;
      }
    }
    std::optional<Move> best;
    left_.costly.clear();
    for (const auto& [a, tried] : tried_) {
      for (const Change& change : tried.changes) {
        std::string why;
        const std::optional<Move> move = MoveWith(change, &why);
        if (!move) continue;
        if (!whatever_it_costs_ && move->more > kMostTime) {
          for (const auto& [form, bytes] : forms_[a]) {
            if (!change.forms.count(form)) left_.costly.insert(form.source);
          }
        } else if (!best || move->saved > best->saved || (move->saved == best->saved && move->more < best->more)) {
          best = move;
        }
      }
    }
    if (!best) return false;
    for (const Change& change : best->changes) Apply(change);
    return true;
  }

  // Does the change bring a form that nobody reads yet?
  bool BringsForms(const Change& change) const {
    return std::any_of(change.forms.begin(), change.forms.end(),
                       [&](const auto& form) { return users_.count(form.first) == 0; });
  }

  // The change, and the cheapest change of each other reader of the forms that its launches leave. nullopt where some
  // reader stays, or where the move saves nothing; `why` then says so.
  std::optional<Move> MoveWith(const Change& change, std::string* why) const {
    if (BringsForms(change)) {
      *why = "it would bring a form that no kernel reads yet";
      return std::nullopt;
    }
    std::set<Form> left;
    std::set<size_t> readers;
    for (const auto& [form, facts] : forms_[change.alike]) {
      if (change.forms.count(form)) continue;
      left.insert(form);
      const std::vector<size_t>& of_form = users_.at(form).alike;
      readers.insert(of_form.begin(), of_form.end());
    }
    readers.erase(change.alike);
    Move move{{change}, 0, 0};
    for (const size_t reader : readers) {
      const Change* cheapest = nullptr;
      for (const Change& other : tried_.at(reader).changes) {
        const bool leaves = std::none_of(other.forms.begin(), other.forms.end(),
                                         [&](const auto& form) { return left.count(form.first) > 0; });
        if (!leaves || BringsForms(other)) continue;
        if (cheapest == nullptr || other.more_ns < cheapest->more_ns) cheapest = &other;
      }
      if (cheapest == nullptr) {
        *why = absl::StrCat(NameOf(reader), " would still read the form that it leaves");
        return std::nullopt;
      }
      move.changes.push_back(*cheapest);
    }
    for (const Form& form : left) move.saved += users_.at(form).facts.bytes;
    if (move.saved < kLeastBytes) {
      *why = absl::StrCat("that would save only ", move.saved, " bytes");
      return std::nullopt;
    }
    std::map<size_t, double> more_ns;
    for (const Change& one : move.changes) more_ns[all_[one.alike].program] += one.more_ns;
    for (const auto& [p, ns] : more_ns) move.more = std::max(move.more, (left_.more_ns[p] + ns) / all_ns_[p]);
    return move;
  }

  // The launch as it would be with these choices.
  struct Alternative {
    bool made = false;
    Forms forms;
    double ns = 0;                     // of all its sets
    std::vector<ChoicePoint> choices;  // of its kernel
    std::string refusal;               // where it is not made
  };
  const Alternative& With(size_t program, size_t launch, const Choices& choices) {
    const auto [it, fresh] =
        alternatives_.emplace(std::make_pair(std::make_pair(program, launch), PrintChoices(choices)), Alternative{});
    Alternative& result = it->second;
    if (!fresh) return result;
    const auto kernels = programs_[program].reschedule(launch, choices);
    if (!kernels.ok()) {
      result.refusal = std::string(kernels.status().message());
      return result;
    }
    result.made = OneKernel(*kernels);
    if (result.made) result.choices = (*kernels)[0].choices;
    for (const FusionKernel& kernel : *kernels) {
      AddForms(*programs_[program].graph, kernel, &result.forms);
      result.ns += CostNs(kernel);
    }
    return result;
  }

  static bool OneKernel(const std::vector<FusionKernel>& kernels) {
    return std::all_of(kernels.begin(), kernels.end(),
                       [&](const FusionKernel& kernel) { return kernel.key == kernels[0].key; });
  }

  static Choices TakenOf(const FusionKernel& fusion_kernel) {
    Choices taken;
    for (const ChoicePoint& point : fusion_kernel.choices) {
      if (point.taken != 0) taken[point.name] = point.taken;
    }
    return taken;
  }

  const PlannedLaunch& FirstOf(const Alike& alike) const {
    return (*programs_[alike.program].launches)[alike.launches[0]];
  }

  // The schedules of these launches that take one other choice, and perhaps one of those which only that one brings. (A
  // form of the kernel brings all of its choices, too many to try.)
  Tried Changes(size_t a) {
    const Alike& alike = all_[a];
    const FusionKernel& own = FirstOf(alike).fusion_kernel;
    const Choices taken = TakenOf(own);
    Tried tried;
    const auto add = [&](const Choices& choices) {
      std::optional<Change> change = ChangeTo(a, choices, &tried);
      if (change) tried.changes.push_back(*std::move(change));
    };
    for (const Choices& one : OthersOf(own.choices, taken)) {
      add(one);
      const std::vector<ChoicePoint>& points = With(alike.program, alike.launches[0], one).choices;
      if (FormOf(points) != FormOf(own.choices)) continue;
      for (const Choices& two : OthersOf(Brought(own.choices, points), one)) add(two);
    }
    return tried;
  }

  // These choices, with another alternative of one of the points.
  static std::vector<Choices> OthersOf(const std::vector<ChoicePoint>& points, const Choices& taken) {
    std::vector<Choices> others;
    for (const ChoicePoint& point : points) {
      if (point.kind != ChoiceKind::kModelled) continue;  // the estimate could not tell what it costs
      for (int one = 0; one < point.count; ++one) {
        if (one == point.taken) continue;
        Choices& choices = others.emplace_back(taken);
        choices.insert_or_assign(point.name, one);
        if (one == 0) choices.erase(point.name);
      }
    }
    return others;
  }

  static std::vector<ChoicePoint> Brought(const std::vector<ChoicePoint>& before, std::vector<ChoicePoint> after) {
    std::erase_if(after, [&](const ChoicePoint& point) { return PointOf(before, point.name) != nullptr; });
    return after;
  }

  static const ChoicePoint* PointOf(const std::vector<ChoicePoint>& points, absl::string_view name) {
    const auto it =
        std::find_if(points.begin(), points.end(), [&](const ChoicePoint& one) { return one.name == name; });
    return it == points.end() ? nullptr : &*it;
  }

  static std::string FormOf(const std::vector<ChoicePoint>& points) {
    const ChoicePoint* form = PointOf(points, "form");
    return form == nullptr ? "" : form->labels[form->taken];
  }

  static bool SameForms(const Forms& a, const Forms& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
      return !(one.first < other.first) && !(other.first < one.first);
    });
  }

  // nullopt where the launches cannot have these choices, or read the same forms with them.
  std::optional<Change> ChangeTo(size_t a, const Choices& choices, Tried* tried) {
    const Alike& alike = all_[a];
    Change change{a, choices, {}, 0};
    for (const size_t l : alike.launches) {
      const Alternative& alternative = With(alike.program, l, choices);
      if (!alternative.made) {
        if (tried->refusal.empty()) tried->refusal = alternative.refusal;
        return std::nullopt;
      }
      change.forms.insert(alternative.forms.begin(), alternative.forms.end());
      const PlannedLaunch& launch = (*programs_[alike.program].launches)[l];
      change.more_ns += alternative.ns - CostNs(launch.fusion_kernel) * static_cast<double>(1 + launch.others.size());
      if (l != alike.launches[0]) continue;
      ++tried->made;
      // The first launch of equal ones shows whether the others need to be made.
      if (SameForms(alternative.forms, FormsOf({alike.program, {l}}))) return std::nullopt;
      if (BringsForms(change)) return change;
    }
    return change;
  }

  void Apply(const Change& change) {
    const Alike& alike = all_[change.alike];
    const SharingProgram& program = programs_[alike.program];
    for (const size_t l : alike.launches) {
      auto kernels = program.reschedule(l, change.choices);
      if (!kernels.ok()) continue;  // it was made before: equal choices make equal kernels
      PlannedLaunch& launch = (*program.launches)[l];
      launch.fusion_kernel = std::move((*kernels)[0]);
      for (size_t o = 0; o < launch.others.size(); ++o) launch.others[o] = std::move((*kernels)[o + 1]);
    }
    left_.more_ns[alike.program] += change.more_ns;
  }

  std::string NameOf(size_t a) const {
    const PlannedLaunch& launch = FirstOf(all_[a]);
    return launch.nodes.empty() ? launch.label : absl::StrCat(launch.label, " '", launch.nodes[0], "'");
  }

  // The choices in which the change differs from what the launches have, by their labels.
  std::string InWords(const Change& change) {
    const Alike& alike = all_[change.alike];
    const FusionKernel& own = FirstOf(alike).fusion_kernel;
    std::map<std::string, std::string> words;
    for (const auto* points : {&own.choices, &With(alike.program, alike.launches[0], change.choices).choices}) {
      for (const ChoicePoint& point : *points) {
        const auto wanted = change.choices.find(point.name);
        const int one = wanted == change.choices.end() ? 0 : wanted->second;
        const ChoicePoint* had = PointOf(own.choices, point.name);
        if (one == (had == nullptr ? 0 : had->taken) || one >= point.count) continue;
        words[point.name] = absl::StrCat(point.name, "=", point.labels[one]);
      }
    }
    return absl::StrJoin(words, " ", [](std::string* out, const auto& word) { absl::StrAppend(out, word.second); });
  }

  // Why these launches read `form` and none of the other forms of its source.
  std::string Refusal(size_t a, const Form& form) {
    const Tried& tried = tried_.at(a);
    const std::vector<Change>& changes = tried.changes;
    const Change* cheapest = nullptr;
    for (const Change& change : changes) {
      const bool moves =
          !change.forms.count(form) && std::any_of(change.forms.begin(), change.forms.end(), [&](const auto& other) {
            return other.first.source == form.source && users_.count(other.first) > 0;
          });
      if (moves && (cheapest == nullptr || change.more_ns < cheapest->more_ns)) cheapest = &change;
    }
    if (cheapest == nullptr && tried.made == 0) {
      return absl::StrCat("it has no other schedule", tried.refusal.empty() ? "" : ": ", tried.refusal);
    }
    if (cheapest == nullptr) return absl::StrCat("none of its ", tried.made, " other schedules reads another of them");
    std::string why;
    const std::optional<Move> move = MoveWith(*cheapest, &why);
    if (!move) return absl::StrCat("with ", InWords(*cheapest), " it could, but ", why);
    return absl::StrFormat("with %s it could, at %.1f%% of the model's time, where %.0f%% is allowed (--size small)",
                           InWords(*cheapest), 100 * move->more, 100 * kMostTime);
  }

  // Why a kernel that reads the constant as it is does not look its elements up in another's panels.
  std::string NotFromPanels(size_t a, const Form& form) const {
    const auto* reasons = programs_[all_[a].program].not_held_once;
    if (!form.packing.empty() || reasons == nullptr || !reasons->count(form.source)) return "";
    return absl::StrCat("; from panels: ", reasons->at(form.source));
  }

  // Names the constants that several forms still hold, those with the most bytes first. Constants of the same readers
  // share an entry.
  void Explain() {
    std::map<const void*, RepeatedWeight> by_source;
    for (const auto& [form, users] : users_) {
      if (!twice_.count(form.source)) continue;
      RepeatedWeight& weight = by_source[form.source];
      weight.names = {users.facts.name};
      weight.bytes = users.facts.source_bytes;
      WeightForm& held = weight.forms.emplace_back(WeightForm{users.facts.words, users.facts.bytes, {}});
      for (const size_t a : users.alike) {
        const auto launches = static_cast<int64_t>(all_[a].launches.size());
        held.readers.push_back({NameOf(a), launches, absl::StrCat(Refusal(a, form), NotFromPanels(a, form))});
      }
    }
    std::vector<RepeatedWeight>& repeated = left_.repeated;
    for (auto& [source, weight] : by_source) {
      const auto same = std::find_if(repeated.begin(), repeated.end(), [&](const RepeatedWeight& other) {
        return other.bytes == weight.bytes && other.forms == weight.forms;
      });
      if (same == repeated.end()) {
        repeated.push_back(std::move(weight));
      } else {
        same->names.push_back(weight.names[0]);
      }
    }
    for (RepeatedWeight& weight : repeated) std::sort(weight.names.begin(), weight.names.end());
    std::sort(repeated.begin(), repeated.end(), [](const RepeatedWeight& a, const RepeatedWeight& b) {
      const auto bytes = [](const RepeatedWeight& one) { return one.bytes * std::ssize(one.names); };
      return bytes(a) != bytes(b) ? bytes(a) > bytes(b) : a.names < b.names;
    });
  }

  const DeviceModel& device_;
  const int threads_;
  const bool whatever_it_costs_;
  const std::vector<SharingProgram>& programs_;
  std::vector<double> all_ns_;  // by program, before any change
  std::map<std::pair<std::pair<size_t, size_t>, std::string>, Alternative> alternatives_;
  // As the last step found them.
  struct Users {
    FormFacts facts;
    std::vector<size_t> alike;  // that read the form
  };
  std::vector<Alike> all_;
  std::vector<Forms> forms_;  // parallel to `all_`
  std::map<Form, Users> users_;
  std::set<const void*> twice_;    // constants that several forms hold
  std::map<size_t, Tried> tried_;  // by index into `all_`, those that read such a constant
  SharingLeft left_;
};

}  // namespace

SharingLeft SharePackings(const DeviceModel& device, int threads, bool whatever_it_costs,
                          const std::vector<SharingProgram>& programs) {
  return Sharing(device, threads, whatever_it_costs, programs).Run();
}

}  // namespace fusion
