#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/progress.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/verbs.h"

namespace fusion {
namespace {

// The server refuses what stands on the command line here: an age or a folder.
absl::Status AsUsage(const absl::Status& status) {
  return absl::IsInvalidArgument(status) ? UsageError(std::string(status.message())) : status;
}

class AdminGcVerb : public Verb {
 public:
  std::string name() const override { return "admin gc"; }
  std::string help() const override {
    return "remove what the server has kept long enough, now instead of within the hour";
  }
  std::vector<Option> Options() override {
    return {
        {"--keep", "finished jobs, their models and bundles stay that long: 30d, 12h [as fusiond --keep says]", &keep_},
        {"--grace", "uploads that no job names stay that long: 1h, 30m, 0s [1h]", &grace_},
        OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    v1::CollectRequest request;
    for (const auto& [option, text] : {std::pair("--keep", keep_), std::pair("--grace", grace_)}) {
      if (text.empty()) continue;
      const absl::StatusOr<absl::Duration> age = ParseAge(option, text);
      if (!age.ok()) return Fail(age.status());
      const int64_t ms = absl::ToInt64Milliseconds(*age);
      option == std::string("--keep") ? request.set_keep_ms(ms) : request.set_grace_ms(ms);
    }
    const auto collected = Connection::Open(common.endpoint)->Collect(request);
    if (!collected.ok()) return Fail(AsUsage(collected.status()));
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*collected).c_str());
      return kExitOk;
    }
    std::printf("removed  %s, %s, %s, %s\n", Plural(collected->jobs(), "job").c_str(),
                Plural(collected->results(), "answer").c_str(), Plural(collected->tasks(), "task").c_str(),
                Plural(collected->builds(), "build").c_str());
    std::printf("freed    %s in %s\n", BytesInWords(collected->bytes()).c_str(),
                Plural(collected->blobs() + collected->strays(), "file").c_str());
    return kExitOk;
  }

 private:
  std::string keep_, grace_, format_ = "table";
};

class AdminCheckVerb : public Verb {
 public:
  std::string name() const override { return "admin check"; }
  std::string help() const override { return "read everything that the server keeps, and name what is damaged"; }
  std::vector<Option> Options() override {
    return {
        {"--repair", "set damaged files aside, so that they are compiled, built or uploaded again when they are needed",
         &repair_},
        OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    Progress progress(common.progress);
    const auto checked = Connection::Open(common.endpoint)->Check(repair_, [&](int64_t done, int64_t total) {
      progress.Now("check", absl::StrCat(CountInWords(done), " of ", Plural(total, "file")), done, total);
    });
    if (!checked.ok()) return Fail(checked.status());
    int64_t open = 0;
    for (const v1::CheckFinding& finding : checked->findings()) open += finding.mended() ? 0 : 1;
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*checked).c_str());
    } else {
      for (const v1::CheckFinding& finding : checked->findings()) {
        std::printf("%s%s\n", Printable(finding.what()).c_str(), finding.mended() ? " (set aside)" : "");
      }
      std::printf("read %s, %s: %s\n", Plural(checked->blobs(), "file").c_str(), BytesInWords(checked->bytes()).c_str(),
                  checked->findings().empty() ? "all sound" : Plural(checked->findings_size(), "finding").c_str());
    }
    if (open > 0 && !repair_) std::fprintf(stderr, "fusionctl: '--repair' sets damaged files aside\n");
    return open == 0 ? kExitOk : kExitVerificationFailed;
  }

 private:
  bool repair_ = false;
  std::string format_ = "table";
};

class AdminBackupVerb : public Verb {
 public:
  std::string name() const override { return "admin backup"; }
  std::string help() const override { return "copy database and files as of one instant, while the server goes on"; }
  std::vector<Option> Options() override {
    return {{"FOLDER", "new folder, absolute, on the server's machine; 'fusiond --state FOLDER' restores it", &folder_,
             true},
            OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    Progress progress(common.progress);
    const auto copied = Connection::Open(common.endpoint)->BackUp(folder_, [&](int64_t done, int64_t total) {
      progress.Now("backup", absl::StrCat(CountInWords(done), " of ", Plural(total, "file")), done, total);
    });
    if (!copied.ok()) return Fail(AsUsage(copied.status()));
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*copied).c_str());
    } else {
      std::printf("%s  database and %s, %s\n", folder_.c_str(), Plural(copied->blobs(), "file").c_str(),
                  BytesInWords(copied->bytes()).c_str());
    }
    return kExitOk;
  }

 private:
  std::string folder_, format_ = "table";
};

class ProfilePruneVerb : public Verb {
 public:
  std::string name() const override { return "profile prune"; }
  std::string help() const override { return "remove old measurements; answers come from those that stay"; }
  std::vector<Option> Options() override {
    return {{"--older-than", "age of what goes: 180d, 12h", &age_, true},
            {"--device", "of this device only (fingerprint; profile stats)", &device_},
            OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    const absl::StatusOr<absl::Duration> age = ParseAge("--older-than", age_);
    if (!age.ok()) return Fail(age.status());
    v1::PruneProfileRequest request;
    request.set_older_than_ms(absl::ToInt64Milliseconds(*age));
    request.set_device_fingerprint(device_);
    const auto pruned = Connection::Open(common.endpoint)->PruneProfile(request);
    if (!pruned.ok()) return Fail(AsUsage(pruned.status()));
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*pruned).c_str());
    } else {
      std::printf("removed %s\n", Plural(pruned->measurements(), "measurement").c_str());
    }
    return kExitOk;
  }

 private:
  std::string age_, device_, format_ = "table";
};

}  // namespace

std::unique_ptr<Verb> MakeAdminGcVerb() { return std::make_unique<AdminGcVerb>(); }
std::unique_ptr<Verb> MakeAdminCheckVerb() { return std::make_unique<AdminCheckVerb>(); }
std::unique_ptr<Verb> MakeAdminBackupVerb() { return std::make_unique<AdminBackupVerb>(); }
std::unique_ptr<Verb> MakeProfilePruneVerb() { return std::make_unique<ProfilePruneVerb>(); }

}  // namespace fusion
