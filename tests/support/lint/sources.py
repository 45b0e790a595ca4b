# SPDX-License-Identifier: Apache-2.0
"""Sources of the repository for the lints: found by name or by the interpreter of the first line, without git."""

import os
import pathlib

C_SUFFIXES = (".c", ".cc", ".cpp", ".h", ".inc", ".sv", ".svh")
HIDDEN_FOLDERS = (".ci", ".github")
# Sources of others: their style is not ours.
FOREIGN = ("sim/report/plotly",)


def kind_of(path, first_line):
    """The language of a file: c, python, cmake, shell, or None."""
    if path.suffix in C_SUFFIXES:
        return "c"
    if path.suffix == ".py" or first_line.startswith("#!") and "python" in first_line:
        return "python"
    if path.suffix == ".cmake" or path.name == "CMakeLists.txt":
        return "cmake"
    if path.suffix in (".sh", ".bash") or first_line.startswith("#!") and first_line.rstrip().endswith("sh"):
        return "shell"
    return None


def all_files(root):
    """Paths below `root` in order, without build trees, hidden folders, links and sources of others."""
    for folder, folders, names in os.walk(root):
        relative = pathlib.Path(folder).relative_to(root)
        folders[:] = sorted(name for name in folders
                            if (not name.startswith(".") or name in HIDDEN_FOLDERS) and name != "__pycache__"
                            and (relative / name).as_posix() not in ("build", *FOREIGN))
        for name in sorted(names):
            path = relative / name
            if not (root / path).is_symlink():
                yield path


def read_sources(root):
    """A list of path, kind and text of each source."""
    found = []
    for path in all_files(root):
        content = (root / path).read_bytes()
        kind = kind_of(path, content.partition(b"\n")[0].decode(errors="replace"))
        if kind:
            found.append((path.as_posix(), kind, content.decode(errors="replace")))
    return found
