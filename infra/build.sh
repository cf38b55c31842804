#!/usr/bin/env bash
# Builds all functions for Lambda: each into target/lambda/relet-<name>/bootstrap, where the template
# looks for it, and into target/lambda/relet-<name>.zip beside it.
#
#   infra/build.sh [x86_64|arm64] [package…]
#
# Further packages are built in the same call, and not packed. With RELET_CARGO_LAMBDA=1 the build is
# done by `cargo lambda`, for a system whose C library is newer than Lambda's, or for arm64.
set -euo pipefail
cd "$(dirname "$0")/.."

architecture="${1:-x86_64}"
case "$architecture" in
  x86_64) triple=x86_64-unknown-linux-gnu ;;
  arm64) triple=aarch64-unknown-linux-gnu ;;
  *) echo "x86_64 or arm64, not $architecture" >&2; exit 2 ;;
esac

# All in one call: what they share is compiled once, and with the same features.
packages=()
for folder in functions/*/; do packages+=(-p "relet-$(basename "$folder")"); done
for package in "${@:2}"; do packages+=(-p "$package"); done

# The binaries say nothing of the machine that built them, and are the same from any folder.
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=relet"
RUSTFLAGS+=" --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}/registry/src=registry"

target="${CARGO_TARGET_DIR:-target}"
if [ -n "${RELET_CARGO_LAMBDA:-}" ]; then
  built="$target/cargo-lambda"
  cargo lambda build --skip-target-check --profile lambda --locked --target "$triple" \
    --lambda-dir "$built" "${packages[@]}"
else
  cargo build --profile lambda --locked --target "$triple" "${packages[@]}"
  built="$target/$triple/lambda"
fi
python3 infra/pack.py "$built" "$target/lambda"
