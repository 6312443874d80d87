#include "client/verbs/verbs.h"

namespace fusion {

std::vector<std::unique_ptr<Verb>> AllVerbs() {
  using Maker = std::unique_ptr<Verb> (*)();
  constexpr Maker kMakers[] = {
      MakeSubmitVerb,         MakePlanVerb,          MakeRunVerb,
      MakeBenchVerb,          MakeVerifyVerb,        MakeBundleInspectVerb,
      MakeBundleGetVerb,      MakeBundleSignVerb,    MakeBundleVerifyVerb,
      MakeJobListVerb,        MakeJobGetVerb,        MakeJobWatchVerb,
      MakeJobLogsVerb,        MakeJobCancelVerb,     MakeJobPinVerb,
      MakeJobUnpinVerb,       MakeTopVerb,           MakeWorkerListVerb,
      MakeWorkerDescribeVerb, MakeWorkerDrainVerb,   MakeWorkerQuarantineVerb,
      MakeWorkerReleaseVerb,  MakeProfileStatsVerb,  MakeProfileQueryVerb,
      MakeProfileExportVerb,  MakeProfileImportVerb, MakeProfileMergeVerb,
      MakeProfilePruneVerb,   MakeAdminGcVerb,       MakeAdminCheckVerb,
      MakeAdminBackupVerb,    MakeTokenCreateVerb,   MakeTokenListVerb,
      MakeTokenRevokeVerb,    MakeDoctorVerb,        MakeVersionVerb,
  };
  std::vector<std::unique_ptr<Verb>> verbs;
  for (Maker make : kMakers) verbs.push_back(make());
  return verbs;
}

Option OutputOption(std::string* format) {
  return {"-o,--output", "how data is printed", format, false, {"table", "json"}};
}

}  // namespace fusion
