#include "compiler/movement/strategy_reader.h"

#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"

namespace fusion::movement {

using te::Axis;
using te::Index;

// A shared-memory copy stands before the loops of its step, whose axes it uses. All declarations, `i3<8`, are
// therefore read beforehand.
void StrategyReader::FindAxes() {
  for (size_t at = text_.find('<'); at != std::string::npos; at = text_.find('<', at + 1)) {
    size_t digits = at;
    while (digits > 0 && std::isdigit(static_cast<unsigned char>(text_[digits - 1]))) --digits;
    if (digits == at || digits == 0 || text_[digits - 1] != 'i') continue;
    Axis axis;
    const char* const end = text_.data() + text_.size();
    if (std::from_chars(text_.data() + digits, end, axis.id).ec != std::errc() ||
        std::from_chars(text_.data() + at + 1, end, axis.extent).ec != std::errc()) {
      continue;
    }
    axes_.emplace(axis.id, axis);
  }
}

Axis StrategyReader::ParseAxis() {
  Axis axis;
  axis.id = Id("i");
  Expect("<");
  axis.extent = Int();
  if (axis.extent < 0) Fail("expected an extent of 0 or more");
  axes_[axis.id] = axis;
  return axis;
}

std::vector<Axis> StrategyReader::ParseAxes(const char* open, const char* close) {
  std::vector<Axis> axes;
  Expect(open);
  if (!Looking(close)) {
    do axes.push_back(ParseAxis());
    while (Accept(","));
  }
  Expect(close);
  return axes;
}

const Axis* StrategyReader::FindAxis(int id) const {
  const auto it = axes_.find(id);
  return it == axes_.end() ? nullptr : &it->second;
}

Index StrategyReader::ParseIndexLoad() {
  const int buffer = ParseBufferId("%t");
  return Index::Load(buffer, ParseIndices(), {0, std::numeric_limits<int32_t>::max()});
}

int StrategyReader::ParseBufferId(const char* prefix) {
  const int id = Id(prefix);
  if (!failed() && id >= static_cast<int>(kernel_.buffers.size())) Fail(absl::StrCat("there is no buffer b", id));
  return failed() ? -1 : id;
}

std::vector<int> StrategyReader::ParseBufferIds() {
  std::vector<int> ids;
  do ids.push_back(ParseBufferId());
  while (Accept(","));
  return ids;
}

// ---- strategies
int StrategyReader::ParseAxisId(const char* role) {
  Expect(role);
  Expect("i");
  return static_cast<int>(Int());
}

int StrategyReader::Count() {
  const int64_t count = Int();
  if (count < 0 || count > std::numeric_limits<int32_t>::max()) Fail("expected a count");
  return failed() ? 0 : static_cast<int>(count);
}

template <typename Array>
void StrategyReader::ParseList(Array* list) {
  for (size_t i = 0; i < list->size(); ++i) {
    if (i > 0) Expect(",");
    (*list)[i] = Int();
  }
}

Strategy StrategyReader::ParseStrategy() {
  const std::string name = Word();
  if (name == "tile") return ParseRegisterTile();
  if (name == "threadgroup_tile") return ParseThreadgroupTile();
  if (name == "library") return ParseLibraryCall();
  if (name == "scalar") {
    if (Looking("{")) return ScalarLoops();
    return ParseRoutine();
  }
  const bool lanes = Accept("{lanes");
  const int axis = lanes ? ParseAxisId("") : -1;
  Strategy strategy;
  if (name == "map") {
    VectorMap map{.axis = axis};
    map.streaming_stores = lanes && AcceptWord("streaming");
    map.rest_in_vector = lanes && Accept("rest in a vector");
    strategy = map;
  } else if (name == "transpose") {
    BlockedTranspose transpose{.axis = axis};
    if (lanes && AcceptWord("across")) transpose.across_axis = ParseAxisId("");
    transpose.streaming_stores = lanes && AcceptWord("streaming");
    strategy = transpose;
  } else if (name == "row_reduction") {
    strategy = RowReduction{axis};
  } else if (name == "prefix") {
    strategy = PrefixPass{axis};
  } else {
    Fail(absl::StrCat("'", name, "' is no strategy"));
  }
  if (lanes) Expect("}");
  if (AcceptWord("next")) {
    auto* map = std::get_if<VectorMap>(&strategy);
    if (map == nullptr) Fail("only a map prefetches what is read next");
    ReadNext next;
    next.axis = ParseAxisId("");
    if (Accept("+")) next.distance = Int();
    Expect("of");
    next.buffers = ParseBufferIds();
    if (map != nullptr) map->read_next = std::move(next);
  }
  return strategy;
}

RegisterTile StrategyReader::ParseRegisterTile() {
  RegisterTile tile;
  Expect("{");
  tile.row_count = Count();
  Expect("x");
  tile.outer_count = Count();
  tile.row_axis = ParseAxisId("rows");
  tile.outer_axis = ParseAxisId("vectors");
  tile.lane_axis = ParseAxisId("lanes");
  Expect("unroll");
  tile.unroll = Count();
  if (AcceptWord("slides")) tile.slide_axis = ParseAxisId("");
  if (AcceptWord("dot")) tile.dot_axis = ParseAxisId("");
  Expect("}");
  return tile;
}

ThreadgroupTile StrategyReader::ParseThreadgroupTile() {
  ThreadgroupTile tile;
  Expect("{");
  tile.rows = Count();
  Expect("x");
  tile.columns = Count();
  Expect("of");
  tile.item_rows = Count();
  Expect("x");
  tile.item_columns = Count();
  tile.row_axis = ParseAxisId("rows");
  tile.column_axis = ParseAxisId("columns");
  if (AcceptWord("by")) {
    FragmentProduct& product = tile.product;
    product.rows = Count();
    Expect("x");
    product.columns = Count();
    Expect("x");
    product.depth = Count();
    Expect("of");
    product.work_items = Count();
    product.from_memory = Accept("from memory");
  }
  if (AcceptWord("buffers")) tile.buffers = Count();
  Expect("}");
  return tile;
}

RoutineCall StrategyReader::ParseRoutine() {
  RoutineCall routine;
  routine.name = Word();
  Expect(".");
  routine.element = Type();
  Expect("(");
  if (!Looking(")")) routine.inputs = ParseBufferIds();
  Expect(")");
  routine.params = Ints("{", "}");
  return routine;
}

LibraryCall StrategyReader::ParseLibraryCall() {
  Expect("{");
  const int result = ParseBufferId();
  const std::vector<int64_t> extents = Ints("[", "]");
  if (extents.size() != 2 && extents.size() != 4) Fail("expected two or four extents");
  Expect("pitch");
  LibraryCall call;
  if (!failed()) {
    call = extents.size() == 2 ? LibraryCall(ParseProduct(result, extents))
                               : LibraryCall(ParseConvolution(result, extents));
  }
  Expect("}");
  return call;
}

LibraryProduct StrategyReader::ParseProduct(int result, const std::vector<int64_t>& extents) {
  LibraryProduct p;
  p.d = result;
  p.m = extents[0];
  p.n = extents[1];
  p.d_pitch = Int();
  Expect("=");
  p.a = ParseBufferId();
  p.a_along_depth = Accept("along depth");
  Expect("pitch");
  p.a_pitch = Int();
  Expect("*");
  p.b = ParseBufferId();
  p.b_along_depth = Accept("along depth");
  Expect("pitch");
  p.b_pitch = Int();
  Expect("depth");
  p.depth = Int();
  if (Accept("+")) p.bias = ParseBufferId();
  p.tf32 = AcceptWord("tf32");
  if (!AcceptWord("batches")) return p;
  p.batches = Int();
  Expect("of");
  std::array<int64_t, 3> strides = {0, 0, 0};
  ParseList(&strides);
  p.d_batch = strides[0];
  p.a_batch = strides[1];
  p.b_batch = strides[2];
  return p;
}

LibraryConvolution StrategyReader::ParseConvolution(int result, const std::vector<int64_t>& extents) {
  LibraryConvolution c;
  c.y = result;
  c.results = extents[1];
  c.out = {extents[2], extents[3]};
  ParseList(&c.y_pitch);
  Expect("=");
  c.x = ParseBufferId();
  const std::vector<int64_t> image = Ints("[", "]");
  Expect("pitch");
  ParseList(&c.x_pitch);
  Expect("*");
  c.w = ParseBufferId();
  const std::vector<int64_t> filter = Ints("[", "]");
  if (image.size() != 4 || filter.size() != 4) Fail("expected four extents");
  if (failed()) return c;
  c.images = image[0];
  c.channels = image[1];
  c.in = {image[2], image[3]};
  c.taps = {filter[2], filter[3]};
  c.channels_last = Accept("channels last");
  Expect("groups");
  c.groups = Int();
  if (c.groups < 1) Fail("expected a number of groups");
  Expect("stride");
  ParseList(&c.stride);
  Expect("dilation");
  ParseList(&c.dilation);
  Expect("pad");
  ParseList(&c.pad);
  c.tf32 = AcceptWord("tf32");
  return c;
}

}  // namespace fusion::movement
