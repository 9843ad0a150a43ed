"""The front matter of a SKILL.md, by the Agent Skills specification (agentskills.io/specification). Pure.

The session finds and reads the files; this module says what is in one.
"""

from __future__ import annotations

import yaml

from harness_nb.context.system_prompt import Skill

DESCRIPTION_LIMIT = 1024
"""Characters of a description that the specification allows."""


def parse_skill(text: str, folder: str, location: str) -> tuple[Skill | None, str | None]:
    """The skill that a SKILL.md describes, and a warning where the file is not as it should be.

    ``folder`` is the name of the folder it lies in, ``location`` the path that the model is to read. A file without a
    description, or whose front matter cannot be read, gives no skill.
    """
    front = _front_matter(text)
    if front is None:
        return None, f"{location}: no front matter between '---' lines; the skill is left out"
    try:
        values = yaml.safe_load(front)
    except yaml.YAMLError:
        values = _lenient(front)
    if not isinstance(values, dict) or not values.get("description"):
        return None, f"{location}: the front matter has no description; the skill is left out"
    name = str(values.get("name") or folder)
    description = " ".join(str(values["description"]).split())
    warning = None
    if name != folder:
        warning = f"{location}: the name {name!r} differs from its folder {folder!r}"
    elif len(description) > DESCRIPTION_LIMIT:
        warning = f"{location}: the description is longer than {DESCRIPTION_LIMIT} characters and is cut"
    return Skill(name=name, description=description[:DESCRIPTION_LIMIT], location=location), warning


def _front_matter(text: str) -> str | None:
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].strip() != "---":
        return None
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() == "---":
            return "\n".join(lines[1:number])
    return None


def _lenient(front: str) -> dict[str, str]:
    """``key: value`` lines, for the common mistake of an unquoted colon in a description."""
    pairs = (line.split(":", 1) for line in front.splitlines() if ":" in line and not line.startswith((" ", "\t", "#")))
    return {key.strip(): value.strip() for key, value in pairs}
