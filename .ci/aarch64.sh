#!/usr/bin/env bash
# The kernels for AArch64 on emulated processors: builds engine/tests/kernels.rs for it and runs that under QEMU as a
# processor with plain NEON, one with dot products and one with matrix products, so that every table is tried against the
# scalar reference. It never skips: what is missing is installed (as root on Debian and its descendants) or named.
# RUSTC, when set, is the compiler to use.
set -euo pipefail
cd "$(dirname "$0")/.."
target=aarch64-unknown-linux-gnu

tools="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
# The compiler of Debian with the library for arm64, where rustup cannot fetch that.
compiler="rustc-web libstd-rust-web-dev:arm64"

install() {
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "aarch64.sh: missing: $*" >&2
        echo "Install them, e.g. as root: dpkg --add-architecture arm64; apt-get update; apt-get install $*" >&2
        exit 1
    fi
    case " $* " in *:arm64*) dpkg --add-architecture arm64 ;; esac
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

has_target() {
    [ -d "$("${RUSTC:-rustc}" --print sysroot)/lib/rustlib/$target/lib" ]
}

if ! command -v qemu-aarch64-static >/dev/null || ! command -v aarch64-linux-gnu-gcc >/dev/null ||
    [ ! -e /usr/aarch64-linux-gnu/lib/libc.so ]; then
    # shellcheck disable=SC2086
    install $tools
fi
if ! has_target; then
    if ! { command -v rustup >/dev/null && timeout 300 rustup target add "$target" && has_target; }; then
        if ! RUSTC=/usr/bin/rustc has_target; then
            # shellcheck disable=SC2086
            install $compiler
        fi
        export RUSTC=/usr/bin/rustc
    fi
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
if [ -n "${RUSTC:-}" ]; then
    # Another compiler than the one that builds the rest: what it builds for this machine must not mix with that.
    export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/other-compiler
else
    cargo clippy --release --locked --target "$target" -p satchel-engine --lib --test kernels -- -D warnings
fi

# The processor and the tables that it must have tried.
run() {
    echo "aarch64: $1"
    local seen
    seen=$(CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -cpu $1 -L /usr/aarch64-linux-gnu" \
        timeout 1200 cargo test --release --locked --target "$target" -p satchel-engine --test kernels | tee >(cat >&2))
    if ! grep -qx "tables: $2" <<<"$seen"; then
        echo "aarch64.sh: on $1 these tables were to be tried: $2" >&2
        exit 1
    fi
}
run cortex-a53 "scalar neon"
run neoverse-n1 "scalar neon neon-dotprod"
run max "scalar neon neon-dotprod neon-i8mm"
