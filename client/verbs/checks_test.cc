#include "client/verbs/checks.h"

#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

v1::ModelMeasurement Measured() {
  v1::ModelMeasurement measured;
  for (v1::RunTimes* times : {measured.mutable_bundle(), measured.mutable_unfused()}) {
    times->set_runs(40);
    times->set_p25_ns(1.9e6);
    times->set_median_ns(2e6);
    times->set_p75_ns(2.1e6);
  }
  measured.mutable_unfused()->set_median_ns(3e6);
  measured.set_rounds(20);
  measured.set_threads(2);
  measured.set_ratio(1.5);
  measured.set_ratio_p25(1.45);
  measured.set_ratio_p75(1.55);
  return measured;
}

v1::Checks Verified(v1::OutputVerdict verdict, const std::string& not_done = "") {
  v1::Checks checks;
  v1::ModelVerification& verified = *checks.mutable_verification();
  verified.set_verdict(verdict);
  verified.set_not_done(not_done);
  verified.set_seed(1);
  verified.set_outputs_total(2);
  for (const v1::OutputVerdict one : {verdict, v1::OUTPUT_OK}) {
    v1::VerifiedOutput& output = *verified.add_outputs();
    output.set_name(one == verdict ? "logits" : "mask");
    output.set_verdict(one);
    output.set_max_rel_err(one == v1::OUTPUT_WRONG ? 0.5 : 1e-6);
    output.set_tolerance(1e-3);
  }
  return checks;
}

TEST(Checks, TheMeasurementIsOneSentence) {
  EXPECT_EQ(MeasurementInWords(Measured()),
            "2.00 ms (1.90 ms–2.10 ms), unfused and untuned 3.00 ms: 1.50× as fast, 1.45–1.55 in half of 20 rounds (2 "
            "threads)");
  v1::ModelMeasurement simulated = Measured();
  simulated.set_simulated(true);
  simulated.set_program("seq=32");
  EXPECT_THAT(MeasurementInWords(simulated), StartsWith("simulated seq=32 2.00 ms (1.90 ms–2.10 ms), unfused"));
  v1::ModelMeasurement left_out;
  left_out.set_not_done("no worker");
  EXPECT_EQ(MeasurementInWords(left_out), "no: no worker");
}

TEST(Checks, OnlyWrongNumbersAndCrashesFail) {
  EXPECT_EQ(JudgeChecks({}), kExitOk) << "nobody asked";
  EXPECT_EQ(JudgeChecks(Verified(v1::OUTPUT_OK)), kExitOk);
  EXPECT_EQ(JudgeChecks(Verified(v1::OUTPUT_NOT_COMPARED)), kExitOk) << "drawn inputs are not the user's";
  EXPECT_EQ(JudgeChecks(Verified(v1::OUTPUT_VERDICT_UNSPECIFIED, "no worker")), kExitOk);
  EXPECT_EQ(JudgeChecks(Verified(v1::OUTPUT_NOT_COMPARED, "signal 11")), kExitVerificationFailed);
  testing::internal::CaptureStderr();
  EXPECT_EQ(JudgeChecks(Verified(v1::OUTPUT_WRONG)), kExitVerificationFailed);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("NOT VERIFIED"));
  EXPECT_THAT(told, HasSubstr("'logits': relative error 0.5, tolerance 0.001"));
  EXPECT_THAT(told, testing::Not(HasSubstr("mask")));
}

TEST(Checks, WhatWasNotComparedIsNeverCalledVerified) {
  EXPECT_EQ(VerificationInWords(Verified(v1::OUTPUT_OK).verification()),
            "2 outputs, relative error 1e-06 ≤ 0.001 of the strict reference (seed 1)");
  v1::ModelVerification partly = Verified(v1::OUTPUT_OK).verification();
  partly.mutable_outputs(0)->set_why("3 of its elements are NaN or infinite on both sides");
  EXPECT_THAT(VerificationInWords(partly), HasSubstr("'logits': 3 of its elements are NaN or infinite on both sides"));
  EXPECT_THAT(VerificationInWords(Verified(v1::OUTPUT_NOT_COMPARED).verification()),
              HasSubstr("not throughout: 1 of 2 outputs not compared"));
  EXPECT_THAT(VerificationInWords(Verified(v1::OUTPUT_WRONG).verification()), HasSubstr("WRONG: 1 of 2 outputs"));
}

TEST(Checks, TheReportForScriptsTellsApartWhatWasNotAskedFor) {
  nlohmann::ordered_json report;
  AddChecks({}, &report);
  EXPECT_TRUE(report["measured"].is_null());
  EXPECT_TRUE(report["verified"].is_null());
  v1::Checks checks = Verified(v1::OUTPUT_WRONG);
  *checks.mutable_measurement() = Measured();
  AddChecks(checks, &report);
  EXPECT_EQ(report["measured"]["unfused"]["median_ms"], 3.0);
  EXPECT_EQ(report["verified"]["verdict"], "wrong");
  AddChecks(Verified(v1::OUTPUT_NOT_COMPARED, "signal 11"), &report);
  EXPECT_EQ(report["verified"]["done"], false);
  EXPECT_EQ(report["verified"]["crashed"], true);
}

}  // namespace
}  // namespace fusion
