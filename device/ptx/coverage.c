/*
 * device/ptx/coverage.c - prints docs/ptx-coverage.md from opcodes.def.
 *
 *   build/ptx-coverage > docs/ptx-coverage.md
 *
 * A CTest compares the two, so the page cannot go stale.
 */
#include <stdio.h>
#include <string.h>

#include "device/ptx/front.h"

static void print_types(ptx_types types) {
    const char *separator = "";
    for (int t = 0; t < PTX_TYPE_COUNT; t++) {
        if (!(types >> t & 1))
            continue;
        printf("%s%s", separator, ptx_type_name((enum ptx_type)t));
        separator = " ";
    }
}

static void print_modifiers(uint64_t allow, uint64_t require) {
    const char *separator = "";
    for (int kind = 0; kind < MOD_KINDS; kind++) {
        if (!(allow >> kind & 1))
            continue;
        printf("%s%s%s", separator, ptx_mod_kind_name((enum ptx_mod_kind)kind),
               require >> kind & 1 ? "!" : "");
        separator = " ";
    }
}

int main(void) {
    printf("# What the emulator executes\n\n"
           "Made from `device/ptx/opcodes.def` by `build/ptx-coverage`; do not edit. An "
           "instruction, a\n"
           "type or a modifier that is not here is refused when the PTX is read, with line and "
           "column.\n"
           "Modifier kinds are those of `device/ptx/modifiers.c`; `!` marks one that must be "
           "present.\n\n"
           "| instruction | types | from | modifiers | result |\n|---|---|---|---|---|\n");
    for (int op = 0; op < PTX_OP_COUNT; op++) {
        const struct ptx_opcode *row = &ptx_opcodes[op];
        printf("| `%s` | ", row->name);
        print_types(row->types);
        printf(" | ");
        print_types(row->types2);
        printf(" | ");
        print_modifiers(row->allow, row->require);
        printf(" | ");
        for (const char *c = row->what; *c; c++) /* a bar would end the table's cell */
            printf(*c == '|' ? "\\|" : "%c", *c);
        printf(" |\n");
    }
    printf("\n%d rows.\n", PTX_OP_COUNT);
    return 0;
}
