#include "tests/conformance/isolated.h"

#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::conformance {
namespace {

constexpr int kClockForCpu = 20;

using Result = absl::StatusOr<std::vector<Tensor>>;

// Writes a result as bytes that a child sends to its parent: code, message, then tensors as type, rank, extents, bytes.
class Writer {
 public:
  void Number(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void Bytes(const void* data, size_t count) {
    Number(static_cast<int64_t>(count));
    if (count > 0) bytes_.append(static_cast<const char*>(data), count);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  bool Number(int64_t* value) {
    if (bytes_.size() - at_ < sizeof(*value)) return false;
    std::memcpy(value, bytes_.data() + at_, sizeof(*value));
    at_ += sizeof(*value);
    return true;
  }
  bool Bytes(std::string* value) {
    int64_t count = 0;
    if (!Number(&count) || static_cast<uint64_t>(count) > bytes_.size() - at_) return false;
    *value = bytes_.substr(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return true;
  }

 private:
  std::string bytes_;
  size_t at_ = 0;
};

std::string Encode(const Result& result) {
  Writer writer;
  writer.Number(static_cast<int64_t>(result.status().code()));
  writer.Bytes(result.status().message().data(), result.status().message().size());
  if (!result.ok()) return writer.bytes();
  writer.Number(static_cast<int64_t>(result->size()));
  for (const Tensor& tensor : *result) {
    writer.Number(static_cast<int64_t>(tensor.dtype()));
    writer.Bytes(tensor.shape().data(), tensor.shape().size() * sizeof(int64_t));
    writer.Bytes(tensor.data(), static_cast<size_t>(tensor.size_bytes()));
  }
  return writer.bytes();
}

Result Decode(std::string bytes) {
  Reader reader(std::move(bytes));
  const absl::Status cut = absl::InternalError("the case's process ended without a result");
  int64_t code = 0, count = 0;
  std::string message;
  if (!reader.Number(&code) || !reader.Bytes(&message)) return cut;
  if (code != 0) return absl::Status(static_cast<absl::StatusCode>(code), message);
  if (!reader.Number(&count)) return cut;
  std::vector<Tensor> tensors;
  for (int64_t i = 0; i < count; ++i) {
    int64_t dtype = 0;
    std::string extents, data;
    if (!reader.Number(&dtype) || !reader.Bytes(&extents) || !reader.Bytes(&data)) return cut;
    Shape shape(extents.size() / sizeof(int64_t));
    if (!shape.empty()) std::memcpy(shape.data(), extents.data(), extents.size());
    Tensor tensor(static_cast<DType>(dtype), shape);
    if (static_cast<int64_t>(data.size()) != tensor.size_bytes()) return cut;
    if (!data.empty()) std::memcpy(tensor.mutable_data(), data.data(), data.size());
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

std::string ReadAll(int fd) {
  std::string bytes(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  bytes.resize(done);
  return bytes;
}

void WriteAll(int fd, const std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = write(fd, bytes.data() + done, bytes.size() - done);
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
}

std::string NumberText(int64_t value) {
  Writer writer;
  writer.Number(value);
  return writer.bytes();
}

// Limits CPU time, because a case takes as much of it on a busy machine as on a quiet one. A case that waits forever
// uses none, so wall-clock time has a limit, too, far beyond. 0: no limits.
void Limit(int cpu_s) {
  const itimerval timer = {{0, 0}, {cpu_s, 0}};
  setitimer(ITIMER_PROF, &timer, nullptr);
  alarm(static_cast<unsigned>(kClockForCpu * cpu_s));
}

// Takes one case, or all that are left. Writes the number of each case before it runs, and the result's bytes after
// that.
[[noreturn]] void Child(int fd, int count, int deadline_s, CasesPerProcess cases, std::atomic<int>* next,
                        const std::function<Result(int)>& run) {
  for (int i = 0; (i = (*next)++) < count;) {
    WriteAll(fd, NumberText(i));
    Limit(deadline_s);
    const Result result = run(i);
    const std::string bytes = Encode(result);
    Limit(0);
    WriteAll(fd, NumberText(static_cast<int64_t>(bytes.size())) + bytes);
    if (cases == CasesPerProcess::kOne || absl::IsInternal(result.status())) break;
  }
  _exit(0);
}

void Collect(int fd, int status, int deadline_s, std::vector<Result>* results) {
  Reader reader(ReadAll(fd));
  for (int64_t i = 0; reader.Number(&i) && i >= 0 && i < static_cast<int64_t>(results->size());) {
    Result& result = (*results)[static_cast<size_t>(i)];
    std::string bytes;
    if (reader.Bytes(&bytes)) {
      result = Decode(std::move(bytes));
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF) {
      result = absl::InternalError(absl::StrCat("did not finish within ", deadline_s, " s of CPU time"));
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
      result = absl::InternalError(absl::StrCat("did not finish within ", kClockForCpu * deadline_s, " s"));
    } else if (WIFSIGNALED(status)) {
      result = absl::InternalError(absl::StrCat("crashed: ", strsignal(WTERMSIG(status))));
    } else {
      result = absl::InternalError("the case's process ended without a result");
    }
  }
}

}  // namespace

std::vector<Result> RunIsolated(int count, int deadline_s, CasesPerProcess cases,
                                const std::function<Result(int)>& run) {
  std::vector<Result> results(static_cast<size_t>(count), absl::ResourceExhaustedError("no process for this case"));
  // The first case that no child has begun; all children share this counter.
  auto* const next = static_cast<std::atomic<int>*>(
      mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (next == MAP_FAILED) return results;
  const size_t jobs = std::max(1u, std::thread::hardware_concurrency());
  std::map<pid_t, int> running;  // pid → memory file
  bool can_start = true;
  while ((can_start && *next < count) || !running.empty()) {
    if (can_start && *next < count && running.size() < jobs) {
      const int fd = memfd_create("cases", MFD_CLOEXEC);
      const pid_t pid = fd < 0 ? -1 : fork();
      if (pid == 0) Child(fd, count, deadline_s, cases, next, run);
      if (pid > 0) {
        running[pid] = fd;
        continue;
      }
      can_start = false;
      if (fd >= 0) close(fd);
    }
    int status = 0;
    const pid_t pid = waitpid(-1, &status, 0);
    auto it = running.find(pid);
    if (it == running.end()) continue;
    Collect(it->second, status, deadline_s, &results);
    close(it->second);
    running.erase(it);
    can_start = true;
  }
  munmap(next, sizeof(std::atomic<int>));
  return results;
}

}  // namespace fusion::conformance
