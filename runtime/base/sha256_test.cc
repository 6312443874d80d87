#include "runtime/base/sha256.h"

#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

TEST(Sha256Test, KnownAnswer) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Sha256Test, PiecesAreTheSameAsTheWhole) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 31);
  for (const size_t piece : {1, 55, 64, 119, 999}) {
    Sha256 hash;
    for (size_t at = 0; at < bytes.size(); at += piece) hash.Update(bytes.substr(at, piece));
    EXPECT_EQ(hash.FinishHex(), Sha256Hex(bytes)) << piece;
  }
}

}  // namespace
}  // namespace fusion
