#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/api/connection.h"
#include "client/cli/exit_codes.h"
#include "client/cli/proto_json.h"
#include "client/cli/words.h"
#include "client/verbs/verbs.h"
#include "runtime/base/atomic_file.h"

namespace fusion {
namespace {

// "rank correlation 0.97 over 747 kernels; …". A rank needs two.
std::string ErrorsInWords(const v1::ModelErrors& errors, const std::string& noun) {
  if (errors.count() < 2) return absl::StrCat(Plural(errors.count(), noun), ": not compared yet");
  return absl::StrFormat(
      "rank correlation %.2f over %s; measured %.2f of estimated, median error then %.0f%%, nine of ten within a "
      "factor "
      "of %.2f",
      errors.rank_correlation(), Plural(errors.count(), noun), errors.median_ratio(), 100 * errors.median_error(),
      errors.factor());
}

class ProfileStatsVerb : public Verb {
 public:
  std::string name() const override { return "profile stats"; }
  std::string help() const override { return "how many measurements the database holds and how it answered"; }
  std::vector<Option> Options() override { return {OutputOption(&format_)}; }
  int Run(const CommonOptions& common) override {
    auto stats = Connection::Open(common.endpoint)->ProfileStats();
    if (!stats.ok()) return Fail(stats.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*stats).c_str());
      return kExitOk;
    }
    std::vector<std::vector<std::string>> rows = {{"measurements", CountInWords(stats->measurements())},
                                                  {"questions", CountInWords(stats->questions())},
                                                  {"devices", CountInWords(stats->devices())},
                                                  {"oldest", TimeInWords(stats->oldest_ms())},
                                                  {"newest", TimeInWords(stats->newest_ms())},
                                                  {"answered from database", CountInWords(stats->from_database())},
                                                  {"answered by measuring", CountInWords(stats->from_measured())},
                                                  {"answered by the model", CountInWords(stats->from_model())}};
    if (stats->by_device().empty()) rows.push_back({"cost model", "not compared yet"});
    for (const v1::DeviceModelErrors& device : stats->by_device()) {
      rows.push_back({"cost model", absl::StrCat(device.name(), "  ", device.fingerprint().substr(0, 12))});
      rows.push_back({"  kernels, cold", ErrorsInWords(device.kernels(), "kernel")});
      rows.push_back({"  models, warm", ErrorsInWords(device.plans(), "plan")});
    }
    std::fputs(Table({}, rows).c_str(), stdout);
    return kExitOk;
  }

 private:
  std::string format_ = "table";
};

class ProfileQueryVerb : public Verb {
 public:
  std::string name() const override { return "profile query"; }
  std::string help() const override { return "measurements, newest first"; }
  std::vector<Option> Options() override {
    return {{"--key", "beginning of the question's key", &key_},
            {"--contains", "words of the description", &contains_},
            {"--device", "fingerprint of the device", &device_},
            {"--limit", "how many", &limit_},
            OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    v1::ProfileQueryRequest request;
    request.set_key_prefix(key_);
    request.set_contains(contains_);
    request.set_device_fingerprint(device_);
    request.set_limit(static_cast<int32_t>(limit_));
    auto found = Connection::Open(common.endpoint)->ProfileQuery(request);
    if (!found.ok()) return Fail(found.status());
    if (format_ == "json") {
      std::printf("%s\n", ProtoToJson(*found).c_str());
      return kExitOk;
    }
    std::vector<std::vector<std::string>> rows;
    for (const v1::Measurement& m : found->measurements()) {
      rows.push_back({m.question_key().substr(0, 12), LatencyInWords(m.median_ns()), LatencyInWords(m.min_ns()),
                      LatencyInWords(m.p90_ns()), absl::StrCat(m.samples()), m.worker(), m.standing(),
                      TimeInWords(m.time_ms()), m.description()});
    }
    std::fputs(Table({"KEY", "MEDIAN", "MIN", "P90", "N", "WORKER", "STANDING", "WHEN", "WHAT"}, rows).c_str(), stdout);
    return kExitOk;
  }

 private:
  std::string key_, contains_, device_, format_ = "table";
  int64_t limit_ = 100;
};

class ProfileExportVerb : public Verb {
 public:
  std::string name() const override { return "profile export"; }
  std::string help() const override {
    return "all measurements, of kernels and of whole plans, and their devices' rates, one JSON object a line";
  }
  std::vector<Option> Options() override {
    return {{"FILE", "where to (-: stdout)", &path_, true}, {"--device", "only this device's", &device_}};
  }
  int Run(const CommonOptions& common) override {
    std::unique_ptr<AtomicFile> file;
    if (path_ != "-") {
      auto created = AtomicFile::Create(path_);
      if (!created.ok()) return FailLocal(created.status());
      file = *std::move(created);
    }
    v1::ProfileExportRequest request;
    request.set_device_fingerprint(device_);
    request.set_plans(true);
    int64_t count = 0, plans = 0;
    const absl::Status status =
        Connection::Open(common.endpoint)->ProfileExport(request, [&](const v1::ProfileRecord& record) {
          if (record.has_measurement()) ++count;
          if (record.has_comparison() || record.has_plan()) ++plans;
          const std::string line = ProtoToJson(record, -1) + "\n";
          if (file != nullptr) return file->Append(line);
          std::fputs(line.c_str(), stdout);
          return absl::OkStatus();
        });
    if (!status.ok()) return Fail(status);
    if (file != nullptr) {
      if (absl::Status committed = file->Commit(); !committed.ok()) return FailLocal(committed);
    }
    std::fprintf(stderr, "exported %s, and %s of whole plans\n", Plural(count, "measurement").c_str(),
                 CountInWords(plans).c_str());
    return kExitOk;
  }

 private:
  std::string path_, device_;
};

int ReportImport(const absl::StatusOr<v1::ProfileImportResponse>& imported, const std::string& format) {
  if (!imported.ok()) return Fail(imported.status());
  if (format == "json") {
    std::printf("%s\n", ProtoToJson(*imported).c_str());
  } else {
    std::printf("%s added, %s known already; of whole plans %s added, %s known already\n",
                Plural(imported->added(), "measurement").c_str(), CountInWords(imported->known()).c_str(),
                CountInWords(imported->plans_added()).c_str(), CountInWords(imported->plans_known()).c_str());
  }
  return kExitOk;
}

Option BelieveOption(bool* believe) {
  return {"--believe", "you vouch for these measurements: none is measured again", believe};
}

// Whoever imports vouches for a record; neither a file nor another server can.
void Vouch(bool believe, v1::ProfileRecord* record) {
  record->clear_believed();
  if (believe) record->set_believed(true);
}

class ProfileImportVerb : public Verb {
 public:
  std::string name() const override { return "profile import"; }
  std::string help() const override { return "take measurements that profile export wrote, each once"; }
  std::vector<Option> Options() override {
    return {{"FILE", "where from (-: stdin)", &path_, true}, BelieveOption(&believe_), OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    std::ifstream file;
    if (path_ != "-") {
      file.open(path_);
      if (!file) return FailLocal(absl::NotFoundError(absl::StrCat("cannot read ", path_)));
    }
    std::istream& in = path_ == "-" ? std::cin : file;
    // Reads everything before sending anything: a file is taken completely or, if malformed, not at all.
    std::vector<v1::ProfileRecord> records;
    std::string line;
    for (int64_t number = 1; std::getline(in, line); ++number) {
      if (line.empty()) continue;
      const auto parsed = google::protobuf::util::JsonStringToMessage(line, &records.emplace_back());
      if (parsed.ok()) continue;
      return FailLocal(absl::InvalidArgumentError(
          absl::StrCat(path_, ":", number, ": no line of profile export: ", std::string(parsed.message()))));
    }
    for (v1::ProfileRecord& record : records) Vouch(believe_, &record);
    return ReportImport(Connection::Open(common.endpoint)->ProfileImport(records), format_);
  }

 private:
  std::string path_, format_ = "table";
  bool believe_ = false;
};

class ProfileMergeVerb : public Verb {
 public:
  std::string name() const override { return "profile merge"; }
  std::string help() const override { return "take another server's measurements, each once"; }
  std::vector<Option> Options() override {
    return {{"FROM", "the other server's address", &from_, true},
            {"--device", "only this device's", &device_},
            BelieveOption(&believe_),
            OutputOption(&format_)};
  }
  int Run(const CommonOptions& common) override {
    v1::ProfileExportRequest request;
    request.set_device_fingerprint(device_);
    request.set_plans(true);
    std::vector<v1::ProfileRecord> records;
    const absl::StatusOr<Endpoint> from = EndpointOf(from_);
    if (!from.ok()) return Fail(from.status());
    const absl::Status read = Connection::Open(*from)->ProfileExport(request, [&](const v1::ProfileRecord& record) {
      records.push_back(record);
      Vouch(believe_, &records.back());
      return absl::OkStatus();
    });
    if (!read.ok()) return Fail(read);
    return ReportImport(Connection::Open(common.endpoint)->ProfileImport(records), format_);
  }

 private:
  std::string from_, device_, format_ = "table";
  bool believe_ = false;
};

}  // namespace

std::unique_ptr<Verb> MakeProfileStatsVerb() { return std::make_unique<ProfileStatsVerb>(); }
std::unique_ptr<Verb> MakeProfileQueryVerb() { return std::make_unique<ProfileQueryVerb>(); }
std::unique_ptr<Verb> MakeProfileImportVerb() { return std::make_unique<ProfileImportVerb>(); }
std::unique_ptr<Verb> MakeProfileMergeVerb() { return std::make_unique<ProfileMergeVerb>(); }
std::unique_ptr<Verb> MakeProfileExportVerb() { return std::make_unique<ProfileExportVerb>(); }

}  // namespace fusion
