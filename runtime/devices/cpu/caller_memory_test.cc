#include "runtime/devices/cpu/caller_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

namespace fusion {
namespace {

using ::testing::ElementsAre;

class CallerMemoryTest : public ::testing::Test {
 protected:
  // Begins `offset` bytes into the first of a few pages that belong to the caller.
  CallerPiece Piece(int64_t offset, int64_t size_bytes, int64_t element_bytes = 4) const {
    return {caller_ + offset, own_, size_bytes, element_bytes, true};
  }
  UsesCaller Decide(const std::vector<CallerPiece>& inputs, const std::vector<CallerPiece>& outputs) const {
    return DecideUses(inputs, outputs, own_, own_ + 4 * page_);
  }

  const int64_t page_ = sysconf(_SC_PAGESIZE);
  std::vector<char> memory_ = std::vector<char>(static_cast<size_t>(10 * page_));
  const char* caller_ =
      reinterpret_cast<const char*>((reinterpret_cast<uintptr_t>(memory_.data()) + page_) / page_ * page_);
  const char* own_ = caller_ + 4 * page_;
};

TEST_F(CallerMemoryTest, AsksForWholeElements) {
  for (int64_t offset = 0; offset < 64; ++offset) {
    EXPECT_EQ(Decide({Piece(offset, 400)}, {}).inputs[0], offset % 4 == 0) << offset;
    EXPECT_EQ(Decide({}, {Piece(offset, 400, 8)}).outputs[0], offset % 8 == 0) << offset;
    EXPECT_TRUE(Decide({Piece(offset, 400, 1)}, {}).inputs[0]) << offset;
  }
}

TEST_F(CallerMemoryTest, AsksForReadableBytesBehindTheEnd) {
  EXPECT_TRUE(Decide({Piece(0, page_ - 64)}, {}).inputs[0]);
  EXPECT_FALSE(Decide({Piece(0, page_ - 60)}, {}).inputs[0]);
  EXPECT_FALSE(Decide({Piece(0, page_)}, {}).inputs[0]);
  EXPECT_FALSE(Decide({}, {Piece(0, 2 * page_)}).outputs[0]);
  EXPECT_TRUE(Decide({Piece(0, page_ + 4)}, {}).inputs[0]) << "the end is the start of a page of the caller's";
}

TEST_F(CallerMemoryTest, OutputsOverlapNothing) {
  const UsesCaller same = Decide({Piece(0, 400), Piece(400, 400)}, {Piece(0, 400)});
  EXPECT_THAT(same.inputs, ElementsAre(false, true));
  EXPECT_THAT(same.outputs, ElementsAre(true));
  EXPECT_THAT(Decide({Piece(0, 404)}, {Piece(400, 400)}).inputs, ElementsAre(false));
  EXPECT_THAT(Decide({Piece(0, 400)}, {Piece(400, 400)}).inputs, ElementsAre(true));
  EXPECT_THAT(Decide({}, {Piece(0, 400), Piece(396, 400), Piece(1000, 400)}).outputs, ElementsAre(false, false, true));
  EXPECT_THAT(Decide({Piece(0, 400), Piece(0, 400)}, {}).inputs, ElementsAre(true, true)) << "both are only read";
}

TEST_F(CallerMemoryTest, OwnMemoryStaysInPlace) {
  CallerPiece own = Piece(4 * page_, 400);
  EXPECT_THAT(Decide({own}, {}).inputs, ElementsAre(false));
  // The output is written where the input lies. The input is in place and is not copied, so the output must be.
  const UsesCaller uses = Decide({own}, {{own_, own_ + page_, 400, 4, true}});
  EXPECT_THAT(uses.inputs, ElementsAre(false));
  EXPECT_THAT(uses.outputs, ElementsAre(false));
  EXPECT_THAT(Decide({Piece(5 * page_, 400)}, {}).inputs, ElementsAre(false)) << "another piece's room";
}

TEST_F(CallerMemoryTest, NothingToBind) {
  CallerPiece second = Piece(0, 400);
  second.can_bind = false;
  EXPECT_THAT(Decide({}, {second}).outputs, ElementsAre(false));
  EXPECT_THAT(Decide({{nullptr, own_, 0, 4, true}}, {}).inputs, ElementsAre(false));
}

}  // namespace
}  // namespace fusion
