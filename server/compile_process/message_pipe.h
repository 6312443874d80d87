// MessagePipe: messages over one end of a socket pair, each as its length (4 bytes, little-endian) and its bytes.
#ifndef FUSION_SERVER_COMPILE_PROCESS_MESSAGE_PIPE_H_
#define FUSION_SERVER_COMPILE_PROCESS_MESSAGE_PIPE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace google::protobuf {
class MessageLite;
}

namespace fusion {

inline constexpr uint32_t kMostMessageBytes = 1 << 30;

// Not thread-safe.
class MessagePipe {
 public:
  // Owns `fd`. `tick` (may be empty) is called at least every 50 ms while a call waits for the other end; if it fails,
  // the call ends with that status.
  explicit MessagePipe(int fd, std::function<absl::Status()> tick = nullptr) : fd_(fd), tick_(std::move(tick)) {}
  ~MessagePipe() { Close(); }
  MessagePipe(const MessagePipe&) = delete;
  MessagePipe& operator=(const MessagePipe&) = delete;

  // Fails with RESOURCE_EXHAUSTED for a message above kMostMessageBytes, UNAVAILABLE where the other end is closed.
  absl::Status Send(const google::protobuf::MessageLite& message);
  // Returns false at the end of the stream. Fails with DATA_LOSS for bytes that are no message.
  absl::StatusOr<bool> Receive(google::protobuf::MessageLite* message);
  void Close();

 private:
  absl::Status Wait(short events);
  // Reads until `bytes` is that long, or returns false if the stream ends before.
  absl::StatusOr<bool> Read(size_t size_bytes, std::string* bytes);

  int fd_;
  const std::function<absl::Status()> tick_;
};

}  // namespace fusion

#endif  // FUSION_SERVER_COMPILE_PROCESS_MESSAGE_PIPE_H_
