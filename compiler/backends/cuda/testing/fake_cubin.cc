#include "compiler/backends/cuda/testing/fake_cubin.h"

#include <elf.h>

#include <cstring>
#include <utility>
#include <vector>

namespace fusion {
namespace {

template <typename T>
void Append(const T& value, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT: the bytes of a plain struct
}

// Names one after another, each with a zero behind it, the empty one first.
class Names {
 public:
  uint32_t Add(const std::string& name) {
    const auto at = static_cast<uint32_t>(bytes_.size());
    bytes_ += name + '\0';
    return at;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_ = std::string(1, '\0');
};

struct Section {
  std::string name;
  std::string bytes;
  uint32_t type = SHT_PROGBITS;
  uint32_t link = 0;
  uint64_t size = 0;  // of a section without bytes
};

void AppendAttribute(uint8_t attribute, uint32_t symbol, uint32_t value, std::string* info) {
  constexpr uint8_t kSizedValue = 0x04;
  Append(kSizedValue, info);
  Append(attribute, info);
  Append(static_cast<uint16_t>(2 * sizeof(uint32_t)), info);
  Append(symbol, info);
  Append(value, info);
}

}  // namespace

std::string FakeCubin(const ResourcesBySymbol& functions) {
  constexpr uint8_t kFrameSize = 0x11, kRegisterCount = 0x2f;
  Names symbol_names;
  std::string symbols, info;
  Append(Elf64_Sym{}, &symbols);
  std::vector<Section> sections = {{"", "", SHT_NULL}, {".symtab", "", SHT_SYMTAB, 2}, {".strtab", "", SHT_STRTAB}};
  uint32_t number = 0;
  for (const auto& [name, takes] : functions) {
    Elf64_Sym symbol{};
    symbol.st_name = symbol_names.Add(name);
    Append(symbol, &symbols);
    ++number;
    AppendAttribute(kFrameSize, number, static_cast<uint32_t>(takes.frame_bytes), &info);
    AppendAttribute(kRegisterCount, number, static_cast<uint32_t>(takes.registers), &info);
    sections.push_back({".text." + name, "code"});
    if (takes.shared_bytes > 0) {
      sections.push_back({".nv.shared." + name, "", SHT_NOBITS, 0, static_cast<uint64_t>(takes.shared_bytes)});
    }
  }
  sections[1].bytes = symbols;
  sections[2].bytes = symbol_names.bytes();
  sections.push_back({".nv.info", info});
  sections.push_back({".shstrtab", "", SHT_STRTAB});
  Names section_names;
  std::string headers, contents;
  std::vector<uint32_t> name_at;
  for (const Section& section : sections) name_at.push_back(section_names.Add(section.name));
  sections.back().bytes = section_names.bytes();
  for (size_t s = 0; s < sections.size(); ++s) {
    Elf64_Shdr header{};
    header.sh_name = name_at[s];
    header.sh_type = sections[s].type;
    header.sh_link = sections[s].link;
    header.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
    header.sh_size = sections[s].bytes.empty() ? sections[s].size : sections[s].bytes.size();
    contents += sections[s].bytes;
    Append(header, &headers);
  }
  Elf64_Ehdr head{};
  memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_shoff = sizeof head + contents.size();
  head.e_shnum = static_cast<uint16_t>(sections.size());
  head.e_shstrndx = static_cast<uint16_t>(sections.size() - 1);
  std::string file;
  Append(head, &file);
  return file + contents + headers;
}

}  // namespace fusion
