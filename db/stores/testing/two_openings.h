// One database that two processes have opened, which may die.
#ifndef FUSION_DB_STORES_TESTING_TWO_OPENINGS_H_
#define FUSION_DB_STORES_TESTING_TWO_OPENINGS_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "db/stores/store.h"

namespace fusion::testing {

class TwoOpenings {
 public:
  explicit TwoOpenings(SteadyClock clock) : clock_(std::move(clock)), path_(NewPath()) { Open(); }
  ~TwoOpenings() { Remove(); }
  TwoOpenings(const TwoOpenings&) = delete;
  TwoOpenings& operator=(const TwoOpenings&) = delete;

  Store& of(int process) { return *stores_[process]; }
  // Both processes die: their files are as they are in this moment.
  void Crash() {
    const std::string before = path_;
    path_ = NewPath();
    for (const char* suffix : {"", "-wal"}) {
      std::error_code none_yet;
      std::filesystem::copy_file(before + suffix, path_ + suffix, none_yet);
    }
    const std::string after = std::exchange(path_, before);
    Remove();
    path_ = after;
    Open();
  }

 private:
  static std::string NewPath() {
    static int count = 0;
    return absl::StrCat(::testing::TempDir(), "openings-", getpid(), "-", count++);
  }
  void Open() {
    for (auto& store : stores_) {
      SqliteStoreOptions options;
      options.clock = clock_;
      store = OpenSqliteStore(path_, std::move(options)).value();
    }
  }
  void Remove() {
    for (auto& store : stores_) store.reset();
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  }

  const SteadyClock clock_;
  std::string path_;
  std::unique_ptr<Store> stores_[2];
};

}  // namespace fusion::testing

#endif  // FUSION_DB_STORES_TESTING_TWO_OPENINGS_H_
