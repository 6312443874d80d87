#include "server/compile_process/message_pipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "proto/compile_process.pb.h"

namespace fusion {
namespace {

struct Ends {
  int fds[2];
  Ends() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0); }
};

v1::FromCompiler Bundle(const std::string& bytes) {
  v1::FromCompiler message;
  message.mutable_made_bundle()->set_bundle(bytes);
  return message;
}

TEST(MessagePipe, MessagesOfAnySizeArriveInOrder) {
  Ends ends;
  MessagePipe left(ends.fds[0]), right(ends.fds[1]);
  const std::vector<std::string> sent = {"", "a", std::string(5 << 20, 'b'), std::string("\0\xff", 2)};
  std::thread sender([&] {
    for (const std::string& bytes : sent) EXPECT_TRUE(left.Send(Bundle(bytes)).ok());
    left.Close();
  });
  v1::FromCompiler message;
  for (const std::string& bytes : sent) {
    const auto received = right.Receive(&message);
    ASSERT_TRUE(received.ok() && *received) << received.status();
    EXPECT_EQ(message.made_bundle().bundle(), bytes);
  }
  const auto end = right.Receive(&message);
  ASSERT_TRUE(end.ok()) << end.status();
  EXPECT_FALSE(*end);
  sender.join();
}

TEST(MessagePipe, WhatIsNoMessageIsRefused) {
  const std::string half("\x08\0\0\0\x2a", 5), huge("\xff\xff\xff\xff", 4), junk("\x02\0\0\0\xff\xff", 6);
  for (const auto& [bytes, code] : {std::pair{half, absl::StatusCode::kOk},
                                    {huge, absl::StatusCode::kDataLoss},
                                    {junk, absl::StatusCode::kDataLoss}}) {
    Ends ends;
    MessagePipe pipe(ends.fds[0]);
    ASSERT_EQ(write(ends.fds[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(ends.fds[1]);
    v1::FromCompiler message;
    const auto received = pipe.Receive(&message);
    EXPECT_EQ(received.status().code(), code);
    EXPECT_FALSE(received.value_or(false)) << "the stream ended within a message";
  }
}

TEST(MessagePipe, SendingToAClosedEndFailsWithoutASignal) {
  Ends ends;
  close(ends.fds[1]);
  MessagePipe pipe(ends.fds[0]);
  EXPECT_EQ(pipe.Send(Bundle("a")).code(), absl::StatusCode::kUnavailable);
}

TEST(MessagePipe, ATickEndsAWaitInBothDirections) {
  Ends ends;
  int ticks = 0;
  MessagePipe pipe(ends.fds[0], [&] { return ++ticks < 2 ? absl::OkStatus() : absl::CancelledError("enough"); });
  v1::FromCompiler message;
  EXPECT_EQ(pipe.Receive(&message).status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(ticks, 2);
  EXPECT_EQ(pipe.Send(Bundle(std::string(64 << 20, 'x'))).code(), absl::StatusCode::kCancelled) << "nobody reads";
  close(ends.fds[1]);
}

}  // namespace
}  // namespace fusion
