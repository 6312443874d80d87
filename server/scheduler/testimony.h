// Testimony: what a worker's result says beside its rows, so that the rows can be judged; and rows together with it.
#ifndef FUSION_SERVER_SCHEDULER_TESTIMONY_H_
#define FUSION_SERVER_SCHEDULER_TESTIMONY_H_

#include <string>
#include <utility>
#include <vector>

#include "db/stores/store.h"

namespace fusion {

// The numbers at fixed places of what a kernel computes. NaN stands for whatever is not finite. Empty: not given.
using Canary = std::vector<double>;

struct Testimony {
  std::vector<Canary> canaries;  // parallel to the measurements
  double sentinel_ns = 0;        // its shortest time; 0: not given
  Canary sentinel_canary;
  std::string samples;    // a digest of all samples, which no honest worker gives twice; "": there are too few
  std::string candidate;  // a bundle that may become the sentinel: that of the only measurement. Empty: it may not
};

// A result brings this. Rows alone convert to it.
struct Accepted {
  Accepted() = default;
  Accepted(AcceptedRows accepted) : rows(std::move(accepted)) {}  // NOLINT(google-explicit-constructor)
  AcceptedRows rows;
  Testimony testimony;
};

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_TESTIMONY_H_
