#!/bin/sh
# A killed gate goes on from -o DIR, and ends with the results of an undisturbed one.
. "$(dirname "$0")/lib.sh"
rm -rf whole killed
set -- -k softmax_online_f32 -k sum_sequential_f32 -j 1 # enough to be killed in the middle

run 0 gate "$@" -o whole
"$assay" gate "$@" -o killed >/dev/null 2>&1 &
pid=$!
tries=0
while [ "$tries" -lt 300 ] && kill -0 $pid 2>/dev/null; do
    [ "$(cat killed/journal.jsonl 2>/dev/null | wc -l)" -ge 20 ] && break
    sleep 0.05
    tries=$((tries + 1))
done
kill -9 $pid 2>/dev/null || fail "the gate ended before it could be killed"
wait $pid 2>/dev/null
kept=$(wc -l <killed/journal.jsonl)
[ "$kept" -ge 20 ] || fail "only $kept records"
[ ! -e killed/results.json ] || fail "a killed run has results"

# The resumed run does not repeat what is on record: the records stay, and new ones follow.
cp killed/journal.jsonl before
run 0 gate "$@" -o killed
grep -v '"seconds"' whole/results.json >a
grep -v '"seconds"' killed/results.json >b
cmp -s a b || fail "the resumed run has other results"
[ ! -e killed/journal.jsonl ] || fail "the journal is still there"
finish
