#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <vector>

#include "runtime/loader/fusion_runtime.h"

namespace {

using ::testing::HasSubstr;

class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/c_api_" + std::to_string(getpid()) + ".fusion";
    ASSERT_EQ(system(("\"" FUSION_MAKE_TINY_BUNDLE "\" " + path_).c_str()), 0);
  }
  void TearDown() override { unlink(path_.c_str()); }
  std::string path_;
};

TEST_F(CApiTest, DescribesAndRuns) {
  fusion_bundle* bundle = nullptr;
  ASSERT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(fusion_bundle_input_count(bundle), 1u);
  EXPECT_STREQ(fusion_bundle_input_name(bundle, 0), "x");
  EXPECT_EQ(fusion_bundle_input_dtype(bundle, 0), FUSION_F32);
  ASSERT_EQ(fusion_bundle_input_rank(bundle, 0), 2);
  EXPECT_EQ(fusion_bundle_input_shape(bundle, 0)[1], 8);
  EXPECT_EQ(fusion_bundle_input_bytes(bundle, 0), 2048u);
  EXPECT_EQ(fusion_bundle_output_count(bundle), 2u);
  EXPECT_STREQ(fusion_bundle_output_name(bundle, 1), "w");
  EXPECT_EQ(fusion_bundle_output_rank(bundle, 1), 1);
  EXPECT_EQ(fusion_bundle_output_bytes(bundle, 1), 32u);
  EXPECT_EQ(fusion_bundle_output_name(bundle, 2), nullptr);
  EXPECT_EQ(fusion_bundle_launch_count(bundle), 2u);
  EXPECT_STREQ(fusion_bundle_launch_label(bundle, 1), "relu");
  EXPECT_EQ(fusion_bundle_launch_label(bundle, 2), nullptr);
  EXPECT_THAT(fusion_bundle_describe(bundle), HasSubstr("\"launches\""));

  fusion_session* session = nullptr;
  ASSERT_EQ(fusion_session_create(bundle, 2, &session), FUSION_OK) << fusion_last_error();
  fusion_bundle_close(bundle);
  std::vector<float> x(513, 2.0f), y(512), w(8);
  const void* inputs[] = {x.data() + 1};
  void* outputs[] = {y.data(), w.data()};
  EXPECT_EQ(fusion_session_latency_ns(session, 0), -1);
  fusion_session_set_profiling(session, 1);
  ASSERT_EQ(fusion_run(session, inputs, outputs), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(y[511], 15.0f);
  EXPECT_EQ(w[7], 8.0f);
  EXPECT_GT(fusion_session_latency_ns(session, 1), 0);
  EXPECT_EQ(fusion_session_latency_ns(session, 2), -1);
  EXPECT_EQ(fusion_session_input(session, 1), nullptr);
  outputs[0] = nullptr;
  EXPECT_EQ(fusion_run(session, inputs, outputs), FUSION_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_last_error(), HasSubstr("output 'y'"));
  EXPECT_EQ(fusion_run(session, nullptr, outputs), FUSION_INVALID_ARGUMENT);
  fusion_session_close(session);
}

TEST_F(CApiTest, RunsNothingThatIsNotSignedIfAKeyIsRequired) {
  const std::string keys = path_ + ".pem";
  FILE* file = fopen(keys.c_str(), "w");
  fputs(
      "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAdLc8nRVkqv/+Lx0KUIEFH3Pb5cyv+A4ytHfSHceJR9k=\n-----END PUBLIC KEY-----\n",
      file);
  fclose(file);
  fusion_bundle* bundle = nullptr;
  EXPECT_EQ(fusion_bundle_open_signed(path_.c_str(), keys.c_str(), &bundle), FUSION_PERMISSION_DENIED);
  EXPECT_THAT(fusion_last_error(), HasSubstr("is not signed"));
  EXPECT_EQ(fusion_bundle_open_signed(path_.c_str(), (keys + ".none").c_str(), &bundle), FUSION_NOT_FOUND);
  EXPECT_EQ(fusion_bundle_open_signed(path_.c_str(), nullptr, &bundle), FUSION_INVALID_ARGUMENT);
  setenv("FUSION_REQUIRE_KEY", keys.c_str(), 1);
  EXPECT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_PERMISSION_DENIED);
  setenv("FUSION_REQUIRE_KEY", "/no/such/keys.pem", 1);
  EXPECT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_NOT_FOUND) << "a key that is not there is no permission";
  unsetenv("FUSION_REQUIRE_KEY");
  EXPECT_EQ(bundle, nullptr);
  ASSERT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_OK) << fusion_last_error();
  fusion_bundle_close(bundle);
  unlink(keys.c_str());
}

TEST_F(CApiTest, ShapesThatDependOnData) {
  ASSERT_EQ(system(("\"" FUSION_MAKE_TINY_BUNDLE "\" " + path_ + " dynamic").c_str()), 0);
  fusion_bundle* bundle = nullptr;
  ASSERT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(fusion_bundle_output_shape(bundle, 0)[1], 8);  // an upper bound
  fusion_session* session = nullptr;
  ASSERT_EQ(fusion_session_create(bundle, 1, &session), FUSION_OK) << fusion_last_error();
  fusion_bundle_close(bundle);
  int64_t shape[2] = {};
  ASSERT_EQ(fusion_session_output_shape(session, 0, shape), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(shape[1], 8);
  std::vector<float> x(512, 2.0f), y(512), w(8);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data(), w.data()};
  ASSERT_EQ(fusion_run(session, inputs, outputs), FUSION_OK) << fusion_last_error();
  ASSERT_EQ(fusion_session_output_shape(session, 0, shape), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(shape[0], 64);
  EXPECT_EQ(shape[1], 3);
  EXPECT_THAT(std::vector<float>(y.begin(), y.begin() + 6), ::testing::ElementsAre(1, 3, 5, 1, 3, 5));
  EXPECT_EQ(fusion_session_output_shape(session, 2, shape), FUSION_INVALID_ARGUMENT);
  EXPECT_EQ(fusion_session_output_shape(session, 0, nullptr), FUSION_INVALID_ARGUMENT);
  fusion_session_close(session);
}

TEST_F(CApiTest, Specialisations) {
  ASSERT_EQ(system(("\"" FUSION_MAKE_TINY_BUNDLE "\" " + path_ + " specialised").c_str()), 0);
  fusion_bundle* bundle = nullptr;
  ASSERT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_OK) << fusion_last_error();
  ASSERT_EQ(fusion_bundle_specialisation_count(bundle), 2u);
  EXPECT_STREQ(fusion_bundle_specialisation_name(bundle, 1), "rows=16");
  EXPECT_EQ(fusion_bundle_specialisation_name(bundle, 2), nullptr);
  fusion_session* session = nullptr;
  ASSERT_EQ(fusion_session_create(bundle, 1, &session), FUSION_OK) << fusion_last_error();
  fusion_bundle_close(bundle);
  EXPECT_EQ(fusion_session_specialisation(session), 0u);
  EXPECT_EQ(fusion_session_input_bytes(session, 0), 2048u);

  const int64_t sixteen[] = {16, 8}, twenty[] = {20, 8};
  const int64_t* shapes[] = {sixteen};
  ASSERT_EQ(fusion_session_select(session, shapes), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(fusion_session_specialisation(session), 1u);
  EXPECT_EQ(fusion_session_input_bytes(session, 0), 512u);
  EXPECT_EQ(fusion_session_output_bytes(session, 0), 512u);
  std::vector<float> x(128, 2.0f), y(128), w(8);
  const void* inputs[] = {x.data()};
  void* outputs[] = {y.data(), w.data()};
  ASSERT_EQ(fusion_run(session, inputs, outputs), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(y[127], 15.0f);

  shapes[0] = twenty;
  EXPECT_EQ(fusion_session_select(session, shapes), FUSION_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_last_error(), HasSubstr("built for rows=64, 16"));
  EXPECT_EQ(fusion_session_specialisation(session), 1u);
  EXPECT_EQ(fusion_session_select(session, nullptr), FUSION_INVALID_ARGUMENT);
  fusion_session_close(session);
}

TEST_F(CApiTest, PoolsOfTheCaller) {
  fusion_bundle* bundle = nullptr;
  ASSERT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_OK) << fusion_last_error();
  fusion_pool* pool = nullptr;
  ASSERT_EQ(fusion_pool_create(2, &pool), FUSION_OK) << fusion_last_error();
  fusion_session *all = nullptr, *one = nullptr, *three = nullptr;
  ASSERT_EQ(fusion_session_create_on(bundle, pool, 0, &all), FUSION_OK) << fusion_last_error();
  ASSERT_EQ(fusion_session_create_on(bundle, pool, 1, &one), FUSION_OK) << fusion_last_error();
  EXPECT_EQ(fusion_session_create_on(bundle, pool, 3, &three), FUSION_INVALID_ARGUMENT);
  EXPECT_THAT(fusion_last_error(), HasSubstr("the pool has 2 threads"));
  ASSERT_EQ(fusion_session_create_on(bundle, nullptr, 3, &three), FUSION_OK) << fusion_last_error();
  fusion_pool_close(pool);
  fusion_bundle_close(bundle);
  for (fusion_session* session : {all, one, three}) {
    std::vector<float> x(512, 2.0f), y(512), w(8);
    const void* inputs[] = {x.data()};
    void* outputs[] = {y.data(), w.data()};
    ASSERT_EQ(fusion_run(session, inputs, outputs), FUSION_OK) << fusion_last_error();
    EXPECT_EQ(y[511], 15.0f);
    fusion_session_close(session);
  }
  EXPECT_EQ(fusion_pool_create(0, &pool), FUSION_INVALID_ARGUMENT);
  EXPECT_EQ(pool, nullptr);
  EXPECT_EQ(fusion_pool_create(1, nullptr), FUSION_INVALID_ARGUMENT);
  fusion_pool_close(nullptr);
}

TEST_F(CApiTest, FailuresHaveWords) {
  fusion_bundle* bundle = nullptr;
  EXPECT_EQ(fusion_bundle_open("/no/such/file", &bundle), FUSION_NOT_FOUND);
  EXPECT_EQ(bundle, nullptr);
  EXPECT_THAT(fusion_last_error(), HasSubstr("/no/such/file"));
  EXPECT_EQ(fusion_bundle_open(nullptr, &bundle), FUSION_INVALID_ARGUMENT);
  ASSERT_EQ(truncate(path_.c_str(), 500), 0);
  EXPECT_EQ(fusion_bundle_open(path_.c_str(), &bundle), FUSION_DATA_LOSS);
  fusion_session* session = nullptr;
  EXPECT_EQ(fusion_session_create(nullptr, 1, &session), FUSION_INVALID_ARGUMENT);
  fusion_bundle_close(nullptr);
  fusion_session_close(nullptr);
}

}  // namespace
