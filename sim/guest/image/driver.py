"""The driver of the NIC (verbs/linux), built for the kernel of an image, and the provider for libibverbs."""
import hashlib
import json
import os
import pathlib
import shutil
import tempfile

from failure import Failure, output_of

LIBRARIES = "/usr/lib/x86_64-linux-gnu/libibverbs/"


class Driver:
    def __init__(self, sources, provider, base):
        self.sources = sources
        self.provider = provider
        self.base = base
        self.folder = base.folder / "driver"

    def layouts(self):
        """The folder of the device's layouts in C: an installation has the folder beside the driver."""
        installed = self.sources / "abi"
        return installed if installed.is_dir() else self.sources.parent.parent / "model/abi/c"

    def recipe(self):
        digest = hashlib.sha256()
        files = [path for folder in (self.sources, self.layouts()) for path in folder.rglob("*.[ch]")]
        for path in sorted([*files, *self.sources.rglob("Kbuild")]):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
        return {"sources": digest.hexdigest(), "release": self.base.made_from["release"]}

    def is_fresh(self):
        try:
            return json.loads((self.folder / "made-from.json").read_text()) == self.recipe()
        except (OSError, ValueError):
            return False

    def make(self):
        for path in (self.sources / "kernel", self.layouts(), self.provider):
            if not path.exists():
                raise Failure(f"the driver of the NIC: there is no {path} (--driver none leaves the driver out)")
        self.folder.mkdir(exist_ok=True)
        # Built in a copy: kbuild writes beside the sources.
        with tempfile.TemporaryDirectory(prefix="driver-", dir=self.base.folder) as staging:
            work = pathlib.Path(staging)
            shutil.copytree(self.sources, work / "linux")
            shutil.copytree(self.layouts(), work / "abi")
            module = work / "linux/kernel"
            output_of(["make", "-C", str(self.base.folder / "headers/build"), f"M={module}", f"RNIC_ABI={work / 'abi'}",
                       "-j", str(os.cpu_count()), "modules"], "the driver of the NIC")
            shutil.move(module / "rnic.ko", self.folder / "rnic.ko")
        (self.folder / "rnic.driver").write_text("driver rnic\n")
        (self.folder / "made-from.json").write_text(json.dumps(self.recipe()) + "\n")

    def additions(self):
        """The module, in the form of an argument of --add."""
        if not self.is_fresh():
            self.make()
        return [f"{self.folder}/rnic.ko", f"{self.provider}={LIBRARIES}",
                f"{self.folder}/rnic.driver=/etc/libibverbs.d/"]
