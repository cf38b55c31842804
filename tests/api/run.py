#!/usr/bin/env python3
"""Holds docs/openapi.json against the platform that it describes, with other people's tools.

It is linted, a Python client is generated from it and tells the demo story, and thousands of calls
are made out of it, good ones and bad ones, as an operator and as a stranger. Platforms are started
on free ports of 127.0.0.1 and ended again. Needs cargo, Python with venv, and npm; everything that
is installed goes to target/api.

    tests/api/run.py [--seed N] [--seconds N]
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "tests" / "api"
DOCUMENT = ROOT / "docs" / "openapi.json"
PLACE = ROOT / "target" / "api"

# Exactly these: another version may ask for other things.
REDOCLY = "@redocly/cli@2.77.0"
GENERATOR = "openapi-python-client==0.29.1"
SCHEMATHESIS = "schemathesis==4.32.5"


def step(what):
    print(f"-- {what}", flush=True)


def run(*command, cwd=ROOT, **more):
    done = subprocess.run([str(part) for part in command], cwd=cwd, **more)
    if done.returncode != 0:
        sys.exit(f"failed with {done.returncode}: {' '.join(map(str, command))}")


def virtual(name, package):
    """The folder of the programs of a package, which is installed if it is not there yet."""
    folder = PLACE / name
    marker = folder / "installed"
    if not marker.exists() or marker.read_text() != package:
        shutil.rmtree(folder, ignore_errors=True)
        run(sys.executable, "-m", "venv", folder)
        run(folder / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", package)
        marker.write_text(package)
    return folder / "bin"


def lint():
    step("lint")
    folder = PLACE / "lint"
    folder.mkdir(parents=True, exist_ok=True)
    marker = folder / "installed"
    if not marker.exists() or marker.read_text() != REDOCLY:
        run("npm", "install", "--silent", "--no-save", "--no-package-lock", "--no-audit",
            "--no-fund", "--prefix", folder, REDOCLY)
        marker.write_text(REDOCLY)
    quiet = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    run(folder / "node_modules" / ".bin" / "redocly", "lint", "--config", HERE / "redocly.yaml",
        DOCUMENT, env=quiet)


@contextlib.contextmanager
def platform(relet, name, *flags):
    """A platform of its own, in memory; the file that says where it is and which keys it has."""
    folder = PLACE / "run" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ready = folder / "ready.json"
    # Its banner has keys in it, so that it goes to a file that nobody else may read.
    banner = os.open(folder / "banner", os.O_WRONLY | os.O_CREAT, 0o600)
    logs = os.environ.get("RELET_TEST_LOG_DIR") or str(folder)
    log = open(Path(logs) / f"relet-api-{os.getpid()}-{name}.log", "wb")
    command = [relet, "serve", "--memory", "--listen", "127.0.0.1:0", "--ready-file", ready, *flags]
    with os.fdopen(banner, "wb") as banner, log:
        child = subprocess.Popen(command, cwd=folder, stdout=banner, stderr=log,
                                 env={**os.environ, "RUST_LOG": "info"})
        try:
            end = time.monotonic() + 60
            while not ready.exists():
                if child.poll() is not None or time.monotonic() > end:
                    sys.exit(f"the platform did not start; see {log.name}")
                time.sleep(0.05)
            yield ready
            if child.poll() is not None:
                sys.exit(f"the platform ended before it was told to; see {log.name}")
        finally:
            child.terminate()
            child.wait(timeout=30)


def tell(relet):
    step("a generated client tells the story")
    programs = virtual("client", GENERATOR)
    with platform(relet, "story", "--no-demo") as ready:
        folder = ready.parent
        config = folder / "client.yaml"
        config.write_text("post_hooks: []\n")
        run(programs / "openapi-python-client", "generate", "--path", DOCUMENT, "--meta", "none",
            "--output-path", folder / "relet_client", "--config", config, "--fail-on-warning")
        run(programs / "python", HERE / "story.py", folder, ready, DOCUMENT)


def call(method, url, key, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = urllib.request.Request(url, data=data, method=method, headers=headers)
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def callers(folder, there, part):
    """Writes who calls to a copy of the configuration. Beside a stranger there is another one, of
    an org of its own: neither must see what is the other's. The org of the first."""
    url, keys = there["url"], there["keys"]
    org = call("GET", f"{url}/v1/whoami", keys[part])["organizationId"]
    config = folder / "schemathesis.toml"
    config.touch(mode=0o600)
    common = (HERE / "schemathesis.toml").read_text()
    if part == "operator":
        sent = json.dumps(f"Bearer {keys[part]}")
        config.write_text(f"headers = {{ Authorization = {sent} }}\n{common}")
        return config, org
    asked = {"name": "another stranger", "role": "owner"}
    made = call("POST", f"{url}/v1/orgs/passer-by/api-keys/create", keys["operator"], asked)
    secrets = {part: keys[part], "passer-by": made["key"]}
    identities = folder / "identities.json"
    identities.touch(mode=0o600)
    identities.write_text(json.dumps({"auth": [
        {"name": name,
         "fixedHeaders": [{"name": "Authorization", "value": f"Bearer {secret}"}]}
        for name, secret in secrets.items()
    ]}))
    path, peers = json.dumps(str(identities)), json.dumps(list(secrets))
    config.write_text(f"{common}\n[auth.wfc]\npath = {path}\npeers = {peers}\n")
    return config, org


def started(relet, part, seed, seconds, stack):
    """Calls made out of the document, by the holder of this part's key; the process that makes
    them, and where it writes."""
    programs = virtual("schemathesis", SCHEMATHESIS)
    ready = stack.enter_context(platform(relet, part))
    folder = ready.parent
    there = json.loads(ready.read_text())
    config, org = callers(folder, there, part)
    report = folder / "report.txt"
    command = [programs / "schemathesis", "--config-file", config, "run", DOCUMENT, "--url",
               there["url"], "--checks", "all", "--max-time", str(seconds), "--seed", str(seed),
               "--no-color"]
    env = {**os.environ, "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    if part != "operator":
        env["RELET_ORG"] = org
    with open(report, "wb") as out:
        child = subprocess.Popen(command, cwd=folder, env=env, stdout=out,
                                 stderr=subprocess.STDOUT)
    return child, report


def search(relet, seed, seconds):
    step(f"calls made out of the document, seed {seed}")
    with contextlib.ExitStack() as stack:
        parts = ["operator", "stranger"]
        running = []
        try:
            for part in parts:
                running.append(started(relet, part, seed, seconds, stack))
            codes = [child.wait(timeout=seconds + 300) for child, _ in running]
        finally:
            for child, _ in running:
                child.kill()
    for part, code, (_, report) in zip(parts, codes, running):
        text = report.read_text(errors="replace")
        print(f"{part}: {text if code else text[text.rfind('Test cases:'):]}", flush=True)
    if any(codes):
        sys.exit("schemathesis found something")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=100, help="for the calls of each part")
    asked = parser.parse_args()
    lint()
    step("build")
    run("cargo", "build", "--locked", "-p", "relet")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    relet = target / "debug" / "relet"
    tell(relet)
    search(relet, asked.seed, asked.seconds)
    print("docs/openapi.json says what is so")


if __name__ == "__main__":
    main()
