// Tests what every Store must do with measurements of kernels and of whole plans.
#include "db/stores/store_conformance_test.h"

namespace fusion {
namespace {

TEST_P(StoreConformance, AnAttemptIsMeasuredOnce) {
  MeasurementRow row{"q", "m", "dev", "Conv", 1, 1, 1, 1, {1}, "w", "clang", 1};
  row.task = "t", row.fence = 3, row.item = 0;
  MeasurementRow second = row;
  second.item = 1;
  ASSERT_TRUE(AddRows({.measurements = {row, second}}).ok());
  ASSERT_TRUE(AddRows({.measurements = {row, second}}).ok()) << "the worker delivers again";
  EXPECT_EQ(store_->CountMeasurements()->measurements, 2);
  MeasurementRow exported;
  ASSERT_TRUE(store_->ScanMeasurements({"", "", "", 1}, [&](const MeasurementRow& found) { exported = found; }).ok());
  EXPECT_EQ(exported.origin.size(), 32u) << exported.origin;
  EXPECT_EQ(store_->MergeMeasurements({exported}).value(), 0);
  exported.time_ms = 77;  // whatever else it says, it is that attempt
  EXPECT_EQ(store_->MergeMeasurements({exported}).value(), 0);
  exported.origin = std::string(32, '0');  // of another server, whose task has that id, too
  EXPECT_EQ(store_->MergeMeasurements({exported}).value(), 1);
  row.fence = 4;
  ASSERT_TRUE(AddRows({.measurements = {row}}).ok()) << "another attempt";
  EXPECT_EQ(store_->CountMeasurements()->measurements, 4);

  PlanComparisonRow plan{std::string(64, 'a'), std::string(64, 'b'), "dev", "plan", 1, 20, 1, 1, 1, 1, 1, 1, 1, "w", 1};
  plan.task = "t", plan.fence = 3, plan.item = 1;
  ASSERT_TRUE(AddRows({.comparisons = {plan}}).ok());
  plan.ratio = plan.ratio_high = 9;
  ASSERT_TRUE(AddRows({.comparisons = {plan}}).ok());
  EXPECT_EQ(store_->PlanComparisons(plan.reference_key, {plan.plan_key})->at(0)->ratio, 1);
}

TEST_P(StoreConformance, TheModelWithMoreMeasurementsBehindItStays) {
  EXPECT_TRUE(store_->Devices("dev")->empty());
  ASSERT_TRUE(store_->PutWorker({"w1", "host", "cpu", "dev", "first", 1}).ok());
  ASSERT_TRUE(store_->PutWorker({"w2", "host", "cpu", "dev", "second", 2}).ok());
  ASSERT_TRUE(store_->PutWorker({"w3", "host", "", "", "{}", 3}).ok()) << "it only builds";
  ASSERT_EQ(store_->Devices("dev")->size(), 1u);
  EXPECT_EQ(store_->Devices("dev")->front().model_json, "first");
  EXPECT_EQ(store_->MergeDevice({"dev", "elsewhere, unused", 3, 0}).value(), false);
  EXPECT_EQ(store_->MergeDevice({"dev", "elsewhere", 3, 1}).value(), true);
  ASSERT_TRUE(AddRows({.measurements = {{"q", "m", "dev", "Conv", 1, 1, 1, 1, {1}, "w", "clang", 1}}}).ok());
  EXPECT_EQ(store_->MergeDevice({"dev", "as many", 3, 1}).value(), false);
  EXPECT_EQ(store_->MergeDevice({"another", "unknown here", 3, 0}).value(), true);
  ASSERT_EQ(store_->Devices("")->size(), 2u);
  EXPECT_EQ(store_->Devices("dev")->front().model_json, "elsewhere");
  EXPECT_EQ(store_->Devices("dev")->front().measurements, 1);
}

TEST_P(StoreConformance, RatesOfASourceGiveWayToABelievedWorkerAndGoWithItsQuarantine) {
  const auto attach = [&](const std::string& name, const std::string& rates, const std::string& source, int64_t ms,
                          const std::string& device = "dev") {
    ASSERT_TRUE(store_->PutWorker({"id of " + name, name, "cpu", device, rates, ms, source}).ok());
  };
  const auto rates = [&](const std::string& device = "dev") {
    const auto devices = store_->Devices(device).value();
    return devices.empty() ? std::string("unknown") : devices[0].model_json;
  };
  const auto quarantine = [&](const std::string& source) {
    DrainedWorkerRow row{source, "", "fusiond", 1};
    row.quarantined = true;
    ASSERT_TRUE(store_->PutDrainedWorker(row).ok());
  };
  attach("liar", "of the liar", "token liar", 1);
  attach("one", "of one", "token one", 2);
  attach("two", "of two", "token two", 3);
  EXPECT_EQ(rates(), "of the liar") << "the first";
  quarantine("token liar");
  EXPECT_EQ(rates(), "of two") << "the latest of the others";
  attach("liar", "of the liar", "token liar", 4);
  attach("local", "of the local one", "", 5);
  EXPECT_EQ(rates(), "of the local one") << "that one is believed";
  attach("one", "of one", "token one", 6);
  for (const char* source : {"token one", "token two"}) quarantine(source);
  EXPECT_EQ(rates(), "of the local one");
  attach("alone", "of the lonely one", "token alone", 7, "another");
  EXPECT_EQ(rates("another"), "of the lonely one");
  quarantine("token alone");
  EXPECT_EQ(rates("another"), "unknown");
  attach("alone", "of the lonely one", "token alone", 8, "another");
  EXPECT_EQ(rates("another"), "unknown") << "it is in quarantine";
}

TEST_P(StoreConformance, MeasurementsAreAppendedAndTheirMedianAnswers) {
  MeasurementRow row{"q1", "m1", "dev", "Conv+Relu", 3, 90, 100, 120, {90, 100, 120}, "w", "clang", 1};
  ASSERT_TRUE(AddRows({.measurements = {row}}).ok());
  row.median_ns = 1000;  // a noisy measurement does not win
  ASSERT_TRUE(AddRows({.measurements = {row}}).ok());
  row.median_ns = 102;
  ASSERT_TRUE(AddRows({.measurements = {row}}).ok());
  auto latencies = store_->MedianLatencies({"q1", "q2"}).value();
  EXPECT_EQ(latencies[0], 102);
  EXPECT_FALSE(latencies[1].has_value());
  EXPECT_EQ(store_->CountMeasurements()->measurements, 3);
  EXPECT_EQ(store_->CountMeasurements()->questions, 1);

  std::vector<MeasurementRow> rows;
  auto scan = [&](const MeasurementFilter& filter) {
    rows.clear();
    EXPECT_TRUE(store_->ScanMeasurements(filter, [&](const MeasurementRow& r) { rows.push_back(r); }).ok());
    return rows.size();
  };
  EXPECT_EQ(scan({"q", "relu", "dev", 2}), 2u);
  EXPECT_THAT(rows[0].samples_ns, ::testing::ElementsAre(90, 100, 120));
  EXPECT_EQ(rows[0].median_ns, 102) << "newest first";
  EXPECT_EQ(scan({"", "Gemm", "", 10}), 0u);
  EXPECT_EQ(scan({"%", "", "", 10}), 0u) << "no wildcards";
}

TEST_P(StoreConformance, TrialsAreRememberedByWorkloadAndStructure) {
  const auto append = [&](const char* question, double ns, const char* workload, const char* choices) {
    MeasurementRow row{question, "m", "dev", "Conv", 1, ns, ns, ns, {ns}, "w", "clang", 1};
    row.model_ns = 70;
    row.workload = workload, row.structure = *workload ? "s" : "", row.choices = choices;
    EXPECT_TRUE(AddRows({.measurements = {row}}).ok());
  };
  append("q2", 100, "w1", "");
  append("q1", 80, "w1", "tile=1");
  append("q2", 1000, "w1", "");  // measured again on a slow day, and once more
  append("q2", 102, "w1", "");
  append("q3", 50, "w2", "tile=2");
  append("q4", 60, "w2", "tile=3");
  append("q5", 10, "", "");  // no trial

  const std::vector<TrialRow> trials = store_->Trials("w1").value();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].choices, "");
  EXPECT_EQ(trials[0].latency_ns, 102);
  EXPECT_EQ(trials[1].choices, "tile=1");
  EXPECT_TRUE(store_->Trials("")->empty());
  EXPECT_TRUE(store_->Trials("w3")->empty());

  EXPECT_THAT(store_->NeighbourChoices("s", "w1", 5).value(), ::testing::ElementsAre("tile=2"));
  EXPECT_THAT(store_->NeighbourChoices("s", "w3", 5).value(), ::testing::ElementsAre("tile=2", "tile=1"));
  EXPECT_THAT(store_->NeighbourChoices("s", "w3", 1).value(), ::testing::ElementsAre("tile=2"));
  EXPECT_TRUE(store_->NeighbourChoices("", "w1", 5)->empty());

  const std::vector<ModelErrorRow> errors = store_->ModelErrors("dev").value();
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(errors[1].latency_ns, 102);
  EXPECT_EQ(errors[1].model_ns, 70);
  EXPECT_EQ(store_->ModelErrors("")->size(), 5u);
  EXPECT_TRUE(store_->ModelErrors("other")->empty());
}

TEST_P(StoreConformance, WholePlansBesideTheirEstimates) {
  EXPECT_TRUE(store_->PlanErrors("")->empty());
  const PlanRow a{"digest a", "dev", "model", "dnnfusion", 1, 50, 100, 90, 110, "w", 1};
  PlanRow again = a, threads = a, unknown = a, other = a;
  again.median_ns = 120;
  threads.threads = 2;
  unknown.bundle_digest = "digest b", unknown.model_ns = 0;
  other.device_fingerprint = "other";
  ASSERT_TRUE(store_->AppendPlans({a, again, threads, unknown, other}).ok());
  const std::vector<ModelErrorRow> errors = store_->PlanErrors("dev").value();
  ASSERT_EQ(errors.size(), 2u) << "equal plans are one";
  EXPECT_EQ(errors[0].latency_ns, 120) << "the larger middle one";
  EXPECT_EQ(errors[0].model_ns, 50);
  EXPECT_EQ(errors[1].latency_ns, 100);
  EXPECT_EQ(store_->PlanErrors("")->size(), 3u);
}

TEST_P(StoreConformance, TheMedianOfAPlansComparisonsAnswers) {
  const std::string plan(64, 'a'), other(64, 'b'), reference(64, 'c');
  PlanComparisonRow row{plan, reference, "dev", "plan by measurements", 2, 20, 0.9, 0.89, 0.91, 900, 1000, 5,
                        6,    "w",       1};
  ASSERT_TRUE(AddRows({.comparisons = {row}}).ok());
  auto found = store_->PlanComparisons(reference, {other, plan}).value();
  EXPECT_FALSE(found[0].has_value());
  ASSERT_TRUE(found[1].has_value());
  EXPECT_EQ(found[1]->ratio, 0.9);
  EXPECT_EQ(found[1]->ratio_low, 0.89);
  EXPECT_EQ(found[1]->ratio_high, 0.91);
  EXPECT_EQ(found[1]->median_ns, 900);
  EXPECT_EQ(found[1]->reference_ns, 1000);
  EXPECT_EQ(found[1]->model_ns, 5);
  EXPECT_EQ(found[1]->reference_model_ns, 6);
  EXPECT_EQ(found[1]->rounds, 20);
  EXPECT_EQ(found[1]->threads, 2);
  EXPECT_EQ(found[1]->worker, "w");
  EXPECT_FALSE(store_->PlanComparisons(other, {plan}).value()[0].has_value()) << "beside another reference";
  PlanComparisonRow slower = row, slowest = row, elsewhere = row;
  slower.ratio = 1.1, slowest.ratio = 1.2, slower.median_ns = 1100;
  elsewhere.reference_key = other, elsewhere.ratio = 5;
  ASSERT_TRUE(AddRows({.comparisons = {slowest, slower, elsewhere}}).ok());
  found = store_->PlanComparisons(reference, {plan}).value();
  EXPECT_EQ(found[0]->ratio, 1.1);
  EXPECT_EQ(found[0]->median_ns, 1100) << "all figures are of one row";
}

TEST_P(StoreConformance, WhatIsKnownOfPlansMovesToAnotherServerOnce) {
  const std::string plan(64, 'a'), reference(64, 'b');
  PlanComparisonRow compared{plan, reference, "dev", "plan", 1, 20, 0.9, 0.8, 1, 90, 100, 5, 6, "w", 1};
  compared.task = "t", compared.fence = 3, compared.item = 1;
  PlanComparisonRow elsewhere = compared;
  elsewhere.device_fingerprint = "other", elsewhere.item = 2, elsewhere.time_ms = 2;
  ASSERT_TRUE(AddRows({.comparisons = {compared, elsewhere}}).ok());
  const PlanRow measured{"digest", "dev", "model", "dnnfusion", 1, 50, 100, 90, 110, "w", 1};
  ASSERT_TRUE(store_->AppendPlans({measured}).ok());

  std::vector<PlanComparisonRow> comparisons;
  std::vector<PlanRow> plans;
  const auto scan = [&](const std::string& device) {
    comparisons.clear(), plans.clear();
    return store_->ScanPlans(
        device, [&](const PlanComparisonRow& row) { comparisons.push_back(row); },
        [&](const PlanRow& row) { plans.push_back(row); });
  };
  ASSERT_TRUE(scan("").ok());
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_EQ(comparisons[0].device_fingerprint, "other") << "the newest first";
  ASSERT_TRUE(scan("dev").ok());
  ASSERT_EQ(comparisons.size(), 1u);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(comparisons[0].origin.size(), 32u) << comparisons[0].origin;
  EXPECT_EQ(comparisons[0].task, "t");
  EXPECT_EQ(comparisons[0].ratio_high, 1);
  EXPECT_EQ(plans[0].p75_ns, 110);
  EXPECT_EQ(plans[0].model_name + plans[0].source, "model");
  EXPECT_EQ(store_->MergePlans(comparisons, plans).value(), 0) << "they are of this database";

  // Another database has a task of that id, and a bundle of that digest.
  comparisons[0].origin = std::string(32, '0'), comparisons[0].time_ms = 5, comparisons[0].ratio = 0.95;
  comparisons[0].source = plans[0].source = "imported/w";
  plans[0].time_ms = 5, plans[0].median_ns = 105;
  EXPECT_EQ(store_->MergePlans(comparisons, plans).value(), 2);
  EXPECT_EQ(store_->MergePlans(comparisons, plans).value(), 0);
  EXPECT_EQ(store_->MergePlans({}, {}).value(), 0);
  EXPECT_EQ(store_->PlanComparisons(reference, {plan})->at(0)->ratio, 0.9) << "of 0.9, 0.9 and 0.95";
  EXPECT_EQ(store_->PlanErrors("dev")->at(0).latency_ns, 105);
}

TEST_P(StoreConformance, WhatIsKnownOfPlansIsQuarantinedWithItsSource) {
  const std::string plan(64, 'a'), reference(64, 'b');
  PlanComparisonRow compared{plan, reference, "dev", "plan", 1, 20, 0.9, 0.8, 1, 90, 100, 5, 6, "liar/1", 1};
  compared.source = "imported/liar", compared.standing = Standing::kImported;
  PlanRow measured{"digest", "dev", "model", "dnnfusion", 1, 50, 100, 90, 110, "liar/1", 1, "imported/liar"};
  DrainedWorkerRow quarantine{"liar", "half", "fusiond", 7};
  quarantine.quarantined = true;
  for (const bool before : {false, true}) {
    if (before) {
      ASSERT_TRUE(store_->PutDrainedWorker(quarantine).ok());
    }
    compared.time_ms = measured.time_ms = before;
    ASSERT_EQ(store_->MergePlans({compared}, {measured}).value(), 2);
    EXPECT_EQ(store_->PlanComparisons(reference, {plan})->at(0).has_value(), !before);
    EXPECT_EQ(store_->PlanErrors("dev")->size(), before ? 0u : 1u);
  }
  int out = 0;
  ASSERT_TRUE(store_
                  ->ScanPlans(
                      "", [&](const PlanComparisonRow& row) { out += row.quarantined; },
                      [&](const PlanRow& row) { out += row.quarantined; })
                  .ok());
  EXPECT_EQ(out, 4) << "those of before and those of afterwards";
  ASSERT_TRUE(store_->RemoveDrainedWorker("liar").ok());
  EXPECT_TRUE(store_->PlanComparisons(reference, {plan})->at(0).has_value());
  EXPECT_EQ(store_->PlanErrors("dev")->size(), 1u);
}

TEST_P(StoreConformance, MeasurementsFromElsewhereAreTakenOnce) {
  const MeasurementRow a{"q1", "m1", "dev", "Conv", 3, 90, 100, 120, {90, 100, 120}, "w", "clang", 1};
  MeasurementRow later = a, other = a;
  later.time_ms = 2;
  other.worker = "v";
  ASSERT_TRUE(AddRows({.measurements = {a}}).ok());
  EXPECT_EQ(store_->MergeMeasurements({a, later, other, later}).value(), 2);
  EXPECT_EQ(store_->MergeMeasurements({a, later, other}).value(), 0);
  EXPECT_EQ(store_->MergeMeasurements({}).value(), 0);
  EXPECT_EQ(store_->CountMeasurements()->measurements, 3);
}

TEST_P(StoreConformance, RowsOfAQuarantinedSourceAnswerNothingUntilItIsReleased) {
  const std::string q(64, 'a'), later(64, 'b'), workload(64, 'c'), structure(64, 'd'), plan(64, 'e'), beside(64, 'f');
  const auto row = [&](const std::string& key, double ns, const std::string& source, Standing standing, int64_t fence) {
    MeasurementRow row{key, "m", "dev", "Conv", 1, ns, ns, ns, {ns}, "w", "clang", 1, 5, workload, structure, "tile=1"};
    row.task = "t", row.fence = fence, row.source = source, row.standing = standing;
    return row;
  };
  PlanComparisonRow compared;
  compared.plan_key = plan, compared.reference_key = beside, compared.device_fingerprint = "dev", compared.rounds = 5;
  compared.ratio = compared.ratio_low = compared.ratio_high = 1, compared.median_ns = compared.reference_ns = 100;
  compared.task = "t", compared.fence = 9, compared.source = "liar";
  ASSERT_TRUE(
      AddRows({.measurements = {row(q, 100, "liar", Standing::kChecked, 1),
                                row(q, 110, "liar", Standing::kConfirmed, 2), row(q, 50, "liar", Standing::kChecked, 3),
                                row(q, 120, "honest", Standing::kConfirmed, 4), row(q, 130, "", Standing::kBelieved, 5),
                                row(later, 50, "liar", Standing::kSingleSource, 6)},
               .comparisons = {compared}})
          .ok());
  MeasurementRow imported = row(later, 60, "imported/liar", Standing::kImported, 1);
  imported.origin = "another database";
  ASSERT_EQ(store_->MergeMeasurements({imported}).value(), 1);
  EXPECT_EQ(store_->MedianLatencies({q, later}).value(), (std::vector<std::optional<double>>{110, 60}));

  DrainedWorkerRow quarantine{"liar", "half", "fusiond", 7};
  quarantine.quarantined = true;
  ASSERT_TRUE(store_->PutDrainedWorker(quarantine).ok());
  EXPECT_TRUE(store_->DrainedWorkers()->front().quarantined);
  // Up to its last confirmed row the source still counts: 100, 110, 120, 130.
  EXPECT_EQ(store_->MedianLatencies({q, later}).value(), (std::vector<std::optional<double>>{120, std::nullopt}));
  EXPECT_EQ(store_->Trials(workload)->size(), 1u) << "of two questions";
  EXPECT_EQ(store_->ModelErrors("dev")->size(), 1u);
  EXPECT_EQ(store_->NeighbourChoices(structure, "another", 3)->size(), 1u);
  EXPECT_FALSE(store_->PlanComparisons(beside, {plan})->at(0).has_value());
  // Rows that come afterwards count neither, however they come.
  imported.item = 1, imported.time_ms = 6;
  ASSERT_EQ(store_->MergeMeasurements({imported}).value(), 1);
  compared.item = 1;
  ASSERT_TRUE(
      AddRows({.measurements = {row(later, 51, "liar", Standing::kSingleSource, 7)}, .comparisons = {compared}}).ok());
  EXPECT_FALSE(store_->MedianLatencies({later})->at(0).has_value());
  EXPECT_FALSE(store_->PlanComparisons(beside, {plan})->at(0).has_value());
  int seen = 0, out = 0;
  ASSERT_TRUE(store_
                  ->ScanMeasurements({},
                                     [&](const MeasurementRow& found) {
                                       ++seen;
                                       out += found.quarantined;
                                       EXPECT_EQ(found.source.empty(), found.standing == Standing::kBelieved);
                                     })
                  .ok());
  EXPECT_EQ(seen, 9);
  EXPECT_EQ(out, 5);

  ASSERT_TRUE(store_->RemoveDrainedWorker("liar").ok());
  EXPECT_EQ(store_->MedianLatencies({q, later}).value(), (std::vector<std::optional<double>>{110, 60}));
  EXPECT_TRUE(store_->PlanComparisons(beside, {plan})->at(0).has_value());
  // A drain by that name is no quarantine.
  ASSERT_TRUE(store_->PutDrainedWorker({"liar", "", "me", 8}).ok());
  EXPECT_TRUE(store_->MedianLatencies({later})->at(0).has_value());
}

TEST_P(StoreConformance, MeasurementsOfWholeModelsAreInQuarantineWithTheirSource) {
  PlanRow plan;
  plan.bundle_digest = std::string(64, 'b'), plan.device_fingerprint = "dev", plan.model_name = "m";
  plan.planner = "none", plan.model_ns = 100, plan.median_ns = plan.p25_ns = plan.p75_ns = 300, plan.time_ms = 1;
  plan.source = "liar";
  ASSERT_TRUE(store_->AppendPlans({plan}).ok());
  EXPECT_EQ(store_->PlanErrors("dev")->size(), 1u);
  DrainedWorkerRow quarantine{"liar", "half", "fusiond", 7};
  quarantine.quarantined = true;
  ASSERT_TRUE(store_->PutDrainedWorker(quarantine).ok());
  EXPECT_TRUE(store_->PlanErrors("dev")->empty());
  ASSERT_TRUE(store_->RemoveDrainedWorker("liar").ok());
  EXPECT_EQ(store_->PlanErrors("dev")->size(), 1u);
}

TEST_P(StoreConformance, SourcesAreKnownUntilTheyAreInQuarantine) {
  EXPECT_EQ(store_->CallTasks({NoteSource{}}, 1).status().code(), absl::StatusCode::kInvalidArgument);
  SourceRow row{"token a", 1, 0, 7, 4, 2, "why", {"t1", "t2"}};
  EXPECT_THAT(Call({NoteSource{row}}), ::testing::ElementsAre(0));
  row.awaiting = {}, row.batches = 8;
  EXPECT_THAT(Call({NoteSource{{"token b", 0, 3, 3, 3, 0}}, NoteSource{row}}), ::testing::ElementsAre(0, 0));
  std::vector<SourceRow> known = store_->Sources().value();
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].source, "token a");
  EXPECT_EQ(known[0].batches, 8);
  EXPECT_EQ(known[0].confirmed, 4);
  EXPECT_EQ(known[0].caught, 2);
  EXPECT_EQ(known[0].strikes, 1);
  EXPECT_EQ(known[0].last, "why");
  EXPECT_TRUE(known[0].awaiting.empty());
  EXPECT_EQ(known[1].in_a_row, 3);
  ASSERT_TRUE(store_->PutDrainedWorker({"token b", "a window", "me", 7}).ok());
  EXPECT_EQ(store_->Sources()->size(), 2u) << "it is drained, and known";
  DrainedWorkerRow quarantine{"token a", "half", "fusiond", 7};
  quarantine.quarantined = true;
  ASSERT_TRUE(store_->PutDrainedWorker(quarantine).ok());
  EXPECT_EQ(store_->Sources()->size(), 1u);
}

TEST_P(StoreConformance, ImportedRowsAreToldFromOthers) {
  const std::string workload(64, '5'), q(64, '6'), later(64, '7'), plan(64, '8'), beside(64, '9');
  const auto row = [&](const std::string& key, double ns, const std::string& source, int number) {
    MeasurementRow made;
    made.question_key = key, made.device_fingerprint = "dev", made.samples = 1, made.samples_ns = {ns};
    made.min_ns = made.median_ns = made.p90_ns = ns, made.workload = workload, made.choices = key;
    made.time_ms = made.fence = number, made.task = "t" + std::to_string(number), made.origin = "another database";
    made.source = source, made.standing = source.empty() ? Standing::kBelieved : Standing::kImported;
    return made;
  };
  ASSERT_EQ(store_
                ->MergeMeasurements({row(q, 60, "imported/a", 1), row(q, 80, "imported/b", 2), row(q, 100, "", 3),
                                     row(later, 50, "imported/b", 4)})
                .value(),
            4);
  std::vector<ImportedLatency> known = store_->ImportedLatencies({q, later, plan}).value();
  EXPECT_EQ(known[0].source, "imported/b");
  EXPECT_EQ(known[0].imported_ns, 80);
  EXPECT_EQ(known[0].own_ns, 100);
  EXPECT_EQ(known[1].source, "imported/b");
  EXPECT_EQ(known[1].own_ns, 0);
  EXPECT_EQ(known[2].source, "");
  const std::vector<TrialRow> trials = store_->Trials(workload).value();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].imported_from, "") << "one row is ours";
  EXPECT_EQ(trials[1].imported_from, "imported/b");
  PlanComparisonRow compared;
  compared.plan_key = plan, compared.reference_key = beside, compared.device_fingerprint = "dev", compared.rounds = 5;
  compared.ratio = compared.ratio_low = compared.ratio_high = 1, compared.median_ns = compared.reference_ns = 100;
  compared.source = "imported/c", compared.standing = Standing::kImported;
  ASSERT_EQ(store_->MergePlans({compared}, {}).value(), 1);
  EXPECT_TRUE(store_->PlanComparisons(beside, {plan})->at(0).has_value());
  EXPECT_FALSE(store_->PlanComparisons(beside, {plan}, /*also_imported=*/false)->at(0).has_value());
  // Their sources are known, of which nothing is known yet.
  std::vector<SourceRow> sources = store_->Sources().value();
  ASSERT_EQ(sources.size(), 3u);
  for (const SourceRow& source : sources) EXPECT_EQ(source.batches, 0) << source.source;
  // In quarantine by its own name, whatever the fences.
  DrainedWorkerRow quarantine{"imported/b", "half", "fusiond", 7};
  quarantine.quarantined = true;
  ASSERT_TRUE(store_->PutDrainedWorker(quarantine).ok());
  EXPECT_FALSE(store_->MedianLatencies({later})->at(0).has_value());
  ASSERT_EQ(store_->MergeMeasurements({row(later, 51, "imported/b", 5)}).value(), 1);
  EXPECT_EQ(store_->Sources()->size(), 2u);
}

}  // namespace
}  // namespace fusion
