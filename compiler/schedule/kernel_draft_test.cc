#include "compiler/schedule/kernel_draft.h"

#include <gtest/gtest.h>

#include "compiler/te/program/program.h"

namespace fusion {
namespace {

const std::map<te::TensorId, Layout> kPlain;

te::Program Maps() {
  absl::StatusOr<te::Program> program = te::Parse(R"(te p(%0: f32[4, 8]) {
  %1[i0<4, i1<8]: f32 = exp(%0[i0, i1])
  %2[i2<4, i3<8]: f32 = exp(%1[i2, i3])
  return %2
})");
  EXPECT_TRUE(program.ok()) << program.status();
  return std::move(program).value();
}

TEST(KernelDraft, InputsAndOutputsHaveBuffersFromTheStart) {
  const te::Program program = Maps();
  ChoiceLog choices;
  const DeviceModel device;
  KernelDraft draft(program, kPlain, device, &choices);
  ASSERT_EQ(draft.kernel.buffers.size(), 2u);
  EXPECT_EQ(draft.buffer_of, (std::vector<int>{0, -1, 1}));
  const absl::StatusOr<PhysicalTe> first = draft.Physical(program.tes[0]);
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(draft.MakeNest(*first).ok());  // its result has no buffer yet
  draft.AddDeviceBuffers({1, 2});
  EXPECT_EQ(draft.buffer_of[1], 2);
  EXPECT_EQ(draft.buffer_of[2], 1);
  EXPECT_EQ(draft.kernel.buffers[2].scope, Scope::kDevice);
  EXPECT_TRUE(draft.MakeNest(*first).ok());
}

TEST(KernelDraft, AddressesInScratchAreRelativeToTheBox) {
  const te::Program program = Maps();
  ChoiceLog choices;
  const DeviceModel device;
  KernelDraft draft(program, kPlain, device, &choices);
  draft.AddBuffer(1, Scope::kBlock);
  const std::vector<te::Index> at = {te::Index(3), te::Index(5)};
  EXPECT_EQ(draft.AddressOf(1, at).address, te::Index(3 * 8 + 5));
  draft.scratch_boxes[1] = {{te::Index(2), 2}, {te::Index(4), 4}};
  EXPECT_EQ(draft.AddressOf(1, at).address, te::Index(1 * 4 + 1));
}

TEST(KernelDraft, RestoreUndoesAnAttempt) {
  const te::Program program = Maps();
  ChoiceLog choices;
  const DeviceModel device;
  KernelDraft draft(program, kPlain, device, &choices);
  const KernelDraft::Saved before = draft.Save();
  const int axis = draft.axes.next();
  draft.axes.New(4);
  draft.kernel.buffers.emplace_back();
  choices.Pick("stitch", 2);
  draft.Restore(before);
  EXPECT_EQ(draft.axes.next(), axis);
  EXPECT_EQ(draft.kernel.buffers.size(), 2u);
  EXPECT_TRUE(choices.met().empty());
}

}  // namespace
}  // namespace fusion
