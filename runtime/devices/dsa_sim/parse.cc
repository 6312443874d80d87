#include <functional>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/base/status_macros.h"
#include "runtime/devices/dsa_sim/program.h"

namespace fusion::dsa {
namespace {

// The tokens of one line: names and numbers, and single characters. A comment begins with #.
std::vector<absl::string_view> Tokens(absl::string_view line) {
  line = line.substr(0, line.find('#'));
  std::vector<absl::string_view> tokens;
  for (size_t i = 0; i < line.size();) {
    const auto word = [](char c) { return absl::ascii_isalnum(c) || c == '_' || c == '.'; };
    size_t end = i + 1;
    if (absl::ascii_isspace(line[i])) {
      ++i;
      continue;
    }
    const bool number = absl::ascii_isdigit(line[i]) || line[i] == '-';
    if (word(line[i]) || number) {
      // The sign of an exponent belongs to the number.
      while (end < line.size() && (word(line[end]) || (number && (line[end] == '-' || line[end] == '+') &&
                                                       absl::ascii_tolower(line[end - 1]) == 'e'))) {
        ++end;
      }
    } else if (line.substr(i, 2) == "+=") {
      end = i + 2;
    }
    tokens.push_back(line.substr(i, end - i));
    i = end;
  }
  return tokens;
}

class LineReader {
 public:
  LineReader(int number, std::vector<absl::string_view> tokens) : number_(number), tokens_(std::move(tokens)) {}

  bool AtEnd() const { return at_ == tokens_.size(); }
  absl::string_view Peek() const { return AtEnd() ? "the end of the line" : tokens_[at_]; }
  bool Take(absl::string_view token) {
    if (AtEnd() || tokens_[at_] != token) return false;
    ++at_;
    return true;
  }
  absl::Status Expect(absl::string_view token) {
    return Take(token) ? absl::OkStatus() : Expected(absl::StrCat("'", token, "'"));
  }
  absl::Status Expected(const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat("line ", number_, ": expected ", what, ", found ", Peek()));
  }
  absl::StatusOr<std::string> Word(const std::string& what) {
    if (AtEnd()) return Expected(what);
    return std::string(tokens_[at_++]);
  }
  absl::StatusOr<int64_t> Integer() {
    int64_t value = 0;
    if (AtEnd() || !absl::SimpleAtoi(tokens_[at_], &value)) return Expected("an integer");
    ++at_;
    return value;
  }
  absl::StatusOr<int> Cluster() {
    int value = 0;
    if (AtEnd() || !absl::SimpleAtoi(tokens_[at_], &value) || value < 0) return Expected("the number of a cluster");
    ++at_;
    return value;
  }
  absl::StatusOr<double> Number() {
    double value = 0;
    if (AtEnd() || !absl::SimpleAtod(tokens_[at_], &value)) return Expected("a number");
    ++at_;
    return value;
  }
  absl::StatusOr<Place> ReadPlace() {
    Place place;
    const std::vector<absl::string_view> parts = absl::StrSplit(AtEnd() ? "" : tokens_[at_], '.');
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &place.cluster) || !absl::SimpleAtoi(parts[1], &place.core)) {
      return Expected("a place such as 0.1 (cluster 0, core 1)");
    }
    ++at_;
    return place;
  }

 private:
  int number_;
  std::vector<absl::string_view> tokens_;
  size_t at_ = 0;
};

class Parser {
 public:
  absl::StatusOr<Program> Run(const std::string& text) {
    int number = 0;
    bool open = false, closed = false;
    bool in_expression = false;
    for (absl::string_view line : absl::StrSplit(text, '\n')) {
      ++number;
      if (in_expression) {
        in_expression = absl::StripAsciiWhitespace(line) != "end";
        if (in_expression) absl::StrAppend(&program_.expressions.back().text, line, "\n");
        continue;
      }
      LineReader reader(number, Tokens(line));
      if (reader.AtEnd()) continue;
      if (closed) return reader.Expected("nothing after the program");
      if (!open) {
        RETURN_IF_ERROR(ReadHead(&reader));
        open = true;
      } else if (reader.Take("}")) {
        closed = true;
      } else if (reader.Take("expression")) {
        RETURN_IF_ERROR(ReadExpressionHead(&reader));
        in_expression = true;
      } else if (reader.Take("buffer")) {
        RETURN_IF_ERROR(ReadBuffer(&reader));
      } else {
        RETURN_IF_ERROR(ReadInstruction(&reader));
      }
      if (!reader.AtEnd()) return reader.Expected("the end of the line");
    }
    if (!closed) return absl::InvalidArgumentError(absl::StrCat("line ", number, ": expected '}' after the program"));
    return std::move(program_);
  }

 private:
  absl::Status ReadHead(LineReader* reader) {
    RETURN_IF_ERROR(reader->Expect("program"));
    ASSIGN_OR_RETURN(program_.name, reader->Word("the program's name"));
    RETURN_IF_ERROR(reader->Expect("for"));
    ASSIGN_OR_RETURN(program_.machine, reader->Word("the machine's name"));
    return reader->Expect("{");
  }

  absl::Status ReadExpressionHead(LineReader* reader) {
    ASSIGN_OR_RETURN(const std::string name, reader->Word("the expression's name"));
    if (expressions_.count(name) > 0) return reader->Expected("a new name instead of '" + name + "'");
    expressions_[name] = static_cast<int>(program_.expressions.size());
    program_.expressions.push_back({name, ""});
    return absl::OkStatus();
  }

  // Reads "expr conv work 12 outputs (0, 2) reduce 0 4" if it stands there.
  absl::Status ReadPart(LineReader* reader, Instruction* instruction) {
    if (!reader->Take("expr")) return absl::OkStatus();
    auto it = expressions_.find(reader->Peek());
    if (it == expressions_.end()) return reader->Expected("the name of an expression");
    reader->Take(it->first);
    instruction->part.expression = it->second;
    RETURN_IF_ERROR(reader->Expect("work"));
    ASSIGN_OR_RETURN(instruction->part.work, reader->Number());
    if (reader->Take("outputs")) {
      RETURN_IF_ERROR(reader->Expect("("));
      do {
        ASSIGN_OR_RETURN(const int64_t output, reader->Integer());
        instruction->part.outputs.push_back(static_cast<int>(output));
      } while (reader->Take(","));
      RETURN_IF_ERROR(reader->Expect(")"));
    }
    if (reader->Take("reduce")) {
      ASSIGN_OR_RETURN(instruction->part.reduce_begin, reader->Integer());
      ASSIGN_OR_RETURN(instruction->part.reduce_end, reader->Integer());
    }
    return absl::OkStatus();
  }

  // Reads a slice, with its origin where the instruction computes a part of an expression.
  absl::StatusOr<Slice> ReadOperand(LineReader* reader, Instruction* instruction) {
    ASSIGN_OR_RETURN(Slice slice, ReadSlice(reader));
    if (!instruction->part.present()) return slice;
    std::vector<int64_t>& origin = instruction->part.origins.emplace_back();
    RETURN_IF_ERROR(reader->Expect("at"));
    RETURN_IF_ERROR(reader->Expect("("));
    if (reader->Take(")")) return slice;
    do {
      ASSIGN_OR_RETURN(origin.emplace_back(), reader->Integer());
    } while (reader->Take(","));
    RETURN_IF_ERROR(reader->Expect(")"));
    return slice;
  }

  absl::Status ReadResults(LineReader* reader, Instruction* instruction) {
    ASSIGN_OR_RETURN(instruction->to, ReadOperand(reader, instruction));
    while (instruction->part.present() && reader->Take(",")) {
      ASSIGN_OR_RETURN(Slice slice, ReadOperand(reader, instruction));
      instruction->also.push_back(std::move(slice));
    }
    return absl::OkStatus();
  }

  absl::Status ReadBuffer(LineReader* reader) {
    Buffer buffer;
    ASSIGN_OR_RETURN(buffer.name, reader->Word("the buffer's name"));
    if (buffers_.count(buffer.name) > 0) return reader->Expected("a new name instead of '" + buffer.name + "'");
    if (reader->Take("ddr")) {
      buffer.memory.level = Level::kDdr;
    } else if (reader->Take("gb")) {
      buffer.memory.level = Level::kGlobal;
      ASSIGN_OR_RETURN(buffer.memory.place.cluster, reader->Cluster());
    } else if (reader->Take("lb")) {
      buffer.memory.level = Level::kLocal;
      ASSIGN_OR_RETURN(buffer.memory.place, reader->ReadPlace());
    } else {
      return reader->Expected("ddr, gb or lb");
    }
    ASSIGN_OR_RETURN(buffer.offset_bytes, reader->Integer());
    const std::string type(reader->Peek());
    const std::optional<DType> dtype = ParseDType(type);
    if (!dtype) return reader->Expected("an element type");
    reader->Take(type);
    buffer.dtype = *dtype;
    RETURN_IF_ERROR(reader->Expect("["));
    ASSIGN_OR_RETURN(buffer.elements, reader->Integer());
    RETURN_IF_ERROR(reader->Expect("]"));
    buffer.input = reader->Take("input");
    buffer.output = reader->Take("output");
    buffers_[buffer.name] = static_cast<int>(program_.buffers.size());
    program_.buffers.push_back(std::move(buffer));
    return absl::OkStatus();
  }

  absl::StatusOr<Slice> ReadSlice(LineReader* reader) {
    Slice slice;
    auto it = buffers_.find(reader->Peek());
    if (it == buffers_.end()) return reader->Expected("the name of a buffer");
    reader->Take(it->first);
    slice.buffer = it->second;
    RETURN_IF_ERROR(reader->Expect("["));
    ASSIGN_OR_RETURN(slice.first, reader->Integer());
    if (reader->Take("+")) {
      do {
        Stride stride;
        ASSIGN_OR_RETURN(stride.count, reader->Integer());
        RETURN_IF_ERROR(reader->Expect(":"));
        ASSIGN_OR_RETURN(stride.stride, reader->Integer());
        slice.strides.push_back(stride);
      } while (reader->Take(","));
    }
    RETURN_IF_ERROR(reader->Expect("]"));
    return slice;
  }

  absl::Status ReadOperands(LineReader* reader, int count, const std::string& between, Instruction* instruction) {
    if (instruction->part.present()) {  // as many operands as the expression takes, which is not known here
      if (reader->AtEnd() || reader->Peek() == "after") return absl::OkStatus();
      do {
        ASSIGN_OR_RETURN(Slice slice, ReadOperand(reader, instruction));
        instruction->from.push_back(std::move(slice));
        RETURN_IF_ERROR(reader->Expect("as"));
        ASSIGN_OR_RETURN(const int64_t input, reader->Integer());
        instruction->part.inputs.push_back(static_cast<int>(input));
      } while (reader->Take(","));
      return absl::OkStatus();
    }
    for (int i = 0; i < count; ++i) {
      if (i > 0) RETURN_IF_ERROR(reader->Expect(between));
      ASSIGN_OR_RETURN(Slice slice, ReadSlice(reader));
      instruction->from.push_back(std::move(slice));
    }
    return absl::OkStatus();
  }

  absl::Status ReadMatrix(LineReader* reader, Instruction* instruction) {
    ASSIGN_OR_RETURN(instruction->unit, reader->Word("the name of a unit"));
    ASSIGN_OR_RETURN(instruction->place, reader->ReadPlace());
    RETURN_IF_ERROR(ReadPart(reader, instruction));
    RETURN_IF_ERROR(ReadResults(reader, instruction));
    instruction->accumulate = reader->Take("+=");
    if (!instruction->accumulate) RETURN_IF_ERROR(reader->Expect("="));
    return ReadOperands(reader, 2, "*", instruction);
  }

  absl::Status ReadVector(LineReader* reader, Instruction* instruction) {
    ASSIGN_OR_RETURN(instruction->unit, reader->Word("the name of a unit"));
    ASSIGN_OR_RETURN(instruction->place, reader->ReadPlace());
    RETURN_IF_ERROR(ReadPart(reader, instruction));
    if (instruction->part.present()) {
      RETURN_IF_ERROR(ReadResults(reader, instruction));
      RETURN_IF_ERROR(reader->Expect("="));
      return ReadOperands(reader, 0, ",", instruction);
    }
    const std::string name(reader->Peek());
    const std::optional<VectorOp> op = ParseVectorOp(name);
    if (!op) return reader->Expected("an operation of a vector unit");
    reader->Take(name);
    instruction->op = *op;
    ASSIGN_OR_RETURN(instruction->to, ReadSlice(reader));
    RETURN_IF_ERROR(reader->Expect("="));
    if (*op == VectorOp::kFill) {
      ASSIGN_OR_RETURN(instruction->immediate, reader->Number());
      return absl::OkStatus();
    }
    return ReadOperands(reader, GetVectorOpInfo(*op).operands, ",", instruction);
  }

  absl::Status ReadInstruction(LineReader* reader) {
    const std::string number = absl::StrCat(program_.instructions.size());
    if (!reader->Take(number)) return reader->Expected(absl::StrCat("buffer, } or the instruction's number ", number));
    RETURN_IF_ERROR(reader->Expect(":"));
    static const std::map<std::string, Kind, std::less<>>* const kKinds =
        new std::map<std::string, Kind, std::less<>>{{"load", Kind::kLoad},     {"store", Kind::kStore},
                                                     {"move", Kind::kMove},     {"redistribute", Kind::kRedistribute},
                                                     {"matrix", Kind::kMatrix}, {"vector", Kind::kVector},
                                                     {"sync", Kind::kSync}};
    auto kind = kKinds->find(reader->Peek());
    if (kind == kKinds->end()) return reader->Expected("an instruction");
    reader->Take(kind->first);
    Instruction instruction;
    instruction.kind = kind->second;
    if (instruction.kind == Kind::kSync) {
      instruction.cluster = -1;
      if (!reader->Take("all")) {
        ASSIGN_OR_RETURN(instruction.cluster, reader->Cluster());
      }
    } else if (instruction.kind == Kind::kMatrix) {
      RETURN_IF_ERROR(ReadMatrix(reader, &instruction));
    } else if (instruction.kind == Kind::kVector) {
      RETURN_IF_ERROR(ReadVector(reader, &instruction));
    } else {
      if (instruction.kind == Kind::kLoad) RETURN_IF_ERROR(ReadPart(reader, &instruction));
      RETURN_IF_ERROR(ReadResults(reader, &instruction));
      RETURN_IF_ERROR(reader->Expect("="));
      RETURN_IF_ERROR(ReadOperands(reader, 1, ",", &instruction));
    }
    if (reader->Take("after")) {
      do {
        ASSIGN_OR_RETURN(const int64_t earlier, reader->Integer());
        if (earlier < 0 || earlier >= static_cast<int64_t>(program_.instructions.size())) {
          return reader->Expected(absl::StrCat("an earlier instruction instead of ", earlier));
        }
        instruction.after.push_back(static_cast<int>(earlier));
      } while (reader->Take(","));
    }
    program_.instructions.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  Program program_;
  std::map<std::string, int, std::less<>> buffers_, expressions_;
};

}  // namespace

absl::StatusOr<Program> Parse(const std::string& text) { return Parser().Run(text); }

}  // namespace fusion::dsa
