#!/bin/sh
# registers.sh PTXAS ASSAY KERNELS: what ptxas makes of the recommended kernels, and of others that hold
# much in registers.
# Prints registers and spills of every entry that one of them launches, for sm_90; none may spill.
# Exit 77 (skipped) without ptxas.
ptxas=$1 assay=$2 kernels=$3
"$ptxas" --version >/dev/null 2>&1 || { echo "no ptxas at $ptxas"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

ASSAY_KERNELS=$kernels "$assay" list | awk '/\(recommended: / { print $1 }
    $1 ~ /_(cluster|pipelined|poly|lanes|registers|packed|combine)_/ { print $1 }' | sort -u >"$work/recommended"
[ "$(wc -l <"$work/recommended")" -ge 3 ] || { echo "hardly any kernel is recommended"; exit 1; }

# The entries of the recommended kernels, and the images they are in: from the built manifests.
for manifest in "$kernels"/*/manifest.yaml; do
    awk -v folder="$(dirname "$manifest")" -v list="$work/recommended" '
        BEGIN { while ((getline name <list) > 0) wanted[name] = 1 }
        /^  - name: / { on = $3 in wanted }
        on && /source:/ { image = $2; sub(/\.cu$/, ".ptx", image) }
        on && match($0, /entry: [A-Za-z0-9_]+/) {
            print folder "/" image, substr($0, RSTART + 7, RLENGTH - 7)
        }' "$manifest"
done | sort -u >"$work/entries"

status=0
for image in $(cut -d' ' -f1 "$work/entries" | sort -u); do
    "$ptxas" -v -arch=sm_90 -o /dev/null "$image" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    awk -v image="$image" -v entries="$work/entries" '
        BEGIN {
            while ((getline line <entries) > 0) {
                split(line, word, " ")
                if (word[1] == image)
                    wanted[word[2]] = 1
            }
        }
        /Compiling entry function/ { split($0, part, "\047"); entry = part[2] }
        /bytes spill stores/ { spilled = $5 + $9 }
        / Used [0-9]+ registers/ {
            match($0, /Used [0-9]+/)
            if (entry in wanted) {
                printf "%-32s %3d registers, %d bytes spilled\n", entry, substr($0, RSTART + 5, RLENGTH - 5), spilled
                seen[entry] = 1
                bad += spilled > 0
            }
        }
        END {
            for (entry in wanted)
                if (!(entry in seen)) {
                    print "ptxas says nothing of " entry
                    bad++
                }
            exit bad > 0
        }' "$work/log" || status=1
done
exit $status
