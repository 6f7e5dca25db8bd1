#!/usr/bin/env bash
# Everything the tests need, then the tests. Arguments go to the test programs, e.g. `.ci/test.sh kill`.
# Models: the small ones are pulled by satchel itself into target/test-home (about 250 MB, once). The larger ones are
# used when they are there; SATCHEL_TEST_LARGE=1 pulls them too.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked
target=${CARGO_TARGET_DIR:-target}
satchel=$target/release/satchel
home=$(cd "$target" && pwd)/test-home
models="smollm2-135m-instruct all-minilm-l6-v2 multilingual-e5-small"
if [ "${SATCHEL_TEST_LARGE:-0}" = 1 ]; then
    models="$models gemma-3-270m qwen2.5-coder-0.5b-instruct qwen2.5-coder-1.5b-instruct"
fi
for model in $models; do
    "$satchel" --home "$home" model pull "$model"
done
export SATCHEL_TEST_MODELS=$home/models
cargo test --release --locked --workspace -- "$@"
# Nearly right documents, given to the reader: a second a format here, as long as one likes by hand (docs/jail.md).
if [ -d ../shared/corpus/files ]; then
    cargo run --release --locked -p satchel-index --example fuzz -- --seconds 1 ../shared/corpus/files
fi
