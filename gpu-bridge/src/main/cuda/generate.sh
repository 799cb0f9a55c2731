#!/usr/bin/env bash
# Makes the PTX text that is checked in, out of kernels.cu: generate.sh [TARGET]
# The version line is lowered, as nothing here needs a newer one and drivers refuse versions they do not know.
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
target=${1:-$here/../resources/io/kvcache/gpu/kernel/kernels.ptx}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nvcc -ptx -arch=compute_80 -O3 -fmad=false -o "$work/kernels.ptx" "$here/kernels.cu"
sed -E -e '/^\/\//d' -e 's/^\.version .*/.version 7.0/' "$work/kernels.ptx" | cat -s | sed '1{/^$/d}' >"$target"
