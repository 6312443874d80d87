#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/words.h"
#include "client/verbs/top_frame.h"
#include "client/verbs/verbs.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr int kMostJobs = 200, kFinished = 10;

class TopVerb : public Verb {
 public:
  std::string name() const override { return "top"; }
  std::string help() const override { return "the live farm: workers, and jobs with what they are doing"; }
  std::vector<Option> Options() override {
    return {{"--interval", "seconds between two pictures", &interval_s_},
            {"--once", "print one picture and end; also where stdout is no terminal", &once_}};
  }
  int Run(const CommonOptions& common) override {
    if (interval_s_ < 1) return Fail(UsageError(absl::StrCat("--interval ", interval_s_, ": at least 1")));
    const auto connection = Connection::Open(common.endpoint);
    const bool live = !once_ && isatty(STDOUT_FILENO) != 0;
    while (true) {
      const auto picture = Look(*connection);
      if (!picture.ok() && !(live && absl::IsUnavailable(picture.status()))) return Fail(picture.status());
      const std::string frame =
          picture.ok() ? TopFrame(*picture, kFinished) : absl::StrCat(picture.status().message(), "; trying again\n");
      std::printf("%s%s", live ? "\033[H\033[2J" : "", frame.c_str());
      std::fflush(stdout);
      if (!live) return kExitOk;
      absl::SleepFor(absl::Seconds(interval_s_));
    }
  }

 private:
  static absl::StatusOr<FarmPicture> Look(Connection& connection) {
    FarmPicture picture;
    picture.address = connection.address();
    ASSIGN_OR_RETURN(picture.workers, connection.ListWorkers());
    ASSIGN_OR_RETURN(picture.jobs, connection.ListJobs(kMostJobs));
    for (const v1::Job& job : picture.jobs.jobs()) {
      if (job.state() != v1::RUNNING || job.last_seq() == 0) continue;
      // A job that cannot be watched, since it was removed meanwhile, is shown without its stage.
      (void)connection.Watch(job.job_id(), job.last_seq() - 1, [&](const v1::JobEvent& event) {
        picture.last_event[job.job_id()] = event;
        return false;
      });
    }
    picture.now_ms = absl::ToUnixMillis(absl::Now());
    return picture;
  }

  int64_t interval_s_ = 2;
  bool once_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeTopVerb() { return std::make_unique<TopVerb>(); }

}  // namespace fusion
