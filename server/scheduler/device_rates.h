// Compares the rates that two workers of one kind of device measured.
#ifndef FUSION_SERVER_SCHEDULER_DEVICE_RATES_H_
#define FUSION_SERVER_SCHEDULER_DEVICE_RATES_H_

#include <string>

#include "compiler/cost/device_model.h"

namespace fusion {

// Rates of two sound machines of a kind differ by at most this factor, though one may be busy.
inline constexpr double kSameRate = 2;

// Says in words where the rates of `one` are farther from those of `other`; "": nowhere. A rate that one of them lacks
// is not compared.
std::string RatesThatDiffer(const DeviceModel& one, const DeviceModel& other);

}  // namespace fusion

#endif  // FUSION_SERVER_SCHEDULER_DEVICE_RATES_H_
