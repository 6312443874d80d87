#include "worker/executor/decorators.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/base/sha256.h"
#include "runtime/base/status_macros.h"
#include "worker/executor/task_line.h"
#include "worker/measure/turn.h"

namespace fusion {
namespace {

class KindExecutor : public TaskExecutor {
 public:
  explicit KindExecutor(std::map<v1::TaskKind, std::unique_ptr<TaskExecutor>> table) : table_(std::move(table)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override {
    auto found = table_.find(task.kind());
    if (found == table_.end()) {
      return absl::UnavailableError(
          absl::StrCat("this worker takes no tasks of kind ", v1::TaskKind_Name(task.kind())));
    }
    return found->second->Execute(task, payload, context);
  }

 private:
  std::map<v1::TaskKind, std::unique_ptr<TaskExecutor>> table_;
};

class DeadlineExecutor : public TaskExecutor {
 public:
  DeadlineExecutor(std::unique_ptr<TaskExecutor> inner, SteadyClock now)
      : inner_(std::move(inner)), now_(std::move(now)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override {
    if (task.timeout_ms() <= 0) return inner_->Execute(task, payload, context);
    const absl::Time end = now_() + absl::Milliseconds(task.timeout_ms());
    const TaskContext bounded{[&] { return context.cancelled() || now_() > end; }, context.waits};
    absl::StatusOr<std::string> result = inner_->Execute(task, payload, bounded);
    if (absl::IsCancelled(result.status()) && !context.cancelled()) {
      return absl::DeadlineExceededError(
          absl::StrFormat("'%s' did not finish within its %.1f s", task.description(), task.timeout_ms() / 1000.0));
    }
    return result;
  }

 private:
  std::unique_ptr<TaskExecutor> inner_;
  const SteadyClock now_;
};

class TurnExecutor : public TaskExecutor {
 public:
  TurnExecutor(std::unique_ptr<TaskExecutor> inner, std::string turn_file)
      : inner_(std::move(inner)), turn_file_(std::move(turn_file)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override {
    if (task.kind() != v1::MEASURE) return inner_->Execute(task, payload, context);
    if (context.waits) context.waits(true);
    const Turn turn = Turn::Take(turn_file_, context.cancelled);
    if (context.waits) context.waits(false);
    if (turn.cancelled()) return absl::CancelledError("cancelled while another worker of this machine measured");
    return inner_->Execute(task, payload, context);
  }

 private:
  std::unique_ptr<TaskExecutor> inner_;
  const std::string turn_file_;
};

class LoggingExecutor : public TaskExecutor {
 public:
  LoggingExecutor(std::unique_ptr<TaskExecutor> inner, Log log) : inner_(std::move(inner)), log_(std::move(log)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string& payload,
                                      const TaskContext& context) override {
    log_(TaskLine(LogLevel::kDebug, "task begins", task));
    const absl::Time start = SteadyNow();
    absl::StatusOr<std::string> result = inner_->Execute(task, payload, context);
    const bool failed = !result.ok() && !absl::IsCancelled(result.status());
    LogLine line = TaskLine(failed ? LogLevel::kWarning : LogLevel::kInfo, "task ended", task);
    line.fields.push_back({"seconds", absl::StrFormat("%.3f", absl::ToDoubleSeconds(SteadyNow() - start))});
    line.fields.push_back({"outcome", result.status().ToString()});
    log_(line);
    return result;
  }

 private:
  std::unique_ptr<TaskExecutor> inner_;
  const Log log_;
};

class PayloadExecutor : public TaskExecutor {
 public:
  PayloadExecutor(std::unique_ptr<TaskExecutor> inner, BlobReader read)
      : inner_(std::move(inner)), read_(std::move(read)) {}
  absl::StatusOr<std::string> Execute(const v1::Task& task, const std::string&, const TaskContext& context) override {
    absl::StatusOr<std::string> payload = read_(task.payload_digest(), task.payload_size_bytes());
    if (!payload.ok()) {
      return absl::UnavailableError(absl::StrCat("cannot read the task's payload: ", payload.status().ToString()));
    }
    if (Sha256Hex(*payload) != task.payload_digest()) {
      return absl::UnavailableError("the task's payload arrived damaged: its digest differs");
    }
    return inner_->Execute(task, *payload, context);
  }

 private:
  std::unique_ptr<TaskExecutor> inner_;
  BlobReader read_;
};

}  // namespace

std::unique_ptr<TaskExecutor> ByKind(std::map<v1::TaskKind, std::unique_ptr<TaskExecutor>> table) {
  return std::make_unique<KindExecutor>(std::move(table));
}
std::unique_ptr<TaskExecutor> WithDeadline(std::unique_ptr<TaskExecutor> inner, SteadyClock now) {
  return std::make_unique<DeadlineExecutor>(std::move(inner), std::move(now));
}
std::unique_ptr<TaskExecutor> WithTurn(std::unique_ptr<TaskExecutor> inner, std::string turn_file) {
  return std::make_unique<TurnExecutor>(std::move(inner), std::move(turn_file));
}
std::unique_ptr<TaskExecutor> WithLogging(std::unique_ptr<TaskExecutor> inner, Log log) {
  return std::make_unique<LoggingExecutor>(std::move(inner), std::move(log));
}
std::unique_ptr<TaskExecutor> WithPayload(std::unique_ptr<TaskExecutor> inner, BlobReader read) {
  return std::make_unique<PayloadExecutor>(std::move(inner), std::move(read));
}

}  // namespace fusion
