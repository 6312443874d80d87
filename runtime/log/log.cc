#include "runtime/log/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace fusion {
namespace {

constexpr spdlog::level::level_enum kSpdlogLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                       spdlog::level::err};

// Writes control characters as \n or \x1b: a model's name must not be able to write a line of its own.
std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n') {
      line += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      absl::StrAppendFormat(&line, "\\x%02x", c);
    } else {
      line += c;
    }
  }
  return line;
}

std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Text(const LogLine& line) {
  std::string text = OneLine(line.message);
  for (const LogField& field : line.fields) {
    const bool bare = !field.value.empty() && field.value.find_first_of(" \"=") == std::string::npos;
    absl::StrAppend(&text, " ", field.key, "=", bare ? OneLine(field.value) : OneLine(Quoted(field.value)));
  }
  return text;
}

// The members after those that the pattern writes.
std::string JsonMembers(const LogLine& line) {
  std::string text = absl::StrCat("\"message\":", Quoted(line.message));
  for (const LogField& field : line.fields) absl::StrAppend(&text, ",", Quoted(field.key), ":", Quoted(field.value));
  return text;
}

struct Format {
  const char* name;
  const char* pattern;
  std::string (*print)(const LogLine& line);
};
constexpr Format kFormats[] = {
    {"text", "%Y-%m-%dT%H:%M:%S.%eZ %l %n: %v", Text},
    {"json", R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","program":"%n",%v})", JsonMembers},
};

absl::Status Unknown(const char* what, const std::string& found, const std::vector<std::string>& known) {
  return absl::InvalidArgumentError(
      absl::StrCat(what, " '", found, "' is unknown; use one of ", absl::StrJoin(known, ", ")));
}

}  // namespace

Log NoLog() {
  return [](const LogLine&) {};
}

const std::vector<std::string>& LogFormats() {
  static const auto* const formats = [] {
    auto* names = new std::vector<std::string>;
    for (const Format& format : kFormats) names->push_back(format.name);
    return names;
  }();
  return *formats;
}

const std::vector<std::string>& LogLevels() {
  static const auto* const levels = new std::vector<std::string>{"debug", "info", "warning", "error"};
  return *levels;
}

absl::StatusOr<Log> MakeLog(const LogOptions& options, std::ostream* stream) {
  const auto level = std::find(LogLevels().begin(), LogLevels().end(), options.level);
  if (level == LogLevels().end()) return Unknown("log level", options.level, LogLevels());
  const Format* const format =
      std::find_if(std::begin(kFormats), std::end(kFormats), [&](const Format& f) { return f.name == options.format; });
  if (format == std::end(kFormats)) return Unknown("log format", options.format, LogFormats());
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (stream != nullptr) {
    sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(*stream, /*force_flush=*/true);
  } else {
    sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  }
  auto logger = std::make_shared<spdlog::logger>(options.program, std::move(sink));
  logger->set_formatter(
      std::make_unique<spdlog::pattern_formatter>(format->pattern, spdlog::pattern_time_type::utc, "\n"));
  logger->set_level(kSpdlogLevels[level - LogLevels().begin()]);
  return Log([logger, print = format->print](const LogLine& line) {
    const spdlog::level::level_enum as = kSpdlogLevels[static_cast<int>(line.level)];
    if (logger->should_log(as)) logger->log(as, print(line));
  });
}

}  // namespace fusion
