"""Checks of structure.py on made-up trees that are wrong in one place."""
import pathlib
import tempfile
import unittest

import structure

LAYERS = "foreach(layer IN ITEMS ecg te\n        plan)\n"


def including(*names):
    return "".join(f'#include "{name}"\n' for name in names)


class Tree(unittest.TestCase):
    def tree(self, files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        for name, text in {"compiler/CMakeLists.txt": LAYERS, **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root


class Includes(Tree):
    def circles(self, files):
        return structure.unit_circles(structure.includes(self.tree(files)))

    def upward(self, files):
        root = self.tree(files)
        return structure.upward_includes(structure.includes(root), structure.layers(root))

    def test_a_header_and_its_own_source_are_one_unit(self):
        self.assertEqual([], self.circles({"runtime/a.h": "", "runtime/a.cc": including("runtime/a.h")}))

    def test_units_that_include_each_other_through_sources(self):
        files = {"runtime/a.h": "", "runtime/a.cc": including("runtime/a.h", "runtime/b.h"),
                 "runtime/b.h": including("runtime/a.h")}
        self.assertEqual([["runtime/a", "runtime/b"]], self.circles(files))
        files["runtime/b.h"] = ""
        self.assertEqual([], self.circles(files))

    def test_a_circle_of_three_and_a_unit_beside_it(self):
        self.assertEqual([["server/a", "server/b", "server/c"]], self.circles({
            "server/a.h": including("server/b.h"), "server/b.h": including("server/c.h"),
            "server/c.h": including("server/a.h", "server/d.h"), "server/d.h": ""}))

    def test_a_test_may_include_what_includes_its_unit(self):
        self.assertEqual([], self.circles({
            "runtime/a.h": "", "runtime/a_test.cc": including("runtime/b.h"), "runtime/b.h": including("runtime/a.h")}))

    def test_layers_are_read_in_order(self):
        self.assertEqual(["ecg", "te", "plan"], structure.layers(self.tree({})))

    def test_a_folder_that_includes_one_above(self):
        files = {"compiler/te/deep/a.cc": including("compiler/plan/b.h"),
                 "compiler/plan/b.h": including("compiler/ecg/c.h"), "compiler/ecg/c.h": ""}
        self.assertEqual(["compiler/te/deep/a.cc includes compiler/plan/b.h"], self.upward(files))

    def test_tests_may_include_upward(self):
        self.assertEqual([], self.upward({
            "compiler/te/a_test.cc": including("compiler/plan/b.h"),
            "compiler/te/testing/helper.cc": including("compiler/plan/b.h"), "compiler/plan/b.h": ""}))


class Tests(Tree):
    def test_mirror_sources_that_have_a_header(self):
        self.assertEqual(["te/b.cc"], structure.without_tests([
            "te/a.cc", "te/a.h", "te/a_test.cc", "te/b.cc", "te/b.h", "te/main.cc", "te/only.h", "te/testing/c.cc",
            "te/testing/c.h", "te/deep/b_test.cc"]))


class WallClock(Tree):
    def faults(self, text, *declared):
        return structure.wall_clock_faults(self.tree({"server/a.cc": text}), declared)

    def test_a_duration_is_a_fault_and_a_date_is_none(self):
        self.assertEqual([], self.faults("row.time_ms = absl::ToUnixMillis(absl::Now());  // not absl::Now() - x\n"
                                         "context.set_deadline(absl::ToChronoTime(absl::Now() + timeout));\n"))
        for use in ("absl::Now() - begin", "absl::GetCurrentTimeNanos()", "time(nullptr)", "clock_ = absl::Now"):
            [fault] = self.faults(f"int x;\nauto y = {use};\n")
            self.assertIn("server/a.cc:2 uses", fault)

    def test_a_reason_is_heard_and_one_that_nothing_needs_is_a_fault(self):
        self.assertEqual([], self.faults("absl::Now() - mtime;", ("server/a.cc", "ages of files")))
        [fault] = self.faults("int x;", ("server/a.cc", "ages of files"))
        self.assertIn("does not use", fault)
        self.assertEqual(2, len(self.faults("absl::Now() - mtime;", ("server/a.cc", ""))))

    def test_tests_may_use_it(self):
        self.assertEqual([], structure.wall_clock_faults(self.tree({"server/a_test.cc": "absl::Now() - x;",
                                                                    "server/testing/a.cc": "absl::Now() - x;"}), []))


class Functions(Tree):
    def found(self, text):
        return list(structure.functions(text))

    def test_names_first_lines_and_lengths(self):
        text = ("namespace fusion {\n\nstruct A {\n  int x = 0;\n  int F() const { return x; }\n};\n\n"
                "std::vector<int> Long(int a,\n                      int b) {\n  for (;;) {\n  }\n  return {a, b};\n}\n\n}\n")
        self.assertEqual([("F", 5, 1), ("Long", 8, 6)], self.found(text))

    def test_methods_constructors_and_operators(self):
        text = ("class B {\n public:\n  explicit B(int x)\n      : x_(x) {}\n  bool operator<(const B& other) const {\n"
                "    return x_ < other.x_;\n  }\n\n private:\n  int x_;\n};\n\nint B::Get() {\n  return 1;\n}\n")
        self.assertEqual([("B", 3, 2), ("operator<", 5, 3), ("B::Get", 13, 3)], self.found(text))

    def test_a_lambda_and_a_brace_in_a_text_belong_to_the_function(self):
        text = ('void F() {\n  const auto g = [&](int x) {\n    return x;\n  };\n  // }\n  Print("}", \'}\', 1\'000, R"(\n}}\n)");\n'
                "  g(1);\n}\n")
        self.assertEqual([("F", 1, 10)], self.found(text))

    def test_long_ones_are_reported_but_for_tests(self):
        long = "void F() {\n" + "  g();\n" * structure.LONG_FUNCTION + "}\n"
        root = self.tree({"server/a.cc": long, "server/a_test.cc": long, "server/b.cc": "void G() {}\n"})
        self.assertEqual([(structure.LONG_FUNCTION + 2, "server/a.cc", 1, "F")], structure.long_functions(root))


class Mirrors(Tree):
    FILES = {"server/a.h": "", "server/a.cc": "", "server/b.h": "", "server/b.cc": "", "server/b_test.cc": "",
             "server/deep/c.h": "", "server/deep/c.cc": "", "server/all_test.cc": ""}

    def faults(self, text):
        root = self.tree(self.FILES)
        return structure.test_faults(structure.includes(root), structure.mirrors(text), root)

    def test_a_source_needs_a_test_or_a_reason(self):
        faults = self.faults("")
        self.assertEqual(["server/a.cc", "server/deep/c.cc"], [fault.split(" ")[0] for fault in faults])
        self.assertEqual([], self.faults("# words\nserver/a.cc | server/all_test.cc | one | test\n"
                                         "server/deep/*.cc | server/all_test.cc | why\n"))

    def test_a_pattern_stays_in_its_folder(self):
        self.assertEqual(["server/deep/c.cc"],
                         [fault.split(" ")[0] for fault in self.faults("server/*.cc | server/all_test.cc | why")])

    def test_lines_that_say_nothing(self):
        both = "server/*.cc | server/all_test.cc | why\nserver/deep/*.cc | server/all_test.cc | why\n"
        for line, fault in (("server/b.cc | server/all_test.cc | it has a test", "names no source without a test"),
                            ("server/a.cc | server/gone_test.cc | why", "there is no test server/gone_test.cc"),
                            ("server/a.cc | server/all_test.cc |", "is not 'source | test | reason'")):
            self.assertIn(fault, " ".join(self.faults(both + line)), line)


if __name__ == "__main__":
    unittest.main()
