"""The contract of the store, over the emulator's own DynamoDB instead of the embedded engine.

`differs.txt` names the cases that are known to come out otherwise there, one a line. A case that
fails and is not named fails the run, and so does one that is named and does not fail.
"""

import os
import re
import subprocess
from pathlib import Path

from cloud import Failed

KNOWN = Path(__file__).with_name("differs.txt")
CASES_MIN = 100


def run(endpoint, root):
    """Runs the suite against the DynamoDB at this address."""
    print("The store's contract over the emulator's DynamoDB", flush=True)
    command = ["cargo", "test", "--locked", "-p", "relet-tests", "--test", "store_contract"]
    ran = subprocess.run(
        [*command, "--no-fail-fast", "--", "--ignored", "elsewhere"],
        cwd=root,
        env={**os.environ, "RELET_CONTRACT_ENDPOINT": endpoint},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    results = dict(re.findall(r"^test (\S+) \.\.\. (\w+)$", ran.stdout, re.MULTILINE))
    passed = {name for name, result in results.items() if result == "ok"}
    failed = set(results) - passed
    lines = KNOWN.read_text().splitlines()
    known = {line for line in lines if line and not line.startswith("#")}
    if len(results) < CASES_MIN:
        raise Failed(f"only {len(results)} cases ran:\n{ran.stdout[-2000:]}")
    if failed - known:
        raise Failed(f"differ and are not known to: {sorted(failed - known)}\n{ran.stdout[-4000:]}")
    if known - failed:
        raise Failed(f"known to differ, and do not: {sorted(known - failed)}")
    print(f"    ok: {len(passed)} cases as in memory, {len(failed)} known to differ", flush=True)
