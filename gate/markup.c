/* gate/markup.c - escaping, in one place for both writers. */
#include "gate/markup.h"

#include <assert.h>
#include <stdarg.h>
#include <stddef.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/* Bytes of the well-formed UTF-8 sequence at s, or 0 (RFC 3629: no overlong form, no surrogate). */
static size_t utf8_length(const unsigned char *s) {
    unsigned char c = s[0];
    if (c < 0x80)
        return 1;
    size_t n = c >= 0xc2 && c <= 0xdf   ? 2
               : c >= 0xe0 && c <= 0xef ? 3
               : c >= 0xf0 && c <= 0xf4 ? 4
                                        : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((c == 0xe0 && s[1] < 0xa0) || (c == 0xed && s[1] > 0x9f) || (c == 0xf0 && s[1] < 0x90) ||
        (c == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

void markup_text(FILE *to, const char *text) {
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        size_t n = utf8_length(s);
        if (n == 0 || (*s < 0x20 && *s != '\n' && *s != '\t') || *s == 0x7f)
            fputs(REPLACEMENT, to);
        else if (*s == '&')
            fputs("&amp;", to);
        else if (*s == '<')
            fputs("&lt;", to);
        else if (*s == '>')
            fputs("&gt;", to);
        else if (*s == '"')
            fputs("&quot;", to);
        else
            fwrite(s, 1, n, to);
        s += n ? n : 1;
    }
}

void markup_print(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    for (const char *f = format; *f; f++) {
        if (*f != '%') {
            fputc(*f, to);
            continue;
        }
        f++;
        assert(*f == 's' || *f == '%');
        if (*f == 's')
            markup_text(to, va_arg(args, const char *));
        else
            fputc('%', to);
    }
    va_end(args);
}
