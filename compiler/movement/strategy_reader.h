// Reads the strategies of steps, and what they name: axes and buffers of the kernel that is being read. The parser of
// kernels (parse.cc) derives from it.
#ifndef FUSION_COMPILER_MOVEMENT_STRATEGY_READER_H_
#define FUSION_COMPILER_MOVEMENT_STRATEGY_READER_H_

#include <map>
#include <string>
#include <vector>

#include "compiler/movement/kernel.h"
#include "compiler/te/program/text_reader.h"

namespace fusion::movement {

class StrategyReader : public te::TextReader {
 public:
  // `text` must outlive the reader.
  explicit StrategyReader(const std::string& text) : TextReader(text) { FindAxes(); }

 protected:
  // Declares an axis: i3<8.
  te::Axis ParseAxis();
  std::vector<te::Axis> ParseAxes(const char* open, const char* close);
  // The number of a buffer that stands in kernel_; anything else is an error.
  int ParseBufferId(const char* prefix = "b");
  std::vector<int> ParseBufferIds();  // separated by commas
  Strategy ParseStrategy();
  int Count();  // 0 or more, as an int

  const te::Axis* FindAxis(int id) const override;
  te::Index ParseIndexLoad() override;

  Kernel kernel_;  // as far as it has been read
  std::map<int, te::Axis> axes_;

 private:
  void FindAxes();
  int ParseAxisId(const char* role);
  RegisterTile ParseRegisterTile();
  ThreadgroupTile ParseThreadgroupTile();
  RoutineCall ParseRoutine();
  LibraryCall ParseLibraryCall();
  LibraryProduct ParseProduct(int result, const std::vector<int64_t>& extents);
  LibraryConvolution ParseConvolution(int result, const std::vector<int64_t>& extents);

  // Reads as many numbers as the array holds, separated by commas.
  template <typename Array>
  void ParseList(Array* list);
};

}  // namespace fusion::movement

#endif  // FUSION_COMPILER_MOVEMENT_STRATEGY_READER_H_
