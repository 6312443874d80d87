// Usage: make_tiny_bundle FILE [dynamic|specialised]
#include <cstdio>
#include <string>

#include "runtime/loader/testing/tiny_bundle.h"

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const std::string form = argc == 3 ? argv[2] : "";
  absl::StatusOr<std::string> shared_object = fusion::BuildSharedObject(fusion::kTinyKernelSource);
  absl::Status status = shared_object.status();
  if (status.ok()) {
    status = fusion::WriteTinyBundle(argv[1], *shared_object,
                                     form == "dynamic"       ? fusion::TinyDynamicManifest()
                                     : form == "specialised" ? fusion::TinySpecialisedManifest()
                                                             : fusion::TinyManifest());
  }
  if (!status.ok()) fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
