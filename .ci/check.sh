#!/usr/bin/env bash
# All checks, in the order in which they fail fastest: format, lints, documentation, dependency directions, tests.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo fmt --all --check
cargo clippy --release --locked --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --workspace --no-deps --document-private-items --quiet
# daemon -> engine, index, ipc; the three never see each other.
for package in engine index ipc; do
    if cargo tree --locked -p "satchel-$package" -e normal --prefix none | grep -E '^satchel(-[a-z]+)? ' \
        | grep -v "^satchel-$package "; then
        echo "satchel-$package depends on another package of ours" >&2
        exit 1
    fi
done
if cargo tree --locked -p satchel-engine -p satchel-index -e normal --prefix none | grep -E '^tokio '; then
    echo "engine and index must not depend on tokio" >&2
    exit 1
fi
.ci/test.sh "$@"
