#include "runtime/base/errno_status.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

TEST(ErrnoStatus, TellsWhatIsFullFromWhatIsMissingOrForbidden) {
  for (const int full : {ENOSPC, EDQUOT, EFBIG, ENOMEM, EMFILE, ENFILE}) {
    EXPECT_TRUE(absl::IsResourceExhausted(ErrnoStatus(full, "write"))) << full;
  }
  for (const int missing : {ENOENT, ENOTDIR}) EXPECT_TRUE(absl::IsNotFound(ErrnoStatus(missing, "open"))) << missing;
  for (const int denied : {EACCES, EPERM, EROFS}) {
    EXPECT_TRUE(absl::IsPermissionDenied(ErrnoStatus(denied, "open"))) << denied;
  }
  for (const int wrong : {EISDIR, EINVAL, ENAMETOOLONG}) {
    EXPECT_TRUE(absl::IsInvalidArgument(ErrnoStatus(wrong, "open"))) << wrong;
  }
  EXPECT_TRUE(absl::IsAlreadyExists(ErrnoStatus(EEXIST, "create")));
}

TEST(ErrnoStatus, AnyOtherNumberMayPass) {
  for (const int other : {EIO, EINTR, EPIPE, 0, -1, 1 << 20}) {
    const absl::Status status = ErrnoStatus(other, "read");
    EXPECT_TRUE(absl::IsUnavailable(status)) << other << " " << status;
  }
}

TEST(ErrnoStatus, NamesTheThingAndTheCause) {
  const absl::Status status = ErrnoStatus(ENOSPC, "writing '/tmp/x'");
  EXPECT_EQ(status.message().find("writing '/tmp/x': "), 0u) << status;
  EXPECT_GT(status.message().size(), std::string("writing '/tmp/x': ").size());
}

}  // namespace
}  // namespace fusion
