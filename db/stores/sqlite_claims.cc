// The part of SqliteStore that does what JobClaims says.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "db/stores/sqlite_store.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// ?1: the milliseconds of the steady clock. JobClaims::IsOver.
std::string LeaseIsOver() {
  return absl::StrCat("(lease_until_ms <= ?1 OR lease_until_ms > ?1 + ", absl::ToInt64Milliseconds(kLongestLease), ")");
}

// ?1: the job, ?2: its claimant, ?3: its fence.
constexpr char kHeld[] = "id = ?1 AND claimant = ?2 AND fence = ?3 AND claimant <> ''";

absl::Status NotHeld(const JobClaim& claim) {
  return absl::FailedPreconditionError(absl::StrCat("job ", claim.job, " does not run, or is another's"));
}

absl::Status CheckHeld(const Connection& db, const JobClaim& claim) {
  return db.changed_rows() == 1 ? absl::OkStatus() : NotHeld(claim);
}

}  // namespace

absl::StatusOr<std::optional<JobRow>> SqliteStore::ClaimJob(const std::string& id, const std::string& claimant,
                                                            absl::Duration lease, int64_t now_ms) {
  if (claimant.empty() || lease > kLongestLease) {
    return absl::InvalidArgumentError(
        absl::StrCat("a claim has a claimant, and a lease of at most ", absl::FormatDuration(kLongestLease)));
  }
  std::optional<int64_t> fence;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) {
    const absl::Time now = clock_();
    fence.reset();
    return db.Query(absl::StrCat("UPDATE jobs SET state = 2, started_ms = ?2, claimant = ?3, fence = fence + 1, "
                                 "lease_until_ms = ?4 WHERE id = ?5 AND state IN (1, 2) AND (claimant IN ('', ?3) OR ",
                                 LeaseIsOver(), ") RETURNING fence"),
                    {absl::ToUnixMillis(now), now_ms, claimant, absl::ToUnixMillis(now + lease), id},
                    [&](const SqlRow& row) { fence = row.Int(0); });
  }));
  if (!fence.has_value()) return std::optional<JobRow>();
  ASSIGN_OR_RETURN(JobRow job, GetJob(id));
  job.claimant = claimant, job.fence = *fence;
  return std::optional<JobRow>(std::move(job));
}

absl::StatusOr<std::vector<bool>> SqliteStore::RenewJobs(absl::Span<const JobClaim> claims, absl::Duration lease) {
  std::vector<bool> held;
  if (claims.empty()) return held;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    const int64_t until = absl::ToUnixMillis(clock_() + std::min(lease, kLongestLease));
    held.clear();
    for (const JobClaim& claim : claims) {
      RETURN_IF_ERROR(db.Run(absl::StrCat("UPDATE jobs SET lease_until_ms = ?4 WHERE ", kHeld),
                             {claim.job, claim.claimant, claim.fence, until}));
      held.push_back(db.changed_rows() == 1);
    }
    return absl::OkStatus();
  }));
  return held;
}

absl::Status SqliteStore::AppendJobEvent(const JobClaim& claim, const std::string& event) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    bool held = false;
    RETURN_IF_ERROR(db.Query("SELECT 1 FROM jobs WHERE id = ? AND state IN (1, 2) AND claimant = ? AND fence = ?",
                             {claim.job, claim.claimant, claim.fence}, [&](const SqlRow&) { held = true; }));
    return held ? InsertEvent(db, claim.job, event) : NotHeld(claim);
  });
}

absl::Status SqliteStore::OfferEarlyBundle(const JobClaim& claim, const ResultRow& early, const std::string& event) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(
        db.Run(absl::StrCat("UPDATE jobs SET early_digest = ?4, early_bytes = ?5, early_key = ?6 WHERE ", kHeld),
               {claim.job, claim.claimant, claim.fence, early.bundle_digest, early.bundle_bytes, early.key}));
    RETURN_IF_ERROR(CheckHeld(db, claim));
    RETURN_IF_ERROR(InsertEvent(db, claim.job, event));
    return InsertResult(db, early);
  });
}

absl::Status SqliteStore::FailJobAttempt(const JobClaim& claim, const std::string& event) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Run(absl::StrCat("UPDATE jobs SET attempts = attempts + 1 WHERE ", kHeld),
                           {claim.job, claim.claimant, claim.fence}));
    RETURN_IF_ERROR(CheckHeld(db, claim));
    return InsertEvent(db, claim.job, event);
  });
}

absl::StatusOr<std::string> SqliteStore::GiveJobKey(const JobClaim& claim, const std::string& key) {
  std::string owner;
  RETURN_IF_ERROR(writer_->Write([&](Connection& db) -> absl::Status {
    owner = claim.job;
    RETURN_IF_ERROR(db.Query("SELECT id FROM jobs WHERE key = ? AND state IN (1, 2)", {key},
                             [&](const SqlRow& row) { owner = row.Text(0); }));
    RETURN_IF_ERROR(db.Run(absl::StrCat("UPDATE jobs SET key = iif(?4, ?5, key) WHERE ", kHeld),
                           {claim.job, claim.claimant, claim.fence, int64_t{owner == claim.job}, key}));
    return CheckHeld(db, claim);
  }));
  return owner;
}

absl::Status SqliteStore::ReleaseJob(const JobClaim& claim, const std::string& event) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    RETURN_IF_ERROR(db.Run(absl::StrCat("UPDATE jobs SET state = 1, claimant = '', lease_until_ms = 0 WHERE ", kHeld),
                           {claim.job, claim.claimant, claim.fence}));
    RETURN_IF_ERROR(CheckHeld(db, claim));
    return InsertEvent(db, claim.job, event);
  });
}

absl::Status SqliteStore::ReleaseAllJobs(const std::string& event) {
  return writer_->Write([&](Connection& db) -> absl::Status {
    // "state IN (1, 2)" lets SQLite use the index of jobs in flight.
    RETURN_IF_ERROR(
        db.Run("INSERT INTO job_events (job_id, seq, event) SELECT id, (SELECT COALESCE(MAX(seq), 0) + 1 FROM "
               "job_events WHERE job_id = jobs.id), ? FROM jobs WHERE state IN (1, 2) AND state = 2",
               {Bytes{event}}));
    return db.Run("UPDATE jobs SET state = 1, claimant = '', lease_until_ms = 0 WHERE state IN (1, 2) AND state = 2");
  });
}

absl::StatusOr<std::vector<JobRow>> SqliteStore::LapsedJobs(const std::string& claimant) {
  return QueryJobs(absl::StrCat("WHERE claimant <> '' AND claimant <> ?2 AND ", LeaseIsOver()),
                   {absl::ToUnixMillis(clock_()), claimant});
}

}  // namespace fusion
