#!/bin/sh
# The planted faults: each is found, exit 1, and the line that reruns it finds it again.
. "$(dirname "$0")/lib.sh"
rm -rf found

run 1 gate -k '*faulty*' -o found
"$assay" list | grep 'planted fault' | cut -d' ' -f1 >names
[ "$(wc -l <names)" -ge 2 ] || fail "fewer than two planted faults"
while read -r name; do
    grep -qE "^FAIL +$name " out || fail "$name is not FAIL"
done <names
has out '^    got     '
has out '^    want    '
has out '^    budget  '
has found/index.html 'did not pass'
has found/junit.xml '<failure type="FAIL"'

sed -n 's/^    rerun   assay //p' out >reruns
[ "$(wc -l <reruns)" -ge "$(wc -l <names)" ] || fail "fewer rerun lines than faulty kernels"
while read -r line; do
    eval "set -- $line"
    run 1 "$@"
    has out '^verdict   FAIL$'
done <reruns

# Patterns that match other kernels too leave them out.
run 0 list
"$assay" gate -k 'softmax_*warp*' -k 'softmax_faulty*' >out 2>err
[ $? -eq 1 ] || fail "a faulty kernel named beside an honest one is not gated"
run 2 gate -k 'softmax_faulty_nothing'
finish
