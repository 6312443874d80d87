#include <cstdio>

#include "absl/strings/str_cat.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

class VersionVerb : public Verb {
 public:
  std::string name() const override { return "version"; }
  std::string help() const override { return "versions of this program and, where one answers, of the server"; }
  std::vector<Option> Options() override { return {OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto capabilities = Connection::Open(common.endpoint)->GetCapabilities(absl::Seconds(2));
    if (format_ == "json") {
      std::printf("{\"client\": \"%s\", \"server\": %s}\n", FUSION_VERSION,
                  capabilities.ok() ? ProtoToJson(*capabilities, -1).c_str() : "null");
      return kExitOk;
    }
    std::printf("fusionctl %s\n", FUSION_VERSION);
    if (capabilities.ok()) {
      std::printf("fusiond   %s at %s\n", capabilities->server_version().c_str(), common.endpoint.address.c_str());
    } else {
      std::fprintf(stderr, "%s\n", std::string(capabilities.status().message()).c_str());
    }
    return kExitOk;
  }

 private:
  std::string format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeVersionVerb() { return std::make_unique<VersionVerb>(); }

}  // namespace fusion
