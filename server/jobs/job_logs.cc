#include "server/jobs/job_logs.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "runtime/base/errno_status.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

using Json = nlohmann::ordered_json;

// The parts of a log, in the order of their lines. A full last part takes the place of the middle one.
constexpr const char* kHead = ".log";
constexpr const char* kMiddle = ".middle";
constexpr const char* kLast = ".last";
constexpr const char* kParts[] = {kHead, kMiddle, kLast};
constexpr int kMostOpenFiles = 64;
constexpr size_t kMostTextBytes = 4096;  // of a message or a value

std::string Cut(const std::string& text) { return text.substr(0, kMostTextBytes); }

std::string ToText(const JobLogLine& line) {
  Json json = {{"n", line.number}, {"t", line.time_ms}, {"l", static_cast<int>(line.line.level)}, {"s", line.source}};
  json["m"] = Cut(line.line.message);
  for (const LogField& field : line.line.fields) json["f"].push_back({field.key, Cut(field.value)});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// False for a line that a crash has torn.
bool FromText(const std::string& text, JobLogLine* line) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("n") || !json["n"].is_number_integer()) return false;
  line->number = json["n"].get<int64_t>();
  line->time_ms = json.value("t", int64_t{0});
  line->source = json.value("s", "");
  line->line.level = static_cast<LogLevel>(std::clamp(json.value("l", 0), 0, static_cast<int>(LogLevel::kError)));
  line->line.message = json.value("m", "");
  line->line.fields.clear();
  const auto fields = json.find("f");
  if (fields == json.end()) return true;
  for (const Json& field : *fields) {
    if (!field.is_array() || field.size() != 2 || !field[0].is_string() || !field[1].is_string()) return false;
    line->line.fields.push_back({field[0].get<std::string>(), field[1].get<std::string>()});
  }
  return true;
}

std::string Take(const std::string& key, LogLine* line) {
  const auto found =
      std::find_if(line->fields.begin(), line->fields.end(), [&](const LogField& field) { return field.key == key; });
  if (found == line->fields.end()) return "";
  std::string value = std::move(found->value);
  line->fields.erase(found);
  return value;
}

}  // namespace

bool IsTraceId(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos &&
         text.find_first_not_of('0') != std::string::npos;
}

std::string NewTraceId() {
  std::string bytes(16, '\0');
  for (size_t filled = 0; filled < bytes.size();) {
    const ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return absl::BytesToHexString(bytes);
}

LogLevel LogLevelOf(const std::string& name) {
  const auto found = std::find(LogLevels().begin(), LogLevels().end(), name);
  return found == LogLevels().end() ? LogLevel::kDebug : static_cast<LogLevel>(found - LogLevels().begin());
}

absl::StatusOr<std::unique_ptr<JobLogs>> JobLogs::Open(std::string folder, int64_t most_bytes) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("cannot make ", folder));
  return std::unique_ptr<JobLogs>(new JobLogs(std::move(folder), most_bytes));
}

JobLogs::~JobLogs() {
  absl::MutexLock lock(&mutex_);
  for (auto& [job, live] : live_) ClosePart(&live);
}

std::string JobLogs::PathOf(const std::string& job, const char* part) const {
  return absl::StrCat(folder_, "/", job, part);
}

void JobLogs::Begin(const std::string& job, const std::string& trace) {
  absl::MutexLock lock(&mutex_);
  live_[job].trace = trace;
}

std::string JobLogs::TraceOf(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = live_.find(job);
  return found == live_.end() ? "" : found->second.trace;
}

void JobLogs::End(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  const auto found = live_.find(job);
  if (found == live_.end()) return;
  ClosePart(&found->second);
  live_.erase(found);
}

void JobLogs::ClosePart(Live* live) {
  if (live->fd < 0) return;
  close(live->fd);
  live->fd = -1;
  --open_files_;
}

bool JobLogs::OpenPart(const std::string& job, Live* live) {
  if (live->next_number == 0) {  // the first line since the start of the server
    int64_t last = 0;
    for (const char* part : kParts) {
      std::ifstream file(PathOf(job, part));
      JobLogLine line;
      for (std::string text; std::getline(file, text);) {
        if (FromText(text, &line)) last = std::max(last, line.number);
      }
    }
    live->next_number = last + 1;
    std::error_code error;
    live->in_head = !std::filesystem::exists(PathOf(job, kLast), error);
  }
  if (open_files_ >= kMostOpenFiles) {
    for (auto& [other, its] : live_) ClosePart(&its);
  }
  const std::string path = PathOf(job, live->in_head ? kHead : kLast);
  live->fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (live->fd < 0) return false;
  ++open_files_;
  struct stat found;
  live->part_bytes = fstat(live->fd, &found) == 0 ? found.st_size : 0;
  return true;
}

void JobLogs::Append(const std::string& job, const std::string& source, const LogLine& line) {
  JobLogLine kept{0, absl::ToUnixMillis(absl::Now()), source, line};
  if (std::string named = Take("source", &kept.line); !named.empty()) kept.source = std::move(named);
  Take("job", &kept.line);
  Take("trace", &kept.line);
  absl::MutexLock lock(&mutex_);
  const auto found = live_.find(job);
  if (found == live_.end()) return;
  Live& live = found->second;
  if (live.fd < 0 && !OpenPart(job, &live)) return;
  const int64_t most = live.in_head ? most_bytes_ / 4 : most_bytes_ * 3 / 8;
  kept.number = live.next_number;
  const std::string text = ToText(kept);
  if (live.part_bytes > 0 && live.part_bytes + static_cast<int64_t>(text.size()) > most) {
    ClosePart(&live);
    if (!live.in_head) rename(PathOf(job, kLast).c_str(), PathOf(job, kMiddle).c_str());
    live.in_head = false;
    if (!OpenPart(job, &live)) return;
  }
  // A line that is torn, because the disk is full, ends with the next one that is whole; the reader passes over both.
  if (write(live.fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) return;
  ++live.next_number;
  live.part_bytes += static_cast<int64_t>(text.size());
}

Log JobLogs::Tee(Log inner) {
  return [this, inner = std::move(inner)](const LogLine& line) {
    const auto job = std::find_if(line.fields.begin(), line.fields.end(),
                                  [](const LogField& field) { return field.key == "job" && !field.value.empty(); });
    if (job == line.fields.end()) return inner(line);
    const std::string trace = TraceOf(job->value);
    if (trace.empty()) return inner(line);
    Append(job->value, "server", line);
    LogLine traced = line;
    Take("trace", &traced);
    traced.fields.push_back({"trace", trace});
    inner(traced);
  };
}

absl::StatusOr<JobLogs::Page> JobLogs::Read(const std::string& job, int64_t after, int limit, LogLevel least,
                                            size_t most_bytes) const {
  Page page;
  // The name comes from a row of the store; this keeps it from ever being a path.
  if (job.find('/') != std::string::npos) return page;
  // While it is read no part takes another's place.
  absl::MutexLock lock(&mutex_);
  size_t bytes = 0;
  for (const char* part : kParts) {
    std::ifstream file(PathOf(job, part));
    JobLogLine line;
    for (std::string text; std::getline(file, text);) {
      if (!FromText(text, &line) || line.number <= after || line.line.level < least) continue;
      if (static_cast<int>(page.lines.size()) >= limit || bytes > most_bytes) {
        page.more = true;
        return page;
      }
      bytes += text.size();
      page.lines.push_back(line);
    }
  }
  return page;
}

int64_t JobLogs::Expire(int64_t before_ms) {
  int64_t removed = 0;
  std::error_code error;
  std::vector<std::filesystem::path> old;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    struct stat found;
    if (stat(entry.path().c_str(), &found) != 0) continue;
    const int64_t written_ms = found.st_mtim.tv_sec * int64_t{1000} + found.st_mtim.tv_nsec / 1000000;
    if (written_ms < before_ms) old.push_back(entry.path());
  }
  for (const std::filesystem::path& path : old) {
    const std::string job = path.stem().string();
    absl::MutexLock lock(&mutex_);
    // The first part of a log may be old while its last one is not.
    struct stat last;
    const bool goes_on = live_.count(job) > 0 || (stat(PathOf(job, kLast).c_str(), &last) == 0 &&
                                                  last.st_mtim.tv_sec * int64_t{1000} >= before_ms);
    if (goes_on) continue;
    if (unlink(path.c_str()) == 0 && path.extension() == kHead) ++removed;
  }
  return removed;
}

}  // namespace fusion
