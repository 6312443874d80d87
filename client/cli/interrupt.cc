#include "client/cli/interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <thread>

#include "client/cli/exit_codes.h"

namespace fusion {
namespace {

struct Notice {
  std::mutex mutex;
  std::string text;
};

// The only shared state: a signal concerns the whole process, and so does the message about it.
Notice& TheNotice() {
  static Notice* notice = new Notice;
  return *notice;
}

}  // namespace

void StartInterruptWatch() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int signal = 0;
    sigwait(&signals, &signal);
    {
      std::lock_guard<std::mutex> lock(TheNotice().mutex);
      std::fprintf(stderr, "\ninterrupted%s%s\n", TheNotice().text.empty() ? "" : "; ", TheNotice().text.c_str());
    }
    _exit(kExitInterrupted);
  }).detach();
}

void SetInterruptNotice(const std::string& notice) {
  std::lock_guard<std::mutex> lock(TheNotice().mutex);
  TheNotice().text = notice;
}

}  // namespace fusion
