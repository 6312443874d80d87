#include "runtime/devices/mirrored_buffers.h"

#include "runtime/base/status_macros.h"

namespace fusion {
namespace {

int64_t WithSlack(int64_t size_bytes) {
  return (size_bytes + kBufferAlignBytes - 1) / kBufferAlignBytes * kBufferAlignBytes + kBufferSlackBytes;
}

}  // namespace

absl::StatusOr<MirroredBuffers> MirroredBuffers::Create(const BundleReader& bundle, const ManifestProgram& program) {
  MirroredBuffers buffers;
  buffers.bundle_ = &bundle;
  buffers.program_ = &program;
  int64_t bytes = WithSlack(program.arena_bytes);
  for (const Buffer& buffer : program.buffers) {
    const bool own = buffer.kind == Buffer::Kind::kInput || buffer.kind == Buffer::Kind::kOutput;
    buffers.offsets_.push_back(own ? bytes : buffer.offset);
    if (own) bytes += WithSlack(buffer.size_bytes);
  }
  buffers.size_bytes_ = bytes;
  ASSIGN_OR_RETURN(buffers.host_, HostMemory::Allocate(bytes, "the bundle's buffers"));
  return buffers;
}

bool MirroredBuffers::IsConstant(int buffer) const { return program_->buffers[buffer].kind == Buffer::Kind::kConstant; }

char* MirroredBuffers::HostOf(int buffer) const {
  return (IsConstant(buffer) ? const_cast<char*>(bundle_->weights().data()) : host_.data()) + offsets_[buffer];
}

std::vector<char*> MirroredBuffers::Bases() const {
  std::vector<char*> bases;
  for (size_t b = 0; b < offsets_.size(); ++b) bases.push_back(HostOf(static_cast<int>(b)));
  return bases;
}

absl::Status MirroredBuffers::UploadInputs(absl::Span<const void* const> inputs, const Upload& upload) const {
  std::vector<bool> given(program_->buffers.size(), false);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const int buffer = program_->inputs[i].buffer;
    given[buffer] = true;
    RETURN_IF_ERROR(upload(buffer, inputs[i]));
  }
  for (size_t b = 0; b < given.size(); ++b) {  // inputs that no binding gives: extents
    const int buffer = static_cast<int>(b);
    if (program_->buffers[b].kind == Buffer::Kind::kInput && !given[b]) {
      RETURN_IF_ERROR(upload(buffer, HostOf(buffer)));
    }
  }
  return absl::OkStatus();
}

absl::Status MirroredBuffers::DownloadOutputs(absl::Span<void* const> outputs, const Download& download) const {
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Binding& binding = program_->outputs[o];
    ASSIGN_OR_RETURN(const int64_t size_bytes, CheckedSizeBytes(binding.shape, binding.dtype));
    RETURN_IF_ERROR(download(binding.buffer, size_bytes, outputs[o]));
    for (const int extent : binding.extents) {
      if (extent >= 0) RETURN_IF_ERROR(download(extent, program_->buffers[extent].size_bytes, HostOf(extent)));
    }
  }
  for (const RunCheck& check : program_->checks) {
    if (IsConstant(check.buffer)) continue;
    RETURN_IF_ERROR(download(check.buffer, program_->buffers[check.buffer].size_bytes, HostOf(check.buffer)));
  }
  return absl::OkStatus();
}

}  // namespace fusion
