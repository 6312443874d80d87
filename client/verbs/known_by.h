// How a server knows a worker, in words.
#ifndef FUSION_CLIENT_VERBS_KNOWN_BY_H_
#define FUSION_CLIENT_VERBS_KNOWN_BY_H_

#include <string>

#include "absl/time/time.h"
#include "proto/worker.pb.h"

namespace fusion {

// "certificate 4c7k… until 2026-12-26 08:00:00", "token 4c7k…", "the socket", "nothing (--insecure)"; "" of a server
// that does not say.
std::string KnownByInWords(const v1::WorkerStatus& worker);

// Whether its certificate ends so soon that the worker should have renewed it days ago.
bool RenewalIsLate(const v1::WorkerStatus& worker, absl::Time now);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_KNOWN_BY_H_
