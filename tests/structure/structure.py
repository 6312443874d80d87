#!/usr/bin/env python3
"""The shape of the source tree: include circles, folders that import upward, sizes of folders, files and functions.

usage: structure.py [--check]

Prints how many files each folder has, the longest files, the functions that are too long, the sources that have no test
of their name and for which mirrors.txt names none either, and every circle: units (a header and the source of its name) that include each other, and folders of the
compiler that include a folder above themselves. The order of the folders is that of compiler/CMakeLists.txt, in which
each folder may include what stands before it. Durations and limits by the wall clock are faults, too, unless
wall_clock.txt has a reason. --check prints faults only, and exits with 1 if there are any.
"""
import argparse
import collections
import fnmatch
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("compiler", "runtime", "server", "worker", "client", "db")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
MANY_FILES, LONG_FILE, LONG_FUNCTION = 20, 400, 80
# Tokens that may hide a brace: comments, raw strings, strings and characters. The digits of 1'000 hold no character.
HIDDEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\])+\'', re.DOTALL)
CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|extern)\b[^()=]*$")
WALL_CLOCK = re.compile(r"absl::Now\b|GetCurrentTimeNanos|system_clock::now|gettimeofday\(|CLOCK_REALTIME|\btime\((?:nullptr|NULL|0)\)")
# Dates that people read, and deadlines that gRPC turns into a steady clock's when the call begins.
DATE = re.compile(r"absl::ToUnixMillis\(absl::Now\(\)\)|absl::FormatTime\([^;]*?absl::Now\(\)|absl::ToChronoTime\(absl::Now\(\) \+")
CALLABLE = re.compile(r"([\w:~]+|operator\s*[^\s\w(]+)\s*\(")


def sources(root=ROOT):
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path.relative_to(root)


def includes(root=ROOT):
    """The included files of each source, by path within the project."""
    return {path.as_posix(): INCLUDE.findall((root / path).read_text()) for path in sources(root)}


def unit_of(path):
    return re.sub(r"(_test)?\.(h|cc)$", lambda match: match.group(1) or "", path)


def circles(edges):
    """Strongly connected components of more than one vertex, by Tarjan's algorithm without recursion."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for start in sorted(edges):
        if start in index:
            continue
        work = [(start, iter(sorted(edges[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            vertex, others = work[-1]
            for other in others:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(edges.get(other, ())))))
                    break
                if other in on_stack:
                    low[vertex] = min(low[vertex], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[vertex])
                if low[vertex] == index[vertex]:
                    members = stack[stack.index(vertex):]
                    del stack[stack.index(vertex):]
                    on_stack.difference_update(members)
                    if len(members) > 1:
                        found.append(sorted(members))
    return found


def unit_circles(all_includes):
    edges = collections.defaultdict(set)
    for path, included in all_includes.items():
        edges[unit_of(path)].update(unit_of(name) for name in included
                                    if name in all_includes and unit_of(name) != unit_of(path))
    return circles(edges)


def layers(root=ROOT):
    """The compiler's folders, lowest first."""
    text = (root / "compiler/CMakeLists.txt").read_text()
    return re.search(r"ITEMS ([^)]*)\)", text).group(1).split()


def upward_includes(all_includes, order):
    found = []
    for path, included in all_includes.items():
        parts = path.split("/")
        if parts[0] != "compiler" or "testing" in parts or path.endswith("_test.cc"):
            continue
        for name in included:
            other = name.split("/")
            if other[0] == "compiler" and other[1] in order and order.index(other[1]) > order.index(parts[1]):
                found.append(f"{path} includes {name}")
    return found


def functions(text):
    """Name, first line and number of lines of each function that is defined in a namespace or a class.

    Reads braces alone, which suffices for code that clang-format has laid out: a lambda counts as a part of the function
    around it.
    """
    text = HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    text = re.sub(r"^#.*(?:\\\n.*)*$", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.MULTILINE)
    open_braces, head = [], 0  # kind, name and first line of what each open brace belongs to
    for match in re.finditer(r"[{};]|\b(?:public|private|protected):", text):
        before = text[head:match.start()]
        if match.group() == "{":
            inside = open_braces[-1][0] if open_braces else "container"
            kind, name, line = "block", "", 0
            if inside == "container" and CONTAINER.search(before):
                kind = "container"
            elif inside == "container" and (called := CALLABLE.search(before)):
                kind, name = "function", called.group(1)
                line = text.count("\n", 0, head + len(before) - len(before.lstrip())) + 1
            open_braces.append((kind, name, line))
        elif match.group() == "}" and open_braces:
            kind, name, line = open_braces.pop()
            if kind == "function":
                yield name, line, text.count("\n", 0, match.start()) + 2 - line
        head = match.end()


def long_functions(root=ROOT):
    found = [(lines, path.as_posix(), first, name) for path in sources(root) if not path.stem.endswith("_test")
             for name, first, lines in functions((root / path).read_text()) if lines > LONG_FUNCTION]
    return sorted(found, reverse=True)


def without_tests(paths):
    """Sources that have no test of their name beside them, but for programs and what only tests use."""
    paths = set(paths)
    return sorted(path for path in paths if path.endswith(".cc") and not path.endswith(("_test.cc", "_fuzz.cc"))
                  and "testing" not in path.split("/") and path[:-len(".cc")] + ".h" in paths
                  and path[:-len(".cc")] + "_test.cc" not in paths)


def wall_clock_faults(root, declared):
    """Sources outside tests that use the wall clock for more than dates, without a reason; reasons that nothing needs."""
    reasons = dict(line for line in declared if len(line) == 2 and all(line))
    faults = [f"wall_clock.txt: '{' | '.join(line)}' is not 'source | reason'" for line in declared
              if len(line) != 2 or not all(line)]
    used = set()
    for path in sources(root):
        if path.stem.endswith("_test") or "testing" in path.parts:
            continue
        text = HIDDEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), (root / path).read_text())
        text = DATE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
        for match in WALL_CLOCK.finditer(text):
            if path.as_posix() in reasons:
                used.add(path.as_posix())
            else:
                faults.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1} uses {match.group()}: a step of the wall "
                              "clock changes it; use runtime/base/steady_clock.h, or give a reason in wall_clock.txt")
    return faults + [f"wall_clock.txt: {path} does not use the wall clock" for path in sorted(set(reasons) - used)]


def declarations(text, parts):
    """The lines of a text file of reasons, each cut into its parts."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(part.strip() for part in line.split("|", parts - 1)) for line in lines]


def mirrors(text):
    """The lines of mirrors.txt: (pattern of sources, the test that stands in for their own, reason)."""
    return declarations(text, 3)


def test_faults(paths, declared, root=ROOT):
    """Sources without a test and without a reason, and declarations that say nothing."""
    untested, faults, used = without_tests(paths), [], set()
    for line in declared:
        if len(line) != 3 or not all(line):
            faults.append(f"mirrors.txt: '{' | '.join(line)}' is not 'source | test | reason'")
        elif not (root / line[1]).exists():
            faults.append(f"mirrors.txt: there is no test {line[1]}")
    declared = [line for line in declared if len(line) == 3]
    for path in untested:
        fitting = [line for line in declared if fnmatch.fnmatchcase(path, line[0])
                   and line[0].count("/") == path.count("/")]
        if fitting:
            used.add(max(fitting, key=lambda line: len(line[0])))
        else:
            faults.append(f"{path} has no test of its name: add one, or a line with the reason in tests/structure/mirrors.txt")
    faults += [f"mirrors.txt: {line[0]} names no source without a test" for line in declared if line not in used]
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="print and judge faults only")
    arguments = parser.parse_args()
    all_includes = includes()
    faults = ["a circle: " + ", ".join(circle) for circle in unit_circles(all_includes)]
    faults += ["upward: " + fault for fault in upward_includes(all_includes, layers())]
    declared = mirrors((pathlib.Path(__file__).parent / "mirrors.txt").read_text())
    untested = test_faults(all_includes, declared)
    faults += untested
    faults += wall_clock_faults(ROOT, declarations((pathlib.Path(__file__).parent / "wall_clock.txt").read_text(), 2))
    if not arguments.check:
        files = collections.Counter(str(pathlib.Path(path).parent) for path in all_includes)
        lengths = {path: len((ROOT / path).read_text().splitlines()) for path in all_includes}
        for folder, count in sorted(files.items()):
            print(f"{folder:40} {count:4} files{'  (many)' if count > MANY_FILES else ''}")
        longest = sorted(lengths.items(), key=lambda item: -item[1])
        print(f"\n{sum(lines > LONG_FILE for lines in lengths.values())} of {len(lengths)} files are longer than "
              f"{LONG_FILE} lines; the longest:")
        for path, lines in longest[:10]:
            print(f"{lines:6} {path}")
        functions_found = long_functions()
        print(f"\n{len(functions_found)} functions are longer than {LONG_FUNCTION} lines:")
        for lines, path, first, name in functions_found:
            print(f"{lines:6} {name} ({path}:{first})")
        collective = len(without_tests(all_includes))
        print(f"\n{collective} sources with a header have a collective test by declaration (mirrors.txt); "
              f"{sum('no test of its name' in fault for fault in untested)} have no test and no reason")
        print(f"\n{len(faults)} faults")
    print("\n".join(faults) if faults else "no include circles, no upward includes, no source without a test or a reason, no duration by the wall clock")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
