"""Finds what documents and comments name: files, flags and verbs, each with the line that names it.

A document is a Markdown file of the project, except those that record the state of a day: CHANGELOG.md, docs/decisions
and the dated pages of docs/benchmarks. Comments are those of C++ and Python sources; only names of sources are checked
in them.
"""
import pathlib
import re
from typing import NamedTuple

SOURCES = ("h", "cc", "c", "py", "md", "rules", "sql", "cmake", "proto", "txt", "cl", "sh", "ecg")
SOURCE_NAME = re.compile(r"(?<![\w/.$~{<-])((?:[\w.-]+/)*[a-zA-Z0-9][\w-]*\.(?:%s))(?![\w*<{/…-]|\.\w)" % "|".join(SOURCES))
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z0-9_-]*)")
SKIPPED = ("build", ".git", "out")
# Programs whose own --help says which flags there are.
PROGRAMS = ("fusionctl", "fusiond", "fusion-worker", "fusion-compile", "ecg-opt")


class Named(NamedTuple):
    file: pathlib.Path
    line: int
    text: str  # the file, flag or command

    def where(self, root):
        return f"{self.file.relative_to(root)}:{self.line}"


def project_files(root):
    found = []
    for path in sorted(root.iterdir()):
        if path.name in SKIPPED or path.name.startswith("build"):
            continue
        found += [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    return found


def is_record(path, root):
    parts = path.relative_to(root).parts
    return parts[0] == "CHANGELOG.md" or parts[:2] == ("docs", "decisions") and path.name != "README.md" or (
        parts[:2] == ("docs", "benchmarks") and path.name[:1].isdigit())


def documents(files, root):
    return [path for path in files if path.suffix == ".md" and not is_record(path, root)]


def comments(path):
    """(line, text) of a source's comments, strings left out as far as a line shows them."""
    lines = path.read_text(errors="replace").splitlines()
    mark = "#" if path.suffix == ".py" else "//"
    for number, line in enumerate(lines, 1):
        bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
        if mark in bare and not line.lstrip().startswith("#include"):
            yield number, bare.split(mark, 1)[1]


def code_spans(line):
    return re.findall(r"`([^`]+)`", line)


def lines_of_document(path):
    """(line number, text, whether it is inside of a code block)."""
    inside = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            inside = not inside
            continue
        yield number, line, inside or line.startswith("    ")


def named_files(path):
    """What a document names as a file: in backticks, in links, as the words of a table's first cell."""
    for number, line, code in lines_of_document(path):
        for target in re.findall(r"\]\(([^)#]+)", line):
            if "://" not in target and " " not in target:
                yield Named(path, number, target)
        for span in [line] if code else code_spans(line):
            for name in SOURCE_NAME.findall(span):
                yield Named(path, number, name)
            # Folders and programs of the source tree: two parts or more, and no file that a program creates.
            for name in re.findall(r"(?<![\w/.$~-])((?:[a-z_]+/)+[a-z_]*)(?![\w*<{/.…-])", span):
                yield Named(path, number, name)


class Tree:
    """Whether a name stands for something of the project."""

    def __init__(self, files, root):
        self.root = root
        self.paths = {str(path.relative_to(root)) for path in files}
        self.names = {path.name for path in files}
        for path in files:
            for folder in path.relative_to(root).parents:
                if str(folder) != ".":
                    self.paths.add(str(folder))
            self.paths.add(str(path.relative_to(root).with_suffix("")))  # `movement/cost` for its header and its source

    def has(self, name, beside):
        name = name.rstrip("/")
        if "/" not in name:
            return name in self.names or name in self.paths or (beside / name).exists()
        for folder in (beside, *beside.parents):
            if folder == self.root.parent:
                return any(path.endswith("/" + name) for path in self.paths)
            path = (folder / name).resolve()
            if path.is_relative_to(self.root) and str(path.relative_to(self.root)) in self.paths:
                return True
        return False


def absent_files(files, root, made=()):
    """What documents and comments name and the tree has not; `made` are names of what running something makes."""
    tree, absent = Tree(files, root), []
    for path in documents(files, root):
        absent += [named for named in named_files(path) if not tree.has(named.text, path.parent)]
    for path in files:
        if path.suffix in (".h", ".cc", ".c", ".py"):
            absent += [Named(path, number, name) for number, text in comments(path) for name in SOURCE_NAME.findall(text)
                       if not tree.has(name, path.parent)]
    return [named for named in absent if not any(re.fullmatch(pattern, named.text) for pattern in made)]


# Metrics, targets and functions of the C interface begin so.
OURS = re.compile(r"(?<![\w/.-])fusion_[a-z0-9_]+\b(?![/.])")


def absent_names(files, root):
    """Names such as fusion_jobs_total that documents have and no source has."""
    known = set()
    for path in files:
        if path.suffix in (".h", ".cc", ".c", ".py", ".proto", ".cmake") or path.name == "CMakeLists.txt":
            known.update(re.findall(r"\bfusion_[a-z0-9_]+", path.read_text(errors="replace")))
    return [Named(path, number, name) for path in documents(files, root) for number, line, _ in lines_of_document(path)
            for name in OURS.findall(line) if name not in known]


DANGLING = re.compile(r"(?:Of|What|Nor|Whose)\b")


def dangling_comments(files):
    """Comments with a sentence that begins with "Of", "What", "Nor" or "Whose" and is no question: it has no subject in front.

    Texts of kernels (.inc) and migrations are left alone, since their bytes are part of keys."""
    for path in files:
        if path.suffix not in (".h", ".cc", ".c", ".py", ".rules", ".proto"):
            continue
        mark = "#" if path.suffix in (".py", ".rules") else "//"
        before, sentences = None, []
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            text = line.partition(mark)[2].strip() if line.lstrip().startswith(mark) else None
            if text is None:
                before = None
                continue
            starts = [text] if not before or before.endswith((".", ":", "?")) else []
            starts += re.findall(r"[.;:] ([A-Z].*)", text)
            sentences += [Named(path, number, start) for start in starts]
            before = text
        for named in sentences:
            if DANGLING.match(named.text) and "?" not in named.text:
                yield named


def commands(path):
    """Lines of a document that call one of PROGRAMS: (Named with the whole command, program, words)."""
    for number, line, code in lines_of_document(path):
        for span in [line] if code else code_spans(line):
            for piece in re.split(r"[|;&()]|\$ | # ", span):
                words = piece.split()
                while words and re.fullmatch(r"[A-Z_]+=\S*|flock|nice|env", words[0]):
                    words = words[1:]
                program = pathlib.PurePath(words[0]).name if words else ""
                if program in PROGRAMS:
                    yield Named(path, number, piece.strip()), program, words[1:]


TEST_REFERENCE = re.compile(r"`([\w/]+\.(?:cc|py))`(?: \(([^)]*)\))?")


def rows_of_tables(text, column):
    """The rows of all tables that have that column, by the names of their columns."""
    rows, columns = [], []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            columns = []
        elif column in cells:
            columns = cells
        elif columns and not line.startswith("|---"):
            rows.append(dict(zip(columns, cells)))
    return rows


def tests_named(cell):
    """The files with tests that a cell names, and the tests or classes in each that stand behind it, up to a colon."""
    return [(path, re.findall(r"\w+", names.split(":")[0])) for path, names in TEST_REFERENCE.findall(cell)]


def threats_without_tests(text, root):
    """What is wrong with the tables of threats in docs/security.md: rows without a test, and tests that do not exist."""
    faults = []
    for row in rows_of_tables(text, "test"):
        tests = tests_named(row["test"])
        if not tests:
            faults.append(f"'{row['threat']}' has no test")
        for path, names in tests:
            source = (root / path).read_text() if (root / path).exists() else ""
            for name in names or [""]:
                if not source or not re.search(r"\b%s\b" % name, source):
                    faults.append(f"'{row['threat']}': {path} has no test {name}".rstrip())
    return faults


def flags_of_help(text):
    """Flags that a --help offers: those that begin a line, or that the usage line names."""
    found = set()
    for line in text.splitlines():
        if re.match(r"\s+(-\w,)?--|\s*usage:|\s+\[", line, re.IGNORECASE):
            found.update(FLAG.findall(line))
    return found


def flags_in_sources(files):
    """Every flag that scripts and test programs of the project take, as their sources spell it."""
    found = set()
    for path in files:
        if path.suffix in (".py", ".cc", ".sh") or path.suffix == "" and path.parent.name == "scripts":
            text = path.read_text(errors="replace")
            found.update(FLAG.findall(" ".join(re.findall(r'"(--[a-z][^"\n]*)"', text))))
    return found
