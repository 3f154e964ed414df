#!/bin/sh
# check_seeds.sh ROWS_WORDS CORPUS: fail unless CORPUS/rows holds just what CORPUS/rows.txt says.
set -eu
words=$1 corpus=$2
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

for folder in "$corpus"/rows/*/; do
    mkdir "$scratch/$(basename "$folder")"
done
"$words" make "$scratch" <"$corpus/rows.txt"
diff -r "$scratch" "$corpus/rows" || {
    echo 'after a change of rows.txt: build/rows_words make corpus/fuzz/rows < corpus/fuzz/rows.txt'
    exit 1
}
