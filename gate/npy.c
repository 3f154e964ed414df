/*
 * gate/npy.c - the .npy format (numpy.lib.format): magic, version, length, a Python dict, data.
 *
 * The dict is a Python literal; only the three keys that NumPy writes are known, in any order.
 */
#include "gate/npy.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "kernels/read_file.h"

#define MAGIC "\x93NUMPY"
#define MAGIC_SIZE 6
#define MAX_FILE ((size_t)1 << 36)

static const struct descr {
    const char *text, *type;
} descrs[] = {
    {"<f4", "f32"}, {"<f2", "f16"}, {"<u2", "bf16"}, {"|V2", "bf16"}, {"<V2", "bf16"},
    {"<i4", "i32"}, {"<i8", "i64"}, {"|u1", "u8"},   {"|b1", "u8"},
};
#define DESCR_COUNT (sizeof descrs / sizeof descrs[0])

/* The header's text and how far it is read. */
struct cursor {
    const char *label;
    const char *at, *end;
    bool tensor; /* any type and shape; else a matrix of real numbers */
};

struct header {
    const struct tensor_type *type;
    bool fortran;
    size_t dim_count;
    size_t dims[NPY_MAX_DIMS];
    bool has_descr, has_order, has_shape;
};

/* ---- the dict -------------------------------------------------------------------------------- */

static void skip_space(struct cursor *c) {
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t'))
        c->at++;
}

static bool accept(struct cursor *c, char wanted) {
    skip_space(c);
    if (c->at == c->end || *c->at != wanted)
        return false;
    c->at++;
    return true;
}

static status_t expect(struct cursor *c, char wanted) {
    if (accept(c, wanted))
        return OK;
    if (c->at == c->end)
        return FAIL(ERR_SYNTAX, "%s: the npy header ends where '%c' is expected", c->label, wanted);
    return FAIL(ERR_SYNTAX, "%s: npy header: expected '%c', found byte 0x%02x", c->label, wanted,
                (unsigned)(unsigned char)*c->at);
}

/* A quoted string without escapes, as NumPy writes keys and descr. */
static status_t parse_string(struct cursor *c, char *out, size_t size) {
    skip_space(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"'))
        return FAIL(ERR_UNSUPPORTED,
                    "%s: npy header: expected a quoted string (structured types are "
                    "not read)",
                    c->label);
    char quote = *c->at++;
    size_t n = 0;
    while (c->at < c->end && *c->at != quote) {
        unsigned char byte = (unsigned char)*c->at++;
        if (byte < 0x20 || byte > 0x7e || n + 1 >= size)
            return FAIL(ERR_SYNTAX, "%s: npy header: a string is too long or not plain text",
                        c->label);
        out[n++] = (char)byte;
    }
    out[n] = '\0';
    return expect(c, quote);
}

static status_t parse_bool(struct cursor *c, bool *out) {
    skip_space(c);
    size_t left = (size_t)(c->end - c->at);
    if (left >= 4 && memcmp(c->at, "True", 4) == 0) {
        c->at += 4;
        *out = true;
        return OK;
    }
    if (left >= 5 && memcmp(c->at, "False", 5) == 0) {
        c->at += 5;
        *out = false;
        return OK;
    }
    return FAIL(ERR_SYNTAX, "%s: npy header: fortran_order is neither True nor False", c->label);
}

static status_t parse_size(struct cursor *c, size_t *out) {
    skip_space(c);
    const char *start = c->at;
    size_t value = 0;
    while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
        size_t digit = (size_t)(*c->at++ - '0');
        if (!size_mul(&value, value, 10) || value > SIZE_MAX - digit)
            return FAIL(ERR_SYNTAX, "%s: npy header: a dimension does not fit 64 bits", c->label);
        value += digit;
    }
    if (c->at == start)
        return FAIL(ERR_SYNTAX, "%s: npy header: shape: expected a number", c->label);
    *out = value;
    return OK;
}

static status_t parse_shape(struct cursor *c, struct header *h) {
    status_t st = OK;
    TRY(expect(c, '('));
    while (!accept(c, ')')) {
        if (h->dim_count == NPY_MAX_DIMS)
            return FAIL(ERR_UNSUPPORTED, "%s: more than %d dimensions where 2 are wanted", c->label,
                        NPY_MAX_DIMS);
        TRY(parse_size(c, &h->dims[h->dim_count++]));
        if (!accept(c, ',')) {
            TRY(expect(c, ')'));
            break;
        }
    }
done:
    return st;
}

static status_t parse_descr(struct cursor *c, struct header *h) {
    char text[32];
    status_t st = parse_string(c, text, sizeof text);
    if (st != OK)
        return st;
    for (size_t i = 0; i < DESCR_COUNT; i++)
        if (strcmp(text, descrs[i].text) == 0)
            h->type = tensor_type_find(descrs[i].type);
    if (h->type && (c->tensor || h->type->kind == TENSOR_REAL))
        return OK;
    if (text[0] == '>')
        return FAIL(ERR_UNSUPPORTED, "%s: dtype '%s' is big-endian; save it as '<%s'", c->label,
                    text, text + 1);
    return FAIL(ERR_UNSUPPORTED,
                "%s: dtype '%s' where '<f4' (f32), '<f2' (f16) or '<u2' (bf16 bits) "
                "is wanted",
                c->label, text);
}

static status_t parse_item(struct cursor *c, struct header *h) {
    char key[32];
    status_t st = OK;
    bool *seen = NULL;
    TRY(parse_string(c, key, sizeof key));
    TRY(expect(c, ':'));
    seen = strcmp(key, "descr") == 0           ? &h->has_descr
           : strcmp(key, "fortran_order") == 0 ? &h->has_order
           : strcmp(key, "shape") == 0         ? &h->has_shape
                                               : NULL;
    if (!seen)
        return FAIL(ERR_SYNTAX, "%s: npy header: unknown key '%s'", c->label, key);
    if (*seen)
        return FAIL(ERR_SYNTAX, "%s: npy header: key '%s' twice", c->label, key);
    *seen = true;
    if (seen == &h->has_descr)
        TRY(parse_descr(c, h));
    else if (seen == &h->has_order)
        TRY(parse_bool(c, &h->fortran));
    else
        TRY(parse_shape(c, h));
done:
    return st;
}

static status_t parse_dict(struct cursor *c, struct header *h) {
    status_t st = OK;
    TRY(expect(c, '{'));
    while (!accept(c, '}')) {
        TRY(parse_item(c, h));
        if (!accept(c, ',')) {
            TRY(expect(c, '}'));
            break;
        }
    }
    skip_space(c);
    if (c->at != c->end)
        return FAIL(ERR_SYNTAX, "%s: npy header: something follows its closing brace", c->label);
    if (!h->has_descr || !h->has_order || !h->has_shape)
        return FAIL(ERR_SYNTAX, "%s: npy header: no '%s'", c->label,
                    !h->has_descr   ? "descr"
                    : !h->has_order ? "fortran_order"
                                    : "shape");
done:
    return st;
}

/* ---- the file -------------------------------------------------------------------------------- */

/* Where the dict and the data lie: [*dict, *data) and [*data, size). */
static status_t find_parts(const char *label, const unsigned char *bytes, size_t size, size_t *dict,
                           size_t *data) {
    if (size < MAGIC_SIZE || memcmp(bytes, MAGIC, MAGIC_SIZE) != 0)
        return FAIL(ERR_SYNTAX, "%s: not an npy file: it does not begin with \\x93NUMPY", label);
    if (size < MAGIC_SIZE + 4)
        return FAIL(ERR_SYNTAX, "%s: npy file cut short: %zu bytes, no header", label, size);
    unsigned version = bytes[MAGIC_SIZE];
    if (version < 1 || version > 3)
        return FAIL(ERR_UNSUPPORTED, "%s: npy version %u.%u; versions 1 to 3 are read", label,
                    version, (unsigned)bytes[MAGIC_SIZE + 1]);
    const unsigned char *at = bytes + MAGIC_SIZE + 2;
    size_t length_size = version == 1 ? 2 : 4;
    *dict = MAGIC_SIZE + 2 + length_size;
    if (size < *dict)
        return FAIL(ERR_SYNTAX, "%s: npy file cut short: %zu bytes, no header", label, size);
    size_t length = 0;
    for (size_t i = length_size; i-- > 0;)
        length = length << 8 | at[i];
    if (length > size - *dict)
        return FAIL(ERR_SYNTAX,
                    "%s: npy file cut short: the header is said to take %zu bytes, %zu "
                    "are there",
                    label, length, size - *dict);
    *data = *dict + length;
    return OK;
}

static void shape_text(char *out, size_t size, const struct header *h) {
    size_t at = 0;
    for (size_t i = 0; i < h->dim_count && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%zu", i ? "x" : "", h->dims[i]);
    if (h->dim_count == 0)
        snprintf(out, size, "()");
}

static status_t check_shape(const struct cursor *c, const struct header *h, size_t data_size) {
    const char *label = c->label;
    char shape[24 * NPY_MAX_DIMS] = "";
    shape_text(shape, sizeof shape, h);
    if (!c->tensor && h->dim_count != 2)
        return FAIL(ERR_UNSUPPORTED, "%s: %zu-d, shape %s, where 2-d (rows x cols) is wanted",
                    label, h->dim_count, shape);
    if (h->fortran)
        return FAIL(ERR_UNSUPPORTED,
                    "%s: Fortran order; save it in C order "
                    "(numpy.ascontiguousarray)",
                    label);
    size_t wanted = h->type->size;
    bool fits = true;
    for (size_t i = 0; i < h->dim_count; i++)
        fits = size_mul(&wanted, wanted, h->dims[i]) && fits;
    if (!fits)
        return FAIL(ERR_SYNTAX, "%s: shape %s is larger than any memory", label, shape);
    if (wanted != data_size)
        return FAIL(ERR_SYNTAX, "%s: %s: shape %s of %s takes %zu bytes of data, %zu are there",
                    label, wanted > data_size ? "npy file cut short" : "bytes after the data",
                    shape, h->type->name, wanted, data_size);
    return OK;
}

static status_t parse(struct npy *out, const char *label, const unsigned char *bytes, size_t size,
                      bool tensor) {
    *out = (struct npy){0};
    struct header h = {0};
    size_t dict = 0, data = 0;
    status_t st = OK;
    TRY(find_parts(label, bytes, size, &dict, &data));
    struct cursor c = {label, (const char *)bytes + dict, (const char *)bytes + data, tensor};
    TRY(parse_dict(&c, &h));
    TRY(check_shape(&c, &h, size - data));
    *out = (struct npy){
        .type = h.type, .dtype = h.type->dtype, .dim_count = h.dim_count, .data = bytes + data};
    memcpy(out->dims, h.dims, sizeof out->dims);
    if (h.dim_count == 2) {
        out->rows = h.dims[0];
        out->cols = h.dims[1];
    }
done:
    return st;
}

status_t npy_parse(struct npy *out, const char *label, const unsigned char *bytes, size_t size) {
    return parse(out, label, bytes, size, false);
}

static status_t read_any(struct npy *out, const char *path, bool tensor) {
    *out = (struct npy){0};
    char *bytes = NULL;
    size_t size = 0;
    status_t st = OK;
    TRY(read_file(&bytes, &size, path, MAX_FILE));
    TRY(parse(out, path, (const unsigned char *)bytes, size, tensor));
    out->bytes = bytes;
    bytes = NULL;
done:
    free(bytes);
    return st;
}

status_t npy_read(struct npy *out, const char *path) {
    return read_any(out, path, false);
}

status_t npy_read_tensor(struct npy *out, const char *path) {
    return read_any(out, path, true);
}

static const char *descr_of(const char *type) {
    for (size_t i = 0; i < DESCR_COUNT; i++)
        if (strcmp(descrs[i].type, type) == 0)
            return descrs[i].text;
    return "?";
}

/* The value as a datum of dt; NaN of every kind is NaN. */
static bool converts(const struct npy *npy, const struct dtype *dt, size_t i, uint32_t *bits) {
    double x = dtype_to_double(npy->dtype, dtype_load(npy->dtype, npy->data, i));
    *bits = dtype_from_double(dt, x, ROUND_NEAREST);
    double back = dtype_to_double(dt, *bits);
    return back == x || (isnan(back) && isnan(x));
}

const char *npy_misfit(const struct npy *npy, const struct dtype *dt) {
    static _Thread_local char text[128];
    if (npy->dtype == dt)
        return NULL;
    if (!npy->dtype || npy->dtype->id != DT_F32) {
        snprintf(text, sizeof text, "%s (%s) where the kernel takes %s (%s)", npy->type->name,
                 descr_of(npy->type->name), dt->name, npy_descr(dt));
        return text;
    }
    size_t count = 1, cols = npy->dim_count ? npy->dims[npy->dim_count - 1] : 1;
    for (size_t i = 0; i < npy->dim_count; i++)
        count *= npy->dims[i];
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        if (!converts(npy, dt, i, &bits)) {
            snprintf(text, sizeof text,
                     "f32 (<f4) where the kernel takes %s (%s), and [%zu][%zu] is not exact in it",
                     dt->name, npy_descr(dt), i / cols, i % cols);
            return text;
        }
    }
    return NULL;
}

uint32_t npy_datum(const struct npy *npy, const struct dtype *dt, size_t i) {
    uint32_t bits;
    if (npy->dtype == dt)
        return dtype_load(dt, npy->data, i);
    converts(npy, dt, i, &bits);
    return bits;
}

void npy_clear(struct npy *npy) {
    free(npy->bytes);
    *npy = (struct npy){0};
}

const char *npy_descr(const struct dtype *dt) {
    return descr_of(dt->name);
}

status_t npy_write(const char *path, const struct dtype *dt, size_t rows, size_t cols,
                   const void *data) {
    /* NumPy pads the header with blanks so that the data start at a multiple of 64 bytes. */
    char header[192];
    size_t fixed = MAGIC_SIZE + 4;
    int length = snprintf(header, sizeof header,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (%zu, %zu), }",
                          npy_descr(dt), rows, cols);
    size_t padded = size_align(fixed + (size_t)length + 1, 64) - fixed;
    memset(header + length, ' ', padded - (size_t)length);
    header[padded - 1] = '\n';
    unsigned char start[MAGIC_SIZE + 4] = MAGIC "\x01\x00";
    start[MAGIC_SIZE + 2] = (unsigned char)(padded & 0xff);
    start[MAGIC_SIZE + 3] = (unsigned char)(padded >> 8);

    size_t size = rows * cols * dtype_size(dt); /* the caller holds that many bytes */
    FILE *file = fopen(path, "wb");
    if (!file)
        return FAIL(ERR_IO, "cannot write %s: %s", path, strerror(errno));
    bool good = fwrite(start, 1, sizeof start, file) == sizeof start &&
                fwrite(header, 1, padded, file) == padded &&
                (size == 0 || fwrite(data, 1, size, file) == size);
    if (fclose(file) != 0 || !good)
        return FAIL(ERR_IO, "cannot write %s: %s", path, strerror(errno));
    return OK;
}
