#!/bin/sh
# test_replay.sh PROGRAM: what the replay driver counts and how it exits.
set -eu
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir good bad mixed mixed/deep empty
echo fine >good/one
: >good/nothing
echo A >bad/abort
echo A >bad/again
echo fine >mixed/fine
echo A >mixed/deep/abort
echo E >exits
echo K >killed
ln -s good linked

failed=0
# expect CODE TEXT ARGUMENT...: the exit code, and a text in the output
expect() {
    want=$1 text=$2 got=0
    shift 2
    "$program" "$@" >out 2>&1 || got=$?
    if [ "$got" != "$want" ] || ! grep -qF -- "$text" out; then
        echo "replay $*: exit $got, wanted $want and '$text':"
        cat out
        failed=1
    fi
}

expect 0 'replay: 2 inputs, 0 aborted, 0 broken' good
expect 0 'replay: 3 inputs' good mixed/fine
expect 0 'replay: 2 inputs' linked
expect 1 'replay: 2 inputs, 2 aborted, 0 broken' bad
expect 1 'mixed/deep/abort: aborted' mixed
expect 0 'replay: 2 inputs, 2 aborted' --expect-fail bad
expect 1 'replay: 2 inputs, 1 aborted' --expect-fail mixed
expect 1 'replay: 2 inputs, 0 aborted' --expect-fail good
expect 1 'exits: exit 3' exits
expect 1 'killed: killed by signal 9' killed
expect 1 '1 aborted, 1 broken' --expect-fail bad/abort exits
expect 2 'missing: No such file' missing
expect 2 'replay: 0 inputs' empty
expect 2 'replay: 0 inputs' --expect-fail empty
expect 2 'usage:'
expect 2 'usage:' --expect-fail
expect 2 'usage:' --unknown
exit $failed
