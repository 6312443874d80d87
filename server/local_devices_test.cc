// Devices and workers are shell scripts here; they do what a driver may do to the process that asks it.
#include "server/local_devices.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/mutex.h"
#include "compiler/cost/device_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using testing::HasSubstr;
using State = LocalDevice::State;

class LocalDevicesTest : public testing::Test {
 protected:
  LocalDevicesTest() : folder_(absl::StrCat(testing::TempDir(), "local-devices-", getpid())) {
    std::filesystem::create_directories(folder_);
    DeviceModel model;
    model.kind = "cpu";
    model.name = "a processor";
    std::ofstream(folder_ + "/cpu.json") << DeviceModelToJson(model);
    model.kind = "opencl";
    model.name = "a device";
    std::ofstream(folder_ + "/opencl.json") << DeviceModelToJson(model);
    // Workers write their command lines to this pipe. It is open for writing here, too, so that no reader meets its
    // end.
    const std::string pipe = folder_ + "/started";
    mkfifo(pipe.c_str(), 0600);
    started_ = open(pipe.c_str(), O_RDWR | O_CLOEXEC);
  }
  void SetUp() override { ASSERT_GE(started_, 0); }
  ~LocalDevicesTest() override {
    close(started_);
    std::filesystem::remove_all(folder_);
  }

  // Writes a fusion-worker that runs `describe` or `serve`, with its kind in $kind.
  std::string Program(const std::string& describe, const std::string& serve) {
    const std::string file = folder_ + "/worker.sh";
    std::ofstream(file) << absl::StrReplaceAll(R"(#!/bin/sh
kind=$2
cd FOLDER
case "$*" in
*--describe*) DESCRIBE ;;
*) echo "$*" > started; SERVE ;;
esac
)",
                                               {{"FOLDER", folder_}, {"DESCRIBE", describe}, {"SERVE", serve}});
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
  LocalDevicesOptions Options(const std::string& program) {
    LocalDevicesOptions options{program, {"cpu", "opencl"}, folder_ + "/state"};
    options.log = [this](const LogLine&) {
      absl::MutexLock lock(&mutex_);
      ++lines_;
    };
    return options;
  }
  // Waits until the device is in this state. A line of the log follows each change.
  LocalDevice Await(const LocalDevices& devices, size_t index, State state) {
    absl::MutexLock lock(&mutex_);
    while (true) {
      seen_ = lines_;
      mutex_.Unlock();
      LocalDevice device = devices.Devices()[index];
      mutex_.Lock();
      if (device.state == state) return device;
      mutex_.Await(absl::Condition(
          +[](LocalDevicesTest* test) ABSL_NO_THREAD_SAFETY_ANALYSIS { return test->lines_ != test->seen_; }, this));
    }
  }
  // Waits for the first worker of the kind and returns its command line.
  std::string AwaitStarted(const std::string& kind) {
    while (true) {
      for (const std::string& line : commands_) {
        if (absl::StrContains(line, absl::StrCat("--kinds ", kind, " "))) return line;
      }
      ReadCommand();
    }
  }
  // Reads the next command line that a worker was started with.
  void ReadCommand() {
    std::string line;
    for (char c; read(started_, &c, 1) == 1 && c != '\n';) line += c;
    commands_.push_back(line);
  }

  const std::string folder_;
  int started_ = -1;
  std::vector<std::string> commands_;  // of the workers started so far, as far as they were read
  absl::Mutex mutex_;
  int lines_ ABSL_GUARDED_BY(mutex_) = 0;  // of the log
  int seen_ ABSL_GUARDED_BY(mutex_) = 0;   // by Await
};

TEST_F(LocalDevicesTest, EachThatIsFoundHasAWorker) {
  LocalDevices devices(Options(Program("cat $kind.json", "exec sleep 1000")));
  EXPECT_TRUE(devices.IsExpected("opencl"));
  EXPECT_FALSE(devices.IsExpected("abacus"));
  EXPECT_EQ(devices.Devices()[1].state, State::kLooking);
  devices.Start("unix:/s");
  EXPECT_EQ(Await(devices, 0, State::kFound).words, "a processor");
  EXPECT_EQ(Await(devices, 1, State::kFound).words, "a device");
  EXPECT_THAT(AwaitStarted("cpu"), HasSubstr("--server unix:/s --name local "));
  const std::string opencl = AwaitStarted("opencl");
  EXPECT_THAT(opencl, HasSubstr(absl::StrCat("--turn-file ", folder_, "/state/turn")));
  EXPECT_THAT(opencl, HasSubstr(absl::StrCat("--name local-opencl --build-kinds opencl --device-model ", folder_,
                                             "/state/described-opencl")));
  EXPECT_TRUE(devices.IsExpected("opencl"));
}

TEST_F(LocalDevicesTest, WhatIsNotThereHasAReason) {
  LocalDevices devices(
      Options(Program("[ $kind = cpu ] && exec cat cpu.json; echo 'install a driver' >&2; exit 3", "exec sleep 1000")));
  devices.Start("unix:/s");
  EXPECT_EQ(Await(devices, 1, State::kMissing).words, "install a driver");
  EXPECT_FALSE(devices.IsExpected("opencl"));
  EXPECT_EQ(devices.Devices()[0].state, State::kFound);
  AwaitStarted("cpu");
  devices.Stop(absl::Seconds(10));
  pollfd unread{started_, POLLIN, 0};
  EXPECT_EQ(poll(&unread, 1, 0), 0) << "no worker for a device that is not there";
}

// A driver may start only where its process is not confined.
TEST_F(LocalDevicesTest, ADeviceIsDescribedAsItsWorkerWillBe) {
  const std::string program = Program(
      "case \"$*\" in *--unconfined*) cat $kind.json ;; *) echo confined >&2; exit 3 ;; esac", "exec sleep 1000");
  LocalDevices confined(Options(program));
  confined.Start("unix:/s");
  EXPECT_EQ(Await(confined, 1, State::kMissing).words, "confined");
  LocalDevicesOptions options = Options(program);
  options.worker_flags = {"--log-level", "info", "--unconfined"};
  LocalDevices free(options);
  free.Start("unix:/s");
  EXPECT_EQ(Await(free, 1, State::kFound).words, "a device");
  EXPECT_THAT(AwaitStarted("opencl"), HasSubstr("--unconfined"));
}

TEST_F(LocalDevicesTest, ADriverThatHangsCostsItsKindOnly) {
  LocalDevicesOptions options =
      Options(Program("[ $kind = cpu ] && exec cat cpu.json; exec sleep 1000", "exec sleep 1000"));
  LocalDevices patient(options);
  patient.Start("unix:/s");
  AwaitStarted("cpu");
  EXPECT_TRUE(patient.IsExpected("opencl"));
  patient.Stop(absl::ZeroDuration());  // returns although the search goes on

  options.kinds = {"opencl"};
  options.limit = absl::Milliseconds(1);
  LocalDevices devices(options);
  devices.Start("unix:/s");
  EXPECT_THAT(Await(devices, 0, State::kMissing).words, HasSubstr("--kinds opencl did not finish within"));
}

TEST_F(LocalDevicesTest, ADriverThatCrashesCostsItsKindOnly) {
  LocalDevices devices(Options(
      Program("[ $kind = cpu ] && exec cat cpu.json; echo the driver says >&2; kill -SEGV $$", "exec sleep 1000")));
  devices.Start("unix:/s");
  EXPECT_THAT(Await(devices, 1, State::kMissing).words,
              testing::AllOf(HasSubstr("was ended by signal 11"), HasSubstr("It said: the driver says")));
}

TEST_F(LocalDevicesTest, AProcessorThatCannotBeDescribedIsTriedAllTheSame) {
  LocalDevices devices(Options(Program("exit 1", "exec sleep 1000")));
  devices.Start("unix:/s");
  EXPECT_THAT(AwaitStarted("cpu"), testing::Not(HasSubstr("--device-model")));
  EXPECT_THAT(Await(devices, 1, State::kMissing).words, HasSubstr("exited with 1"));
}

TEST_F(LocalDevicesTest, AWorkerThatEndsIsNamed) {
  LocalDevices devices(Options(Program("cat $kind.json", "[ $kind = cpu ] && exec sleep 1000; exit 4")));
  devices.Start("unix:/s");
  EXPECT_THAT(Await(devices, 1, State::kFailing).words,
              HasSubstr("a device: its worker ended with exit code 4 (endings"));
}

}  // namespace
}  // namespace fusion
