/* device/round.c - ptx_write_rn: see rewrite.h. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "device/rewrite.h"
#include "device/statement.h"

#define SUFFIX ".rn"

static bool has_one(struct piece opcode, const char *const *parts) {
    for (; *parts; parts++)
        if (piece_has(opcode, *parts))
            return true;
    return false;
}

#define OPCODE 3 /* characters of "add", "sub", "mul" */

static bool is_unsuffixed(struct piece opcode) {
    static const char *const types[] = {"f32",   "f32x2", "f64",    "f16",
                                        "f16x2", "bf16",  "bf16x2", NULL};
    static const char *const modifiers[] = {"rn", "rz", "rm", "rp", NULL};
    if (!piece_begins(opcode, "add.") && !piece_begins(opcode, "sub.") &&
        !piece_begins(opcode, "mul."))
        return false;
    return has_one(opcode, types) && !has_one(opcode, modifiers);
}

status_t ptx_write_rn(char **out, size_t *out_size, unsigned *changed, const char *label,
                      const char *text, size_t size) {
    struct scanner s = scanner_of(text, size);
    struct statement one;
    *out = NULL;
    *out_size = *changed = 0;
    if (memchr(text, '\0', size))
        return FAIL(ERR_UNSUPPORTED, "%s: not a PTX text, so no rounding can be written into it",
                    label);
    for (scanner_next(&one, &s); one.kind != STATEMENT_END; scanner_next(&one, &s))
        *changed += one.kind == STATEMENT_INSN && is_unsuffixed(one.word);
    char *to = *out = malloc(size + *changed * strlen(SUFFIX) + 1);
    if (!to)
        return FAIL(ERR_NOMEM, "%s: no memory for another text", label);
    const char *from = text;
    s = scanner_of(text, size);
    for (scanner_next(&one, &s); one.kind != STATEMENT_END; scanner_next(&one, &s)) {
        if (one.kind != STATEMENT_INSN || !is_unsuffixed(one.word))
            continue;
        const char *at = one.word.at + OPCODE;
        memcpy(to, from, (size_t)(at - from));
        to += at - from;
        memcpy(to, SUFFIX, strlen(SUFFIX));
        to += strlen(SUFFIX);
        from = at;
    }
    memcpy(to, from, (size_t)(text + size - from));
    to += text + size - from;
    *to = '\0';
    *out_size = (size_t)(to - *out);
    return OK;
}
