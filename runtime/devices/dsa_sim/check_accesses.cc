#include <algorithm>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/check.h"
#include "runtime/devices/dsa_sim/order.h"
#include "runtime/devices/dsa_sim/slice.h"

namespace fusion::dsa {
namespace {

constexpr int kInput = -1;  // stands for the writer of an input

// The last accesses to a range of bytes that have the same history.
struct Segment {
  int64_t end = 0;
  int writer = kInput;
  std::vector<int> readers;  // since then; none has completed before another of them starts
};

// The history of one memory: segments by their first byte. Bytes outside all segments were never written.
class History {
 public:
  using Segments = std::map<int64_t, Segment>;

  // Makes a segment begin at `at` if one contains it.
  void Split(int64_t at) {
    auto it = segments_.upper_bound(at);
    if (it == segments_.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Segment rest = it->second;
    it->second.end = at;
    segments_.emplace(at, std::move(rest));
  }
  // Is each byte of [begin, end) in a segment? Otherwise *missing is the first that is not.
  bool Written(int64_t begin, int64_t end, int64_t* missing) const {
    auto it = segments_.upper_bound(begin);
    if (it != segments_.begin()) --it;
    for (int64_t at = begin; at < end; at = it->second.end, ++it) {
      if (it == segments_.end() || it->first > at || it->second.end <= at) {
        *missing = at;
        return false;
      }
      if (it->second.end >= end) break;
    }
    return true;
  }
  Segments& segments() { return segments_; }

 private:
  Segments segments_;
};

class AccessCheck {
 public:
  AccessCheck(const Machine& machine, const Program& program) : program_(program), before_(machine, program) {}

  absl::Status Run() {
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.input)
        Overwrite(Of(buffer.memory), buffer.offset_bytes, buffer.offset_bytes + buffer.size_bytes(), kInput);
    }
    for (int i = 0; i < static_cast<int>(program_.instructions.size()); ++i) {
      const Instruction& instruction = program_.instructions[i];
      if (instruction.kind == Kind::kSync) continue;
      std::vector<Slice> read = instruction.from;
      if (instruction.accumulate) read.push_back(instruction.to);
      for (const Slice& slice : read) RETURN_IF_ERROR(Each(slice, i, &AccessCheck::Read));
      RETURN_IF_ERROR(Each(instruction.to, i, &AccessCheck::Write));
      for (const Slice& slice : instruction.also) RETURN_IF_ERROR(Each(slice, i, &AccessCheck::Write));
    }
    for (const Buffer& buffer : program_.buffers) {
      int64_t missing = 0;
      if (buffer.output &&
          !Of(buffer.memory).Written(buffer.offset_bytes, buffer.offset_bytes + buffer.size_bytes(), &missing)) {
        return absl::FailedPreconditionError(
            absl::StrCat("element ", Element(buffer, missing), " of the output ", buffer.name, " is never written"));
      }
    }
    return absl::OkStatus();
  }

 private:
  History& Of(const Memory& memory) {
    return histories_[{static_cast<int>(memory.level), memory.place.cluster, memory.place.core}];
  }
  static int64_t Element(const Buffer& buffer, int64_t byte) {
    return (byte - buffer.offset_bytes) / DTypeBytes(buffer.dtype);
  }
  std::string Name(int i) const { return absl::StrCat("instruction ", i, " (", PrintInstruction(program_, i), ")"); }

  absl::Status Each(const Slice& slice, int i,
                    absl::Status (AccessCheck::*access)(const Buffer&, History&, int64_t, int64_t, int)) {
    const Buffer& buffer = program_.buffers[slice.buffer];
    absl::Status status;
    VisitByteRanges(program_, slice, [&](int64_t begin, int64_t end) {
      if (status.ok()) status = (this->*access)(buffer, Of(buffer.memory), begin, end, i);
    });
    return status;
  }

  absl::Status Race(const Buffer& buffer, int64_t byte, int earlier, const char* did, int later,
                    const char* does) const {
    return absl::FailedPreconditionError(
        absl::StrCat(Name(later), " ", does, " element ", Element(buffer, byte), " of ", buffer.name, ", which ",
                     Name(earlier), " ", did, ", and nothing makes it wait for that; add it to 'after', or a sync"));
  }

  absl::Status Read(const Buffer& buffer, History& history, int64_t begin, int64_t end, int i) {
    int64_t missing = 0;
    if (!history.Written(begin, end, &missing)) {
      return absl::FailedPreconditionError(absl::StrCat(Name(i), " reads element ", Element(buffer, missing), " of ",
                                                        buffer.name, ", which was never written"));
    }
    history.Split(begin);
    history.Split(end);
    for (auto it = history.segments().find(begin); it != history.segments().end() && it->first < end; ++it) {
      Segment& segment = it->second;
      if (segment.writer != kInput && segment.writer != i && !before_(segment.writer, i)) {
        return Race(buffer, it->first, segment.writer, "writes", i, "reads");
      }
      std::vector<int>& readers = segment.readers;
      readers.erase(std::remove_if(readers.begin(), readers.end(), [&](int r) { return r == i || before_(r, i); }),
                    readers.end());
      readers.push_back(i);
    }
    return absl::OkStatus();
  }

  absl::Status Write(const Buffer& buffer, History& history, int64_t begin, int64_t end, int i) {
    history.Split(begin);
    history.Split(end);
    for (auto it = history.segments().lower_bound(begin); it != history.segments().end() && it->first < end; ++it) {
      const Segment& segment = it->second;
      if (segment.writer != kInput && segment.writer != i && !before_(segment.writer, i)) {
        return Race(buffer, it->first, segment.writer, "writes", i, "writes");
      }
      for (const int reader : segment.readers) {
        if (reader != i && !before_(reader, i)) return Race(buffer, it->first, reader, "reads", i, "writes");
      }
    }
    Overwrite(history, begin, end, i);
    return absl::OkStatus();
  }

  static void Overwrite(History& history, int64_t begin, int64_t end, int writer) {
    history.Split(begin);
    history.Split(end);
    auto& segments = history.segments();
    segments.erase(segments.lower_bound(begin), segments.lower_bound(end));
    segments[begin] = Segment{end, writer, {}};
  }

  const Program& program_;
  HappensBefore before_;
  std::map<std::tuple<int, int, int>, History> histories_;
};

}  // namespace

absl::Status CheckAccesses(const Machine& machine, const Program& program) {
  return AccessCheck(machine, program).Run();
}

}  // namespace fusion::dsa
