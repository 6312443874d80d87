// Turn: a lock that the processes of one machine share, so that workers which would disturb each other's measurements
// (an OpenCL driver that computes on the processor, and the processor itself) measure one after another.
#ifndef FUSION_WORKER_MEASURE_TURN_H_
#define FUSION_WORKER_MEASURE_TURN_H_

#include <functional>
#include <string>

namespace fusion {

class Turn {
 public:
  // Waits for the lock on `file`, which is made if needed, until `cancelled` says so. Without a name, or where the file
  // cannot be made, there is nothing to wait for: a measurement beside another one is better than none.
  static Turn Take(const std::string& file, const std::function<bool()>& cancelled);
  Turn(Turn&& other) noexcept : fd_(other.fd_), cancelled_(other.cancelled_) { other.fd_ = -1; }
  Turn& operator=(Turn&&) = delete;
  // The lock also ends with the process, however that ends.
  ~Turn();

  bool cancelled() const { return cancelled_; }

 private:
  Turn(int fd, bool cancelled) : fd_(fd), cancelled_(cancelled) {}
  int fd_;
  bool cancelled_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_TURN_H_
