#!/bin/sh
# check_portable.sh SOURCE BUILD NVCC DEV: the preset `static`, built in BUILD with the PTX of the build
# in DEV, installed into a folder of its own: the program there runs, and loads nothing that is neither
# glibc's nor in that folder.
set -eu
cmake -S "$1" --preset static -B "$2" -D ASSAY_NVCC="$3" -D ASSAY_PTX_FROM="$4"
cmake --build "$2"
rm -rf "$2/install"
cmake --install "$2" --prefix "$2/install"
mv "$2/install" "$2/moved" # what it finds, it finds from where it stands
trap 'rm -rf "$2/moved"' EXIT

foreign=$(ldd "$2/moved/assay" | awk -v home="$2/moved/lib/" '
    / => / && index($3, home) == 0 && $1 !~ /^(lib(c|m|mvec|dl|rt|pthread)\.so|ld-linux)/')
if [ -n "$foreign" ]; then
    printf 'from this machine, not from the folder:\n%s\n' "$foreign"
    exit 1
fi
kernels=$("$2/moved/assay" list)
printf '%s\n' "$kernels"
[ -n "$kernels" ]
