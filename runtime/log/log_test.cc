#include "runtime/log/log.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace fusion {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string Written(const LogOptions& options, const std::vector<LogLine>& lines) {
  std::ostringstream stream;
  const Log log = MakeLog(options, &stream).value();
  for (const LogLine& line : lines) log(line);
  return stream.str();
}

constexpr char kTime[] = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z";

TEST(Log, TextIsALineWithItsFields) {
  const std::string text =
      Written({"fusiond"}, {{LogLevel::kWarning, "100% of it", {{"job", "j-1"}, {"model", "a b"}, {"empty", ""}}}});
  EXPECT_THAT(text,
              MatchesRegex(std::string(kTime) + " warning fusiond: 100% of it job=j-1 model=\"a b\" empty=\"\"\n"));
}

TEST(Log, JsonIsAnObjectALine) {
  const std::string text = Written({"fusiond", "json"}, {{LogLevel::kError, "a \"b\"\n%v", {{"job", "j-1"}}},
                                                         {LogLevel::kInfo, "not \xff UTF-8", {}}});
  const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2) << text;
  const nlohmann::json first = nlohmann::json::parse(lines[0]);
  EXPECT_THAT(first["time"].get<std::string>(), MatchesRegex(kTime));
  EXPECT_EQ(first["level"], "error");
  EXPECT_EQ(first["program"], "fusiond");
  EXPECT_EQ(first["message"], "a \"b\"\n%v");
  EXPECT_EQ(first["job"], "j-1");
  EXPECT_EQ(first.size(), 5);
  EXPECT_TRUE(nlohmann::json::accept(lines[1]));
}

TEST(Log, NoValueStartsALineOfItsOwn) {
  const std::string text = Written({"fusiond"}, {{LogLevel::kInfo, "a\nb", {{"model", "c\nd\x1b[31m"}}}});
  EXPECT_THAT(text, HasSubstr("a\\nb model=c\\nd\\x1b[31m\n"));
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(Log, LinesBelowTheLevelAreDropped) {
  const std::vector<LogLine> lines = {{LogLevel::kDebug, "one", {}},
                                      {LogLevel::kInfo, "two", {}},
                                      {LogLevel::kWarning, "three", {}},
                                      {LogLevel::kError, "four", {}}};
  int64_t expected = 4;
  for (const std::string& level : LogLevels()) {
    const std::string text = Written({"p", "text", level}, lines);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), expected--) << level;
    EXPECT_THAT(text, HasSubstr("four"));
  }
}

TEST(Log, UnknownNamesAreRefusedWithTheKnownOnes) {
  EXPECT_EQ(MakeLog({"p", "xml"}).status().message(), "log format 'xml' is unknown; use one of text, json");
  EXPECT_EQ(MakeLog({"p", "text", "loud"}).status().message(),
            "log level 'loud' is unknown; use one of debug, info, warning, error");
}

}  // namespace
}  // namespace fusion
