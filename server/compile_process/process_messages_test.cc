// Every field arrives as it was: what a message would lose would be missing from bundles and accounts of a server
// alone.
#include "server/compile_process/process_messages.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <string>

namespace fusion {
namespace {

const char kNoUtf8[] = "n\xff\xfe";

// Sets every field of a message, and of those within it, to a value of its own.
void Fill(google::protobuf::Message* message, int* next) {
  const google::protobuf::Reflection& set = *message->GetReflection();
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = type.field(i);
    const int value = ++*next;
    for (int item = 0; item < (field->is_repeated() ? 2 : 1); ++item) {
      using Field = google::protobuf::FieldDescriptor;
      const bool many = field->is_repeated();
      switch (field->cpp_type()) {
        case Field::CPPTYPE_INT32:
          many ? set.AddInt32(message, field, value) : set.SetInt32(message, field, value);
          break;
        case Field::CPPTYPE_INT64:
          many ? set.AddInt64(message, field, value + item) : set.SetInt64(message, field, value);
          break;
        case Field::CPPTYPE_DOUBLE:
          set.SetDouble(message, field, value + 0.1);
          break;
        case Field::CPPTYPE_BOOL:
          set.SetBool(message, field, true);
          break;
        case Field::CPPTYPE_STRING: {
          // The keys of maps come from requests, which are UTF-8, and sets are sorted.
          const bool is_key = type.map_key() != nullptr;
          const std::string text = std::string(is_key ? "k" : kNoUtf8) + std::to_string(value) + std::to_string(item);
          many ? set.AddString(message, field, text) : set.SetString(message, field, text);
          break;
        }
        default:
          Fill(many ? set.AddMessage(message, field) : set.MutableMessage(message, field), next);
      }
    }
  }
}

template <typename Message>
void ArrivesAsItWas(const char* type) {
  Message filled;
  int next = 0;
  Fill(&filled, &next);
  const Message back = ToMessage(FromMessage(filled));
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(back, filled))
      << type << " " << back.DebugString() << "\ninstead of " << filled.DebugString();
  EXPECT_GT(next, 2) << type << " has hardly a field";
  Message parsed;
  ASSERT_TRUE(parsed.ParseFromString(filled.SerializeAsString())) << type << ": a text is no UTF-8";
}

TEST(ProcessMessages, EveryFieldOfAMessageReachesItsStructureAndBack) {
  ArrivesAsItWas<v1::CompileOptionsMessage>("options");
  ArrivesAsItWas<v1::CompileAccountMessage>("account");
  ArrivesAsItWas<v1::ProgressMessage>("progress");
  ArrivesAsItWas<v1::LatencyQuestionMessage>("question");
  ArrivesAsItWas<v1::ModelErrorMessage>("error of the model");
  ArrivesAsItWas<v1::PlanQuestionMessage>("question about a plan");
  ArrivesAsItWas<v1::PlansCompared>("comparison");
}

// A structure that gets a field changes its size; then its message needs the field, too.
TEST(ProcessMessages, StructuresHaveTheFieldsThatTheMessagesKnow) {
  struct Options {
    std::string target, planner, math, precision, size;
    std::set<std::string> disabled_rules, disabled_passes;
    std::map<std::string, int64_t> dims;
    std::map<std::string, std::vector<int64_t>> specialised_dims;
    std::set<std::string> bounded_dims;
    std::map<std::string, std::vector<int64_t>> shapes;
    std::string tune;
    int threads;
    bool group_all_launches;
  };
  static_assert(sizeof(Options) == sizeof(CompileOptions), "process_messages.cc lacks a field of CompileOptions");
  // 21 numbers beside those of `weights`, 3 after them, and 4 texts and 6 lists.
  static_assert(sizeof(CompileAccount) ==
                    23 * 8 + sizeof(WeightsAccount) + 3 * sizeof(std::string) + 5 * sizeof(std::vector<int>),
                "process_messages.cc lacks a field of CompileAccount");
  static_assert(sizeof(LatencyQuestion) == 6 * sizeof(std::string) + 2 * 8);
  static_assert(sizeof(PlanAlternative) == 3 * sizeof(std::string) + 8 * 8);
}

TEST(ProcessMessages, AStatusKeepsItsCodeAndWords) {
  const absl::Status status = absl::UnimplementedError(kNoUtf8);
  EXPECT_EQ(FromMessage(ToMessage(status)), status);
  EXPECT_TRUE(FromMessage(ToMessage(absl::OkStatus())).ok());
}

TEST(ProcessMessages, APlanThatWasNotMeasuredStaysUnmeasured) {
  PlanAnswers answers;
  answers.comparisons = {std::nullopt, PlanComparison{1, 2, 3, 4, 5, 6}};
  const PlanAnswers back = FromMessage(ToMessage(answers));
  ASSERT_EQ(back.comparisons.size(), 2);
  EXPECT_FALSE(back.comparisons[0].has_value());
  EXPECT_EQ(back.comparisons[1]->rounds, 6);
}

}  // namespace
}  // namespace fusion
