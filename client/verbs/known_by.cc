#include "client/verbs/known_by.h"

#include "absl/strings/str_cat.h"
#include "client/cli/words.h"

namespace fusion {
namespace {

constexpr absl::Duration kLate = absl::Hours(24 * 5);  // workers renew when a third of 30 days is left

}  // namespace

std::string KnownByInWords(const v1::WorkerStatus& worker) {
  if (worker.known_by() == "socket") return "the socket";
  if (worker.known_by() == "anybody") return "nothing (--insecure)";
  if (worker.known_by().empty()) return "";
  const std::string until =
      worker.known_until_ms() > 0 ? absl::StrCat(" until ", TimeInWords(worker.known_until_ms())) : "";
  return absl::StrCat(Printable(worker.known_by()), " ", Printable(worker.token_id()), until);
}

bool RenewalIsLate(const v1::WorkerStatus& worker, absl::Time now) {
  return worker.known_by() == "certificate" && absl::FromUnixMillis(worker.known_until_ms()) < now + kLate;
}

}  // namespace fusion
