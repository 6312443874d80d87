#include "compiler/bundle/pack_weights.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "compiler/movement/constant_transform.h"
#include "compiler/movement/pack_constant.h"
#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

// Bytes that a thread makes at a time: large enough to hide the cost of synchronisation, small enough for the caches
// beyond the second level.
constexpr int64_t kPieceBytes = 2 << 20;
// Most pieces, for each thread, that are being made or wait to be appended.
constexpr size_t kPiecesAhead = 4;

absl::string_view BytesOf(const Tensor& tensor) {
  return {static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.size_bytes())};
}

// A part of the work on a packed weight: some blocks of its transform, or some rows of its packed box.
struct Piece {
  size_t weight = 0;
  bool transforms = false;
  int64_t begin = 0, end = 0;
};

// Threads take pieces in order, and a weight's transform comes before its rows. So a thread that waits for a transform
// only waits for pieces that other threads have begun.
class Packing {
 public:
  explicit Packing(absl::Span<const WeightToPack> weights) : weights_(weights), state_(weights.size()) {
    for (size_t w = 0; w < weights.size(); ++w) {
      if (weights[w].pack == nullptr) continue;
      const movement::Pack& pack = *weights[w].pack;
      const Tensor& source = weights[w].source;
      int64_t elements = source.num_elements();
      if (!pack.transform.by_dimension.empty()) {
        const movement::TransformBlocks blocks = movement::BlocksOf(pack.transform, source.shape());
        elements = blocks.blocks * blocks.result_elements;
        state_[w].transforms_left = Cut(w, true, blocks.blocks, blocks.result_elements * DTypeBytes(source.dtype()));
        state_[w].shape = blocks.shape;
      }
      state_[w].packer.emplace(pack, elements);
      state_[w].rows_left =
          Cut(w, false, state_[w].packer->rows(), state_[w].packer->columns() * DTypeBytes(source.dtype()));
    }
    made_.resize(pieces_.size());
  }

  size_t pieces() const { return pieces_.size(); }
  const Piece& piece(size_t p) const { return pieces_[p]; }

  // The loop of a thread, until all pieces are made or `Stop` is called.
  void Work(size_t most_ahead) {
    for (;;) {
      size_t p = 0;
      {
        absl::MutexLock lock(&mutex_);
        const auto may_begin = [&] {
          mutex_.AssertHeld();
          return stopped_ || next_ == pieces_.size() || next_ < appended_ + most_ahead;
        };
        mutex_.Await(absl::Condition(&may_begin));
        if (stopped_ || next_ == pieces_.size()) return;
        p = next_++;
        if (!Ready(p)) return;
      }
      Make(p);
    }
  }

  // Returns the bytes of piece `p`, which can be taken once; a transform piece has none. Pieces must be taken in order.
  std::vector<char> Take(size_t p) {
    absl::MutexLock lock(&mutex_);
    const auto made = [&] {
      mutex_.AssertHeld();
      return made_[p].has_value();
    };
    mutex_.Await(absl::Condition(&made));
    appended_ = p + 1;
    return *std::exchange(made_[p], std::nullopt);
  }

  void Stop() {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }

 private:
  struct WeightState {
    std::optional<movement::ConstantPacker> packer;
    Shape shape;  // shape of the transformed source
    Tensor transformed;
    int64_t transforms_left = 0, rows_left = 0;  // numbers of pieces
  };

  // Returns the number of pieces.
  int64_t Cut(size_t weight, bool transforms, int64_t count, int64_t bytes_each) {
    const int64_t step = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(bytes_each, 1));
    for (int64_t begin = 0; begin < count; begin += step) {
      pieces_.push_back({weight, transforms, begin, std::min(count, begin + step)});
    }
    return (count + step - 1) / step;
  }

  // Waits until the data that piece `p` reads is there. Returns false if stopped before.
  bool Ready(size_t p) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    WeightState& state = state_[pieces_[p].weight];
    if (pieces_[p].transforms) {
      if (state.transformed.data() == nullptr) state.transformed = Tensor(DType::kF32, state.shape);
      return true;
    }
    const auto transformed = [&] {
      mutex_.AssertHeld();
      return stopped_ || state.transforms_left == 0;
    };
    mutex_.Await(absl::Condition(&transformed));
    return !stopped_;
  }

  void Make(size_t p) {
    const Piece& piece = pieces_[p];
    const WeightToPack& weight = weights_[piece.weight];
    WeightState& state = state_[piece.weight];
    std::vector<char> bytes;
    if (piece.transforms) {
      movement::TransformRange(weight.pack->transform, weight.source, piece.begin, piece.end,
                               state.transformed.mutable_as<float>());
    } else {
      bytes.resize((piece.end - piece.begin) * state.packer->columns() * DTypeBytes(weight.source.dtype()));
      const bool plain = weight.pack->transform.by_dimension.empty();
      state.packer->PackRows(plain ? weight.source : state.transformed, piece.begin, piece.end, bytes.data());
    }
    absl::MutexLock lock(&mutex_);
    made_[p] = std::move(bytes);
    if (--(piece.transforms ? state.transforms_left : state.rows_left) == 0 && !piece.transforms) {
      state.transformed = Tensor();
    }
  }

  const absl::Span<const WeightToPack> weights_;
  std::vector<Piece> pieces_;  // constant once constructed
  absl::Mutex mutex_;
  // By weight. Two things are accessed without the lock: fields that are constant after construction, and the elements
  // of a transform.
  std::vector<WeightState> state_;
  std::vector<std::optional<std::vector<char>>> made_ ABSL_GUARDED_BY(mutex_);
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0, appended_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

absl::Status PackWeights(absl::Span<const WeightToPack> weights, int threads,
                         const std::function<absl::Status(absl::string_view)>& append) {
  Packing packing(weights);
  threads = std::max(1, threads);
  const size_t most_ahead = kPiecesAhead * threads;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads && static_cast<size_t>(t) < packing.pieces(); ++t) {
    workers.emplace_back([&] { packing.Work(most_ahead); });
  }
  const auto append_all = [&]() -> absl::Status {
    size_t p = 0;
    for (size_t w = 0; w < weights.size(); ++w) {
      if (weights[w].pack == nullptr) RETURN_IF_ERROR(append(BytesOf(weights[w].source)));
      for (; p < packing.pieces() && packing.piece(p).weight == w; ++p) {
        const std::vector<char> bytes = packing.Take(p);
        if (!bytes.empty()) RETURN_IF_ERROR(append({bytes.data(), bytes.size()}));
      }
    }
    return absl::OkStatus();
  };
  const absl::Status appended = append_all();
  packing.Stop();
  for (std::thread& worker : workers) worker.join();
  return appended;
}

}  // namespace fusion
