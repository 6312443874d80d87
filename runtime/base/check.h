// FUSION_CHECK: for the impossible (our own bugs), never for input.
#ifndef FUSION_RUNTIME_BASE_CHECK_H_
#define FUSION_RUNTIME_BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

// Aborts with file, line and `message` (a C string) when `condition` is false.
#define FUSION_CHECK(condition, message)                                                              \
  do {                                                                                                \
    if (!(condition)) {                                                                               \
      std::fprintf(stderr, "%s:%d: check failed: %s: %s\n", __FILE__, __LINE__, #condition, message); \
      std::abort();                                                                                   \
    }                                                                                                 \
  } while (0)

#endif  // FUSION_RUNTIME_BASE_CHECK_H_
