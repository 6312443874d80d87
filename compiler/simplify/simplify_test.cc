#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/simplify/passes.h"

namespace fusion::simplify {
namespace {

ecg::Graph Parsed(const std::string& text) {
  auto graph = ecg::Parse(text).value();
  EXPECT_TRUE(ecg::Verify(graph).ok()) << ecg::Verify(graph);
  return graph;
}

// Runs a pass on a text, verifies and prints the result.
std::string After(ecg::Graph (*pass)(const ecg::Graph&), const std::string& text) {
  const ecg::Graph result = pass(Parsed(text));
  EXPECT_TRUE(ecg::Verify(result).ok()) << ecg::Verify(result);
  return ecg::Print(result);
}

TEST(RemoveNoops, DropsCopiesOfEveryKind) {
  EXPECT_EQ(After(RemoveNoops, R"(graph g(%x: f32[2, 3]) {
  %s: i64[2] = const {2, -1}
  %e: i64[2] = const {1, 3}
  %a: f32[2, 3] = Identity(%x)
  %b: f32[2, 3] = Reshape(%a, %s)
  %c: f32[2, 3] = Transpose(%b) {perm = ints[0, 1]}
  %d: f32[2, 3] = Cast(%c) {to = 1}
  %f: f32[2, 3] = Expand(%d, %e)
  %h: f32[2, 3] = Concat(%f) {axis = 0}
  %y: f32[2, 3] = Relu(%h)
  return %y
})"),
            "graph g(%x: f32[2, 3]) {\n  %y: f32[2, 3] = Relu(%x)\n  return %y\n}\n");
}

TEST(RemoveNoops, UnitAxes) {
  EXPECT_EQ(After(RemoveNoops, R"(graph g(%x: f32[1, 3, 1]) {
  %a: f32[1, 3, 1] = Identity(%x)
  %b: f32[1, 3, 1] = Transpose(%a) {perm = ints[2, 1, 0]}
  %y: f32[1, 3, 1] = Relu(%b)
  return %y
})"),
            "graph g(%x: f32[1, 3, 1]) {\n  %y: f32[1, 3, 1] = Relu(%x)\n  return %y\n}\n");
}

TEST(RemoveNoops, KeepsWhatChangesSomething) {
  const std::string text = R"(graph g(%x: f32[2, 2], %z: f32[2, 2]) {
  %a: f32[2, 2] = Transpose(%x) {perm = ints[1, 0]}
  %b: f32[2, 2] = Add(%a, %z)
  %c: f64[2, 2] = Cast(%b) {to = 11}
  return %c
}
)";
  EXPECT_EQ(After(RemoveNoops, text), text);
}

TEST(RemoveNoops, OutputsStayTheirOwn) {
  const std::string text = "graph g(%x: f32[2]) {\n  %y: f32[2] = Identity(%x)\n  return %y\n}\n";
  EXPECT_EQ(After(RemoveNoops, text), text);
}

TEST(FoldConstants, FoldsChainsAndSharesReshapedBytes) {
  const std::string text = R"(graph g(%x: f32[2]) {
  %a: f32[2] = const {1.0, 2.0}
  %b: f32[2] = const {3.0, 5.0}
  %s: f32[2] = Add(%a, %b)
  %m: f32[2] = Mul(%s, %s)
  %y: f32[2] = Add(%x, %m)
  return %y
}
)";
  EXPECT_EQ(After(FoldConstants, text),
            "graph g(%x: f32[2]) {\n  %m: f32[2] = const {16.0, 49.0}\n  %y: f32[2] = Add(%x, %m)\n  return %y\n}\n");
  const ecg::Graph reshaped = Parsed(R"(graph g(%x: f32[100]) {
  %w: f32[10, 10] = const #00000000000000aa
  %s: i64[1] = const {100}
  %r: f32[100] = Reshape(%w, %s)
  %y: f32[100] = Add(%x, %r)
  return %y
})");
  const ecg::Graph folded = FoldConstants(reshaped);
  ASSERT_EQ(folded.nodes().size(), 1u);
  EXPECT_EQ(folded.value(folded.node(0).inputs[1]).constant->data(), reshaped.value(1).constant->data());
}

TEST(FoldConstants, EmptyTensorsNeedNoNode) {
  EXPECT_EQ(After(FoldConstants, R"(graph g(%x: f32[0, 3]) {
  %a: f32[0, 3] = Relu(%x)
  %y: f32[3, 0] = Transpose(%a) {perm = ints[1, 0]}
  return %y
})"),
            "graph g(%x: f32[0, 3]) {\n  %y: f32[3, 0] = const {}\n  return %y\n}\n");
}

TEST(FoldConstants, DoesNotGrow) {
  const std::string text = R"(graph g(%x: f32[1024, 1024]) {
  %o: f32[1] = const {1.0}
  %s: i64[2] = const {1024, 1024}
  %w: f32[1024, 1024] = Expand(%o, %s)
  %y: f32[1024, 1024] = Add(%x, %w)
  return %y
}
)";
  EXPECT_EQ(After(FoldConstants, text), text);
}

// A large table that is both gathered from and, transposed, multiplied by is stored once.
TEST(FoldConstants, TransposesNoLargeConstantThatOthersRead) {
  const auto transposes = [](int64_t rows, bool shared, Reordering reordering = Reordering::kHoldOnce) {
    ecg::Graph graph;
    const ecg::ValueId table = graph.AddConstant("w", Tensor(DType::kF32, {rows, 256}));
    const ecg::ValueId x = graph.AddInput("x", {DType::kF32, {1, 256}}), ids = graph.AddInput("i", {DType::kI64, {2}});
    ecg::Attributes turned;
    turned.Set("perm", std::vector<int64_t>{1, 0});
    const ecg::ValueId t =
        graph.node(graph.AddNode("Transpose", "t", {table}, turned, {{DType::kF32, {256, rows}}})).outputs[0];
    graph.AddOutput(graph.node(graph.AddNode("MatMul", "m", {x, t}, {}, {{DType::kF32, {1, rows}}})).outputs[0], "y");
    if (shared) {
      graph.AddOutput(graph.node(graph.AddNode("Gather", "g", {table, ids}, {}, {{DType::kF32, {2, 256}}})).outputs[0],
                      "z");
    }
    const ecg::Graph folded = FoldConstants(graph, Widening::kFold, reordering);
    return std::count_if(folded.nodes().begin(), folded.nodes().end(),
                         [](const ecg::Node& node) { return node.op == "Transpose"; });
  };
  EXPECT_EQ(transposes(2048, true), 1);
  EXPECT_EQ(transposes(2048, false), 0);
  EXPECT_EQ(transposes(2048, true, Reordering::kFold), 0);
  EXPECT_EQ(transposes(64, true), 0);  // too small to matter
}

TEST(FoldConstants, KeepsNarrowConstantsForRewriting) {
  const std::string text = R"(graph g(%x: f32[2]) {
  %q: i8[2] = const {3, -5}
  %s: f32[] = const {0.5}
  %w: f32[2] = DequantizeLinear(%q, %s)
  %y: f32[2] = Mul(%x, %w)
  return %y
}
)";
  const auto keep = [](const ecg::Graph& graph) { return FoldConstants(graph, Widening::kKeep); };
  EXPECT_EQ(After(keep, text), text);
  EXPECT_EQ(After(FoldConstants, text),
            "graph g(%x: f32[2]) {\n  %w: f32[2] = const {1.5, -2.5}\n  %y: f32[2] = Mul(%x, %w)\n  return %y\n}\n");
  // Kept values must be narrow weights: this bias is not narrower than its value, and a scalar is no weight.
  EXPECT_EQ(After(keep, R"(graph g(%x: f32[2]) {
  %q: i32[2] = const {3, -5}
  %z: i8[] = const {4}
  %s: f32[] = const {0.5}
  %b: f32[2] = DequantizeLinear(%q, %s)
  %c: f32[] = DequantizeLinear(%z, %s)
  %a: f32[2] = Add(%x, %b)
  %y: f32[2] = Mul(%a, %c)
  return %y
})"),
            "graph g(%x: f32[2]) {\n  %b: f32[2] = const {1.5, -2.5}\n  %c: f32[] = const {2.0}\n"
            "  %a: f32[2] = Add(%x, %b)\n  %y: f32[2] = Mul(%a, %c)\n  return %y\n}\n");
}

TEST(ShareEqual, SharesNodesAndConstants) {
  EXPECT_EQ(After(ShareEqual, R"(graph g(%x: f32[32]) {
  %a: f32[32] = const #00000000000000aa
  %b: f32[32] = const #00000000000000aa
  %c: f32[32] = const #00000000000000ab
  %p: f32[32] = Add(%x, %a)
  %q: f32[32] = Add(%x, %b)
  %r: f32[32] = Add(%x, %c)
  %s: f32[32] = Mul(%p, %q)
  %y: f32[32] = Mul(%s, %r)
  return %y
})"),
            R"(graph g(%x: f32[32]) {
  %a: f32[32] = const #00000000000000aa
  %c: f32[32] = const #00000000000000ab
  %p: f32[32] = Add(%x, %a)
  %r: f32[32] = Add(%x, %c)
  %s: f32[32] = Mul(%p, %p)
  %y: f32[32] = Mul(%s, %r)
  return %y
}
)");
}

TEST(ShareEqual, AttributesCount) {
  const std::string text = R"(graph g(%x: f32[2]) {
  %a: f32[2] = LeakyRelu(%x) {alpha = 0.1}
  %b: f32[2] = LeakyRelu(%x) {alpha = 0.2}
  %y: f32[2] = Add(%a, %b)
  return %y
}
)";
  EXPECT_EQ(After(ShareEqual, text), text);
}

TEST(RemoveDead, KeepsInputsAndLiveNodes) {
  EXPECT_EQ(After(RemoveDead, R"(graph g(%x: f32[2], %z: f32[2]) {
  %k: f32[2] = const {1.0, 2.0}
  %d: f32[2] = Add(%z, %k)
  %y: f32[2] = Relu(%x)
  return %y
})"),
            "graph g(%x: f32[2], %z: f32[2]) {\n  %y: f32[2] = Relu(%x)\n  return %y\n}\n");
}

// Gathers rows 0 to `count` - 1 of %x and adds them all up. Row 0 is added twice, and %c1 has another reader.
std::string RowsOf(int count, const char* axis) {
  std::string text = "graph g(%x: f32[16, 16]) {\n", body, last = "%s";
  for (int i = 0; i < count; ++i) absl::StrAppend(&text, "  %c", i, ": i64[] = const {", i, "}\n");
  absl::StrAppend(&text, "  %s: f32[16] = Gather(%x, %c0) {axis = ", axis, "}\n");
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "  %g", i, ": f32[16] = Gather(%x, %c", i, ") {axis = ", axis, "}\n", "  %s", i,
                    ": f32[16] = Add(", last, ", %g", i, ")\n");
    last = absl::StrCat("%s", i);
  }
  return absl::StrCat(text, "  %k: i64[] = Add(%c1, %c1)\n  return ", last, ", %k\n}\n");
}

int Opaque(const ecg::Graph& graph) {
  return static_cast<int>(std::count_if(graph.values().begin(), graph.values().end(),
                                        [](const ecg::Value& value) { return value.opaque; }));
}

TEST(OpenIndices, OfManyPlacesInOneValue) {
  const ecg::Graph graph = OpenIndices(Parsed(RowsOf(8, "0")));
  EXPECT_EQ(Opaque(graph), 8);
  for (const ecg::Node& node : graph.nodes()) {
    if (node.op == "Gather") EXPECT_TRUE(graph.value(node.inputs[1]).opaque);
  }
  const ecg::Node& other = graph.node(graph.value(graph.outputs()[1]).producer);
  EXPECT_FALSE(graph.value(other.inputs[0]).opaque) << "others still know the value";
  EXPECT_EQ(Opaque(Parsed(ecg::Print(graph))), 8);
}

TEST(OpenIndices, NotOfAFew) {
  EXPECT_EQ(Opaque(OpenIndices(Parsed(RowsOf(7, "0")))), 0);
  EXPECT_EQ(Opaque(OpenIndices(Parsed(R"(graph g(%x: f32[2, 9]) {
  %i: i64[9] = const {0, 1, 2, 3, 4, 5, 6, 7, 8}
  %y: f32[2, 9] = Gather(%x, %i) {axis = 1}
  return %y
}
)"))),
            0);
}

TEST(Simplify, IsIdempotent) {
  const std::string text = R"(graph g(%x: f32[2, 3]) {
  %w: f32[2, 3] = const {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}
  %v: f32[2, 3] = Identity(%w)
  %t: f32[3, 2] = Transpose(%v) {perm = ints[1, 0]}
  %a: f32[2, 2] = MatMul(%x, %t)
  %b: f32[2, 2] = MatMul(%x, %t)
  %y: f32[2, 2] = Add(%a, %b)
  return %y, %x as "same", %y as "again"
})";
  const std::string once = After(Simplify, text);
  EXPECT_EQ(After(Simplify, once), once);
  EXPECT_EQ(Parsed(once).nodes().size(), 4u) << once;
}

constexpr char kTwice[] = R"(graph g(%x: f32[2, 3]) {
  %a: f32[2, 3] = Identity(%x)
  %b: f32[2, 3] = Relu(%a)
  %c: f32[2, 3] = Relu(%x)
  %y: f32[2, 3] = Add(%b, %c)
  return %y
})";

TEST(Simplify, EachPartIsShownWithItsName) {
  std::vector<std::string> parts;
  const auto made = SimplifyInParts(Parsed(kTwice), Widening::kFold, Reordering::kFold,
                                    [&](const char* part, const ecg::Graph& graph) {
                                      parts.push_back(absl::StrCat(part, " ", graph.nodes().size()));
                                      return ecg::Verify(graph);
                                    });
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(parts, (std::vector<std::string>{"remove-dead 4", "remove-noops 3", "fold-constants 3", "remove-noops 3",
                                             "share-equal 2", "remove-dead 2"}));
  EXPECT_EQ(ecg::Print(*made), After(Simplify, kTwice));
}

TEST(Simplify, APartThatIsRefusedEndsIt) {
  int looks = 0;
  const auto made = SimplifyInParts(Parsed(kTwice), Widening::kFold, Reordering::kFold,
                                    [&](const std::string& part, const ecg::Graph&) {
                                      ++looks;
                                      return part == "fold-constants" ? absl::InternalError(part) : absl::OkStatus();
                                    });
  EXPECT_EQ(made.status(), absl::InternalError("fold-constants"));
  EXPECT_EQ(looks, 3);
}

}  // namespace
}  // namespace fusion::simplify
