#include "server/jobs/job_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace fusion {
namespace {

using ::testing::HasSubstr;

const std::vector<std::string>& Planners() {
  static const auto* const planners = new std::vector<std::string>{"auto", "none", "dnnfusion"};
  return *planners;
}

std::string PlannerOf(const v1::CompileOptionsProto& proto, const std::vector<std::string>& planners = Planners()) {
  const auto options = OptionsFromProto(proto, planners);
  EXPECT_TRUE(options.ok()) << options.status();
  return options.ok() ? options->planner : "";
}

TEST(OptionsFromProto, WholePlansAreComparedWhereAWorkerMeasuresThem) {
  v1::CompileOptionsProto proto;
  EXPECT_EQ(PlannerOf(proto), "auto");
  proto.set_tune("full");
  EXPECT_EQ(PlannerOf(proto), "auto");
  proto.set_tune("off");
  EXPECT_EQ(PlannerOf(proto), "dnnfusion");
  proto.clear_tune();
  for (const char* target : {"opencl", "cuda:sm_90", "dsa"}) {
    proto.set_target(target);
    EXPECT_EQ(PlannerOf(proto), "dnnfusion") << target;
  }
  proto.set_target("cpu");
  EXPECT_EQ(PlannerOf(proto), "auto");
  EXPECT_EQ(PlannerOf(proto, {"dnnfusion", "none"}), "dnnfusion") << "a compiler without it";
}

TEST(OptionsFromProto, TheNamedPlannerIsTaken) {
  v1::CompileOptionsProto proto;
  proto.set_planner("none");
  EXPECT_EQ(PlannerOf(proto), "none");
  proto.set_planner("auto");
  proto.set_target("opencl");
  EXPECT_EQ(PlannerOf(proto), "auto");
  proto.set_planner("nonesuch");
  EXPECT_THAT(std::string(OptionsFromProto(proto, Planners()).status().message()),
              HasSubstr("planner 'nonesuch' is unknown; there are auto, none, dnnfusion"));
}

}  // namespace
}  // namespace fusion
