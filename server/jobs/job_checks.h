// The checks of a finished bundle: a worker times the whole model beside its unfused form, and compares it with its
// strict reference (docs/decisions/0031-checks-of-finished-bundles.md). They never fail a job: what could not be done
// is said in words.
#ifndef FUSION_SERVER_JOBS_JOB_CHECKS_H_
#define FUSION_SERVER_JOBS_JOB_CHECKS_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "compiler/pipeline/compile.h"
#include "db/stores/store.h"
#include "proto/compile.pb.h"
#include "server/scheduler/farm_tasks.h"

namespace fusion {

// The options of the same model's unfused form: a kernel for each operator, with the schedules that the cost model
// chooses, since tuning it would cost as much as the job.
CompileOptions UnfusedForm(CompileOptions options);

// The checks that `request` asks for and that `known` (serialised v1.Checks) does not hold.
struct MissingChecks {
  bool measure = false, verify = false;
  bool any() const { return measure || verify; }
};
MissingChecks MissingFrom(const std::string& known, const v1::SubmitRequest& request);

// Returns the known checks that `request` asks for. Those that are missing say `reason`.
v1::Checks ChecksFor(const v1::SubmitRequest& request, const std::string& known, const std::string& reason);

// Says that no attached worker has this device.
std::string NoWorkerFor(const DeviceModel& device);

struct JobChecks {
  using CompileFunction = std::function<absl::StatusOr<CompileAccount>(
      const ModelFiles&, const CompileOptions&, const CompileContext&, const std::string& bundle_path)>;

  const FarmJob& farm_job;  // its `cancelled` and `progress` are those of the checks, too
  CompileFunction compile;  // makes the other form
  std::function<bool()> cancelled;
  const ModelFiles& files;
  const CompileOptions& options;
  std::string folder;  // for the other form, which is not kept
  const ResultRow& result;

  // Does what is missing and adds the answers to `checks`. Answers that another attempt would not change are also added
  // to `lasting`. Fails with CANCELLED, or with UNAVAILABLE at a shutdown.
  absl::Status Run(const MissingChecks& missing, v1::Checks* checks, v1::Checks* lasting) const;

 private:
  absl::StatusOr<v1::ModelMeasurement> Measure(bool* lasts) const;
  absl::StatusOr<v1::ModelVerification> Verify(bool* lasts) const;

  // The other form of the model and what a worker found by running the bundle and it. `not_done` is why there is no
  // result: no worker, another form that does not compile, or a process that crashed.
  struct Found {
    v1::MeasureResults results;
    std::string not_done;
    bool crashed = false;  // on every attempt
    CompileAccount other;
    std::string other_digest, worker, source;
  };
  // `other_device`: what the other form is compiled for; a worker with the job's device can run it.
  absl::StatusOr<Found> RunBeside(const CompileOptions& other, const DeviceModel& other_device,
                                  const std::string& stage, const std::string& name) const;
};

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_JOB_CHECKS_H_
