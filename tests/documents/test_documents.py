"""Checks that the files, flags and verbs exist that the documents name."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import architecture
import documents
import tour

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("FUSION_BIN", ROOT / "build/release/bin"))

BUILT = all((BIN / program).exists() for program in documents.PROGRAMS)

# Files that programs create, and files of other programs and formats: they are not in the tree.
MADE = (
    r"build/.*", r"out/.*",
    r"src/.*", r"kernels/.*", r"kernel\w*\.(cc|cl|cu|h)", r"k\d+\.cc",  # entries of a bundle
    r"(.*/)?(NNNN[\w-]*|NAME|FOLDER/name)\.\w+",  # placeholders
    r"peers/bin/\w+",  # the virtual environment that tests/bench/README.md makes
    r"cuda\.h|nvrtc\.h|onnx\.proto",  # files of other projects
)
# Options of other projects' programs.
FOREIGN = {"--preset", "--build", "--target", "--system-site-packages", "--help", "--version", "--user", "--now", "--follow"}


def help_text(*command):
    done = subprocess.run([BIN / command[0], *command[1:], "--help"], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


class Helps:
    """Flags of each program, and of each verb of fusionctl, as their --help says."""

    def __init__(self):
        self.flags = {(program,): documents.flags_of_help(help_text(program)) for program in documents.PROGRAMS}
        self.verbs = {}
        self.read_verbs(("fusionctl",))

    def read_verbs(self, command):
        text = help_text(*command)
        self.flags[command] = documents.flags_of_help(text)
        listed = text.partition("Subcommands:")[2].partition("\n\n")[0]
        self.verbs[command] = re.findall(r"^  (\w+) ", listed, re.MULTILINE)
        for verb in self.verbs[command]:
            self.read_verbs((*command, verb))

    def complaint(self, program, words):
        """What is wrong with the command, or None."""
        command, known = (program,), set(self.flags[(program,)])
        for word in words:
            if word.startswith("--"):
                flag = word.partition("=")[0].rstrip("…,.:")
                if flag not in known | {"--help", "--version", "--helpfull"}:
                    return f"{' '.join(command)} has no {flag}"
            elif self.verbs.get(command) and re.fullmatch(r"[a-z]+", word):
                if word not in self.verbs[command]:
                    return f"{' '.join(command)} has no verb {word}, but {', '.join(self.verbs[command])}"
                command = (*command, word)
                known |= self.flags[command]
            elif command == (program,) and program == "fusionctl" and not word.startswith("-"):
                return None  # fusionctl VERB
        return None


class DocumentsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.files = documents.project_files(ROOT)

    def test_files_exist(self):
        absent = documents.absent_files(self.files, ROOT, MADE)
        self.assertEqual([], [f"{named.where(ROOT)} names {named.text}" for named in absent])

    def test_metrics_and_other_names_of_ours_exist(self):
        absent = documents.absent_names(self.files, ROOT)
        self.assertEqual([], [f"{named.where(ROOT)} names {named.text}" for named in absent])

    def test_each_threat_has_a_test_that_exists(self):
        text = (ROOT / "docs/security.md").read_text()
        self.assertGreater(text.count("_test.cc`"), 40)
        self.assertEqual([], documents.threats_without_tests(text, ROOT))

    def test_comments_begin_with_their_subject(self):
        dangling = [f"{named.where(ROOT)}: {named.text}" for named in documents.dangling_comments(self.files)]
        self.assertEqual([], dangling, "begin each sentence with its subject (CONTRIBUTING.md, Style)")

    @unittest.skipUnless(BUILT, "not all programs are built")
    def test_commands_are_those_of_the_programs(self):
        helps = Helps()
        self.assertIn("--kinds", helps.flags[("fusion-worker",)])
        self.assertIn("--tune", helps.flags[("fusionctl", "submit")])
        wrong = []
        for path in documents.documents(self.files, ROOT):
            for named, program, words in documents.commands(path):
                complaint = helps.complaint(program, words)
                if complaint:
                    wrong.append(f"{named.where(ROOT)}: {complaint}")
        self.assertEqual([], wrong)

    @unittest.skipUnless(BUILT, "not all programs are built")
    def test_flags_exist_somewhere(self):
        known = FOREIGN | documents.flags_in_sources(self.files) | set().union(*Helps().flags.values())
        unknown = [f"{path.relative_to(ROOT)}:{number} names {flag}"
                   for path in documents.documents(self.files, ROOT)
                   for number, line, _ in documents.lines_of_document(path)
                   for flag in documents.FLAG.findall(line) if flag not in known]
        self.assertEqual([], unknown)


class FindsWhatIsStale(unittest.TestCase):
    """Each check against a tree that is wrong in one place."""

    def tree(self, **files):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name).resolve()
        for name, text in files.items():
            path = root / name.replace("__", "/").replace("_md", ".md").replace("_h", ".h")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root, documents.project_files(root)

    def absent(self, root, files):
        return [named.text for named in documents.absent_files(files, root)]

    def test_a_header_that_moved(self):
        root, files = self.tree(a__one_h="// See a/two.h and a/one.h.\nint x;  // as in three.h\n")
        self.assertEqual(self.absent(root, files), ["a/two.h", "three.h"])

    def test_a_link_and_a_span_of_a_document(self):
        root, files = self.tree(README_md="[here](docs/guide.md), `a/one.h`, `a/two.h`, `a/`, `b/c/`\n", a__one_h="")
        self.assertEqual(self.absent(root, files), ["docs/guide.md", "a/two.h", "b/c/"])

    def test_a_metric_that_no_source_counts(self):
        root, files = self.tree(README_md="`fusion_jobs_total`, `fusion_job_total`, [x](a/fusion_b.h)\n",
                                a__one_h="int x;  // \"fusion_jobs_total\"\n")
        self.assertEqual([named.text for named in documents.absent_names(files, root)], ["fusion_job_total"])

    def test_a_threat_without_a_test(self):
        root, _ = self.tree(a__x_test_py="")
        (root / "a/one_test.cc").write_text("TEST(Some, FloodsAreRefused) {}")
        head = "| threat | control | test | remains |\n|---|---|---|---|\n"
        self.assertEqual([], documents.threats_without_tests(head + "| a flood | a dam | `a/one_test.cc` (FloodsAreRefused) | |\n", root))
        for cell, fault in (("", "has no test"), ("`a/one_test.cc` (Floods)", "has no test Floods"),
                            ("`a/two_test.cc`", "a/two_test.cc has no test")):
            [found] = documents.threats_without_tests(head + f"| a flood | a dam | {cell} | |\n", root)
            self.assertIn(fault, found)

    def test_a_comment_without_a_subject(self):
        text = ("// What it costs.\n// Is it? What then?\nint x;\n// Costs much. Of these one is\n// kept.\n"
                "int y;  // What stands behind code is no sentence\n// which of\n// What follows.\n")
        root, files = self.tree(a__one_h=text)
        self.assertEqual([named.line for named in documents.dangling_comments(files)], [1, 4])

    def test_a_verb_and_a_flag(self):
        helps = Helps.__new__(Helps)
        helps.flags = {("fusionctl",): {"--server"}, ("fusionctl", "job"): set(), ("fusionctl", "job", "list"): {"--limit"}}
        helps.verbs = {("fusionctl",): ["job"], ("fusionctl", "job"): ["list"], ("fusionctl", "job", "list"): []}
        self.assertIsNone(helps.complaint("fusionctl", ["--server", "X", "job", "list", "--limit", "3"]))
        self.assertIn("no verb lists", helps.complaint("fusionctl", ["job", "lists"]))
        self.assertIn("no verb jobs", helps.complaint("fusionctl", ["jobs"]))
        self.assertIn("no --most", helps.complaint("fusionctl", ["job", "list", "--most=3"]))

    def test_commands_are_found_in_blocks_and_spans(self):
        root, files = self.tree(README_md="Try `fusionctl job list`.\n\n    FUSION_SERVER=x build/bin/fusiond --listen y &\n")
        found = [(program, words) for _, program, words in documents.commands(root / "README.md")]
        self.assertEqual(found, [("fusionctl", ["job", "list"]), ("fusiond", ["--listen", "y"])])


class TourTest(unittest.TestCase):
    def test_outputs_are_replaced_and_the_rest_stays(self):
        said = {"one": "first\n", "two": "".join(f"line {i}\n" for i in range(40)), "quiet &": ""}
        text = "Words.\n\n```\n$ quiet &\n$ one\nold\n\nolder\n\n$ two\n…\n```\n\nMore words.\n\n```\nno command\n```"
        fresh = tour.tour(text, lambda command: (0, said[command]))
        kept = [f"line {i}" for i in range(9)] + ["…"] + [f"line {i}" for i in range(35, 40)]
        self.assertEqual(fresh, "\n".join(["Words.", "", "```", "$ quiet &", "$ one", "first", "", "$ two", *kept, "```", "",
                                           "More words.", "", "```", "no command", "```"]))
        self.assertEqual(tour.tour(fresh, lambda command: (0, said[command])), fresh)

    def test_a_command_that_fails_is_named(self):
        with self.assertRaisesRegex(SystemExit, "'one' ended with 3"):
            tour.tour("```\n$ one\n```", lambda command: (3, "no such thing"))

    def test_the_readme_has_a_tour(self):
        text = (ROOT / "README.md").read_text()
        self.assertEqual((text.count(tour.BEGIN), text.count(tour.END)), (1, 1))

    @unittest.skipUnless(BUILT, "not all programs are built")
    def test_the_architecture_page_shows_what_the_programs_print(self):
        text = architecture.PAGE.read_text()
        self.assertGreaterEqual(len(architecture.BLOCK.findall(text)), 6)
        self.assertMultiLineEqual(text, architecture.with_outputs(text), "run tests/documents/architecture.py")

    def test_a_command_of_the_architecture_page_that_fails_is_named(self):
        for command in ("false", "true"):  # an exit code, and no output
            with self.assertRaisesRegex(RuntimeError, f"^{command}: "):
                architecture.with_outputs(f"```\n$ {command}\n```")


if __name__ == "__main__":
    unittest.main()
