/* base/parallel.c - see parallel.h. */
#include "base/parallel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGE_SIZE 1024

struct loop;

struct helper {
    struct loop *loop;
    unsigned worker;
    pthread_t thread;
};

struct loop {
    struct threads *threads;
    size_t count;
    item_fn *item;
    void *context;
    atomic_size_t next;
    atomic_bool stop;
    /* Below: under the lock. */
    pthread_mutex_t lock;
    struct helper *helpers; /* threads->count - 1 */
    unsigned started;       /* of them */
    size_t failed;          /* the first item that did, if status is not OK */
    status_t status;
    char message[MESSAGE_SIZE];
};

void threads_init(struct threads *t, unsigned count, void (*done)(void)) {
    *t = (struct threads){.count = count, .done = done};
    atomic_store(&t->spare, (int)count - 1);
}

static void *help(void *helper);

static bool take_spare(struct threads *t) {
    int spare = atomic_load(&t->spare);
    while (spare > 0)
        if (atomic_compare_exchange_weak(&t->spare, &spare, spare - 1))
            return true;
    return false;
}

/* As many as are free and have something to do.  One that cannot be started is not missed. */
static void recruit(struct loop *l) {
    while (atomic_load(&l->next) < l->count && take_spare(l->threads)) {
        bool running = false;
        pthread_mutex_lock(&l->lock);
        if (l->started + 1 < l->threads->count) {
            struct helper *h = &l->helpers[l->started];
            *h = (struct helper){.loop = l, .worker = l->started + 1};
            running = pthread_create(&h->thread, NULL, help, h) == 0;
            l->started += running;
        }
        pthread_mutex_unlock(&l->lock);
        if (!running) {
            atomic_fetch_add(&l->threads->spare, 1);
            return;
        }
    }
}

static void note_failure(struct loop *l, size_t item, status_t st) {
    atomic_store(&l->stop, true);
    pthread_mutex_lock(&l->lock);
    if (l->status == OK || item < l->failed) {
        l->status = st;
        l->failed = item;
        snprintf(l->message, sizeof l->message, "%s", status_message());
    }
    pthread_mutex_unlock(&l->lock);
}

static void take_items(struct loop *l, unsigned worker) {
    while (!atomic_load(&l->stop)) {
        size_t item = atomic_fetch_add(&l->next, 1);
        if (item >= l->count)
            return;
        if (l->helpers)
            recruit(l);
        status_t st = l->item(l->context, worker, item);
        if (st != OK)
            note_failure(l, item, st);
    }
}

static void *help(void *helper) {
    struct helper *h = helper;
    struct threads *threads = h->loop->threads;
    take_items(h->loop, h->worker);
    if (threads->done)
        threads->done();
    atomic_fetch_add(&threads->spare, 1);
    return NULL;
}

/* Helpers may still start others: until all are joined, and none is left to start one. */
static void join(struct loop *l) {
    atomic_fetch_add(&l->threads->spare, 1); /* this thread only waits */
    for (unsigned i = 0;; i++) {
        pthread_mutex_lock(&l->lock);
        bool more = i < l->started;
        pthread_t thread = more ? l->helpers[i].thread : pthread_self();
        pthread_mutex_unlock(&l->lock);
        if (!more)
            break;
        pthread_join(thread, NULL);
    }
    atomic_fetch_sub(&l->threads->spare, 1);
}

status_t parallel_for(struct threads *threads, size_t count, item_fn *item, void *context) {
    struct loop l = {.threads = threads,
                     .count = count,
                     .item = item,
                     .context = context,
                     .lock = PTHREAD_MUTEX_INITIALIZER};
    if (threads && threads->count > 1 && count > 1) /* without memory it goes on alone */
        l.helpers = calloc(threads->count - 1, sizeof *l.helpers);
    take_items(&l, 0);
    if (l.helpers)
        join(&l);
    free(l.helpers);
    pthread_mutex_destroy(&l.lock);
    return l.status == OK ? OK : FAIL(l.status, "%s", l.message);
}
