// TextReader: what the parsers of te programs and of movement graphs share. It reads tokens, indices and predicates
// from a text and remembers the first error. After an error every reader returns at once, and the loops of a parser end
// because nothing more is accepted.
#ifndef FUSION_COMPILER_TE_PROGRAM_TEXT_READER_H_
#define FUSION_COMPILER_TE_PROGRAM_TEXT_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/te/index/index.h"
#include "compiler/te/scalar/pred.h"
#include "runtime/base/dtype.h"

namespace fusion::te {

class TextReader {
 public:
  // `text` must outlive the reader.
  explicit TextReader(const std::string& text) : text_(text) {}
  virtual ~TextReader() = default;

 protected:
  static constexpr int kMaxDepth = 2000;  // of nested indices and expressions

  void Fail(const std::string& message);
  bool failed() const { return failed_; }
  // INVALID_ARGUMENT "line 3: expected …, found '…'".
  absl::Status status() const;

  // Tokens. White space in front of each is skipped.
  void Space();
  bool AtEnd();
  char Next() const { return at_ < text_.size() ? text_[at_] : '\0'; }  // of the text, without skipping
  bool Looking(const char* token);
  bool Accept(const char* token);
  void Expect(const char* token);
  bool AcceptWord(const char* word);  // the token, and no letter, digit or underscore behind it
  std::string Word();
  int64_t Int();
  int Id(const char* prefix);                                      // the number behind `prefix`, below 2^20
  std::vector<int64_t> Ints(const char* open, const char* close);  // separated by commas
  DType Type();

  // Indices and predicates, as index.h and print.cc write them.
  Index ParseIndex();
  Pred ParsePred();
  std::vector<Index> ParseIndices();

  // An axis by its number; null, where there is none, is an error.
  virtual const Axis* FindAxis(int id) const = 0;
  // A load from an integer tensor: what begins with '%'.
  virtual Index ParseIndexLoad() = 0;

  const std::string& text_;
  size_t at_ = 0;
  int depth_ = 0;

 private:
  Index ParseFactor();
  Index ParseAtom();

  bool failed_ = false;
  std::string error_;
};

}  // namespace fusion::te

#endif  // FUSION_COMPILER_TE_PROGRAM_TEXT_READER_H_
