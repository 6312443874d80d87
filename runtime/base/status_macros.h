// RETURN_IF_ERROR / ASSIGN_OR_RETURN: early return of a failed absl::Status or absl::StatusOr.
#ifndef FUSION_RUNTIME_BASE_STATUS_MACROS_H_
#define FUSION_RUNTIME_BASE_STATUS_MACROS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#define FUSION_MACRO_CONCAT_INNER(a, b) a##b
#define FUSION_MACRO_CONCAT(a, b) FUSION_MACRO_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                      \
  do {                                             \
    absl::Status fusion_status = (expr);           \
    if (!fusion_status.ok()) return fusion_status; \
  } while (0)

#define ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                          \
  if (!tmp.ok()) return tmp.status();         \
  lhs = std::move(tmp).value()

#define ASSIGN_OR_RETURN(lhs, expr) ASSIGN_OR_RETURN_IMPL(FUSION_MACRO_CONCAT(fusion_sor_, __LINE__), lhs, expr)

namespace fusion {

// Returns the same status with `context: ` in front of its message; OK stays OK. Each layer adds its context once.
inline absl::Status Annotate(const absl::Status& status, const std::string& context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(context, ": ", status.message()));
}

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_STATUS_MACROS_H_
