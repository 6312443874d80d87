// One picture of a farm, as `fusionctl top` draws it.
#ifndef FUSION_CLIENT_VERBS_TOP_FRAME_H_
#define FUSION_CLIENT_VERBS_TOP_FRAME_H_

#include <cstdint>
#include <map>
#include <string>

#include "proto/compile.pb.h"
#include "proto/worker.pb.h"

namespace fusion {

struct FarmPicture {
  std::string address;
  v1::ListWorkersResponse workers;
  v1::ListJobsResponse jobs;                       // newest first
  std::map<std::string, v1::JobEvent> last_event;  // of jobs that run, by id
  int64_t now_ms = 0;                              // Unix time
};

// Returns lines of text: a summary, the workers, the jobs that wait or run (oldest first), and of the finished ones the
// newest, at most `finished`.
std::string TopFrame(const FarmPicture& picture, int finished);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_TOP_FRAME_H_
