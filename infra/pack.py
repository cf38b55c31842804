"""Packs the function binaries for Lambda: `<folder>/relet-<name>/bootstrap` and `relet-<name>.zip`.

    pack.py <folder with the binaries> <folder for the packages>

The same binary makes the same zip: one entry, of a fixed date and mode. A zip over its bound ends the
run, for a function starts as fast as it is small; and so does a binary that needs a newer C library
than `provided.al2023` has, for it would not start at all.
"""

import re
import shutil
import sys
import zipfile
from pathlib import Path

# In bytes: with one SDK, and with that of the queue beside it.
ONE_SDK_MAX = 3_400_000
TWO_SDKS_MAX = 4_200_000
TWO_SDKS = {"relet-stream", "relet-sweep"}

# The version of the C library that the runtime has.
GLIBC_MAX = (2, 34)

# No date is earlier in a zip.
DATE = (1980, 1, 1, 0, 0, 0)
EXECUTABLE = 0o100755


def glibc(content):
    """The version of the C library that a binary needs."""
    found = re.findall(rb"GLIBC_(\d+)\.(\d+)", content)
    return max((int(major), int(minor)) for major, minor in found)


def pack(name, built, packages):
    """Packs one; the size of its zip in bytes."""
    binary = built / name
    if binary.is_dir():
        # As `cargo lambda` leaves it.
        binary = binary / "bootstrap"
    folder = packages / name
    if folder.is_file():
        # A build without a target leaves its binaries here.
        folder.unlink()
    folder.mkdir(parents=True, exist_ok=True)
    bootstrap = folder / "bootstrap"
    shutil.copyfile(binary, bootstrap)
    bootstrap.chmod(0o755)
    content = bootstrap.read_bytes()
    if glibc(content) > GLIBC_MAX:
        version = ".".join(map(str, glibc(content)))
        sys.exit(f"{name} needs glibc {version}: build it by `cargo lambda`")
    entry = zipfile.ZipInfo("bootstrap", DATE)
    entry.create_system = 3
    entry.external_attr = EXECUTABLE << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive = packages / f"{name}.zip"
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr(entry, content, compresslevel=9)
    return archive.stat().st_size


def main():
    """Packs all functions of the repository."""
    built, packages = Path(sys.argv[1]), Path(sys.argv[2])
    functions = Path(__file__).resolve().parents[1] / "functions"
    too_large = []
    for name in sorted(f"relet-{folder.name}" for folder in functions.iterdir()):
        size = pack(name, built, packages)
        bound = TWO_SDKS_MAX if name in TWO_SDKS else ONE_SDK_MAX
        print(f"{name + '.zip':24} {size:>9} bytes, {size / bound:.2f} of its bound")
        if size > bound:
            too_large.append(name)
    if too_large:
        sys.exit(f"over the bound: {', '.join(too_large)}")


main()
