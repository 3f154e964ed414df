/* gate/markup.h - text made safe inside XML and HTML. */
#ifndef GATE_MARKUP_H
#define GATE_MARKUP_H

#include <stdio.h>

/*
 * Write text as content or as a value between double quotes.  & < > " become references; control
 * characters, which XML 1.0 cannot hold, and bytes that are no UTF-8 become U+FFFD.
 */
void markup_text(FILE *to, const char *text);

/* fprintf of pieces: every %s is written by markup_text.  Only %s and %% are known. */
void markup_print(FILE *to, const char *format, ...);

#endif
