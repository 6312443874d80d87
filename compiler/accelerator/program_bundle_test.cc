#include "compiler/accelerator/program_bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "compiler/accelerator/program_account.h"
#include "compiler/accelerator/testing/small_models.h"
#include "compiler/analysis/interpret.h"
#include "runtime/loader/paired_runs.h"
#include "runtime/loader/session.h"
#include "runtime/verdict/compare.h"

namespace fusion::accelerator {
namespace {

// Writes the bundle of a graph's program; the text is the binary.
absl::StatusOr<std::shared_ptr<const Bundle>> BundleOf(const ecg::Graph& graph, const std::string& variant,
                                                       DType dtype = DType::kF32) {
  const auto model = PlaceModel(graph, SmallStcp920(), dtype);
  if (!model.ok()) return model.status();
  auto program = MakeWholeProgram(*model, variant);
  if (!program.ok()) return program.status();
  CompileAccount account;
  AccountForProgram(*model, *program, &account);
  Manifest head;
  head.target = "dsa";
  head.isa = "stcp920";
  const std::string path = absl::StrCat(::testing::TempDir(), "/program_bundle_", getpid(), "_", variant, ".fusion");
  const std::string text = program->text;
  const BuiltProgram built{*std::move(program), text};
  const ProgramInBundle one{&*model, &built};
  const absl::Status written = WriteProgramBundle({&one, 1}, head, path, &account);
  if (!written.ok()) return written;
  return Bundle::Open(path);
}

TEST(ProgramBundle, RunsAndComputesWhatTheInterpreterComputes) {
  for (const char* text : {kConvolutions, kLookup, kNothingToCompute, kWithoutElements}) {
    const ecg::Graph graph = GraphOf(text);
    const std::vector<Tensor> inputs = InputsOf(graph);
    const auto expected = ecg::Interpret(graph, inputs);
    ASSERT_TRUE(expected.ok()) << expected.status();
    for (const char* variant : {"graph_turbo", "l1", "tvm_like"}) {
      const auto bundle = BundleOf(graph, variant);
      ASSERT_TRUE(bundle.ok()) << bundle.status();
      const auto session = Session::Create(*bundle, 1);
      ASSERT_TRUE(session.ok()) << session.status();
      const auto outputs = (*session)->Run(inputs);
      ASSERT_TRUE(outputs.ok()) << outputs.status();
      ASSERT_EQ(outputs->size(), expected->size());
      for (size_t o = 0; o < expected->size(); ++o) {
        ASSERT_EQ((*outputs)[o].shape(), (*expected)[o].shape());
        if ((*expected)[o].num_elements() == 0) continue;  // there is nothing to compare
        const auto comparison = CompareTensors((*outputs)[o], (*expected)[o]);
        ASSERT_TRUE(comparison.ok()) << comparison.status();
        EXPECT_TRUE(comparison->ok()) << variant << " output " << o << " differs by " << comparison->max_rel_err;
      }
    }
  }
}

TEST(ProgramBundle, AModelThatComputesNothingTakesTheLeastTime) {
  const ecg::Graph graph = GraphOf(kNothingToCompute);
  auto run = PreparedRun::Create(*BundleOf(graph, "graph_turbo"), InputsOf(graph), 1);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(run->simulated_time()->cycles, 0);
  EXPECT_EQ(*run->Run(), 1) << "nanoseconds, as a ratio of two times needs some";
}

TEST(ProgramBundle, AWeightIsHeldOnceAndBindsEachOfItsUses) {
  const auto bundle = BundleOf(GraphOf(kConvolutions), "graph_turbo");
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  const Manifest& manifest = (*bundle)->manifest();
  int64_t constants = 0;
  for (const Buffer& buffer : manifest.buffers) constants += buffer.kind == Buffer::Kind::kConstant;
  EXPECT_EQ(constants, 4) << "two filters, and the bias of both layers";
  EXPECT_LT((*bundle)->reader()->weights().size(), (216u + 576 + 2 * 8) * 4 + 4 * 64);
  EXPECT_EQ(manifest.launches[0].nodes.size(), 5u);
}

TEST(ProgramBundle, LeavesOutConstantsThatNothingReads) {
  // The extents of the slice are in its expression, and one of them no float holds.
  const ecg::Graph graph = GraphOf(R"(graph g(%x: i64[8]) {
    %from: i64[1] = const {2}
    %to: i64[1] = const {9223372036854775807}
    %y: i64[6] = Slice(%x, %from, %to)
    return %y
  })");
  const auto bundle = BundleOf(graph, "graph_turbo");
  ASSERT_TRUE(bundle.ok()) << bundle.status();
  for (const Buffer& buffer : (*bundle)->manifest().buffers) EXPECT_NE(buffer.kind, Buffer::Kind::kConstant);
  const auto outputs = (*Session::Create(*bundle, 1))->Run(InputsOf(graph));
  EXPECT_TRUE(outputs.ok()) << outputs.status();
}

TEST(ProgramBundle, RefusesConstantsThatNoFloatHolds) {
  const auto bundle = BundleOf(GraphOf(R"(graph g(%x: i64[2]) {
    %large: i64[2] = const {3, 16777217}
    %y: i64[2] = Add(%x, %large)
    return %y
  })"),
                               "graph_turbo");
  EXPECT_EQ(bundle.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(bundle.status().message()), testing::HasSubstr("element 1 is 16777217"));
}

TEST(ProgramBundle, TwoSimulatedTimesAreComparedInOneRound) {
  const ecg::Graph graph = GraphOf(kConvolutions);
  const std::vector<Tensor> inputs = InputsOf(graph);
  auto first = PreparedRun::Create(*BundleOf(graph, "graph_turbo"), inputs, 1);
  auto second = PreparedRun::Create(*BundleOf(graph, "tvm_like"), inputs, 1);
  ASSERT_TRUE(first.ok() && second.ok());
  const double ns = *first->Run();
  EXPECT_EQ(*first->Run(), ns) << "the same program takes the same time";
  EXPECT_EQ(ns, 1e9 * first->simulated_time()->seconds);
  const auto times = RunPaired(*first, *second, {});
  ASSERT_TRUE(times.ok()) << times.status();
  ASSERT_EQ(times->ratios.size(), 1u);
  EXPECT_GT(times->ratios[0], 1) << "layer by layer is slower";
}

}  // namespace
}  // namespace fusion::accelerator
