// Judge: decides whether measurements count that come from workers which are not believed. It is a pure state machine
// without thread, clock or store; the caller locks. docs/decisions/0060 has the reasons.
//
// A source is whoever answers for a worker: the name of its token. A batch is the result of one task. Its rows are
// nowhere but here until the judge takes them:
// - A batch is refused whose sentinel, a short kernel that runs with each batch, takes another time or computes other
//   numbers than in the hands of sources that agreed, or whose samples were sent before.
// - A batch needs a second opinion, by another source, if its source is new or was caught, gives no sentinel, or if the
//   batch is remarkable, an outlier, or drawn by lot. Batches of two sources that agree are confirmed; whoever then
//   differs is caught. A worker that is believed decides alone.
// - Where nobody else is left to ask, one opinion counts as of a single source; several that differ count for nothing.
// A source that is caught three times without a confirmed batch between is to be quarantined.
#ifndef FUSION_SERVER_SCHEDULER_JUDGE_H_
#define FUSION_SERVER_SCHEDULER_JUDGE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/scheduler/testimony.h"

namespace fusion {

// One batch.
struct Opinion {
  std::string source;  // "": of a worker that is believed
  std::string worker;  // its id
  Accepted accepted;
  std::string result;       // the bytes that it sent
  bool remarkable = false;  // a row is the fastest of its workload so far
};

struct Verdict {
  enum class Say {
    kTake,    // the opinions in `taken` count, and the task is done
    kAgain,   // another source has to measure it as well
    kRefuse,  // the opinion is gone; another source has to measure it
    kRetry,   // the opinion is gone; the same source may try again, for there is no other
    kNone,    // the opinions contradict each other, and nobody is left to ask
  };
  Say say = Say::kTake;
  std::vector<Opinion> taken = {};  // the latest is last; their rows have sources and standings
  std::string why = {};             // for people
};

// A source that is to be quarantined.
struct DueQuarantine {
  std::string source, cause, reason;  // cause: the label of a metric; reason: for people
};

class Judge {
 public:
  static constexpr int kStrikes = 3;         // of a source that is to be quarantined
  static constexpr int kConfirmedFirst = 3;  // batches in a row before those of a source are checked by lot only
  static constexpr double kSameSentinel = 1.4, kSameTime = 1.5, kSameRatio = 1.15;  // as factors
  static constexpr double kLot = 1.0 / 16;
  // A sentinel runs for at least and at most so long (ns), and its bundle is at most so large.
  static constexpr double kShortestSentinel = 1e4, kLongestSentinel = 5e6;
  static constexpr size_t kLargestSentinel = 256 << 10;

  // `draw` decides by lot, with chance kLot, that a batch needs a second opinion. A source must not foresee it.
  explicit Judge(std::function<bool()> draw) : draw_(std::move(draw)) {}

  // `kind`: batches of the same device and number of threads share a sentinel. `another`: a source that has not yet
  // been heard on this task could measure it.
  Verdict Hear(const std::string& task, const std::string& kind, Opinion opinion, bool another);
  // For a task that waits and that no other source can measure any more.
  Verdict Settle(const std::string& task);
  std::vector<std::string> Waiting() const;  // tasks that were heard, also before a restart, and not decided
  bool HasHeard(const std::string& task) const { return held_.count(task) > 0; }  // since the restart
  void Forget(const std::string& task);
  // The source failed three tasks in a row that others then did.
  void Fails(const std::string& source, const std::string& reason);
  // The source is quarantined: its opinions are gone.
  void Expel(const std::string& source);
  // The source was released: it is new, and what the sentinels take and compute is found out again.
  void Pardon(const std::string& source);

  // Another judge learns what is known of each source: Restore takes what an earlier one's TakeChanged gave. A task on
  // which the source was heard and which is undecided needs a second opinion then, too. Opinions themselves, the
  // samples that were sent, and what sentinels take and compute are not kept. TakeChanged returns what has changed
  // since its last call.
  void Restore(const SourceRow& row);
  bool Knows(const std::string& source) const { return records_.count(source) > 0; }
  std::vector<SourceRow> TakeChanged();

  // Sources of imported rows are known from Restore. One is doubted until rows of it were measured again by workers
  // here: kConfirmedFirst in a row that agree, or kStrikes that differ, for which it is to be quarantined.
  bool DoubtsImport(const std::string& source) const;
  std::set<std::string> DoubtedImports() const;
  // How many of its rows agreed in a row.
  int ConfirmedInARow(const std::string& source) const;
  int Strikes(const std::string& source) const;
  // `imported` and `measured`: of the same thing, which differ by at most `tolerance` as a factor where they agree.
  // `may_strike`: a difference counts towards a quarantine; else the source is doubted on. Returns the quarantine that
  // is due.
  std::optional<DueQuarantine> CompareImport(const std::string& source, const std::string& description, double imported,
                                             double measured, double tolerance, bool may_strike);
  // Somebody vouches for a source of imported rows that is known.
  void Believe(const std::string& source);

  // Returns the bundle of the sentinel; "": there is none yet.
  const std::string& SentinelOf(const std::string& kind) { return kinds_[kind].sentinel; }
  // Returns the sources that have become due since the last call.
  std::vector<DueQuarantine> TakeQuarantines() { return std::exchange(quarantines_, {}); }
  void TryAgain(DueQuarantine due) { quarantines_.push_back(std::move(due)); }
  // Says in words what is known of a source.
  std::string InWords(const std::string& source) const;

 private:
  struct Kind {
    std::string sentinel;
    std::deque<double> times;  // of the sentinel, by sources that agreed
    Canary canary;
    bool believed = false;          // by a worker that is believed
    std::deque<double> log_ratios;  // measured over estimated
  };
  struct Record {
    int strikes = 0;   // since the last confirmed batch
    int in_a_row = 0;  // confirmed batches since the last strike
    int64_t batches = 0, confirmed = 0, caught = 0;
    std::string last;                                       // why it was caught
    std::map<std::string, std::deque<double>> sentinel_ns;  // by kind; while it was alone
    std::deque<std::string> samples;                        // digests of its last batches
  };
  struct Held {
    std::string kind;
    std::vector<Opinion> opinions;
  };

  Verdict Weigh(const std::string& task, const std::string& kind, Opinion opinion, bool another);
  // Notes that everybody who was heard on the task changes.
  void Touch(const std::string& task);
  void Strike(const std::string& source, const std::string& cause, const std::string& why);
  // Why the batch cannot be right ("": it can), and the label for that.
  std::pair<std::string, std::string> Fault(const Kind& kind, Record& record, const Testimony& said);
  bool NeedsSecondOpinion(const Kind& kind, const Record& record, const Opinion& opinion);
  // Is its sentinel as in its own earlier batches?
  bool IsLikeBefore(const std::string& kind, Record* record, const Testimony& said);
  // `agreed` count as confirmed, or as believed where their source is.
  Verdict Confirm(const std::string& kind, std::vector<Opinion> agreed);
  void TakeReference(Kind* kind, const Opinion& opinion);
  void Stamp(const std::string& kind, Standing standing, Opinion* opinion);

  const std::function<bool()> draw_;
  std::map<std::string, Kind> kinds_;
  std::map<std::string, Record> records_;                 // by source
  std::map<std::string, Held> held_;                      // by task
  std::map<std::string, std::set<std::string>> doubted_;  // from before a restart: sources, by task
  std::set<std::string> changed_;                         // sources
  std::vector<DueQuarantine> quarantines_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_JUDGE_H_
