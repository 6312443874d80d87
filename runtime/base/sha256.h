// SHA-256, the only digest that the project uses: for blobs, bundles and keys. It is always printed as 64 lower-case
// hex digits.
#ifndef FUSION_RUNTIME_BASE_SHA256_H_
#define FUSION_RUNTIME_BASE_SHA256_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace fusion {

std::string Sha256Hex(absl::string_view bytes);

// The incremental form, for files that are too large to read into memory at once.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;
  void Update(absl::string_view bytes);
  std::string FinishHex();  // call it once

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fusion

#endif  // FUSION_RUNTIME_BASE_SHA256_H_
