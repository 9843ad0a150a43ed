"""A shell script as the commands in it: each with its words, where it writes to, and what it reads. Pure.

The parser is tree-sitter with tree-sitter-bash. Every command counts, wherever it stands: in lists, pipelines,
conditions, loops, functions, substitutions, here-documents. What the parser could not read is told as a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

from harness_nb.policy.findings import PLAIN, UNKNOWN
from harness_nb.policy.shell.words import source_of, unescape, word_of, words_of

_READERS = {"read", "mapfile", "readarray", "getopts", "printf", "let", "wait", "unset"}
"""Commands that may set a variable that is named among their words."""

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
    walker = _Walker(_variables(root))
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
            texts = [word for item in items for word in words_of(item, assigned)]
            plain = bool(texts) and all(text and text[0] not in "-\0" for text in texts)
            outside = [text for text in texts if text.startswith(("/", "~", "..")) or "/.." in text]
            given = outside[0] if plain and outside else PLAIN if plain else UNKNOWN
            values.setdefault(source_of(variable), []).append(given)
            assigned[source_of(variable)] = given
        elif node.type == "command" and _reads_variables(node):
            for child in node.children[1:]:
                values.setdefault(re.sub(r"\W.*", "", source_of(child)), []).extend([UNKNOWN, ""])
    return {name: seen[0] for name, seen in values.items() if len(set(seen)) == 1}


def _reads_variables(node: Node) -> bool:
    first = node.child_by_field_name("name")
    return first is not None and unescape(source_of(first)) in _READERS


class _Walker:
    """Goes through a tree and gathers its commands."""

    def __init__(self, variables: dict[str, str]) -> None:
        self.script = Script()
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
        own, writes, reads, later = self._redirects(redirects, stdin)
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
        for rest in later:
            inner = Stdin(before=(*stdin.before, *segments)) if rest.type == "pipeline" else Stdin()
            self.walk(rest, inner)

    def _redirects(self, nodes: list[Node], stdin: Stdin) -> tuple[Stdin, list[str], list[str], list[Node]]:
        """What redirections make of standard input, the files that are written and read, what stands behind."""
        own, writes, reads, later = Stdin(stdin.text, stdin.before, stdin.file), list[str](), list[str](), list[Node]()
        for node in nodes:
            if node.type == "file_redirect":
                self._file_redirect(node, own, writes, reads)
            elif node.type == "herestring_redirect":
                inner = [child for child in node.children if child.is_named]
                own.text, own.before = (word_of(inner[-1], self._variables) if inner else ""), ()
                self._into(node)
            else:
                own.text, own.before = self._heredoc(node, later), ()
        return own, writes, reads, later

    def _file_redirect(self, node: Node, own: Stdin, writes: list[str], reads: list[str]) -> None:
        operators = "".join(child.type for child in node.children if not child.is_named)
        targets = node.children_by_field_name("destination") or [c for c in node.children if c.is_named]
        for target in targets:
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

    def _heredoc(self, node: Node, later: list[Node]) -> str:
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
                    self._file_redirect(child, Stdin(), self._stray(node), [])
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
        own, writes, reads, later = self._redirects(redirects, stdin)
        words, settings = list[str](), list[tuple[str, str]]()
        for child in node.children:
            if child.type == "variable_assignment":
                settings.append(self._assigned(child))
            elif child.type in ("$", "comment") or child in redirects:
                continue
            elif child.is_named or child.type in ("=", "==", "=~"):
                words += words_of(child, self._variables)
        self.script.segments.append(Segment(words, source_of(node), own, writes, reads, settings))
        for child in node.children:
            if child.type == "variable_assignment":
                self._into(child)
            elif not child.type.endswith("_redirect"):
                self.walk(child, Stdin())
        for rest in later:
            self.walk(rest, Stdin())

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
