// Says which of several devices a job is for.
#ifndef FUSION_SERVER_JOBS_DEVICE_CHOICE_H_
#define FUSION_SERVER_JOBS_DEVICE_CHOICE_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/scheduler/attached_worker.h"
#include "server/scheduler/device_wish.h"

namespace fusion {

// "" unless there are others that fit the wish; `others` are their names.
inline std::string ChoiceInWords(const DeviceWish& wish, const AttachedWorker& chosen,
                                 const std::vector<std::string>& others) {
  if (others.empty()) return "";
  return absl::StrCat("several devices fit '", wish.InWords(), "': planned for ", chosen.device.name, " (",
                      chosen.fingerprint.substr(0, 8), "), not for ", absl::StrJoin(others, ", "),
                      "; --require names one");
}

}  // namespace fusion

#endif  // FUSION_SERVER_JOBS_DEVICE_CHOICE_H_
