// StoreConformance: what every Store must do. The cases are in the *_conformance_test.cc, one file for each group of
// tables. A new engine adds its factory to the list in store_conformance_test.cc.
#ifndef FUSION_DB_STORES_STORE_CONFORMANCE_TEST_H_
#define FUSION_DB_STORES_STORE_CONFORMANCE_TEST_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/stores/store.h"
#include "db/stores/testing/add_rows.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {

using StoreFactory = std::unique_ptr<Store> (*)();

class StoreConformance : public ::testing::TestWithParam<StoreFactory> {
 protected:
  static constexpr int64_t kRefused = -1;

  static JobRow MakeJob(const std::string& id, const std::string& key) {
    JobRow job;
    job.id = id, job.key = key, job.model_name = "m", job.target = "cpu", job.client_id = "me";
    job.request = std::string("\0bin", 4);
    job.created_ms = 5;
    return job;
  }
  std::optional<JobRow> Claim(const std::string& job) {
    return store_->ClaimJob(job, "me", absl::Seconds(30), 6).value();
  }
  absl::Status AddRows(AcceptedRows accepted) { return testing::AddRows(*store_, std::move(accepted)); }
  // For each call the fence of the new claim, 0 without one, or kRefused.
  std::vector<int64_t> Call(std::vector<TaskCall> calls) {
    std::vector<int64_t> fences;
    const std::vector<TaskAnswer> answers = store_->CallTasks(calls, 1).value();
    for (const TaskAnswer& answer : answers) fences.push_back(answer.held ? answer.fence : kRefused);
    return fences;
  }

  std::unique_ptr<Store> store_ = GetParam()();
};

}  // namespace fusion

#endif  // FUSION_DB_STORES_STORE_CONFORMANCE_TEST_H_
