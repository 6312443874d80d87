#include "server/scheduler/judge.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/quantile.h"

namespace fusion {
namespace {

constexpr size_t kRememberedTimes = 16, kRememberedRatios = 64, kRememberedBatches = 64;
constexpr size_t kFewestRatios = 16;       // before a ratio is an outlier
constexpr double kCanaryTolerance = 1e-2;  // of the largest number: threads may sum in another order

template <typename T>
void Remember(std::deque<T>* all, T one, size_t most) {
  all->push_back(std::move(one));
  if (all->size() > most) all->pop_front();
}

double Median(const std::deque<double>& values) { return Quantile({values.begin(), values.end()}, 0.5); }

bool Near(double a, double b, double factor) { return a > 0 && b > 0 && a <= b * factor && b <= a * factor; }

// One that is not given says nothing.
bool Same(const Canary& a, const Canary& b) {
  if (a.empty() || b.empty()) return true;
  if (a.size() != b.size()) return false;
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    if (!std::isnan(a[i])) largest = std::max({largest, std::abs(a[i]), std::abs(b[i])});
  }
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isnan(a[i]) && std::abs(a[i] - b[i]) > kCanaryTolerance * largest) return false;
  }
  return true;
}

// Returns how they differ; "": they agree.
std::string Difference(const Opinion& a, const Opinion& b) {
  const AcceptedRows &one = a.accepted.rows, &other = b.accepted.rows;
  if (one.measurements.size() != other.measurements.size() || one.comparisons.size() != other.comparisons.size()) {
    return "it measured other things";
  }
  for (size_t i = 0; i < one.measurements.size(); ++i) {
    const MeasurementRow &row = one.measurements[i], &beside = other.measurements[i];
    if (!Near(row.median_ns, beside.median_ns, Judge::kSameTime)) {
      return absl::StrFormat("'%s' took %.4g µs and %.4g µs", row.description, row.median_ns * 1e-3,
                             beside.median_ns * 1e-3);
    }
  }
  for (size_t i = 0; i < one.comparisons.size(); ++i) {
    if (!Near(one.comparisons[i].ratio, other.comparisons[i].ratio, Judge::kSameRatio)) {
      return absl::StrFormat("'%s' took %.3f and %.3f of the time of the other plan", one.comparisons[i].description,
                             one.comparisons[i].ratio, other.comparisons[i].ratio);
    }
  }
  const Testimony &said = a.accepted.testimony, &beside = b.accepted.testimony;
  for (size_t i = 0; i < std::min(said.canaries.size(), beside.canaries.size()); ++i) {
    if (!Same(said.canaries[i], beside.canaries[i])) return "a kernel computed other numbers";
  }
  if (said.sentinel_ns > 0 && beside.sentinel_ns > 0 &&
      !Near(said.sentinel_ns, beside.sentinel_ns, Judge::kSameSentinel)) {
    return absl::StrFormat("the sentinel took %.4g µs and %.4g µs", said.sentinel_ns * 1e-3, beside.sentinel_ns * 1e-3);
  }
  return Same(said.sentinel_canary, beside.sentinel_canary) ? "" : "the sentinel computed other numbers";
}

bool HasCanaries(const Opinion& opinion) {
  const std::vector<Canary>& canaries = opinion.accepted.testimony.canaries;
  return !canaries.empty() && !canaries[0].empty();
}

// Times alone are not enough where one of two says what its kernels compute: nobody would have looked at that.
bool CanConfirm(const Opinion& a, const Opinion& b) { return HasCanaries(a) == HasCanaries(b); }

// Returns how far the estimates of the batch are off; nothing if no estimate is known.
std::vector<double> LogRatios(const Opinion& opinion) {
  std::vector<double> ratios;
  for (const MeasurementRow& row : opinion.accepted.rows.measurements) {
    if (row.model_ns > 0 && row.median_ns > 0) ratios.push_back(std::log(row.median_ns / row.model_ns));
  }
  return ratios;
}

bool HasOutlier(const std::deque<double>& known, const Opinion& opinion) {
  if (known.size() < kFewestRatios) return false;
  const double median = Median(known);
  std::vector<double> deviations;
  for (const double ratio : known) deviations.push_back(std::abs(ratio - median));
  const double limit = 3 * Quantile(std::move(deviations), 0.5);
  const std::vector<double> ratios = LogRatios(opinion);
  return std::any_of(ratios.begin(), ratios.end(), [&](double ratio) { return std::abs(ratio - median) > limit; });
}

}  // namespace

void Judge::Restore(const SourceRow& row) {
  Record& record = records_[row.source];
  record.strikes = static_cast<int>(row.strikes), record.in_a_row = static_cast<int>(row.in_a_row);
  record.batches = row.batches, record.confirmed = row.confirmed, record.caught = row.caught;
  record.last = row.last;
  for (const std::string& task : row.awaiting) doubted_[task].insert(row.source);
}

bool Judge::DoubtsImport(const std::string& source) const {
  const auto found = records_.find(source);
  return absl::StartsWith(source, kImportedSource) && found != records_.end() &&
         found->second.in_a_row < kConfirmedFirst;
}

std::set<std::string> Judge::DoubtedImports() const {
  std::set<std::string> doubted;
  for (auto found = records_.lower_bound(kImportedSource);
       found != records_.end() && absl::StartsWith(found->first, kImportedSource); ++found) {
    if (DoubtsImport(found->first)) doubted.insert(found->first);
  }
  return doubted;
}

int Judge::ConfirmedInARow(const std::string& source) const {
  const auto found = records_.find(source);
  return found == records_.end() ? 0 : found->second.in_a_row;
}

int Judge::Strikes(const std::string& source) const {
  const auto found = records_.find(source);
  return found == records_.end() ? 0 : found->second.strikes;
}

std::optional<DueQuarantine> Judge::CompareImport(const std::string& source, const std::string& description,
                                                  double imported, double measured, double tolerance, bool may_strike) {
  const auto found = records_.find(source);
  if (found == records_.end()) return std::nullopt;  // in quarantine by now
  changed_.insert(source);
  Record& record = found->second;
  ++record.batches;
  if (Near(imported, measured, tolerance)) {
    ++record.confirmed;
    ++record.in_a_row;
    record.strikes = 0;
    return std::nullopt;
  }
  const std::string why =
      absl::StrFormat("'%s' is %.3g of what a worker here measures", description, imported / measured);
  if (!may_strike) {
    record.in_a_row = 0;
    ++record.caught;
    record.last = why;
    return std::nullopt;
  }
  Strike(source, "import", why);
  if (quarantines_.empty() || quarantines_.back().source != source) return std::nullopt;
  DueQuarantine due = std::move(quarantines_.back());
  quarantines_.pop_back();
  return due;
}

void Judge::Believe(const std::string& source) {
  const auto found = records_.find(source);
  if (found == records_.end()) return;
  changed_.insert(source);
  found->second.strikes = 0;
  found->second.in_a_row = kConfirmedFirst;
}

std::vector<SourceRow> Judge::TakeChanged() {
  std::map<std::string, SourceRow> rows;
  for (const std::string& source : std::exchange(changed_, {})) {
    const auto found = records_.find(source);
    if (found == records_.end()) continue;
    const Record& record = found->second;
    rows[source] = {source,           record.strikes, record.in_a_row, record.batches,
                    record.confirmed, record.caught,  record.last};
  }
  const auto awaits = [&](const std::string& source, const std::string& task) {
    if (const auto row = rows.find(source); row != rows.end()) row->second.awaiting.push_back(task);
  };
  if (!rows.empty()) {
    for (const auto& [task, held] : held_) {
      for (const Opinion& opinion : held.opinions) awaits(opinion.source, task);
    }
    for (const auto& [task, sources] : doubted_) {
      for (const std::string& source : sources) awaits(source, task);
    }
  }
  std::vector<SourceRow> changed;
  for (auto& [source, row] : rows) changed.push_back(std::move(row));
  return changed;
}

void Judge::Touch(const std::string& task) {
  if (const auto held = held_.find(task); held != held_.end()) {
    for (const Opinion& opinion : held->second.opinions) changed_.insert(opinion.source);
  }
  if (const auto doubted = doubted_.find(task); doubted != doubted_.end()) {
    changed_.insert(doubted->second.begin(), doubted->second.end());
  }
}

void Judge::Forget(const std::string& task) {
  Touch(task);
  held_.erase(task);
  doubted_.erase(task);
}

void Judge::Strike(const std::string& source, const std::string& cause, const std::string& why) {
  changed_.insert(source);
  Record& record = records_[source];
  record.in_a_row = 0;
  ++record.caught;
  record.last = why;
  if (++record.strikes >= kStrikes) {
    quarantines_.push_back({source, cause, absl::StrCat("caught ", record.strikes, " times in a row, at last: ", why)});
    record.strikes = 0;
  }
}

void Judge::Fails(const std::string& source, const std::string& reason) {
  quarantines_.push_back({source, "failures", reason});
}

std::pair<std::string, std::string> Judge::Fault(const Kind& kind, Record& record, const Testimony& said) {
  if (!said.samples.empty()) {
    if (std::find(record.samples.begin(), record.samples.end(), said.samples) != record.samples.end()) {
      return {"it sent samples again that it had sent before", "replay"};
    }
    Remember(&record.samples, said.samples, kRememberedBatches);
  }
  if (said.sentinel_ns <= 0 || kind.times.empty()) return {"", ""};
  const double expected = Median(kind.times);
  if (!Near(said.sentinel_ns, expected, kSameSentinel)) {
    return {absl::StrFormat("its sentinel took %.4g µs instead of %.4g µs", said.sentinel_ns * 1e-3, expected * 1e-3),
            "sentinel"};
  }
  if (!Same(said.sentinel_canary, kind.canary)) return {"its sentinel computed other numbers", "canary"};
  return {"", ""};
}

bool Judge::NeedsSecondOpinion(const Kind& kind, const Record& record, const Opinion& opinion) {
  const Testimony& said = opinion.accepted.testimony;
  const bool checked = said.sentinel_ns > 0 && !said.sentinel_canary.empty() && !kind.times.empty();
  return !checked || record.in_a_row < kConfirmedFirst || opinion.remarkable || HasOutlier(kind.log_ratios, opinion) ||
         draw_();
}

bool Judge::IsLikeBefore(const std::string& kind, Record* record, const Testimony& said) {
  if (said.sentinel_ns <= 0) return true;
  std::deque<double>& known = record->sentinel_ns[kind];
  const bool like = known.empty() || Near(said.sentinel_ns, Median(known), kSameSentinel);
  Remember(&known, said.sentinel_ns, kRememberedTimes);  // also one that differs: a machine may change for good
  return like;
}

void Judge::TakeReference(Kind* kind, const Opinion& opinion) {
  const Testimony& said = opinion.accepted.testimony;
  double ns = said.sentinel_ns;
  const Canary* canary = &said.sentinel_canary;
  if (kind->sentinel.empty() && !said.candidate.empty()) {
    kind->sentinel = said.candidate;
    ns = opinion.accepted.rows.measurements[0].min_ns;
    canary = &said.canaries[0];
  }
  if (ns <= 0 || canary->empty()) return;
  if (opinion.source.empty() && !kind->believed) {
    kind->believed = true;
    kind->times.clear();
    kind->canary.clear();
  }
  Remember(&kind->times, ns, kRememberedTimes);
  if (kind->canary.empty()) kind->canary = *canary;
}

void Judge::Stamp(const std::string& kind, Standing standing, Opinion* opinion) {
  const auto stamp = [&](auto& row) {
    row.source = opinion->source;
    row.standing = opinion->source.empty() ? Standing::kBelieved : standing;
  };
  for (MeasurementRow& row : opinion->accepted.rows.measurements) stamp(row);
  for (PlanComparisonRow& row : opinion->accepted.rows.comparisons) stamp(row);
  for (const double ratio : LogRatios(*opinion)) Remember(&kinds_[kind].log_ratios, ratio, kRememberedRatios);
}

Verdict Judge::Confirm(const std::string& kind, std::vector<Opinion> agreed) {
  // Else their times agree, and nobody is left who could say more: they count, and prove nothing of their sources.
  bool is_firm = false;
  for (const Opinion& one : agreed) {
    is_firm = is_firm || one.source.empty() || std::any_of(agreed.begin(), agreed.end(), [&](const Opinion& other) {
                return &one != &other && CanConfirm(one, other);
              });
  }
  for (Opinion& opinion : agreed) {
    if (is_firm) TakeReference(&kinds_[kind], opinion);
    Stamp(kind, Standing::kConfirmed, &opinion);
    if (opinion.source.empty() || !is_firm) continue;
    Record& record = records_[opinion.source];
    ++record.confirmed;
    ++record.in_a_row;
    record.strikes = 0;
  }
  return {Verdict::Say::kTake, std::move(agreed)};
}

Verdict Judge::Hear(const std::string& task, const std::string& kind, Opinion opinion, bool another) {
  if (!opinion.source.empty()) changed_.insert(opinion.source);
  Touch(task);
  Verdict verdict = Weigh(task, kind, std::move(opinion), another);
  if (verdict.say == Verdict::Say::kTake || verdict.say == Verdict::Say::kNone) doubted_.erase(task);
  return verdict;
}

Verdict Judge::Weigh(const std::string& task, const std::string& kind_name, Opinion opinion, bool another) {
  Kind& kind = kinds_[kind_name];
  const bool believed = opinion.source.empty();
  if (!believed) {
    Record& record = records_[opinion.source];
    ++record.batches;
    if (const auto [why, cause] = Fault(kind, record, opinion.accepted.testimony); !why.empty()) {
      Strike(opinion.source, cause, why);
      held_.try_emplace(task, Held{kind_name, {}});
      return {Verdict::Say::kRefuse, {}, why};
    }
  }
  std::vector<Opinion> others, agreed, differing;
  if (const auto held = held_.find(task); held != held_.end()) others = std::move(held->second.opinions);
  held_.erase(task);
  const bool is_first = others.empty();
  std::string how;
  for (Opinion& other : others) {
    std::string difference = Difference(other, opinion);
    if (difference.empty()) {
      agreed.push_back(std::move(other));
    } else {
      how = difference;
      differing.push_back(std::move(other));
    }
  }
  const bool is_firm = believed || std::any_of(agreed.begin(), agreed.end(),
                                               [&](const Opinion& other) { return CanConfirm(other, opinion); });
  if (is_firm || (!agreed.empty() && !another)) {
    for (const Opinion& other : differing) {
      if (!is_firm) break;
      Strike(other.source, "disagreement",
             absl::StrCat(how, believed ? ", the latter by a worker that is believed" : ", the latter by two sources"));
    }
    agreed.push_back(std::move(opinion));
    return Confirm(kind_name, std::move(agreed));
  }
  Record& record = records_[opinion.source];
  if (is_first && !another) {
    if (!IsLikeBefore(kind_name, &record, opinion.accepted.testimony)) {
      return {Verdict::Say::kRetry, {}, "its sentinel took another time than in its earlier batches"};
    }
    const Testimony& said = opinion.accepted.testimony;
    if (kind.sentinel.empty()) kind.sentinel = said.candidate;
    Verdict verdict;
    Stamp(kind_name, Standing::kSingleSource, &opinion);
    verdict.taken.push_back(std::move(opinion));
    return verdict;
  }
  const bool doubted = doubted_.count(task) > 0;
  if (is_first && !doubted && !NeedsSecondOpinion(kind, record, opinion)) {
    Verdict verdict;
    Stamp(kind_name, Standing::kChecked, &opinion);
    verdict.taken.push_back(std::move(opinion));
    return verdict;
  }
  if (!is_first && !another) {
    return {Verdict::Say::kNone, {}, absl::StrCat("workers contradict each other, and no other can be asked: ", how)};
  }
  std::move(agreed.begin(), agreed.end(), std::back_inserter(differing));
  differing.push_back(std::move(opinion));
  held_[task] = {kind_name, std::move(differing)};
  return {Verdict::Say::kAgain, {}, how.empty() ? "another worker measures it as well" : how};
}

Verdict Judge::Settle(const std::string& task) {
  Touch(task);
  const auto found = held_.find(task);
  if (found == held_.end() || found->second.opinions.empty()) {
    return {Verdict::Say::kNone, {}, "there is no worker whose measurement could count"};
  }
  Held held = std::move(found->second);
  held_.erase(found);
  if (held.opinions.size() > 1) {
    const bool all_agree = std::all_of(held.opinions.begin(), held.opinions.end(), [&](const Opinion& other) {
      return Difference(held.opinions[0], other).empty();
    });
    if (all_agree) return Confirm(held.kind, std::move(held.opinions));
    return {Verdict::Say::kNone, {}, "workers contradict each other, and no other can be asked"};
  }
  Verdict verdict;
  Stamp(held.kind, Standing::kSingleSource, &held.opinions[0]);
  verdict.taken = std::move(held.opinions);
  return verdict;
}

std::vector<std::string> Judge::Waiting() const {
  std::vector<std::string> tasks;
  for (const auto& [task, held] : held_) tasks.push_back(task);
  for (const auto& [task, sources] : doubted_) {
    if (held_.count(task) == 0) tasks.push_back(task);
  }
  return tasks;
}

void Judge::Expel(const std::string& source) {
  records_.erase(source);
  for (auto& [task, sources] : doubted_) sources.erase(source);
  for (auto& [task, held] : held_) {
    std::erase_if(held.opinions, [&](const Opinion& opinion) { return opinion.source == source; });
  }
}

void Judge::Pardon(const std::string& source) {
  records_.erase(source);
  for (auto& [name, kind] : kinds_) kind.times.clear(), kind.canary.clear(), kind.believed = false;
}

std::string Judge::InWords(const std::string& source) const {
  if (source.empty()) return "believed";
  const auto found = records_.find(source);
  if (found == records_.end()) return "new";
  const Record& record = found->second;
  return absl::StrCat(record.batches, " batches, ", record.confirmed, " confirmed by others, ", record.caught,
                      " caught", record.last.empty() ? "" : absl::StrCat(", at last: ", record.last));
}

}  // namespace fusion
