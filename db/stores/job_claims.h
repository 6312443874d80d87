// JobClaims: who compiles which job, as a pure state machine. It is the specification of a Store's claims (store.h):
// job_claims_test holds SQLite's against it, and the store of the simulation is made of it.
//
// A job is queued, claimed or final. A claim has a claimant, a fence that no earlier claim of the job had, and a lease.
// While the lease lasts nobody else gets the job. Afterwards the claim still holds, until somebody else claims the job.
// A claim that was lost says nothing any more: whoever names it is refused. Attempts are compilations that died, as
// their claimants report them; that a lease ran out, or that a claimant died, is none.
//
// Times are those of the machine's steady clock, so that the processes of one machine agree about them.
#ifndef FUSION_DB_STORES_JOB_CLAIMS_H_
#define FUSION_DB_STORES_JOB_CLAIMS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "db/stores/store.h"

namespace fusion {

class JobClaims {
 public:
  struct Job {
    JobPhase state = JobPhase::kQueued;
    std::string claimant;  // "": nobody
    int64_t fence = 0;     // of the latest claim
    absl::Time lease_until;
    int attempts = 0;
  };

  // A new job, which may be final from the beginning.
  void Add(const std::string& id, JobPhase state) { jobs_[id].state = state; }
  const Job* Find(const std::string& id) const;

  // Returns the fence of the new claim; nothing for a job that is final or unknown, or that another one holds.
  std::optional<int64_t> Claim(const std::string& id, const std::string& claimant, absl::Duration lease,
                               absl::Time now);
  // Whether the job is not final, and the claim is its present one. A claim without a claimant is that of a job which
  // nobody holds.
  bool Holds(const JobClaim& claim) const;
  // The others return false and do nothing unless the claim holds, and all but Finish unless it has a claimant.
  bool Renew(const JobClaim& claim, absl::Duration lease, absl::Time now);
  bool Fail(const JobClaim& claim);  // one more attempt; the claim goes on
  bool Release(const JobClaim& claim);
  // The job becomes final.
  bool Finish(const JobClaim& claim, JobPhase state);
  // The job is final whoever holds it: nobody waits for it any more. False if it was final or is unknown.
  bool Cancel(const std::string& id);
  // Every claim ends, because every claimant is dead. Returns the jobs.
  std::vector<std::string> ReleaseAll();
  // Jobs that others than `claimant` hold, and whose leases are over.
  std::vector<std::string> Lapsed(const std::string& claimant, absl::Time now) const;

 private:
  static bool IsOver(const Job& job, absl::Time now);
  static void End(Job& job, JobPhase state);
  Job* Held(const JobClaim& claim);

  std::map<std::string, Job> jobs_;
};

}  // namespace fusion

#endif  // FUSION_DB_STORES_JOB_CLAIMS_H_
