#include "runtime/base/npy.h"

#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "runtime/base/atomic_file.h"
#include "runtime/base/mapped_file.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr const char* kDescr[kNumDTypes] = {"<f4", "<f8", "<f2", "<V2", "|i1", "<i2", "<i4",
                                            "<i8", "|u1", "<u2", "<u4", "<u8", "|b1", "|i1", "|u1",
                                            "|i1", "|u1", "|u1", "|u1", "|u1", "|u1", "|u1", "|u1",
                                            "|u1", "|u1"};

absl::Status Bad(absl::string_view why) { return absl::InvalidArgumentError(absl::StrCat("not a usable .npy: ", why)); }

// Reads the header, which is a Python dictionary literal with exactly three known keys, and accepts nothing else.
class HeaderParser {
 public:
  explicit HeaderParser(absl::string_view text) : text_(text) {}

  absl::Status Parse() {
    if (!Take("{")) return Bad("header does not begin with '{'");
    while (!Take("}")) {
      ASSIGN_OR_RETURN(const std::string key, String());
      if (!Take(":")) return Bad("header lacks ':'");
      if (key == "descr") {
        ASSIGN_OR_RETURN(descr, String());
      } else if (key == "fortran_order") {
        if (Take("True")) {
          return Bad("array is column-major; save numpy.ascontiguousarray(x)");
        }
        if (!Take("False")) return Bad("fortran_order is neither True nor False");
        has_order_ = true;
      } else if (key == "shape") {
        RETURN_IF_ERROR(Tuple());
      } else {
        return Bad(absl::StrCat("unknown header key '", key, "'"));
      }
      if (!Take(",") && !absl::StartsWith(text_, "}")) return Bad("header lacks ','");
      SkipSpace();
    }
    SkipSpace();
    if (!text_.empty()) return Bad("text after the header's '}'");
    if (descr.empty() || !has_order_ || !has_shape_) return Bad("header lacks descr, fortran_order or shape");
    return absl::OkStatus();
  }

  std::string descr;
  Shape shape;

 private:
  void SkipSpace() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n' || text_[0] == '\t')) text_.remove_prefix(1);
  }
  bool Take(absl::string_view token) {
    SkipSpace();
    const bool taken = absl::ConsumePrefix(&text_, token);
    if (taken) SkipSpace();
    return taken;
  }
  absl::StatusOr<std::string> String() {
    SkipSpace();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) {
      return Bad("header lacks a string (structured types are not supported)");
    }
    const size_t end = text_.find(text_[0], 1);
    if (end == absl::string_view::npos) return Bad("unterminated string in header");
    std::string value(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return value;
  }
  absl::Status Tuple() {
    shape.clear();
    if (!Take("(")) return Bad("shape is not a tuple");
    while (!Take(")")) {
      size_t digits = 0;
      while (digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9') ++digits;
      int64_t extent = 0;
      if (digits == 0 || !absl::SimpleAtoi(text_.substr(0, digits), &extent)) return Bad("bad extent in shape");
      text_.remove_prefix(digits);
      shape.push_back(extent);
      if (shape.size() > 64) return Bad("more than 64 axes");
      if (!Take(",") && !absl::StartsWith(text_, ")")) return Bad("shape lacks ','");
    }
    has_shape_ = true;
    return absl::OkStatus();
  }

  absl::string_view text_;
  bool has_order_ = false, has_shape_ = false;
};

absl::StatusOr<DType> DTypeOfDescr(const std::string& descr) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const std::string known = kDescr[i];
    const bool byte_order_free = known[0] == '|' || known == "<V2";
    if (descr == known || (byte_order_free && descr.size() == 3 && descr.substr(1) == known.substr(1))) {
      return static_cast<DType>(i);
    }
  }
  // NumPy writes an array of a one-byte type of ml_dtypes like this; the file does not say which type it was.
  if (descr == "<V1" || descr == "|V1" || descr == "<f1") return DType::kU8;
  if (!descr.empty() && descr[0] == '>') return Bad(absl::StrCat("type '", descr, "' is big-endian"));
  return Bad(absl::StrCat("unsupported element type '", descr, "'"));
}

}  // namespace

absl::StatusOr<Tensor> ParseNpy(absl::string_view bytes) {
  if (!absl::StartsWith(bytes, kMagic) || bytes.size() < 10) return Bad("wrong magic bytes");
  const auto byte = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(bytes[i])); };
  const size_t version = byte(6);
  if ((version != 1 && version != 2) || byte(7) != 0) return Bad("version is neither 1.0 nor 2.0");
  size_t prefix = 10;
  size_t header_bytes = byte(8) | byte(9) << 8;
  if (version == 2) {
    if (bytes.size() < 12) return Bad("truncated");
    prefix = 12;
    header_bytes |= byte(10) << 16 | byte(11) << 24;
  }
  if (bytes.size() - prefix < header_bytes) return Bad("truncated header");
  HeaderParser header(bytes.substr(prefix, header_bytes));
  RETURN_IF_ERROR(header.Parse());
  ASSIGN_OR_RETURN(const DType dtype, DTypeOfDescr(header.descr));
  ASSIGN_OR_RETURN(const int64_t size_bytes, CheckedSizeBytes(header.shape, dtype));
  const absl::string_view data = bytes.substr(prefix + header_bytes);
  if (data.size() != static_cast<size_t>(size_bytes)) {
    return Bad(absl::StrCat("shape ", ShapeToString(header.shape), " of ", DTypeName(dtype), " needs ", size_bytes,
                            " bytes, the file has ", data.size()));
  }
  Tensor tensor(dtype, header.shape);
  if (size_bytes > 0) std::memcpy(tensor.mutable_data(), data.data(), data.size());
  if (dtype == DType::kBool) {
    for (const char value : data) {
      if (value != 0 && value != 1) return Bad("a bool that is neither 0 nor 1");
    }
  }
  return tensor;
}

std::string SerializeNpy(const Tensor& tensor) {
  const std::string shape =
      absl::StrCat("(", absl::StrJoin(tensor.shape(), ", "), tensor.shape().size() == 1 ? ",)" : ")");
  std::string header = absl::StrCat("{'descr': '", kDescr[static_cast<int>(tensor.dtype())],
                                    "', 'fortran_order': False, 'shape': ", shape, ", }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string bytes(kMagic);
  bytes += '\x01';
  bytes += '\0';
  bytes += static_cast<char>(header.size() & 255);
  bytes += static_cast<char>(header.size() >> 8);
  bytes += header;
  bytes.append(static_cast<const char*>(tensor.data()), tensor.size_bytes());
  return bytes;
}

absl::StatusOr<Tensor> ReadNpyFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const MappedFile> file, MappedFile::Open(path));
  absl::StatusOr<Tensor> tensor = ParseNpy(file->bytes());
  if (!tensor.ok()) return Annotate(tensor.status(), absl::StrCat("'", path, "'"));
  return tensor;
}

absl::Status WriteNpyFile(const std::string& path, const Tensor& tensor) {
  return WriteFileAtomically(path, SerializeNpy(tensor));
}

}  // namespace fusion
