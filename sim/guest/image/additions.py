"""The user's files in a guest (--add)."""
import os
import pathlib
import re

from failure import Failure, output_of
import tree


def split(text):
    """An argument PATH[=WHERE]. An existing path may contain a = itself."""
    path, equals, where = text.rpartition("=")
    if not equals or os.path.exists(text):
        path, where = text, ""
    source = pathlib.Path(path)
    if not source.exists():
        raise Failure(f"--add {text}: there is no {path}")
    return source, where


def is_module(source):
    return source.suffix == ".ko"


def place(source, where, release):
    """Path in the guest, relative to the root."""
    if not where:
        if is_module(source):
            return f"usr/lib/modules/{release}/updates/{source.name}"
        if source.is_file() and os.access(source, os.X_OK):
            return f"usr/local/bin/{source.name}"
        return f"root/{source.absolute().name}"
    if not where.startswith("/"):
        raise Failure(f"--add {source}={where}: {where} is not a path from the guest's root")
    return tree.merged(where.lstrip("/") + (source.name if where.endswith("/") else ""))


def check_release(module, release):
    magic = output_of(["modinfo", "--field", "vermagic", str(module)], f"module {module}").split()
    if magic[:1] != [release]:
        raise Failure(f"{module} was built for kernel {magic[0] if magic else 'of no name'}, and the guests have "
                      f"{release}: build the module for this kernel, or select the module's kernel (--kernel)")


def check_dependencies(added, in_image):
    """The user's modules may need each other, and modules of the image."""
    there = {path.stem.replace("-", "_") for path in [*added, *in_image]}
    for module in added:
        needed = output_of(["modinfo", "--field", "depends", str(module)], f"module {module}").strip()
        for name in filter(None, needed.split(",")):
            if name.replace("-", "_") not in there:
                raise Failure(f"{module} needs module {name}, which the image does not have (sim/guest/image/contents)")


def libraries_here(root):
    """{name: path} of this machine's libraries that the programs in `root` use, as the loader finds them."""
    found = {}
    for program in [path for path in root.rglob("*") if tree.is_elf(path) and path.suffix != ".ko"]:
        try:
            text = output_of(["ldd", str(program)], f"the libraries of {program.name}")
        except Failure:
            continue  # linked statically
        found.update(re.findall(r"^\s*(\S+) => (/\S+)", text, re.MULTILINE))
    return found


def add_files(texts, base, root):
    """The tree of files that is appended to the image."""
    made = base.made_from
    release = made["release"]
    modules = []
    for text in texts:
        source, where = split(text)
        target = root / place(source, where, release)
        target.parent.mkdir(parents=True, exist_ok=True)
        if is_module(source):
            check_release(source, release)
            modules.append(source)
        tree.copy(source.resolve(), target)
    here = libraries_here(root)
    in_image = set(made["libraries"])

    def find(name):
        if name in in_image or name not in here:
            return None
        return pathlib.Path(here[name])
    missing = tree.add_libraries(root, find) - in_image
    unknown = sorted(name for name in missing if not name.startswith("ld-linux"))
    if unknown:
        raise Failure(f"a program of --add needs the library {unknown[0]}, which this machine does not have")
    if modules:
        check_dependencies(modules, (base.folder / "modules").rglob("*.ko"))
        tree.copy(base.folder / "modules", root / "usr/lib/modules" / release)
        tree.list_modules(root, release)
        # The modules themselves are in the image already.
        drop_known(root / "usr/lib/modules" / release, base.folder / "modules")


def drop_known(folder, known):
    for path in known.rglob("*.ko"):
        (folder / path.relative_to(known)).unlink()
