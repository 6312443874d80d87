#include "worker/lease/job_lines.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/time/clock.h"

namespace fusion {
namespace {

// A message of protobuf must hold UTF-8; what tools print may not.
std::string Ascii(const std::string& text) {
  std::string cut = text.substr(0, JobLines::kMostTextBytes);
  std::replace_if(
      cut.begin(), cut.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return cut;
}

}  // namespace

Log JobLines::Tee(const std::shared_ptr<JobLines>& lines, Log inner) {
  return [lines, inner = std::move(inner)](const LogLine& line) {
    lines->Add(line);
    inner(line);
  };
}

void JobLines::Add(const LogLine& line) {
  const bool of_a_job = std::any_of(line.fields.begin(), line.fields.end(),
                                    [](const LogField& field) { return field.key == "job" && !field.value.empty(); });
  if (!of_a_job) return;
  v1::LogRecord record;
  record.set_time_ms(absl::ToUnixMillis(absl::Now()));
  record.set_level(LogLevels()[static_cast<size_t>(line.level)]);
  record.set_message(Ascii(line.message));
  for (const LogField& field : line.fields) (*record.mutable_fields())[field.key] = Ascii(field.value);
  const std::lock_guard<std::mutex> lock(mutex_);
  bytes_ += record.ByteSizeLong();
  records_.push_back(std::move(record));
  DropOldest();
}

void JobLines::DropOldest() {
  while (records_.size() > kMostLines || bytes_ > kMostBytes) {
    bytes_ -= records_.front().ByteSizeLong();
    records_.pop_front();
  }
}

std::vector<v1::LogRecord> JobLines::Take() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<v1::LogRecord> taken(std::make_move_iterator(records_.begin()), std::make_move_iterator(records_.end()));
  records_.clear();
  bytes_ = 0;
  return taken;
}

void JobLines::PutBack(std::vector<v1::LogRecord> records) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const v1::LogRecord& record : records) bytes_ += record.ByteSizeLong();
  records_.insert(records_.begin(), std::make_move_iterator(records.begin()), std::make_move_iterator(records.end()));
  DropOldest();
}

}  // namespace fusion
