/* device/target.c - see target.h. */
#include "device/target.h"

#include <stdlib.h>
#include <string.h>

#include "device/statement.h"

unsigned target_number(const char *name) {
    char *end;
    if (strncmp(name, "sm_", 3) != 0 || name[3] < '1' || name[3] > '9')
        return 0;
    unsigned long n = strtoul(name + 3, &end, 10);
    if (*end == 'a' || *end == 'f')
        end++;
    return *end || n > 999 ? 0 : (unsigned)n;
}

bool target_runs_on(const char *target, const char *device) {
    unsigned number = target_number(target), there = target_number(device);
    if (!number || !there)
        return false;
    return target[strlen(target) - 1] == 'a' ? number == there : number <= there;
}

void target_of(char out[16], const char *text, size_t size) {
    struct scanner s = scanner_of(text, size);
    struct statement statement;
    struct piece word;
    out[0] = '\0';
    do
        scanner_next(&statement, &s);
    while (statement.kind == STATEMENT_DIRECTIVE && !piece_is(statement.word, ".target"));
    if (statement.kind != STATEMENT_DIRECTIVE || !piece_token(&word, &statement.operands) ||
        word.size >= 16)
        return;
    memcpy(out, word.at, word.size);
    out[word.size] = '\0';
}
