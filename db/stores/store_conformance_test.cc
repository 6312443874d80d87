#include "db/stores/store_conformance_test.h"

#include <unistd.h>

#include <filesystem>

namespace fusion {
namespace {

std::unique_ptr<Store> MakeSqlite() {
  static int counter = 0;
  const std::string path = ::testing::TempDir() + "store-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  return OpenSqliteStore(path).value();
}

INSTANTIATE_TEST_SUITE_P(Engines, StoreConformance, ::testing::Values(&MakeSqlite));

}  // namespace
}  // namespace fusion
