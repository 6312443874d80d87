// Handles Ctrl-C: a thread waits for the signal, so that no code runs in a signal handler.
#ifndef FUSION_CLIENT_CLI_INTERRUPT_H_
#define FUSION_CLIENT_CLI_INTERRUPT_H_

#include <string>

namespace fusion {

// Call it once, before any other thread exists. From then on SIGINT and SIGTERM print the notice and end the process
// with exit code 130.
void StartInterruptWatch();

// Sets the notice, for example how to continue watching a job; empty: none.
void SetInterruptNotice(const std::string& notice);

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_INTERRUPT_H_
