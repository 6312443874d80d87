// Verb: a command of fusionctl, one to three words. A verb declares its options as data and never includes the library
// that parses them, because that library costs eight seconds a translation unit.
#ifndef FUSION_CLIENT_CLI_VERB_H_
#define FUSION_CLIENT_CLI_VERB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "proto/channel/endpoint.h"

namespace fusion {

struct Option {
  std::string names;  // "-o,--output"; without a dash: positional
  std::string help;
  std::variant<std::string*, int64_t*, bool*, std::vector<std::string>*> target;  // a bool takes no value
  bool required = false;
  std::vector<std::string> choices = {};  // empty: any
};

// The options that every verb gets.
struct CommonOptions {
  Endpoint endpoint;     // of the server, for verbs that use it
  std::string progress;  // auto | tty | plain | none
};

class Verb {
 public:
  virtual ~Verb() = default;
  virtual std::string name() const = 0;  // "submit", "job list", "auth token list"
  virtual std::string help() const = 0;  // one line
  virtual std::vector<Option> Options() = 0;
  virtual bool UsesServer() const { return true; }
  // Returns the process's exit code (exit_codes.h). Data goes to stdout, everything else to stderr.
  virtual int Run(const CommonOptions& common) = 0;
};

// Returns all verbs, in the order of the help text. A new verb is a line there and a file.
std::vector<std::unique_ptr<Verb>> AllVerbs();

// The option -o table|json.
Option OutputOption(std::string* format);

}  // namespace fusion

#endif  // FUSION_CLIENT_CLI_VERB_H_
