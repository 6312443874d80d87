#include "compiler/bundle/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char kHostile[] = "</title><script>alert('x')</script>\"\x01 onload=\"&";

Manifest Sample(const std::string& name) {
  Manifest manifest;
  manifest.model_name = name;
  manifest.isa = "avx512";
  manifest.options = {{"planner", name}};
  manifest.kernels.resize(1);
  Launch launch;
  launch.label = "Conv+Relu";
  launch.nodes = {"first", name};
  launch.flops = 2.5e6;
  launch.bytes = 3 << 10;
  manifest.launches = {launch, launch};
  return manifest;
}

CompileAccount Account(const std::string& plan_json) {
  CompileAccount account;
  account.nodes_model = 7;
  account.intermediate_bytes_before = 4 << 20;
  account.intermediate_bytes_after = 1 << 20;
  account.kept_by_rule = 3;
  account.stages = {{"plan", 1.25}};
  account.plan_json = plan_json;
  return account;
}

const char kPlan[] = R"({"decisions": [
  {"producer": "<b>p", "consumer": "<i>c", "basis": "rule", "fused": false, "reason": "<u>never"},
  {"producer": "a", "consumer": "b", "basis": "\"><script>", "fused": true, "reason": "r"}],
 "rewrites": [{"rule": "factor", "where": "<img src=x>", "flops_saved": 64, "bytes_saved": -512}]})";

TEST(Report, SaysWhatWasDone) {
  const std::string html = ReportHtml(Sample("net"), Account(kPlan));
  for (const char* part : {"<h1>net</h1>", "avx512", "7 in the model", "2 launches of 1 distinct", "Conv+Relu",
                           "2.50 MFLOP", "3.00 KiB", "4.00 MiB", "width: 25.0%", "dot apart", "apart, by rule",
                           "factor", "64 FLOP", "-512 B", "3 kept apart by rule"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("1.25")));  // seconds would make bundles differ
}

TEST(Report, SaysHowKernelsRun) {
  const auto html = [](const std::string& fusion_block) {
    return ReportHtml(Sample("net"),
                      Account(R"({"fusion_blocks": [{"nodes": [{"name": "first"}], )" + fusion_block + "}]}"));
  };
  EXPECT_THAT(html(R"("phases": 1, "tasks": 1)"), HasSubstr("<td>1 task</td>"));
  EXPECT_THAT(html(R"("phases": 3, "tasks": 128, "occupancy": {"share": 0.375, "limit": "registers"})"),
              HasSubstr("<td>128 tasks, 3 phases, occupancy 38% (registers)</td>"));
  EXPECT_THAT(html(R"("phases": "<b>", "occupancy": {"share": "<i>"})"), HasSubstr("<td></td>"));
  EXPECT_THAT(html(R"("occupancy": {"share": 1, "limit": "<script>"})"), Not(HasSubstr("<script>")));
}

TEST(Report, ListsThePlansThatWereCompared) {
  CompileAccount account = Account("");
  EXPECT_THAT(ReportHtml(Sample("net"), account), Not(HasSubstr("<h2>Plans</h2>")));
  account.alternatives = {{"", "offline", 24, 5e6, 4e6, 1, 1, 1, 20, false},
                          {"", "by measurements", 48, 6e6, 3.2e6, 0.8, 0.79, 0.81, 20, true}};
  const std::string html = ReportHtml(Sample("net"), account);
  for (const char* part : {"<h2>Plans</h2>", "by measurements (chosen)", "3.200 ms", "0.800, 0.790–0.810"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
}

TEST(Report, SaysWhyWeightsGrow) {
  CompileAccount account = Account("");
  account.weights.model_bytes = 4 << 20;
  account.weights.bundle_bytes = 6 << 20;
  account.weights.causes = {{weight_cause::kTransformed, 3 << 20}, {weight_cause::kRewritten, -(1 << 20)}};
  std::string html = ReportHtml(Sample("net"), account);
  for (const char* part :
       {"6.00 MiB for 4.00 MiB of the model: 1.50", "filters transformed for Winograd", "3.00 MiB", "-1.00 MiB"}) {
    EXPECT_THAT(html, HasSubstr(part));
  }
  EXPECT_THAT(html, Not(HasSubstr("estimated time")));
  account.weights.time_ratio = 1.254;
  EXPECT_THAT(ReportHtml(Sample("net"), account), HasSubstr("kept small at 1.25 of the estimated time"));
}

TEST(Report, SaysWhatPackingsShareAndWhatTheyDoNot) {
  CompileAccount account = Account("");
  EXPECT_THAT(ReportHtml(Sample("net"), account), Not(HasSubstr("packings")));
  account.sharing_ns = 2340;
  EXPECT_THAT(ReportHtml(Sample("net"), account),
              HasSubstr("<dt>packings</dt><dd>kernels that pack constants alike take an estimated 2.3 µs more</dd>"));
  account.packed_apart = 1;
  EXPECT_THAT(ReportHtml(Sample("net"), account), HasSubstr("2.3 µs more; 1 constant is packed in several ways"));
  account.sharing_ns = 0, account.packed_apart = 3;
  EXPECT_THAT(ReportHtml(Sample("net"), account), HasSubstr("<dd>3 constants are packed in several ways, because"));
}

TEST(Report, NamesStayText) {
  const std::string html = ReportHtml(Sample(kHostile), Account(kPlan));
  for (const char* tag : {"<script", "<b>", "<i>", "<u>", "<img", "onload=\"", "\x01"}) {
    EXPECT_THAT(html, Not(HasSubstr(tag)));
  }
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(&#39;x&#39;)"));
  EXPECT_EQ(HtmlEscape("a<b>&\"'\x02\n"), "a&lt;b&gt;&amp;&quot;&#39;\xef\xbf\xbd\n");
}

TEST(Report, LoadsNothing) {
  const std::string html = ReportHtml(Sample("net"), Account(""));
  for (const char* part : {"http:", "https:", "src=", "href=", "url(", "<script"}) {
    EXPECT_THAT(html, Not(HasSubstr(part)));
  }
}

TEST(Report, DamagedPlansShowNothing) {
  for (const char* plan : {"", "{", "[]", "{\"decisions\": 3}", "{\"decisions\": [3, {\"reason\": []}]}"}) {
    EXPECT_THAT(ReportHtml(Sample("net"), Account(plan)), HasSubstr("No rule fired"));
  }
}

}  // namespace
}  // namespace fusion
