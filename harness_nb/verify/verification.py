"""``verify``: run a notebook top to bottom in a fresh kernel, compare cell by cell, say the verdict, write it down.

Called by the command line and by ``%agent verify``. The order: read, copy the folder, run (``execution``), compare
(``comparison``), judge (``verdict``), propose repairs (``repair``), write (``badge``).
"""

from __future__ import annotations

import asyncio
import platform
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness_nb.errors import StoreError, UsageError
from harness_nb.verify.badge import standing_verdict, write_verdict
from harness_nb.verify.comparison import compare_outputs
from harness_nb.verify.copies import copy_folder, root_of
from harness_nb.verify.document import CodeCell, Document, digest_of, read_document
from harness_nb.verify.explanation import explain, order_notes
from harness_nb.verify.failures import CannotRunError
from harness_nb.verify.firewalled import as_recorded
from harness_nb.verify.ground import set_back
from harness_nb.verify.masked import masked_run, refuse_masked_sources
from harness_nb.verify.repairing import repair_notebook
from harness_nb.verify.runs import CellRun, Place, Run
from harness_nb.verify.sandbox import Mounts, Sandbox, find_sandbox
from harness_nb.verify.sanitise import DEFAULT, SUFFIX, Pattern, dump_patterns, is_untouched, parse_patterns
from harness_nb.verify.verdict import CellVerdict, Verdict, judge

CELL_SECONDS = 1800.0
"""Seconds that one cell may run, if nothing else is said."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How a verification is done.

    ``timeout`` is in seconds and for one cell. ``kernel`` names a kernel spec; else the notebook's own. ``in_place``
    runs in the folder itself. ``sandbox`` false switches it off. ``write`` false leaves the notebook and its folder as
    they are. ``progress`` is told one line before each cell.
    """

    timeout: float = CELL_SECONDS
    kernel: str = ""
    in_place: bool = False
    sandbox: bool = True
    repair: bool = False
    write: bool = True
    progress: Progress = lambda line: None


async def verify(path: Path, options: Options | None = None) -> Verdict:
    """Verify a notebook file.

    Raises:
        UsageError: if the file cannot be read or is no notebook of nbformat 4 (exit code 2), or its sanitise file is
            wrong.
    """
    options = options or Options()
    path = path.absolute()
    try:
        document = await asyncio.to_thread(read_document, path)
        patterns, sanitise_file, notes = await asyncio.to_thread(_patterns, path, options.write)
    except StoreError as error:
        raise UsageError(str(error)) from error
    verdict = await verify_document(document, options, patterns)
    verdict = replace(verdict, sanitise_file=sanitise_file, notes=(*verdict.notes, *notes))
    had_verdict = standing_verdict(document.data) is not None
    if options.repair and verdict.state == "failed":

        async def again(repaired: Document) -> Verdict:
            return await verify_document(repaired, options, patterns)

        verdict = await repair_notebook(document, verdict, again, options.write)
    if options.write and (verdict.repaired is None or had_verdict):
        verdict = await asyncio.to_thread(write_verdict, path, verdict)
    return verdict


async def verify_document(document: Document, options: Options, patterns: Sequence[Pattern]) -> Verdict:
    """Run and judge a notebook without writing anything beside it."""
    sandbox = await asyncio.to_thread(find_sandbox, options.sandbox)
    kernel = options.kernel or document.kernel or "python3"
    where = "in the folder itself" if options.in_place else "in a copy of its folder"
    start = time.monotonic()
    verdict = Verdict(
        document.path,
        "not run",
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        digest=digest_of(document.data),
        kernel=kernel,
        sandbox=f"{sandbox.words}; {where}",
        notes=tuple(order_notes(document.cells)),
    )
    private = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="harness-nb-verify-"))
    try:
        refuse_masked_sources(document)
        place, notes = await asyncio.to_thread(_prepare, document, private, sandbox, options)
        run = masked_run(await _run(document, kernel, place, options), document)
    except (CannotRunError, StoreError, UsageError) as error:
        cells = tuple(CellVerdict(cell.number, cell.id, "not run") for cell in document.cells)
        return replace(verdict, reason=str(error), cells=cells, seconds=time.monotonic() - start)
    finally:
        await asyncio.shield(asyncio.to_thread(shutil.rmtree, private, ignore_errors=True))
    cells = tuple(_judge_cell(cell, run, document, options, sandbox, patterns) for cell in document.cells)
    state, reason = judge(cells)
    return replace(
        verdict,
        state=state,
        reason=reason,
        cells=cells,
        notes=(*verdict.notes, *notes),
        seconds=time.monotonic() - start,
        python=str(run.facts.get("python", "")),
        platform=str(run.facts.get("platform", "") or platform.platform()),
        versions=dict(run.facts.get("versions") or {}),
    )


async def _run(document: Document, kernel: str, place: Place, options: Options) -> Run:
    # nbformat loads every checker of formats that jsonschema can find, which takes two seconds beside JupyterLab.
    # Nobody who only loads the magics or asks for help shall wait for it.
    from harness_nb.verify.execution import run_cells

    def tell(cell: CodeCell) -> None:
        line = next((line for line in cell.source.splitlines() if line.strip()), "")
        options.progress(f"cell {cell.number} of {len(document.cells)}: {line[:60]}")

    return await run_cells(document, kernel, place, options.timeout, tell)


def _prepare(document: Document, folder: Path, sandbox: Sandbox, options: Options) -> tuple[Place, list[str]]:
    """The place of the run: the folder or its copy, and a private folder for the kernel. Blocking."""
    root = root_of(document.path.resolve())
    directory = document.path.resolve().parent
    private = folder / "p"
    private.mkdir()
    copy = root
    shared: tuple[Path, ...] = ()
    notes: list[str] = []
    if not options.in_place:
        copy = folder / "copy"
        copy.mkdir()
        copied = copy_folder(root, copy, document.path.resolve(), sandbox.works)
        set_back_paths, notes = set_back(copy, document)
        shared, notes = tuple(path for path in copied.shared if path not in set_back_paths), [*copied.notes, *notes]
    if sandbox.works:
        return Place(directory, private, Mounts(root, copy, private, shared)), notes
    return Place(copy / directory.relative_to(root), private), notes


def _judge_cell(
    cell: CodeCell, run: Run, document: Document, options: Options, sandbox: Sandbox, patterns: Sequence[Pattern]
) -> CellVerdict:
    if cell.rules.skip:
        return CellVerdict(cell.number, cell.id, "skipped")
    ran = run.cells.get(cell.number)
    if ran is None:
        return CellVerdict(cell.number, cell.id, "not run")
    if ran.failure is not None:
        detail = explain(ran.failure, cell, document, sandbox.works, not options.in_place)
        return CellVerdict(cell.number, cell.id, "failed", detail, ran.seconds, missing=ran.failure.missing_name)
    if not cell.recorded:
        if cell.outputs:
            detail = "it has recorded outputs, but no execution count: nothing says that they are of this source"
            return CellVerdict(cell.number, cell.id, "differs", detail, ran.seconds)
        return CellVerdict(cell.number, cell.id, "not recorded" if cell.source.strip() else "skipped", "", ran.seconds)
    if not cell.rules.check:
        return CellVerdict(cell.number, cell.id, "not compared", "", ran.seconds)
    return _compare(cell, ran, document, patterns)


def _compare(cell: CodeCell, ran: CellRun, document: Document, patterns: Sequence[Pattern]) -> CellVerdict:
    now = as_recorded(cell, ran.outputs, str(document.machine.get("session_id", ""))) if cell.call_id else ran.outputs
    found = compare_outputs(cell.outputs, now, patterns, cell.rules.tolerance)
    if found.difference:
        return CellVerdict(cell.number, cell.id, "differs", found.difference, ran.seconds)
    return CellVerdict(cell.number, cell.id, "same", "", ran.seconds, found.aside, found.compared)


def _patterns(path: Path, write: bool) -> tuple[tuple[Pattern, ...], str, list[str]]:
    """The patterns to sanitise with, the name of their file, and a note if a person has changed them. Blocking.

    Raises:
        StoreError: if the file beside the notebook is wrong or cannot be read.
    """
    file = path.with_name(path.stem + SUFFIX)
    try:
        text = file.read_text("utf-8") if file.exists() else ""
        if not text or is_untouched(text):
            if write and text != dump_patterns(DEFAULT):
                file.write_text(dump_patterns(DEFAULT), "ascii")
            return DEFAULT, file.name, []
        patterns = parse_patterns(text)
    except OSError as error:
        return DEFAULT, "", [f"{file.name} cannot be used ({error.strerror or error}); the usual patterns are"]
    except ValueError as error:
        raise StoreError(f"{file}: {error}") from error
    return patterns, file.name, [f"compared with {len(patterns)} patterns of {file.name}, which a person has changed"]
