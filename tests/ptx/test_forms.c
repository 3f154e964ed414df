/*
 * test_forms.c - every form in forms.txt loads on the device cpu: the parser, the row of opcodes.def
 * and the executor have it.  Lines after "refused" must not load, and the message must hold what
 * stands after "-- ".
 *
 *   test_forms FILE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

#define MAX_LINE 400
#define MAX_TEXT 8192

static unsigned failures, checks;

/* {f*4} -> {%f0, %f1, %f2, %f3}; everything else as it stands. */
static void expand(char *out, size_t room, const char *line) {
    size_t n = 0;
    char kind;
    unsigned count;
    int used;
    for (; *line && n + 16 < room; line++) {
        if (sscanf(line, "{%c*%u}%n", &kind, &count, &used) != 2 || line[2] != '*') {
            out[n++] = *line;
            continue;
        }
        out[n++] = '{';
        for (unsigned i = 0; i < count && n + 16 < room; i++)
            n += (size_t)snprintf(out + n, room - n, "%s%%%c%u", i ? ", " : "", kind, i);
        out[n++] = '}';
        line += used - 1;
    }
    out[n] = '\0';
}

static status_t load(const char *target, const char *statements) {
    status_t st = OK;
    struct device *dev = NULL;
    struct dev_image *image = NULL;
    static char text[MAX_TEXT + 2048];
    char name[24];
    /* "cpu:sm_90" of "sm_90a" */
    snprintf(name, sizeof name, "cpu:%.*s", (int)strcspn(target, "a"), target);
    int size = snprintf(
        text, sizeof text,
        ".version 9.0\n.target %s\n.address_size 64\n.global .align 16 .b8 gl[64];\n"
        ".const .align 16 .b8 cs[64];\n.func fn(.param .b64 a) { ret; }\n"
        ".visible .entry k(.param .u64 pq, .param .align 64 .b8 tm[128])\n{\n"
        ".reg .pred %%p<10>;\n.reg .b16 %%h<10>;\n.reg .b32 %%r<300>;\n.reg .b64 %%d<20>;\n"
        ".reg .f32 %%f<300>;\n.reg .f64 %%g<10>;\n.local .align 16 .b8 lo[64];\n"
        ".shared .align 128 .b8 sh[1024];\n.shared .align 8 .b8 mb[8];\n%s\nret;\n}\n",
        target, statements);
    TRY(device_open(&dev, name, NULL));
    TRY(device_load(&image, dev, "form", text, (size_t)size));
    image_unload(image);
done:
    device_close(dev);
    return st;
}

static void check_line(const char *target, const char *line, bool refused, unsigned number) {
    static char text[MAX_TEXT];
    char statement[MAX_LINE];
    const char *reason = refused ? strstr(line, " -- ") : NULL;
    snprintf(statement, sizeof statement, "%.*s",
             (int)(reason ? (size_t)(reason - line) : strlen(line)), line);
    expand(text, sizeof text, statement);
    status_t st = load(target, text);
    checks++;
    bool good = refused ? st == ERR_UNSUPPORTED && reason && strstr(status_message(), reason + 4)
                        : st == OK;
    if (good)
        return;
    failures++;
    printf("FAIL line %u: %s: %s\n", number, statement, st == OK ? "loads" : status_message());
}

int main(int argc, char **argv) {
    char line[MAX_LINE], target[16] = "sm_90a";
    bool refused = false;
    FILE *f = argc == 2 ? fopen(argv[1], "r") : NULL;
    if (!f) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    for (unsigned number = 1; fgets(line, sizeof line, f); number++) {
        line[strcspn(line, "\n")] = '\0';
        if (!*line || *line == '#')
            continue;
        if (sscanf(line, "target %15s", target) == 1) {
            refused = false;
            continue;
        }
        if (strcmp(line, "refused") == 0)
            refused = true;
        else
            check_line(target, line, refused, number);
    }
    fclose(f);
    printf("%u forms, %u failed\n", checks, failures);
    return failures != 0 || checks == 0;
}
