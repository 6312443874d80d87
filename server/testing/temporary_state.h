// A database and an artifact store in a folder of their own, for tests of the parts that stand on them.
#ifndef FUSION_SERVER_TESTING_TEMPORARY_STATE_H_
#define FUSION_SERVER_TESTING_TEMPORARY_STATE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "db/stores/store.h"
#include "server/artifacts/artifact_store.h"

namespace fusion::testing {

// The folder is gone with the object.
class TemporaryState {
 public:
  explicit TemporaryState(SqliteStoreOptions options = {}) {
    static int count = 0;
    folder_ = absl::StrCat(::testing::TempDir(), "fusion_state_", getpid(), "_", count++);
    std::filesystem::create_directories(folder_);
    auto store = OpenSqliteStore(absl::StrCat(folder_, "/fusion.db"), std::move(options));
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = std::move(store).value();
    auto artifacts = ArtifactStore::Open(absl::StrCat(folder_, "/blobs"), store_.get());
    EXPECT_TRUE(artifacts.ok()) << artifacts.status();
    artifacts_ = std::move(artifacts).value();
  }
  ~TemporaryState() {
    artifacts_.reset();
    store_.reset();
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  TemporaryState(const TemporaryState&) = delete;
  TemporaryState& operator=(const TemporaryState&) = delete;

  const std::string& folder() const { return folder_; }
  Store& store() { return *store_; }
  ArtifactStore& artifacts() { return *artifacts_; }

 private:
  std::string folder_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ArtifactStore> artifacts_;
};

}  // namespace fusion::testing

#endif  // FUSION_SERVER_TESTING_TEMPORARY_STATE_H_
