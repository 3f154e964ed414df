#!/bin/sh
# assay list: one line per kernel, its name first; none of the repository's kernels is missing.
. "$(dirname "$0")/lib.sh"

run 0 list
[ ! -s err ] || fail "list writes to stderr"
[ "$(wc -l <out)" -ge 166 ] || fail "only $(wc -l <out) kernels"
cut -d' ' -f1 out >names
[ "$(sort -u names | wc -l)" -eq "$(wc -l <out)" ] || fail "names are not unique, or not first"
grep -qvE '^[a-z0-9_]+  +(sum|max|softmax|log_softmax|lse|layernorm|rmsnorm|rope|attention|attention_combine|softmax_topk)  +(f32|b?f16)(->(f32|b?f16))?  +[^ ].*' out && fail "a line is not name, op, dtype, words"
has out '^softmax_online_f32 '
has out '^sum_float4_f32 '
has out '^max_float4_f32 '
has out 'planted fault'
has out '^softmax_registers_f32 .*[(]recommended: cols 257[.][.]32768[)]$'

# Every honest kernel has a plain budget, and every plain budget a kernel.
grep -v 'planted fault' out | cut -d' ' -f1 | sort >honest
grep -hvE '^#|^ *$' "$source"/kernels/*/budgets.txt | awk '{print $1}' | sort >budgeted
cmp -s honest budgeted || fail "kernels and budgets.txt differ: $(diff honest budgeted | tr '\n' ' ')"

run 0 list --op softmax
grep -q '^sum_' out && fail "list --op softmax shows a sum"
has out '^softmax_online_f32 '

run 0 list --json
cat >count.cmake <<'END'
file(READ out text)
string(JSON n LENGTH "${text}")
string(JSON name GET "${text}" 0 name)
message("${n} ${name}")
END
"$CMAKE" -P count.cmake 2>json || fail "list --json is no JSON"
has json "^$(wc -l <names | tr -d ' ') $(head -n 1 names)\$"
finish
