"""Debian packages without root: apt downloads them, with all that they need, into a folder of the user; dpkg-deb
unpacks them."""
import os
import pathlib
import shlex

from failure import Failure, output_of

OUTDATED = ("404", "No packages found", "Unable to locate package", "Failed to fetch", "no installation candidate")


class Packages:
    """The packages that this machine's sources offer, and a folder with the downloaded ones."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        for archives in (self.folder, self.folder / "nowhere"):  # the second stays empty: what is there is not listed
            (archives / "partial").mkdir(parents=True, exist_ok=True)
        # As on a machine without any package: what is installed here is of no interest.
        self.status = self.folder / "no-packages"
        self.status.write_text("")

    def kernel_package(self, release):
        """The name of the kernel's package: for `release`, or for the present kernel of Debian."""
        if release is not None:
            return f"linux-image-{release}"
        for line in self._asked(["apt-cache", "depends", "linux-image-amd64"]).splitlines():
            words = line.split()
            if words[:1] == ["Depends:"] and words[1].startswith("linux-image-"):
                return words[1]
        raise Failure("package linux-image-amd64 depends on no kernel")

    def header_packages(self, kernel):
        """The names of the packages with the headers and build scripts of a kernel package."""
        headers = kernel.replace("linux-image-", "linux-headers-")
        words = [line.split() for line in self._asked(["apt-cache", "depends", headers]).splitlines()]
        needed = [line[1] for line in words if line[:1] == ["Depends:"]]
        return [headers, *(name for name in needed if name.startswith(("linux-headers-", "linux-kbuild-")))]

    def fetch(self, names, alone):
        """Files of the packages `names` with all that they depend on, and of the packages `alone`: {name: path of the
        .deb}. Downloads what is not there."""
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]
        nowhere = self._options(self.folder / "nowhere")
        files = self._found(self._asked([*install, "--print-uris", *nowhere, *names]))
        others = self._found(self._asked(["apt-get", "download", "--print-uris", "-qq", *nowhere, *alone]))
        here = self._options(self.folder)
        if not all(file.exists() for file in files.values()):
            self._asked([*install, "--download-only", *here, *names])
        if not all(file.exists() for file in others.values()):
            self._asked(["apt-get", "download", "-qq", *here, *alone], cwd=self.folder)
        files.update(others)
        for name, file in files.items():
            if not file.exists():
                raise Failure(f"package {name} was not downloaded to {file}")
        self._remove_older(files)
        return files

    def _remove_older(self, files):
        """Other versions of these packages, and of other kernels."""
        for file in set(self.folder.glob("*.deb")) - set(files.values()):
            name = file.name.partition("_")[0]
            if name in files or name.startswith(("linux-image-", "linux-headers-")):
                file.unlink()

    def _options(self, archives):
        settings = {"Dir::State::status": self.status, "Dir::Cache::archives": archives,
                    "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": "", "Debug::NoLocking": "1"}
        if os.geteuid() == 0:
            settings["APT::Sandbox::User"] = "root"
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    @staticmethod
    def _asked(command, **options):
        try:
            return output_of(command, "Debian's packages", **options)
        except Failure as failure:
            text = str(failure)
            if any(word in text for word in OUTDATED):
                text += " (is there a network? `apt-get update`, as root, brings the lists of packages up to date)"
            raise Failure(text) from None

    def _found(self, uris):
        """apt-get's lines are 'URI' FILE SIZE HASH."""
        files = {}
        for line in uris.splitlines():
            words = shlex.split(line)
            if len(words) >= 3 and words[1].endswith(".deb"):
                files[words[1].partition("_")[0]] = self.folder / words[1]
        return files


def unpack(file, folder, *only):
    """A package's files into `folder`; `only`: those of these patterns."""
    folder.mkdir(parents=True, exist_ok=True)
    if not only:
        output_of(["dpkg-deb", "--extract", str(file), str(folder)], f"unpacking {file.name}")
        return
    tar = ["tar", "--extract", "--directory", str(folder), "--wildcards", "--no-same-owner", *only]
    line = f"dpkg-deb --fsys-tarfile {shlex.quote(str(file))} | {shlex.join(tar)}"
    output_of(["sh", "-c", line], f"unpacking {file.name}")
