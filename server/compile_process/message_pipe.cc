#include "server/compile_process/message_pipe.h"

#include <google/protobuf/message_lite.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr int kTickMs = 50;
constexpr size_t kPieceBytes = 1 << 20;  // a length that was made up costs no memory before its bytes arrive

}  // namespace

void MessagePipe::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

absl::Status MessagePipe::Wait(short events) {
  while (true) {
    struct pollfd waited = {fd_, events, 0};
    const int ready = poll(&waited, 1, tick_ ? kTickMs : -1);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return ErrnoStatus(errno, "cannot wait for the other process");
    if (tick_) RETURN_IF_ERROR(tick_());
  }
}

absl::Status MessagePipe::Send(const google::protobuf::MessageLite& message) {
  const size_t size_bytes = message.ByteSizeLong();
  if (size_bytes > kMostMessageBytes) {
    return absl::ResourceExhaustedError(absl::StrCat("a message between server and compiler has ", size_bytes,
                                                     " bytes, more than ", kMostMessageBytes));
  }
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(size_bytes >> (8 * i));
  if (!message.AppendToString(&bytes)) return absl::InternalError("a message between server and compiler is not whole");
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<size_t>(count);
    } else if (errno == EAGAIN) {
      RETURN_IF_ERROR(Wait(POLLOUT));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return absl::UnavailableError("the other process is gone");
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "cannot write to the other process");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> MessagePipe::Read(size_t size_bytes, std::string* bytes) {
  bytes->clear();
  while (bytes->size() < size_bytes) {
    const size_t begin = bytes->size();
    bytes->resize(begin + std::min(size_bytes - begin, kPieceBytes));
    const ssize_t count = recv(fd_, bytes->data() + begin, bytes->size() - begin, MSG_DONTWAIT);
    bytes->resize(begin + static_cast<size_t>(std::max<ssize_t>(count, 0)));
    if (count == 0) return false;
    if (count > 0) continue;
    if (errno == ECONNRESET) return false;
    if (errno == EAGAIN) {
      RETURN_IF_ERROR(Wait(POLLIN));
    } else if (errno != EINTR) {
      return ErrnoStatus(errno, "cannot read from the other process");
    }
  }
  return true;
}

absl::StatusOr<bool> MessagePipe::Receive(google::protobuf::MessageLite* message) {
  std::string bytes;
  ASSIGN_OR_RETURN(bool whole, Read(4, &bytes));
  if (!whole) return false;
  uint32_t size_bytes = 0;
  for (int i = 0; i < 4; ++i) size_bytes |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  if (size_bytes > kMostMessageBytes) {
    return absl::DataLossError(absl::StrCat("the other process announces a message of ", size_bytes, " bytes"));
  }
  ASSIGN_OR_RETURN(whole, Read(size_bytes, &bytes));
  if (!whole) return false;
  if (!message->ParseFromString(bytes)) return absl::DataLossError("the other process sent no message");
  return true;
}

}  // namespace fusion
