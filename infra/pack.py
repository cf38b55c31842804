"""Packs the function binaries for Lambda: `<folder>/relet-<name>/bootstrap` and `relet-<name>.zip`.

    pack.py <folder that cargo built into>

The same binary makes the same zip: one entry, of a fixed date and mode. A zip over its bound ends the
run: a function starts as fast as it is small.
"""

import shutil
import sys
import zipfile
from pathlib import Path

# In bytes: with one SDK, and with that of the queue beside it.
ONE_SDK_MAX = 3_400_000
TWO_SDKS_MAX = 4_200_000
TWO_SDKS = {"relet-stream", "relet-sweep"}

# No date is earlier in a zip.
DATE = (1980, 1, 1, 0, 0, 0)
EXECUTABLE = 0o100755


def pack(binary):
    """Packs one; the size of its zip in bytes."""
    folder = binary.parent / "packages" / binary.name
    folder.mkdir(parents=True, exist_ok=True)
    bootstrap = folder / "bootstrap"
    shutil.copyfile(binary, bootstrap)
    bootstrap.chmod(0o755)
    archive = folder.with_suffix(".zip")
    entry = zipfile.ZipInfo("bootstrap", DATE)
    entry.create_system = 3
    entry.external_attr = EXECUTABLE << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr(entry, bootstrap.read_bytes(), compresslevel=9)
    return archive.stat().st_size


def main():
    """Packs all functions of the repository."""
    built = Path(sys.argv[1])
    functions = Path(__file__).resolve().parents[1] / "functions"
    too_large = []
    for name in sorted(f"relet-{folder.name}" for folder in functions.iterdir()):
        size = pack(built / name)
        bound = TWO_SDKS_MAX if name in TWO_SDKS else ONE_SDK_MAX
        print(f"{name + '.zip':24} {size:>9} bytes, {size / bound:.2f} of its bound")
        if size > bound:
            too_large.append(name)
    if too_large:
        sys.exit(f"over the bound: {', '.join(too_large)}")


main()
