#!/usr/bin/env bash
# Builds the functions for Lambda, deploys the template with them on an emulated AWS, plays the story
# over its API, runs the store's contract over its DynamoDB, and measures the functions.
#
# Everything listens on free ports of 127.0.0.1 and is gone afterwards; what it leaves is in target/.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONDONTWRITEBYTECODE=1

triple=x86_64-unknown-linux-gnu
venv=target/deploy-venv

echo "== the functions, built for Lambda"
infra/build.sh x86_64 relet-bare
cargo build --locked -p relet

echo "== the emulator"
if ! cmp -s tests/deploy/requirements.txt "$venv/installed"; then
  python3 -m venv --clear "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r tests/deploy/requirements.txt
  cp tests/deploy/requirements.txt "$venv/installed"
fi
"$venv/bin/python" tests/deploy/drive.py "$venv/bin/ministack" target/debug/relet target/deploy

echo "== size, start and calls"
RELET_FUNCTIONS="$PWD/target/$triple/lambda" \
  cargo test --locked -q -p relet-tests --test figures -- --ignored --nocapture
