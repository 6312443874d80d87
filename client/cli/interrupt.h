// What Ctrl-C says and does: a thread waits for the signal, so that no code runs in a handler.
#ifndef FUSION_CLIENT_CLI_INTERRUPT_H_
#define FUSION_CLIENT_CLI_INTERRUPT_H_

#include <string>

namespace fusion {

// Once, before any other thread exists. From then on SIGINT and SIGTERM print the notice and end the process with 130.
void StartInterruptWatch();

// The words, e.g. how to go on watching a job; empty: none.
void SetInterruptNotice(const std::string& notice);

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_INTERRUPT_H_
