/* Ranges of a dimension. */
#include "kernels/range.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A decimal number at *p, which moves behind it. */
static bool read_number(size_t *out, const char **p) {
    char *end;
    if (!isdigit((unsigned char)**p))
        return false;
    errno = 0;
    unsigned long long value = strtoull(*p, &end, 10);
    if (errno != 0 || value > SIZE_MAX)
        return false;
    *out = (size_t)value;
    *p = end;
    return true;
}

static bool skip(const char **p, const char *word) {
    size_t length = strlen(word);
    if (strncmp(*p, word, length) != 0)
        return false;
    *p += length;
    return true;
}

static bool read_range(struct range *out, const char *p) {
    *out = (struct range){.lo = 0, .hi = SIZE_MAX, .multiple = 1};
    if (!read_number(&out->lo, &p))
        return false;
    if (!skip(&p, ".."))
        out->hi = out->lo;
    else if (isdigit((unsigned char)*p) && !read_number(&out->hi, &p))
        return false;
    if (skip(&p, " multiple of ") && !(read_number(&out->multiple, &p) && out->multiple > 0))
        return false;
    return *p == '\0';
}

status_t range_parse(struct range *out, const char *text) {
    if (!read_range(out, text))
        return FAIL(ERR_SYNTAX,
                    "bad range `%s`: expected LO.., LO..HI or N, then maybe `multiple of M`", text);
    if (!range_contains(out, range_near(out, out->lo)))
        return FAIL(ERR_SYNTAX, "bad range `%s`: it holds no value", text);
    return OK;
}

bool range_contains(const struct range *range, size_t value) {
    return value >= range->lo && value <= range->hi && value % range->multiple == 0;
}

size_t range_near(const struct range *range, size_t value) {
    size_t at = value < range->lo ? range->lo : value;
    size_t past = at % range->multiple;
    if (past != 0 && !__builtin_add_overflow(at, range->multiple - past, &at) && at <= range->hi)
        return at;
    if (past == 0 && at <= range->hi)
        return at;
    return range->hi - range->hi % range->multiple;
}
