// Tuning: choices that only a measurement settles. Today one choice, the register tile's shape; the search is
// exhaustive over the few that the port model leaves (compiler/schedule/register_tile.h), and the measurer is the
// latency oracle, so every trial is remembered in the profile database and shared.
#ifndef FUSION_COMPILER_TUNE_TUNE_H_
#define FUSION_COMPILER_TUNE_TUNE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "compiler/cost/latency_oracle.h"

namespace fusion::tune {

// Variants beyond the model's choice that a kernel is tried with.
inline constexpr int kMaxVariants = 2;
// A kernel with less than this share of the estimated time is not worth trials.
inline constexpr double kWorthwhileShare = 0.02;
// A measured variant must beat the model's choice by this much: medians of separate runs differ by about as much.
inline constexpr double kMargin = 0.05;

// Index of the variant to take, 0 being the model's choice. Only measured answers (or remembered measurements) can win.
int PickVariant(absl::Span<const LatencyAnswer> answers);

// Is a kernel with this estimate worth trials, beside a total of `total_ns`?
bool WorthTuning(double latency_ns, double total_ns);

}  // namespace fusion::tune

#endif  // FUSION_COMPILER_TUNE_TUNE_H_
