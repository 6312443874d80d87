#include "runtime/devices/opencl/program_file.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace fusion::opencl {
namespace {

constexpr absl::string_view kMagic = "fusion-opencl 1";

// Device and driver names come from drivers and may contain line breaks, which the file format cannot hold.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\0'; }, ' ');
  return text;
}

}  // namespace

std::string WriteProgramFile(const ProgramFile& file) {
  return absl::StrCat(kMagic, "\n", OneLine(file.device), "\n", OneLine(file.driver), "\n", file.source.size(), " ",
                      file.binary.size(), "\n", file.source, file.binary);
}

absl::StatusOr<ProgramFile> ReadProgramFile(absl::string_view bytes) {
  const std::vector<absl::string_view> lines = absl::StrSplit(bytes, absl::MaxSplits('\n', 4));
  const absl::Status bad = absl::InvalidArgumentError("not a kernel file of target opencl");
  if (lines.size() != 5 || lines[0] != kMagic) return bad;
  const std::vector<absl::string_view> sizes = absl::StrSplit(lines[3], ' ');
  size_t source = 0, binary = 0;
  if (sizes.size() != 2 || !absl::SimpleAtoi(sizes[0], &source) || !absl::SimpleAtoi(sizes[1], &binary)) return bad;
  if (source > lines[4].size() || lines[4].size() - source != binary) return bad;
  return ProgramFile{std::string(lines[1]), std::string(lines[2]), lines[4].substr(0, source), lines[4].substr(source)};
}

}  // namespace fusion::opencl
