/* gate/verdict.c - names and sums of verdicts. */
#include "gate/verdict.h"

const char *verdict_name(enum verdict v) {
    switch (v) {
    case VERDICT_SKIP:
        return "SKIP";
    case VERDICT_PASS:
        return "PASS";
    case VERDICT_MISTRUSTED:
        return "MISTRUSTED";
    case VERDICT_UNSURE:
        return "UNSURE";
    case VERDICT_FAIL:
        return "FAIL";
    }
    return "?";
}

enum verdict verdict_worse(enum verdict a, enum verdict b) {
    return a > b ? a : b;
}
