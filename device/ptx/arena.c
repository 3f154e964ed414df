/* device/ptx/arena.c - bump allocation in blocks that grow; nothing is freed singly. */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "device/ptx/front.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

struct block {
    struct block *next;
    size_t size, used;
    alignas(max_align_t) unsigned char data[];
};

struct ptx_arena {
    struct block *blocks;
};

struct ptx_arena *arena_new(void) {
    return calloc(1, sizeof(struct ptx_arena));
}

void arena_free(struct ptx_arena *arena) {
    if (!arena)
        return;
    for (struct block *b = arena->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(arena);
}

void *arena_alloc(struct ptx_arena *arena, size_t size) {
    if (size > SIZE_MAX / 2)
        return NULL;
    size = size_align(size ? size : 1, alignof(max_align_t));
    struct block *b = arena->blocks;
    if (!b || b->size - b->used < size) {
        size_t want = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        b = calloc(1, sizeof *b + want);
        if (!b)
            return NULL;
        b->size = want;
        b->next = arena->blocks;
        arena->blocks = b;
    }
    void *at = b->data + b->used;
    b->used += size;
    return at;
}

void *arena_grow(struct ptx_arena *arena, void *old, size_t count, size_t *room, size_t element) {
    if (count < *room)
        return old;
    size_t bigger = *room ? *room * 2 : 16, bytes;
    void *grown = size_mul(&bytes, bigger, element) ? arena_alloc(arena, bytes) : NULL;
    if (!grown)
        return NULL;
    if (count)
        memcpy(grown, old, count * element);
    *room = bigger;
    return grown;
}

char *arena_string(struct ptx_arena *arena, const char *text, size_t len) {
    char *copy = arena_alloc(arena, len + 1);
    if (copy)
        memcpy(copy, text, len);
    return copy;
}
