/*
 * device/worker.h - the process that talks to the CUDA driver, and how it is talked to.
 *
 * A kernel that faults leaves its context unusable for the rest of the process (CUDA Driver API,
 * CUDA_ERROR_ILLEGAL_ADDRESS: "to continue using CUDA, the process must be terminated and
 * relaunched"), one that never ends cannot be stopped, and a driver may crash.  So each cuda device
 * is a child process of its own: the same program, started again, which never reaches main.
 *
 * One request at a time goes down a socket, one reply comes back; both have a fixed size.  What does
 * not fit stands in the window, memory that both processes map: text, buffers, launch arguments.
 */
#ifndef DEVICE_WORKER_H
#define DEVICE_WORKER_H

#include "device/device_impl.h"

#define WORKER_VARIABLE "ASSAY_CUDA_WORKER" /* "SOCKET,WINDOW": makes a program start as worker */

enum worker_op {
    WORKER_OPEN,    /* window: what stands after "cuda:"; reply: struct device_info */
    WORKER_LOAD,    /* a, b: bytes of label and text (window); reply: id, entries as below */
    WORKER_UNLOAD,  /* a: id */
    WORKER_ALLOC,   /* a: bytes; reply: address */
    WORKER_RELEASE, /* a: address */
    WORKER_WRITE,   /* a: address, b: bytes (window) */
    WORKER_SET,     /* a: address, b: bytes (window: the one byte) */
    WORKER_READ,    /* a: address, b: bytes; reply: the bytes */
    WORKER_TENSOR_MAP, /* window: a struct dev_tensor_map; reply: its bytes on the device */
    WORKER_LAUNCH,  /* window: a launch as below; reply: struct dev_run */
    WORKER_TIME,    /* a: launches (window, one after another), b: how many of them are a group;
                       reply: the seconds of each group */
};

struct worker_request {
    enum worker_op op;
    uint64_t a, b;
    size_t window; /* bytes of the window that must be mapped */
};

struct worker_reply {
    status_t status;
    char message[512]; /* of a failure */
    uint64_t value;
    size_t window;
};

/*
 * An entry as it stands in the window: this, name_size bytes of its name, param_count struct
 * dev_param.
 */
struct worker_entry {
    size_t name_size, param_count, static_shared;
    unsigned max_threads, ambiguous, ambiguous_line, cluster[3];
    bool needs_cluster;
};

/* A launch: this and the arguments, each from a multiple of 16 bytes on. */
struct worker_launch {
    uint64_t id;    /* of the image */
    uint64_t index; /* of the entry */
    unsigned grid[3], block[3], cluster[3];
    size_t dynamic_shared;
};

#define WORKER_ARG_ALIGN 16

/* ---- the window --------------------------------------------------------------------------------- */

struct window {
    int fd;
    size_t size; /* bytes that are mapped here */
    unsigned char *bytes;
};

/* Map at least `size` bytes, more of the file if need be.  Contents stay; window->bytes may move. */
MUST_CHECK status_t window_fit(struct window *window, size_t size);
void window_close(struct window *window);

/* ---- messages ----------------------------------------------------------------------------------- */

/* A whole message; false when the other side is gone. */
bool message_send(int socket, const void *message, size_t size);
bool message_receive(int socket, void *message, size_t size);

/* The driver in this very process: device/cuda.c. */
extern const struct backend_ops backend_driver;

#endif
