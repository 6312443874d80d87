// Turn: a lock that the processes of one machine share. Workers that would disturb each other's measurements (one for
// the CPU, one for an OpenCL driver that computes on the CPU) thus measure one after another.
#ifndef FUSION_WORKER_MEASURE_TURN_H_
#define FUSION_WORKER_MEASURE_TURN_H_

#include <functional>
#include <string>

namespace fusion {

class Turn {
 public:
  // Waits for the lock on `file`, which is created if needed, until `cancelled` returns true. Does not wait if `file`
  // is empty or cannot be created: a measurement beside another one is better than none.
  static Turn Take(const std::string& file, const std::function<bool()>& cancelled);
  Turn(Turn&& other) noexcept : fd_(other.fd_), cancelled_(other.cancelled_) { other.fd_ = -1; }
  Turn& operator=(Turn&&) = delete;
  // Releases the lock. The lock also ends with the process, however that ends.
  ~Turn();

  bool cancelled() const { return cancelled_; }

 private:
  Turn(int fd, bool cancelled) : fd_(fd), cancelled_(cancelled) {}
  int fd_;
  bool cancelled_;
};

}  // namespace fusion

#endif  // FUSION_WORKER_MEASURE_TURN_H_
