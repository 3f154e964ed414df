/*
 * device/ptx/simd_await.h - a .sync instruction waits for the lanes that it names.
 *
 * It runs when the path holds every lane of the member mask; until then the path waits (warp.c).
 * Naming a lane that has exited and executing one without being named are undefined in PTX; here
 * they are faults.
 */
#ifndef DEVICE_PTX_SIMD_AWAIT_H
#define DEVICE_PTX_SIMD_AWAIT_H

#include "device/ptx/simd.h"

static inline const struct xinsn *sync_fault(struct warp *w, const struct xinsn *x, unsigned lane,
                                             uint32_t member, const char *what) {
    fault_record(w, x, lane, FAULT_BAD_SHUFFLE, 0, "%s with member mask 0x%08x %s",
                 ptx_opcodes[x->insn->op].name, member, what);
    return leave(w, LEAVE_FAULT, x, x + 1);
}

/*
 * Lanes of m whose mask is not complete, with their mask; 0 if all may go on.  *bad: a faulty
 * lane.
 */
static inline uint32_t incomplete(uint32_t *member, int *bad, const char **what,
                                  const struct warp *w, uint32_t m, const u32a *row) {
    uint32_t left = m;
    while (left) {
        uint32_t mask = row[lowest(left)], group = 0;
        FOR_LANES(i, left)
        group |= row[i] == mask ? 1u << i : 0;
        left &= ~group;
        if (group & ~mask) {
            *bad = (int)lowest(group & ~mask);
            *what = "does not name the lane that executes it";
        } else if (mask & ~w->alive) {
            *bad = (int)lowest(group);
            *what = "names a lane that has exited";
        }
        *member = mask;
        if (*bad >= 0 || group != mask)
            return group;
    }
    return 0;
}

/* NULL: run the instruction now on the lanes m.  Otherwise what the handler returns. */
ALWAYS const struct xinsn *await(struct warp *w, const struct xinsn *x, uint32_t m,
                                 const u32a *row) {
    uint32_t differ = 0;
    LANE_LOOP(i) differ |= row[i] ^ m;
    if (differ == 0)
        return NULL; /* every lane names exactly the lanes that are here */
    const char *what = NULL;
    uint32_t member = 0;
    int bad = -1;
    uint32_t wait = incomplete(&member, &bad, &what, w, m, row);
    if (bad >= 0)
        return sync_fault(w, x, (unsigned)bad, member, what);
    if (!wait)
        return NULL;
    if (w->mask & ~m) /* lanes whose guard is false go on */
        warp_split(w, w->mask & ~m, x + 1);
    struct path *p = &w->path[w->current];
    if (w->mask & ~wait)
        p = warp_split(w, wait, x);
    p->state = PATH_SYNC;
    p->member = member;
    return leave(w, p == &w->path[w->current] ? LEAVE_SYNC : LEAVE_AGAIN, x, x);
}

#define AWAIT(member_row)                               \
    uint32_t m = MASK_OF(w, x, masked);                 \
    const u32a *member = row32(w, member_row);          \
    if (!m)                                             \
        return x + 1;                                   \
    const struct xinsn *waits = await(w, x, m, member); \
    if (waits)                                          \
    return waits

#endif
