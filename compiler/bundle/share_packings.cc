#include "compiler/bundle/share_packings.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "compiler/bundle/weights.h"
#include "compiler/movement/cost.h"

namespace fusion {
namespace {

// Largest cost of sharing, as a share of a program's estimated time.
constexpr double kMostTime = 1e-2;
// A change that saves less is not worth another kernel.
constexpr int64_t kLeastBytes = 4096;

// A constant in the form in which a kernel reads it.
struct Form {
  const void* source = nullptr;
  std::string packing;  // empty: as it is
  bool operator<(const Form& other) const {
    return source != other.source ? source < other.source : packing < other.packing;
  }
};
struct FormBytes {
  int64_t bytes = 0;         // in the bundle
  int64_t covered = 0;       // of the source
  int64_t source_bytes = 0;  // of the whole source
};
using Forms = std::map<Form, FormBytes>;

void AddForms(const ecg::Graph& graph, const FusionKernel& fusion_kernel, Forms* forms) {
  const std::vector<const movement::Buffer*> buffers = ArgBuffers(fusion_kernel);
  for (size_t a = 0; a < fusion_kernel.args.size(); ++a) {
    const KernelArg& arg = fusion_kernel.args[a];
    if (arg.kind != KernelArg::Kind::kConstant || arg.value == ecg::kNone) continue;
    const Tensor& constant = *graph.value(arg.value).constant;
    const movement::Pack* pack = arg.pack < 0 ? nullptr : &fusion_kernel.kernel.packs[arg.pack];
    const bool plain = pack == nullptr || KeepsOrder(*pack, constant.num_elements());
    const int64_t bytes = plain ? constant.size_bytes() : movement::SizeBytes(*buffers[a]);
    auto [it, fresh] = forms->emplace(Form{constant.data(), plain ? "" : PackingText(*pack)}, FormBytes{});
    if (!fresh) continue;
    const HeldWeight held =
        Held({constant, plain ? nullptr : pack, constant.dtype(), constant.shape(), bytes, /*table=*/false});
    it->second = {bytes, held.covered_bytes, held.source_bytes};
  }
}

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
        users_[form].bytes = bytes;
        users_[form].alike.push_back(a);
      }
    }
    std::map<const void*, std::pair<int64_t, int64_t>> covered;  // by source: bytes that are held, and that there are
    for (const auto& [form, users] : users_) {
      covered[form.source].first += users.bytes.covered;
      covered[form.source].second = users.bytes.source_bytes;
    }
    std::set<const void*> twice;
    for (const auto& [source, bytes] : covered) {
      if (bytes.first >= bytes.second + kLeastBytes) twice.insert(source);
    }
    std::map<size_t, std::vector<Change>> changes;  // of the launches that read such a constant
    for (size_t a = 0; a < all_.size(); ++a) {
      for (const auto& [form, bytes] : forms_[a]) {
        if (!twice.count(form.source)) continue;
        changes.emplace(a, Changes(a));
        break;
      }
    }
    std::optional<Move> best;
    left_.costly.clear();
    for (const auto& [a, of_one] : changes) {
      for (const Change& change : of_one) {
        const std::optional<Move> move = MoveWith(change, changes);
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

  // The change, and the cheapest change of each other reader of the forms that its launches leave. nullopt where some
  // reader stays, or where the move saves nothing.
  std::optional<Move> MoveWith(const Change& change, const std::map<size_t, std::vector<Change>>& changes) const {
    std::set<Form> left;
    std::set<size_t> readers;
    for (const auto& [form, bytes] : forms_[change.alike]) {
      if (change.forms.count(form)) continue;
      left.insert(form);
      const std::vector<size_t>& of_form = users_.at(form).alike;
      readers.insert(of_form.begin(), of_form.end());
    }
    readers.erase(change.alike);
    Move move{{change}, 0, 0};
    for (const size_t reader : readers) {
      const Change* cheapest = nullptr;
      for (const Change& other : changes.at(reader)) {
        const bool leaves = std::none_of(other.forms.begin(), other.forms.end(),
                                         [&](const auto& form) { return left.count(form.first) > 0; });
        if (leaves && (cheapest == nullptr || other.more_ns < cheapest->more_ns)) cheapest = &other;
      }
      if (cheapest == nullptr) return std::nullopt;
      move.changes.push_back(*cheapest);
    }
    for (const Form& form : left) move.saved += users_.at(form).bytes.bytes;
    if (move.saved < kLeastBytes) return std::nullopt;
    std::map<size_t, double> more_ns;
    for (const Change& one : move.changes) more_ns[all_[one.alike].program] += one.more_ns;
    for (const auto& [p, ns] : more_ns) move.more = std::max(move.more, (left_.more_ns[p] + ns) / all_ns_[p]);
    return move;
  }

  // The launch as it would be with these choices.
  struct Alternative {
    bool made = false;
    Forms forms;
    double ns = 0;  // of all its sets
  };
  const Alternative& With(size_t program, size_t launch, const Choices& choices) {
    const auto [it, fresh] =
        alternatives_.emplace(std::make_pair(std::make_pair(program, launch), PrintChoices(choices)), Alternative{});
    Alternative& result = it->second;
    if (!fresh) return result;
    const auto kernels = programs_[program].reschedule(launch, choices);
    if (!kernels.ok()) return result;
    result.made = OneKernel(*kernels);
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

  // The schedules of these launches that take one other choice and read no form that nobody reads yet.
  std::vector<Change> Changes(size_t a) {
    const Alike& alike = all_[a];
    const FusionKernel& own = (*programs_[alike.program].launches)[alike.launches[0]].fusion_kernel;
    Choices taken;
    for (const ChoicePoint& point : own.choices) {
      if (point.taken != 0) taken[point.name] = point.taken;
    }
    std::vector<Change> changes;
    for (const ChoicePoint& point : own.choices) {
      if (point.kind != ChoiceKind::kModelled) continue;  // the estimate could not tell what it costs
      for (int one = 0; one < point.count; ++one) {
        if (one == point.taken) continue;
        Choices choices = taken;
        choices.insert_or_assign(point.name, one);
        if (one == 0) choices.erase(point.name);
        std::optional<Change> change = ChangeTo(a, choices);
        if (change && !SameForms(change->forms, forms_[a])) changes.push_back(*std::move(change));
      }
    }
    return changes;
  }

  static bool SameForms(const Forms& a, const Forms& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& one, const auto& other) {
      return !(one.first < other.first) && !(other.first < one.first);
    });
  }

  std::optional<Change> ChangeTo(size_t a, const Choices& choices) {
    const Alike& alike = all_[a];
    Change change{a, choices, {}, 0};
    for (const size_t l : alike.launches) {
      const Alternative& alternative = With(alike.program, l, choices);
      if (!alternative.made) return std::nullopt;
      for (const auto& [form, bytes] : alternative.forms) {
        if (!users_.count(form)) return std::nullopt;
        change.forms.emplace(form, bytes);
      }
      const PlannedLaunch& launch = (*programs_[alike.program].launches)[l];
      change.more_ns += alternative.ns - CostNs(launch.fusion_kernel) * static_cast<double>(1 + launch.others.size());
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

  const DeviceModel& device_;
  const int threads_;
  const bool whatever_it_costs_;
  const std::vector<SharingProgram>& programs_;
  std::vector<double> all_ns_;  // by program, before any change
  std::map<std::pair<std::pair<size_t, size_t>, std::string>, Alternative> alternatives_;
  // As the last step found them.
  struct Users {
    FormBytes bytes;
    std::vector<size_t> alike;  // that read the form
  };
  std::vector<Alike> all_;
  std::vector<Forms> forms_;  // parallel to `all_`
  std::map<Form, Users> users_;
  SharingLeft left_;
};

}  // namespace

SharingLeft SharePackings(const DeviceModel& device, int threads, bool whatever_it_costs,
                          const std::vector<SharingProgram>& programs) {
  return Sharing(device, threads, whatever_it_costs, programs).Run();
}

}  // namespace fusion
