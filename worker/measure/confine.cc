#include "worker/measure/confine.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

namespace fusion {

void Confine(int64_t most_data_bytes) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const auto limit = [](int resource, rlim_t value) {
    const struct rlimit bound = {value, value};
    setrlimit(static_cast<__rlimit_resource>(resource), &bound);
  };
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, rlim_t{1} << 30);  // kernels are loaded from a file in memory
  limit(RLIMIT_CPU, 600);
  limit(RLIMIT_DATA, static_cast<rlim_t>(most_data_bytes));
}

}  // namespace fusion
