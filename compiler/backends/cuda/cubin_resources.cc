#include "compiler/backends/cuda/cubin_resources.h"

#include <elf.h>

#include <cstring>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

constexpr uint8_t kSizedValue = 0x04, kFrameSize = 0x11, kRegisterCount = 0x2f;
constexpr size_t kAttributeHead = 4;  // format, number, size

absl::Status Short() { return absl::InvalidArgumentError("the bytes are no cubin, or are cut short"); }

class Reader {
 public:
  explicit Reader(absl::string_view bytes) : bytes_(bytes) {}

  absl::Status Open() {
    ASSIGN_OR_RETURN(const auto head, At<Elf64_Ehdr>(0));
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return Short();
    for (size_t s = 0; s < head.e_shnum; ++s) {
      ASSIGN_OR_RETURN(sections_.emplace_back(), At<Elf64_Shdr>(head.e_shoff + s * sizeof(Elf64_Shdr)));
    }
    if (head.e_shstrndx >= sections_.size()) return Short();
    for (const Elf64_Shdr& section : sections_) {
      ASSIGN_OR_RETURN(names_.emplace_back(), Text(sections_[head.e_shstrndx], section.sh_name));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ResourcesBySymbol> Resources() {
    ResourcesBySymbol resources;
    for (size_t s = 0; s < sections_.size(); ++s) {
      absl::string_view name = names_[s];
      if (absl::ConsumePrefix(&name, ".text.")) resources[std::string(name)];
    }
    for (size_t s = 0; s < sections_.size(); ++s) {
      absl::string_view name = names_[s];
      if (absl::ConsumePrefix(&name, ".nv.shared.")) {
        const auto found = resources.find(std::string(name));
        if (found != resources.end()) found->second.shared_bytes = static_cast<int64_t>(sections_[s].sh_size);
      } else if (name == ".nv.info") {
        RETURN_IF_ERROR(ReadInfo(sections_[s], &resources));
      }
    }
    return resources;
  }

 private:
  template <typename T>
  absl::StatusOr<T> At(size_t offset) const {
    if (offset > bytes_.size() || bytes_.size() - offset < sizeof(T)) return Short();
    T value;
    memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }

  absl::StatusOr<std::string> Text(const Elf64_Shdr& strings, size_t at) const {
    if (strings.sh_offset > bytes_.size() || strings.sh_size > bytes_.size() - strings.sh_offset) return Short();
    const absl::string_view table = bytes_.substr(strings.sh_offset, strings.sh_size);
    const size_t end = at < table.size() ? table.find('\0', at) : absl::string_view::npos;
    if (end == absl::string_view::npos) return Short();
    return std::string(table.substr(at, end - at));
  }

  absl::StatusOr<std::string> SymbolName(uint32_t symbol) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections_.size()) continue;
      ASSIGN_OR_RETURN(const auto entry, At<Elf64_Sym>(section.sh_offset + symbol * sizeof(Elf64_Sym)));
      return Text(sections_[section.sh_link], entry.st_name);
    }
    return Short();
  }

  absl::Status ReadInfo(const Elf64_Shdr& info, ResourcesBySymbol* resources) const {
    for (size_t at = info.sh_offset; at + kAttributeHead <= info.sh_offset + info.sh_size;) {
      ASSIGN_OR_RETURN(const auto format, At<uint8_t>(at));
      ASSIGN_OR_RETURN(const auto attribute, At<uint8_t>(at + 1));
      ASSIGN_OR_RETURN(const auto length, At<uint16_t>(at + 2));
      const size_t size = format == kSizedValue ? length : 0;
      if (size == 8 && (attribute == kRegisterCount || attribute == kFrameSize)) {
        ASSIGN_OR_RETURN(const auto symbol, At<uint32_t>(at + kAttributeHead));
        ASSIGN_OR_RETURN(const auto value, At<uint32_t>(at + kAttributeHead + sizeof symbol));
        ASSIGN_OR_RETURN(const std::string name, SymbolName(symbol));
        const auto found = resources->find(name);
        if (found != resources->end() && attribute == kRegisterCount) found->second.registers = static_cast<int>(value);
        if (found != resources->end() && attribute == kFrameSize) found->second.frame_bytes = value;
      }
      at += kAttributeHead + size;
    }
    return absl::OkStatus();
  }

  const absl::string_view bytes_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<std::string> names_;  // parallel to the sections
};

}  // namespace

absl::StatusOr<ResourcesBySymbol> ResourcesOfCubin(const std::string& cubin) {
  Reader reader(cubin);
  RETURN_IF_ERROR(reader.Open());
  return reader.Resources();
}

}  // namespace fusion
