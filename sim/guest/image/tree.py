"""The file tree of an image: programs with their libraries, kernel modules, and the archive that the kernel unpacks."""
import os
import pathlib
import re
import shlex
import shutil

from failure import Failure, output_of

# Debian's folders since version 12.
MERGED = ("bin", "sbin", "lib", "lib64")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
FOLDERS = ("dev", "proc", "sys", "tmp", "run", "root", "mnt", "var/lib", "usr/local/bin", "etc/modprobe.d",
           "usr/lib/modules", "usr/lib64", LIBRARIES)


def make_folders(root):
    for folder in FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in MERGED:
        (root / "usr" / folder).mkdir(exist_ok=True)
        (root / folder).symlink_to(f"usr/{folder}")
    (root / "etc/mtab").symlink_to("/proc/mounts")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\nservices: files\n")


def merged(path):
    """Replaces bin/x by usr/bin/x."""
    first = path.partition("/")[0]
    return f"usr/{path}" if first in MERGED else path


def copy(source, target):
    """Adds a file, a link or a folder without a change."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        return
    if target.is_symlink() or target.exists():
        target.unlink()
    shutil.copy2(source, target, follow_symlinks=False)


def take(unpacked, patterns, root, package):
    """The files of an unpacked package that `patterns` name."""
    for pattern in patterns:
        found = sorted(unpacked.glob(pattern))
        if not found:
            raise Failure(f"package {package} has no {pattern}: sim/guest/image/contents names it")
        for source in found:
            copy(source, root / merged(str(source.relative_to(unpacked))))


# --- Libraries

def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def needed_by(files):
    """The names of the libraries, and of the program interpreters, that these files ask for."""
    names = set()
    files = [str(file) for file in files]
    for start in range(0, len(files), 200):
        text = output_of(["readelf", "--wide", "-d", "-l", *files[start:start + 200]], "the libraries of programs")
        names.update(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
        names.update(os.path.basename(path) for path in re.findall(r"program interpreter: (.+)\]", text))
    return names


def add_libraries(root, find):
    """All libraries that the tree's programs need and it does not have; `find` tells where a name is, or None.
    Returns the names that were not found."""
    present = {path.name for path in root.rglob("*.so*")}
    fresh = [path for path in root.rglob("*") if is_elf(path)]
    missing = set()
    while fresh:
        wanted = needed_by(fresh) - present - missing
        fresh = []
        for name in sorted(wanted):
            source = find(name)
            if source is None:
                missing.add(name)
                continue
            target = root / ("usr/lib64" if name.startswith("ld-linux") else LIBRARIES) / name
            copy(source.resolve(), target)
            present.add(name)
            fresh.append(target)
    return missing


# --- Kernel modules

def module_files(kernel_tree, release, names):
    """The modules and their dependencies, in the order of loading."""
    files = []
    for name in names:
        text = output_of(["modprobe", "--dirname", str(kernel_tree), "--set-version", release, "--show-depends", name],
                         f"kernel module {name}")
        for line in text.splitlines():
            words = line.split()
            if words[:1] == ["insmod"] and words[1] not in files:
                files.append(words[1])
    return [pathlib.Path(file) for file in files]


def list_modules(root, release):
    """Writes modules.dep and modules.alias for the modules of the tree."""
    folder = root / "lib"
    is_missing = not folder.exists()
    if is_missing:
        folder.symlink_to("usr/lib")  # depmod looks nowhere else
    output_of(["depmod", "--basedir", str(root), release], "the list of kernel modules")
    if is_missing:
        folder.unlink()


def place_headers(unpacked, release):
    """Debian's headers of a kernel, unpacked into a folder, are made independent of their place; `unpacked`/build is
    the folder for kbuild."""
    sources = unpacked / "usr/src"
    folder = sources / f"linux-headers-{release}"
    makefile = folder / "Makefile"
    makefile.write_text(makefile.read_text().replace("include /usr/src/", "include $(CURDIR)/../"))
    (unpacked / "build").symlink_to(folder.relative_to(unpacked))


# --- The archive

def archive(root, target, compress):
    """Writes a cpio archive of the tree; root owns all files."""
    names = "\n".join(sorted(str(path.relative_to(root)) for path in root.rglob("*")))
    pack = "cpio --quiet --create --format=newc --reproducible --owner=+0:+0"
    squeeze = " | zstd --quiet --stdout -9 -T0" if compress else ""
    # `bash`: a failure of cpio is the pipe's.
    line = f"set -o pipefail; {pack}{squeeze} >{shlex.quote(str(target))}"
    output_of(["bash", "-c", line], "the initramfs", cwd=root, input=names)
    # Another archive may follow; the kernel wants its start aligned.
    os.truncate(target, (os.path.getsize(target) + 511) // 512 * 512)
