#!/bin/sh
# check_paths.sh ROOT: fail on a text file of the repository that names a path of one machine.
set -eu
cd "$1"

# What git tracks or would track; without git (a source archive) all but the build folder.
files() {
    if [ ! -e .git ] || ! git ls-files -z -co --exclude-standard 2>/dev/null; then
        find . -name .git -prune -o -name build -prune -o -type f -print0
    fi
}

# A path starts only where no other path goes on: example.org/home/ is none.  Grep's exit code is
# lost in xargs, which may run it several times: what counts is whether it found anything.
start='(^|[^][A-Za-z0-9_.})/-])/(work|home|root|Users)/'
found=$(files | xargs -0 grep -IsnE "$start" /dev/null) || :
if [ -n "$found" ]; then
    printf '%s\n' "$found" 'paths of a machine in the files above'
    exit 1
fi
