#!/bin/sh
# assay check -i NAME=FILE for ops of several tensors: dimensions come from the files, and the line that
# reruns the case says them.
. "$(dirname "$0")/lib.sh"

floats 8 | npy "'<f4'" '(1, 2, 4)' x.npy
printf '\003\000\000\000' | npy "'<i4'" '(1,)' positions.npy
run 0 check rope_naive_f32 -i x=x.npy -i positions=positions.npy
has out '^case +-i x=x.npy -i positions=positions.npy --shape rows=1,heads=2,head_dim=4$'
rerun=$(sed -n 's/^case *//p' out)
eval "run 0 check rope_naive_f32 $rerun"

floats 128 | npy "'<f4'" '(1, 2, 1, 64)' q.npy
floats 192 | npy "'<f4'" '(1, 1, 3, 64)' k.npy
floats 12 | npy "'<f4'" '(1, 1, 3, 4)' narrow.npy
attention='check attention_fa2_hd64_f32'
run 0 $attention -i q=q.npy -i k=k.npy -i v=k.npy
has out 'batch=1,heads=2,kv_heads=1,queries=1,keys=3,head_dim=64$'
refused 2 'input v is missing' $attention -i q=q.npy -i k=k.npy
refused 2 'narrow.npy: head_dim = 4, and 64 elsewhere' \
    $attention -i q=q.npy -i k=narrow.npy -i v=k.npy
refused 2 '3-d where q has 4 dimensions' $attention -i q=x.npy -i k=k.npy -i v=k.npy
floats 192 | npy "'<f4'" '(3, 64)' head.npy
run 0 $attention -i q=head.npy,head.npy -i k=head.npy -i v=head.npy
has out 'batch=1,heads=2,kv_heads=1,queries=3,keys=3,head_dim=64$'
run 0 $attention -i q=head.npy,head.npy -i k=head.npy -i v=head.npy --rows 1:2
has out 'heads=2,kv_heads=1,queries=2,keys=2,head_dim=64$'
rerun=$(sed -n 's/^case *//p' out)
eval "run 0 $attention $rerun"
refused 2 'rows 2 to 4 are wanted, the file has 3' \
    $attention -i q=head.npy -i k=head.npy -i v=head.npy --rows 2:3
# Rows belong to the files of one head: others are taken whole, and nothing outside a file is read.
for rows in 0:2 1:1 1000000:1; do
    refused 2 'no file is that of one head' $attention -i q=q.npy -i k=k.npy -i v=k.npy --rows $rows
done
floats 2 | npy "'<f4'" '(2,)' sinks.npy
run 0 check attention_three_steps_options_f32 -i q=head.npy,head.npy -i k=head.npy,head.npy \
    -i v=head.npy,head.npy -i sinks=sinks.npy --rows 1:2
has out 'sinks=sinks.npy --rows 1:2 --shape batch=1,heads=2,kv_heads=2,queries=2,keys=2,head_dim=64$'
cp head.npy 'a,b.npy'
run 0 $attention -i q=a,b.npy -i k=head.npy -i v=head.npy
has out 'heads=1,kv_heads=1,queries=3,keys=3,head_dim=64$'
refused 2 'each with all 4 dimensions of k' $attention -i q=q.npy -i k=k.npy,k.npy -i v=k.npy
refused 2 'file 2 has other dimensions' $attention -i q=head.npy,q.npy -i k=head.npy -i v=head.npy
refused 2 'op attention has no such input' $attention -i x=q.npy -i k=k.npy -i v=k.npy
refused 2 'the kernel does not take this input' \
    $attention -i q=q.npy -i k=k.npy -i v=k.npy -i lengths=positions.npy
floats 1 | npy "'<f4'" '(1,)' one.npy
refused 2 'f32 where the kernel takes i32' check rope_naive_f32 -i x=x.npy -i positions=one.npy

floats 9 | npy "'<f4'" '(3, 3)' square.npy
run 0 check softmax_topk_naive_f32 -i x=square.npy --shape k=2
has out '--shape rows=3,cols=3,k=2$'
refused 2 'no file tells k: --shape k=N' check softmax_topk_naive_f32 -i x=square.npy
run 0 check layernorm_naive_f32 -i x=square.npy # weights and biases are everyday ones
refused 2 "--rows goes with a single matrix" check layernorm_naive_f32 -i x=square.npy --rows 2:1 --shape 3x3
refused 2 'goes with' check softmax_online_f32 -i x=square.npy --shape 3x3

# Shapes by name, and what is not named.
run 0 check attention_fa2_hd64_f32 --fill normal --shape heads=4,keys=5,head_dim=64
has out 'batch=1,heads=4,kv_heads=4,queries=1,keys=5,head_dim=64'
refused 2 'expected dimensions of op attention' $attention --fill normal --shape 4x5
refused 2 'such as parts=4,rows=4,head_dim=64' check attention_combine_f32 --fill normal --shape 4x3
refused 2 'expected dimensions of op rope' check rope_naive_f32 --fill normal --shape rows=4,cols=5
refused 2 "no such fill for op rope" check rope_naive_f32 --fill rising_tiles --shape head_dim=4
run 1 check attention_fa2_hd64_f32 --fill normal --shape heads=3,kv_heads=2,head_dim=64
has out '^reason    heads = 3: expected a multiple of kv_heads = 2$'
finish
