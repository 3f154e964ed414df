#!/bin/sh
# Bad input: exit 2, nothing on stdout, one line on stderr that says what was found and where.
. "$(dirname "$0")/lib.sh"
kernel=softmax_online_f32

check_x() { # PART FILE
    refused 2 "$1" check $kernel -i "x=$2"
}

# ---- tensors
check_x 'missing.npy: No such file' missing.npy
mkdir -p folder
check_x 'folder: not a regular file' folder
: >empty.npy
check_x 'empty.npy: not an npy file' empty.npy
echo 'hello, world' >text.npy
check_x 'text.npy: not an npy file' text.npy
floats 6 | npy "'<f8'" '(1, 3)' f8.npy
check_x "f8.npy: dtype '<f8' where '<f4' (f32)" f8.npy
floats 6 | npy "'>f4'" '(2, 3)' big.npy
check_x "big.npy: dtype '>f4' is big-endian" big.npy
floats 3 | npy "'<f2'" '(2, 3)' f2.npy
check_x 'f2.npy: f16 (<f2) where the kernel takes f32 (<f4)' f2.npy
floats 6 | npy "'<f4'" '(1, 2, 3)' 3d.npy
check_x '3d.npy: 3-d, shape 1x2x3, where 2-d (rows x cols) is wanted' 3d.npy
floats 6 | npy "'<f4'" '(6,)' 1d.npy
check_x '1d.npy: 1-d, shape 6, where 2-d' 1d.npy
floats 6 | npy "'<f4'" '(2, 3)' fortran.npy True
check_x 'fortran.npy: Fortran order' fortran.npy
floats 6 | npy "'<f4'" '(2, 3)' good.npy
head -c 60 good.npy >short.npy
check_x 'short.npy: npy file cut short' short.npy
head -c 80 good.npy >short.npy
check_x 'short.npy: npy file cut short: shape 2x3 of f32 takes 24 bytes of data' short.npy
{ cat good.npy; echo; } >long.npy
check_x 'long.npy: bytes after the data' long.npy
floats 1 | npy "'<f4'" '(99999999999, 99999999999)' absurd.npy
check_x 'absurd.npy: shape 99999999999x99999999999 is larger than any memory' absurd.npy
refused 2 'good.npy: row 2 is wanted, the file has 2' check $kernel -i x=good.npy --rows 2:1
refused 2 'good.npy: rows 1 to 2 are wanted, the file has 2' check $kernel -i x=good.npy --rows 1:2

# The control: the same file, whole, is taken.
run 0 check $kernel -i x=good.npy
has out '^verdict   PASS'

# ---- manifests and images
manifest() { # PART FILE
    refused 2 "$1" gate --manifest "$2"
    refused 2 "$1" list --manifest "$2"
}
manifest 'missing.yaml' missing.yaml
: >empty.yaml
manifest 'empty.yaml' empty.yaml
printf 'kernels: [' >broken.yaml
manifest 'broken.yaml:2:1: not YAML' broken.yaml

cat >good.ptx <<'END'
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy_first(.param .u64 x, .param .u64 y)
{
    .reg .b64 %rd<3>;
    .reg .f32 %f<2>;
    ld.param.u64 %rd1, [x];
    ld.param.u64 %rd2, [y];
    ld.global.f32 %f1, [%rd1];
    st.global.f32 [%rd2], %f1;
    ret;
}
END
one_kernel() { # IMAGE EXTRA-LINE
    cat <<END
kernels:
  - name: copy_first
    op: max
    image: $1
    summary: the maximum of a row of one
    types: {x: f32, y: f32, acc: f32}
    accepts: {rows: "1", cols: "1"}
    empty_row: nan
    launches:
      - {entry: copy_first, grid: [1], block: [1], args: [x, y]}
    numerics: {}
    deterministic: true
$2
END
}
one_kernel good.ptx >good.yaml
run 0 check copy_first --manifest good.yaml --fill normal --shape 1x1
has out '^verdict   PASS'

one_kernel good.ptx '    colour: blue' >unknown.yaml
manifest 'colour' unknown.yaml
has err 'unknown\.yaml:[0-9]+'
one_kernel missing.ptx >no_image.yaml
manifest 'missing.ptx' no_image.yaml

echo 'this is no PTX' >garbage.ptx
one_kernel garbage.ptx >garbage.yaml
refused 2 'garbage.ptx:1' gate --manifest garbage.yaml
refused 2 'garbage.ptx:1' check copy_first --manifest garbage.yaml --fill normal --shape 1x1
head -c 300 /dev/urandom >noise.ptx
one_kernel noise.ptx >noise.yaml
refused 2 'noise.ptx' gate --manifest noise.yaml
sed 's/ld\.global\.f32/ld.global.f33/' good.ptx >typo.ptx
one_kernel typo.ptx >typo.yaml
refused 2 'typo.ptx:10' gate --manifest typo.yaml
sed 's/entry copy_first/entry copy_second/' good.ptx >other.ptx
one_kernel other.ptx >other.yaml
refused 2 'copy_first' gate --manifest other.yaml
sed 's/, args: \[x, y\]/, args: [x, y, cols]/' good.yaml >args.yaml
refused 2 'copy_first' gate --manifest args.yaml

# Numerics that say too little for a budget.
sed 's/op: max/op: softmax/' good.yaml >silent.yaml
refused 2 'silent.yaml: copy_first: ' gate --manifest silent.yaml
refused 2 'silent.yaml: copy_first: ' check copy_first --manifest silent.yaml --fill normal --shape 1x1

# ---- folders
: >file
refused 2 'file' gate --manifest good.yaml -o file
refused 2 'file/out' gate --manifest good.yaml -o file/out
finish
