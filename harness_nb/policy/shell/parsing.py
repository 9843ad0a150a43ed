"""A shell script as the commands in it: each with its words, where it writes to, and what it reads. Pure.

The parser is tree-sitter with tree-sitter-bash. Every command counts, wherever it stands: in lists, pipelines,
conditions, loops, functions, substitutions, here-documents. What the parser could not read is told as a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from harness_nb.policy.findings import PLAIN, UNKNOWN, words_in
from harness_nb.policy.shell.words import source_of, unescape, word_of, words_of

_READERS = {"read", "mapfile", "readarray", "getopts", "printf", "let", "wait", "unset"}
"""Commands that may set a variable that is named among their words."""

_WORDS = words_in(
    "word number string raw_string ansi_c_string concatenation simple_expansion expansion command_substitution "
    "process_substitution brace_expression arithmetic_expansion translated_string"
)
_SUBSTITUTIONS = ("command_substitution", "process_substitution")


@dataclass(slots=True)
class Stdin:
    """What a command reads: the text of a here-document or string, the commands before it in a pipe, or a file."""

    text: str | None = None
    before: tuple[Segment, ...] = ()
    file: str | None = None


@dataclass(slots=True)
class Segment:
    """One command of a script, as it stands there.

    ``writes`` are the files that its output is sent to, ``reads`` those that its input comes from, ``settings`` the
    variables that are set for it alone; ``whole`` is its text with redirections where ``text`` lacks them.
    """

    words: list[str]
    text: str
    stdin: Stdin
    writes: list[str] = field(default_factory=list)
    reads: list[str] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    whole: str = ""
    start: int = -1


@dataclass(slots=True)
class Script:
    """A script: its commands in order, its assignments, texts that bash runs too, and what could not be read."""

    segments: list[Segment] = field(default_factory=list)
    settings: list[tuple[str, str]] = field(default_factory=list)
    nested: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)
    problem: str = ""


def parse(text: str) -> Script:
    """The commands of a script."""
    tree = _parser().parse(text.encode("utf-8", "replace"))
    if "\\\n" in text:
        tree = _parser().parse(_continued(text.encode("utf-8", "replace"), tree.root_node))
    root = tree.root_node
    walker = _Walker(_variables(root), root.text or b"")
    walker.walk(root, Stdin())
    if root.has_error:
        walker.script.problem = _unread(root) or text
    return walker.script


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bash.language()))


def _continued(source: bytes, root: Node) -> bytes:
    """The script with lines that end in a backslash joined, as bash does before anything else.

    Comments, single quotes and quoted here-documents are left alone: there a backslash is a backslash.
    """
    kept, place = bytearray(), 0
    while (found := source.find(b"\\\n", place)) >= 0:
        backslashes = len(source[:found]) - len(source[:found].rstrip(b"\\"))
        node: Node | None = root.descendant_for_byte_range(found, found + 1)
        literal = backslashes % 2 == 1
        while node is not None and not literal:
            quoted_body = node.type == "heredoc_body" and _is_quoted(node)
            literal = node.type in ("comment", "raw_string", "ansi_c_string") or quoted_body
            node = node.parent
        kept += source[place : found + 2] if literal else source[place:found]
        place = found + 2
    return bytes(kept + source[place:])


def _is_quoted(body: Node) -> bool:
    """Whether a here-document's delimiter is quoted, so that nothing in its body is expanded."""
    starts = [child for child in body.parent.children if child.type == "heredoc_start"] if body.parent else []
    return bool(starts) and any(character in source_of(starts[0]) for character in "'\"\\")


def _unread(root: Node) -> str:
    """The first line that could not be read."""
    for node in _all(root):
        if node.is_error or node.is_missing:
            lines = source_of(root).encode().split(b"\n")
            row = min(node.start_point[0], len(lines) - 1)
            return lines[row].decode("utf-8", "replace").strip()
    return ""


def _all(root: Node) -> Iterator[Node]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


def _variables(root: Node) -> dict[str, str]:
    """The variables that the script sets to a constant and to nothing else.

    The values of a loop differ; where none of them begins with a dash, the variable is a plain name.
    """
    values: dict[str, list[str]] = {}
    assigned: dict[str, str] = {}
    for node in _all(root):
        if node.type == "variable_assignment":
            name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
            appends = any(child.type == "+=" for child in node.children)
            given = UNKNOWN if appends else word_of(value, assigned) if value else ""
            if name is not None:
                values.setdefault(source_of(name), []).append(given)
                assigned |= {source_of(name): given} if name.type == "variable_name" else {}
        elif node.type == "for_statement" and (variable := node.child_by_field_name("variable")):
            items = [child for child in node.children_by_field_name("value") if child.is_named]
            texts = [word for item in items for word in words_of([item], assigned)]
            plain = bool(texts) and all(text and text[0] not in "-\0" for text in texts)
            outside = [text for text in texts if text.startswith(("/", "~", "..")) or "/.." in text]
            given = outside[0] if plain and outside else PLAIN if plain else UNKNOWN
            values.setdefault(source_of(variable), []).append(given)
            assigned[source_of(variable)] = given
        elif node.type == "command" and _reads_variables(node):
            for child in node.children[1:]:
                values.setdefault(re.sub(r"\W.*", "", source_of(child)), []).extend([UNKNOWN, ""])
    return {name: seen[0] for name, seen in values.items() if len(set(seen)) == 1}


def _last_command(node: Node | None) -> Node | None:
    """The last command of a list or a pipeline, to which the words behind a redirection belong."""
    while node is not None and node.type in ("list", "pipeline", "negated_command", "redirected_statement"):
        inner = node.child_by_field_name("body") if node.type == "redirected_statement" else None
        node = inner or next((child for child in reversed(node.children) if child.is_named), None)
    return node


def _reads_variables(node: Node) -> bool:
    first = node.child_by_field_name("name")
    return first is not None and unescape(source_of(first)) in _READERS


class _Walker:
    """Goes through a tree and gathers its commands."""

    def __init__(self, variables: dict[str, str], source: bytes) -> None:
        self.script = Script()
        self._source = source
        self._variables = variables

    def walk(self, node: Node, stdin: Stdin) -> None:
        """Gather the commands of a node; ``stdin`` is what they read."""
        kind = node.type
        if kind == "comment":
            return
        if kind == "pipeline":
            self._pipeline(node, stdin)
        elif kind == "redirected_statement":
            self._redirected(node, stdin)
        elif kind == "command":
            self._command(node, stdin)
        elif kind == "variable_assignment":
            self._assignment(node)
        else:
            if kind == "function_definition" and (name := node.child_by_field_name("name")):
                self.script.functions.append(source_of(name))
            if kind == "command_substitution" and source_of(node).lstrip().startswith("`"):
                self._backticks(node)
            inner = Stdin() if kind in _SUBSTITUTIONS else stdin
            if kind == "process_substitution" and source_of(node).lstrip().startswith(">"):
                inner = Stdin(before=(Segment([UNKNOWN], source_of(node.parent or node), Stdin()),))
            for child in node.children:
                self.walk(child, inner)

    def _backticks(self, node: Node) -> None:
        inner = source_of(node).strip()[1:-1]
        if "\\" in inner:
            self.script.nested.append(re.sub(r"\\([`\\$])", r"\1", inner))

    def _pipeline(self, node: Node, stdin: Stdin) -> None:
        before: tuple[Segment, ...] = stdin.before
        for stage in node.children:
            if not stage.is_named:
                continue
            count = len(self.script.segments)
            self.walk(stage, Stdin(text=None if before else stdin.text, before=before, file=stdin.file))
            before = (*before, *self.script.segments[count:])

    def _redirected(self, node: Node, stdin: Stdin) -> None:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        own, writes, reads, later, extra = self._redirects(redirects, stdin)
        count = len(self.script.segments)
        if body is not None:
            self.walk(body, own)
        segments = self.script.segments[count:]
        if not segments:
            segments = [Segment([], source_of(node), own)]
            self.script.segments += segments
        if writes or reads:
            segments[0].whole = source_of(node)
        segments[0].writes += writes
        segments[0].reads += reads
        last = _last_command(body)
        behind = [each for each in segments if last is not None and each.start == last.start_byte]
        (behind or segments)[0].words += extra
        for rest in later:
            inner = Stdin(before=(*stdin.before, *segments)) if rest.type == "pipeline" else Stdin()
            self.walk(rest, inner)

    def _redirects(self, nodes: list[Node], stdin: Stdin) -> tuple[Stdin, list[str], list[str], list[Node], list[str]]:
        """What redirections make of standard input, the files that are written and read, what stands behind.

        Last come the words of the command that stand behind a redirection; the parser takes them for a part of it.
        """
        own, writes, reads, later = Stdin(stdin.text, stdin.before, stdin.file), list[str](), list[str](), list[Node]()
        extra = list[str]()
        for node in nodes:
            if node.type == "file_redirect":
                extra += self._file_redirect(node, own, writes, reads)
            elif node.type == "herestring_redirect":
                inner = [child for child in node.children if child.is_named]
                own.text, own.before = (word_of(inner[-1], self._variables) if inner else ""), ()
                self._into(node)
            else:
                own.text, own.before = self._heredoc(node, later, extra), ()
        return own, writes, reads, later, extra

    def _file_redirect(self, node: Node, own: Stdin, writes: list[str], reads: list[str]) -> list[str]:
        operators = "".join(child.type for child in node.children if not child.is_named)
        targets = node.children_by_field_name("destination") or [c for c in node.children if c.is_named]
        while len(targets) > 1 and targets[0].end_byte == targets[1].start_byte:
            self._misread(node)
            targets = targets[1:]
        for target in targets[:1]:
            self._check(target)
            word = word_of(target, self._variables)
            if ">" in operators:
                if not (operators.endswith("&") and re.fullmatch(r"\d+-?|-", word)):
                    writes.append(word)
            elif not operators.endswith("&"):
                reads.append(word)
                own.text, own.before, own.file = None, (), word
                if target.type == "process_substitution":
                    own.before = (Segment([UNKNOWN], source_of(target), Stdin()),)
        self._into(node)
        return self._words(targets[1:])

    def _heredoc(self, node: Node, later: list[Node], extra: list[str]) -> str:
        text, parsed_end = "", ""
        for child in node.children:
            if child.type == "heredoc_body":
                text = source_of(child)
                if _is_quoted(child):
                    continue
                self._into(child)
                parsed = [inner for inner in child.children if inner.type in (*_SUBSTITUTIONS, "expansion")]
                parsed_end = text
                for inner in parsed:
                    parsed_end = parsed_end.replace(source_of(inner), " ", 1)
                text = re.sub(r"\\([$`\\])", r"\1", text) if not parsed else UNKNOWN + text
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_end", "file_descriptor"):
                if child.type == "file_redirect":
                    extra += self._file_redirect(child, Stdin(), self._stray(node), [])
                elif child.type in _WORDS:
                    extra += self._words([child])
                    self.walk(child, Stdin())
                else:
                    later.append(child)
        backticked = re.findall(r"(?<!\\)`((?:[^`\\]|\\.)*)`", parsed_end, re.S)
        self.script.nested += [re.sub(r"\\([`\\$])", r"\1", inner) for inner in backticked]
        if re.search(r"(?<!\\)\$\((?!\()", parsed_end):
            self.script.problem = "a substitution in a here-document"
        return UNKNOWN + text if backticked else text

    def _stray(self, node: Node) -> list[str]:
        """Where a redirection behind a here-document writes to; a segment of its own."""
        segment = Segment([], source_of(node).split("\n")[0], Stdin())
        self.script.segments.append(segment)
        return segment.writes

    def _command(self, node: Node, stdin: Stdin) -> None:
        redirects = [child for child in node.children if child.type.endswith("_redirect")]
        own, writes, reads, later, extra = self._redirects(redirects, stdin)
        if any(left.end_point[0] < right.start_point[0] for left, right in pairwise(node.children)):
            self._misread(node)  # the parser has taken a line break within a command for white space
        settings = [self._assigned(child) for child in node.children if child.type == "variable_assignment"]
        inner = [child for child in node.children if child.type not in ("variable_assignment", "comment")]
        words = self._words([child for child in inner if child not in redirects]) + extra
        self.script.segments.append(
            Segment(words, source_of(node), own, writes, reads, settings, start=node.start_byte)
        )
        for child in node.children:
            if child.type == "variable_assignment":
                self._into(child)
            elif not child.type.endswith("_redirect"):
                self.walk(child, Stdin())
        for rest in later:
            self.walk(rest, Stdin())

    def _words(self, nodes: list[Node]) -> list[str]:
        """The words that nodes are, those that touch one another as one."""
        words, waiting = list[str](), list[Node]()
        for node in nodes:
            self._check(node)
            if waiting and waiting[-1].end_byte != node.start_byte:
                words += words_of(waiting, self._variables)
                waiting = []
            waiting.append(node)
        return words + (words_of(waiting, self._variables) if waiting else [])

    def _check(self, node: Node) -> None:
        """A word with white space in it that is not quoted is one that the parser got wrong."""
        bare = [node, *node.children] if node.type in ("command_name", "concatenation") else [node]
        for each in [*bare, *(inner for child in bare[1:] for inner in child.children)]:
            if each.type == "word" and re.search(r"(?<!\\)(?:\\\\)*\s", source_of(each)):
                self._misread(each)
        if re.fullmatch(r"\{\w+\}", source_of(node)) and self._source[node.end_byte : node.end_byte + 1] in (
            b"<",
            b">",
        ):
            self._misread(node)  # a variable for a file descriptor

    def _misread(self, node: Node) -> None:
        """Note what the parser has got wrong."""
        self.script.problem = self.script.problem or source_of(node).strip()

    def _assignment(self, node: Node) -> None:
        self.script.settings.append(self._assigned(node))
        self._into(node)

    def _assigned(self, node: Node) -> tuple[str, str]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        return (source_of(name) if name else "", word_of(value, self._variables) if value else "")

    def _into(self, node: Node) -> None:
        """Gather what stands within words: substitutions of all sorts."""
        if node.child_count:
            for child in node.children:
                self.walk(child, Stdin())
