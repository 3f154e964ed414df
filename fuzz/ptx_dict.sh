#!/bin/sh
# ptx_dict.sh ROOT: print the dictionary of fuzz_ptx_parse and fuzz_ptx_run: every opcode, modifier
# and type that the emulator's tables name, and the other words of the language.
# The committed copy is corpus/fuzz/ptx.dict; a test compares the two.
set -eu
cd "$1/device/ptx"

{
    sed -n 's/^INSN([A-Z0-9_]*, "\([^"]*\)".*/\1/p' opcodes.def
    grep -o '{"\.[A-Za-z0-9_:]*", MOD_' modifiers.c | sed 's/{"\(.*\)", MOD_/\1/'
    grep -o 'TYPE([A-Z0-9]*, "[a-z0-9]*"' ptx.h | sed 's/.*"\(.*\)"/.\1/'
    grep -oh 'parse_at(p, "\.[a-z_]*")' parse*.c | sed 's/.*"\(.*\)".*/\1/'
    printf '%s\n' .version .target .address_size .extern .visible .entry .func .param .reg .shared \
        .local .global .const .align .ptr .maxntid .reqntid .file .loc .section .pragma \
        function_name inlined_at 'sm_90' '%tid.x' '%ntid.x' '%ctaid.x' '%laneid' '%r1' '%f1' '%rd1' \
        '%p1' '@%p1' '@!%p1' '%p1|%p2' '<9>;' '{%f1,%f2}' '[%rd1+4]' '[%rd1+-4]' 0f7F800000 \
        0f00000000 0d3FF0000000000000 0x7fffffff -2147483648 18446744073709551615 1e400 '/*' '*/' '//'
} | sort -u | sed 's/["\\]/\\&/g; s/.*/"&"/'
