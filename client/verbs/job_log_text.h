// A line of a job's log for people.
#ifndef FUSION_CLIENT_VERBS_JOB_LOG_TEXT_H_
#define FUSION_CLIENT_VERBS_JOB_LOG_TEXT_H_

#include <string>

#include "proto/log.pb.h"

namespace fusion {

// "04:19:16.123 info    server        started  waited_s=0.001". Holds no line break and no control character.
std::string JobLogLineInWords(const v1::LogRecord& line);

}  // namespace fusion

#endif  // FUSION_CLIENT_VERBS_JOB_LOG_TEXT_H_
