// The runs of whole models in fusion-measure. Each function returns a JSON object in the form of its message in
// proto/checks.proto (ModelMeasurement, ModelVerification) or proto/worker.proto (PlanMeasurement), for the worker that
// started the process.
#ifndef FUSION_WORKER_MEASURE_MODEL_RUNS_H_
#define FUSION_WORKER_MEASURE_MODEL_RUNS_H_

#include <string>

#include "absl/status/statusor.h"

namespace fusion {

// Times a bundle and its unfused form in turns (runtime/loader/paired_runs.h), on inputs drawn from a seed, for some
// two seconds; slow models for a few runs. Where there are several specialisations, the first is run. On a simulated
// device the times are the device's, and the result says "simulated" in place of a specialisation.
absl::StatusOr<std::string> TimeModels(const std::string& bundle, const std::string& unfused, int threads);

// Times the programs of a bundle in turns, on inputs drawn from a seed: they are plans of one model. Ends when the 95%
// confidence interval of each ratio to the first is within half a percent of it, or after a time that follows the
// latencies: some four seconds for fast models, at most half a minute.
absl::StatusOr<std::string> TimePlans(const std::string& bundle, int threads);

// Judges the outputs of each of the bundle's specialisations by those of the reference (runtime/verdict/judge.h), on
// inputs drawn from a seed. A bundle that fails where the reference runs is wrong; where the reference fails too,
// nothing was compared. Fails if a file is no bundle that this machine can run.
absl::StatusOr<std::string> VerifyModel(const std::string& bundle, const std::string& reference, int threads);

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_MODEL_RUNS_H_
