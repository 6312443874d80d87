// FlushFromCaches: creates the cold state that measurements assume. Rotating over buffers of twice the last-level
// cache's size reaches it, too, but needs gigabytes where a guest sees a host's 400 MB cache. Flushing costs
// microseconds and leaves nothing behind.
#ifndef FUSION_WORKER_MEASURE_CACHE_FLUSH_H_
#define FUSION_WORKER_MEASURE_CACHE_FLUSH_H_

#include <cstdint>

namespace fusion {

// Writes back and drops every line of [data, data + size_bytes) from all caches of this machine.
void FlushFromCaches(const void* data, int64_t size_bytes);

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_CACHE_FLUSH_H_
