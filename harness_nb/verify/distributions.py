"""What the kernel says about itself: Python, platform, and the versions of the distributions that were imported.

Two pieces of code that ``execution`` runs in the kernel, before the first cell and after the last. They leave no names
behind and need the standard library only.
"""

FIRST_LOOK = """\
def _harness_nb_look():
    import json, platform, sys
    machine = f"{platform.system()} {platform.release()} {platform.machine()}"
    modules = sorted({name.partition(".")[0] for name in sys.modules})
    print(json.dumps({"python": platform.python_version(), "platform": machine, "modules": modules}))
_harness_nb_look()
del _harness_nb_look
"""
"""Prints ``python``, ``platform`` and ``modules``: the top-level modules that the kernel itself has imported."""

LAST_LOOK = """\
def _harness_nb_look(before):
    import importlib.metadata, json, sys
    loaded = {{name.partition(".")[0] for name in list(sys.modules)}} - set(before)
    owners = importlib.metadata.packages_distributions()
    found = sorted({{owner for name in loaded for owner in owners.get(name, ())}}, key=str.lower)
    print(json.dumps({{owner: importlib.metadata.version(owner) for owner in found}}))
_harness_nb_look({before!r})
del _harness_nb_look
"""
"""Prints the versions of what was imported since; to be formatted with the ``modules`` of the first look."""
