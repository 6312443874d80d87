// Objects of CUDA's libraries: pointers that a library makes in a place and destroys by a function of its own.
#ifndef FUSION_RUNTIME_DEVICES_CUDA_LIBRARY_OBJECT_H_
#define FUSION_RUNTIME_DEVICES_CUDA_LIBRARY_OBJECT_H_

namespace fusion::cuda {

using LibraryObject = void*;

// Destroys the object, if the library has made one, at the end of its own life.
class Owned {
 public:
  explicit Owned(int (*destroy)(LibraryObject)) : destroy_(destroy) {}
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() {
    if (made_ != nullptr) destroy_(made_);
  }
  LibraryObject* place() { return &made_; }
  LibraryObject get() const { return made_; }

 private:
  int (*const destroy_)(LibraryObject);
  LibraryObject made_ = nullptr;
};

}  // namespace fusion::cuda

#endif  // FUSION_RUNTIME_DEVICES_CUDA_LIBRARY_OBJECT_H_
