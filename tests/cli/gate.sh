#!/bin/sh
# assay gate: honest kernels pass; the report's three forms; the same results from any -j.
. "$(dirname "$0")/lib.sh"
rm -rf out1 out2

run 0 gate -k sum_sequential_f32 -k softmax_warp_f32 -o out1/a -j 1
[ ! -s err ] || fail "gate writes to stderr without a terminal"
has out '^PASS +softmax_warp_f32 +[0-9]+ cases +max ulp '
has out '^PASS +sum_sequential_f32 '
has out '^2 kernels on cpu \(sm_90\), suite quick, seed 1, [0-9.]+ s: 2 pass, 0 fail, 0 unsure, 0 mistrusted, 0 skip$'
[ "$(tr -d '[:print:]\n' <out | wc -c)" -eq 0 ] || fail "control codes in a pipe"

cat >fields.cmake <<'END'
file(READ ${FILE} text)
foreach(key assay suite seed seconds)
    string(JSON value GET "${text}" ${key})
    message("${key}=${value}")
endforeach()
foreach(key name arch driver)
    string(JSON value GET "${text}" device ${key})
    message("device.${key}=${value}")
endforeach()
foreach(key pass fail unsure mistrusted skip)
    string(JSON value GET "${text}" totals ${key})
    message("totals.${key}=${value}")
endforeach()
string(JSON n LENGTH "${text}" kernels)
message("kernels=${n}")
foreach(key name op dtype image_sha256 verdict reason cases max_ulp max_rel max_rho)
    string(JSON value GET "${text}" kernels 0 ${key})
    message("0.${key}=${value}")
endforeach()
foreach(key case index got_bits want)
    string(JSON value GET "${text}" kernels 0 worst ${key})
endforeach()
string(JSON value GET "${text}" kernels 0 events nan_born)
string(JSON type TYPE "${text}" kernels 0 bench)
message("bench=${type}")
END
"$CMAKE" -D FILE=out1/a/results.json -P fields.cmake 2>json || { fail "results.json"; cat json >&2; }
has json '^suite=quick$'
has json '^seed=1$'
has json '^device.name=cpu$'
has json '^device.arch=sm_90$'
has json '^totals.pass=2$'
has json '^kernels=2$'
has json '^0.name=softmax_warp_f32$'
has json '^0.image_sha256=[0-9a-f]{64}$'
has json '^0.verdict=PASS$'
has json '^0.cases=[1-9][0-9]+$'
has json '^0.max_rho=0\.[0-9]+'
has out1/a/junit.xml '<testsuite name="assay gate" tests="2" failures="0"'
has out1/a/index.html '<title>Assay gate: passed</title>'
[ ! -e out1/a/journal.jsonl ] || fail "the journal of a finished run is still there"
if command -v xmllint >/dev/null; then
    xmllint --noout out1/a/junit.xml || fail "junit.xml is not well-formed"
    xmllint --html --noout out1/a/index.html 2>/dev/null || fail "index.html is not well-formed"
fi

run 0 gate -k sum_sequential_f32 -k softmax_warp_f32 -o out2 -j 3
grep -v '"seconds"' out1/a/results.json >a
grep -v '"seconds"' out2/results.json >b
cmp -s a b || fail "-j 1 and -j 3 give other results"

# What was measured can be shown, and stands beside the verdicts only.
run 0 gate -k 'max_first*' --propose-budgets
has out '^max_first_add_f32 +0 +0 +measured 0 and 0$'

# A plain budget below what was measured fails; the line that reruns the case fails as well.
rm -rf plain
mkdir plain
cp "$(dirname "$assay")"/kernels/reduce/* plain/
sed 's/^\(sum_sequential_f32\) .*/\1 0.5 1 too little, as a test/' plain/budgets.txt >b
mv b plain/budgets.txt
ASSAY_KERNELS=plain
export ASSAY_KERNELS
run 1 gate -k 'sum_sequential*' --manifest plain/manifest.yaml
has out '^FAIL sum_sequential_f32: plain budget: the largest ulp error is [0-9.]+, budgets.txt:[0-9]+ allows 0.5$'
rerun=$(sed -n 's/^ *rerun *assay //p' out | head -n 1)
eval "run 1 $rerun"
has out '^reason    plain budget: '
unset ASSAY_KERNELS

# An image for a newer device than the one at hand is no error: SKIP, and the others are gated.
rm -rf older
run 1 gate -d cpu:sm_80 -k max_cluster_f32 -k max_first_add_f32 -o older
has out '^SKIP +max_cluster_f32 .*compiled for sm_90, the device is sm_80: run it with -d cpu:sm_90'
has out '^PASS +max_first_add_f32 '
has out ' 1 pass, 0 fail, 0 unsure, 0 mistrusted, 1 skip$'
has older/results.json '"verdict": "SKIP"'
has older/results.json '"verdict": "PASS"'
run 1 check -d cpu:sm_80 max_cluster_f32 --fill normal --shape 2x64
has out '^verdict   SKIP$'
has out '^reason    .*compiled for sm_90, the device is sm_80'
# The twin's alone: what does not need it is judged, and nothing that does is believed.
run 1 gate --twin=cpu:sm_80 -k max_cluster_f32 -k max_first_add_f32
has out '^MISTRUSTED max_cluster_f32: twin: no output was compared: .*compiled for sm_90, the device is sm_80'
has out '^PASS +max_first_add_f32 '
run 1 check --twin=cpu:sm_80 max_cluster_f32 --fill normal --shape 2x64
has out '^verdict   SKIP$'
# Other images that a device refuses are errors, as ever.
printf '.version 8.0\n.target sm_80\n.address_size 64\n.entry k() { no.such.insn; }\n' >older/k.ptx
cat >older/k.yaml <<'END'
kernels:
  - name: no_instruction
    op: max
    image: k.ptx
    types: {x: f32, y: f32}
    launches: [{entry: k, grid: [1], block: [1], args: []}]
    numerics: {}
END
refused 2 'unknown instruction' gate -d cpu:sm_80 --manifest older/k.yaml

# A tensor map that cannot be made at a shape is that case's fault; other cases and kernels go on.
rm -rf maps
mkdir maps
cp "$source"/tests/kernels/external/nvcc_tma_max.ptx "$source"/tests/kernels/external/nvcc_lse.ptx maps/
awk '/^kernels:/ { print } /^  - name: / { on = $3 == "max_tma_f32" || $3 == "lse_nvcc_f32" }
     on && !/ accepts: /' "$source/tests/kernels/external/manifest.yaml" >maps/manifest.yaml
run 1 gate --manifest maps/manifest.yaml
has out '^PASS +lse_nvcc_f32 '
has out '^FAIL max_tma_f32: max_tma_f32: tensor_maps\[0\] at rows = [0-9]+, cols = [0-9]+: tensor map: a stride is no multiple of 16'
has out '^2 kernels .*: 1 pass, 1 fail, '
run 0 check max_tma_f32 --fill normal --shape 3x64 --manifest maps/manifest.yaml
run 1 check max_tma_f32 --fill normal --shape 3x65 --manifest maps/manifest.yaml
has out '^reason    max_tma_f32: tensor_maps\[0\] at rows = 3, cols = 65: tensor map: '
run 1 bench --manifest maps/manifest.yaml --shape 3x65 --shape 3x64 -k max_tma_f32
has out '^max_tma_f32 +3x65 +FAIL: max_tma_f32: tensor_maps'
has out '^max_tma_f32 +3x64 +[0-9]+ '

# A manifest's kernels take the place of the built-in ones.
for image in "$source"/tests/kernels/external/*.yaml; do
    [ -e "$image" ] || { fail "no manifest in $source/tests/kernels/external"; continue; }
    run 0 gate --manifest "$image"
    has out 'PASS '
    grep -q softmax_online_f32 out && fail "--manifest gates the built-in kernels as well"
done
finish
