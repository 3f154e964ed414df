/* device/ptx/scope.c - chained hash tables of names, one per { } of a PTX function. */
#include <string.h>

#include "device/ptx/front.h"

static uint64_t hash_name(const char *name, size_t len) {
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < len; i++)
        h = (h ^ (unsigned char)name[i]) * 0x100000001b3u;
    return h ^ (h >> 32);
}

struct scope *scope_new(struct ptx_arena *arena, struct scope *parent) {
    struct scope *s = arena_alloc(arena, sizeof *s);
    if (s)
        s->parent = parent;
    return s;
}

struct symbol *scope_find_here(const struct scope *scope, const char *name, size_t len) {
    if (!scope->chain_count)
        return NULL;
    struct symbol *s = scope->chains[hash_name(name, len) & (scope->chain_count - 1)];
    while (s && (s->len != len || memcmp(s->name, name, len) != 0))
        s = s->next;
    return s;
}

struct symbol *scope_find(const struct scope *scope, const char *name, size_t len) {
    for (; scope; scope = scope->parent) {
        struct symbol *s = scope_find_here(scope, name, len);
        if (s)
            return s;
    }
    return NULL;
}

static bool grow(struct ptx_arena *arena, struct scope *scope) {
    size_t count = scope->chain_count ? scope->chain_count * 2 : 16;
    struct symbol **chains = arena_alloc(arena, count * sizeof *chains);
    if (!chains)
        return false;
    for (size_t i = 0; i < scope->chain_count; i++) {
        for (struct symbol *s = scope->chains[i], *next; s; s = next) {
            next = s->next;
            struct symbol **chain = &chains[hash_name(s->name, s->len) & (count - 1)];
            s->next = *chain;
            *chain = s;
        }
    }
    scope->chains = chains;
    scope->chain_count = count;
    return true;
}

struct symbol *scope_add(struct ptx_arena *arena, struct scope *scope, const char *name, size_t len,
                         bool *taken) {
    *taken = scope_find_here(scope, name, len) != NULL;
    if (*taken)
        return NULL;
    if (scope->symbol_count >= scope->chain_count && !grow(arena, scope))
        return NULL;
    struct symbol *s = arena_alloc(arena, sizeof *s);
    if (!s)
        return NULL;
    s->name = arena_string(arena, name, len);
    if (!s->name)
        return NULL;
    s->len = len;
    s->reg = PTX_NOREG;
    struct symbol **chain = &scope->chains[hash_name(name, len) & (scope->chain_count - 1)];
    s->next = *chain;
    *chain = s;
    scope->symbol_count++;
    return s;
}
