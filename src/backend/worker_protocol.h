/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cleave and the process that runs an isolated library say to each other. cleave asks, the worker
 * answers each request with one reply; lines for the log come in between. Frames go over a stream socket, at
 * the end of which the other side is gone; memory is handed over as file descriptors with a frame.
 *
 *   OPEN        path                                   -> table
 *   INITIALISE                                         -> devices
 *   SUPPORTS    region                                 ->
 *   COST        region                                 -> nanoseconds
 *   REVIEW      region, keep                           -> keep
 *   CONFIGURE   pairs                                  -> pairs
 *   COMPILE     program, options, sizes, region + area -> info
 *   RUN         program, requests, options             -> steps
 *   UNLOAD      program                                ->
 *   SHARE       id, bytes + memory                     no reply
 *   DROP        id                                     no reply
 *   CLOSE                                              -> and the worker ends
 */
#ifndef CLEAVE_BACKEND_WORKER_PROTOCOL_H
#define CLEAVE_BACKEND_WORKER_PROTOCOL_H

#include "backend/wire.h"

typedef enum cleave_frame_kind {
  CLEAVE_FRAME_OPEN = 1,
  CLEAVE_FRAME_INITIALISE,
  CLEAVE_FRAME_SUPPORTS,
  CLEAVE_FRAME_COST,
  CLEAVE_FRAME_REVIEW,
  CLEAVE_FRAME_CONFIGURE,
  CLEAVE_FRAME_COMPILE,
  CLEAVE_FRAME_RUN,
  CLEAVE_FRAME_UNLOAD,
  CLEAVE_FRAME_SHARE,
  CLEAVE_FRAME_DROP,
  CLEAVE_FRAME_CLOSE,
  CLEAVE_FRAME_REPLY, /* status, reason code, message, then what the request asked for */
  CLEAVE_FRAME_LOG    /* level, line */
} cleave_frame_kind_t;

/* How a worker ends whose library closed the socket. */
enum { CLEAVE_WORKER_EXIT_CLOSED = 77 };

/* Descriptors of a worker when it starts; it has no others. */
enum { CLEAVE_WORKER_SOCKET = 3, CLEAVE_WORKER_RECORD = 4 };

/* In the reply to OPEN: which functions the library has, a bit each. */
enum {
  CLEAVE_HAS_INITIALISE = 1 << 0,
  CLEAVE_HAS_DESTROY = 1 << 1,
  CLEAVE_HAS_SUPPORTS = 1 << 2,
  CLEAVE_HAS_COMPILE = 1 << 3,
  CLEAVE_HAS_UNLOAD = 1 << 4,
  CLEAVE_HAS_INFO = 1 << 5,
  CLEAVE_HAS_RUN = 1 << 6,
  CLEAVE_HAS_PROFILE = 1 << 7,
  CLEAVE_HAS_COST = 1 << 8,
  CLEAVE_HAS_REVIEW = 1 << 9,
  CLEAVE_HAS_CONFIGURE = 1 << 10,
  CLEAVE_HAS_ADDS = 1 << 11,
  CLEAVE_HAS_SPARSE = 1 << 12, /* takes_sparse */
  CLEAVE_HAS_DEVICES = 1 << 13,
  CLEAVE_HAS_EXTENSIONS = 1 << 14 /* operators, partitioners or passes */
};

/* What a request asked for begins at a multiple of this in the reply. */
enum { CLEAVE_REPLY_ALIGNMENT = 16, CLEAVE_MOST_DEVICES = 64 };

/* ---- the memory that the buffers of a program lie in ---- */

/* One buffer: `span` bytes of whole pages at `offset` of the file; the buffer begins `lead` bytes into them,
 * 64-byte aligned, and ends less than 64 bytes before their end. What it leaves of its pages holds
 * CLEAVE_AREA_MARK; in the worker, memory that cannot be touched lies before and behind. */
typedef struct cleave_area_part {
  size_t offset;
  size_t span;
  size_t lead;
  size_t bytes;
} cleave_area_part_t;

#define CLEAVE_AREA_MARK 0xC5

/* Places buffers of these sizes. False where the sum overflows. */
bool cleave_area_place(const size_t *bytes, uint32_t count, cleave_area_part_t *out_parts, size_t *out_total);
/* Puts the marks around a buffer. `pages` is where its span begins. */
void cleave_area_mark(const cleave_area_part_t *part, unsigned char *pages);
/* Bytes of marks that are gone, from the first one to the last, before (*out_behind false) or behind it; 0
 * where all are there. */
size_t cleave_area_check(const cleave_area_part_t *part, const unsigned char *pages, bool *out_behind);

/* ---- how a worker died ---- */

typedef enum cleave_fault_access {
  CLEAVE_ACCESS_UNKNOWN,
  CLEAVE_ACCESS_READ,
  CLEAVE_ACCESS_WRITE
} cleave_fault_access_t;

typedef enum cleave_fault_place {
  CLEAVE_PLACE_ELSEWHERE,
  CLEAVE_PLACE_INPUT,
  CLEAVE_PLACE_OUTPUT,
  CLEAVE_PLACE_WORKSPACE,
  CLEAVE_PLACE_CONSTANT
} cleave_fault_place_t;

typedef enum cleave_fault_side {
  CLEAVE_SIDE_INSIDE,
  CLEAVE_SIDE_BEFORE,
  CLEAVE_SIDE_BEHIND
} cleave_fault_side_t;

/* Shared memory in which the signal handler of the worker says where it was. */
typedef struct cleave_fault_record {
  uint32_t signal; /* written last; 0: none */
  uint32_t access;
  uint32_t place;
  uint32_t side;
  uint32_t index; /* of the input or output */
  uint64_t address;
  uint64_t distance; /* bytes from the buffer's end, or to its beginning */
} cleave_fault_record_t;

/* ---- frames ---- */

/* Waits until `events` (of poll) may succeed on the socket; false gives up. */
typedef bool (*cleave_frame_wait_t)(void *context, short events);

typedef enum cleave_frame_status {
  CLEAVE_FRAME_OK,
  CLEAVE_FRAME_CLOSED,   /* the other side is gone */
  CLEAVE_FRAME_GIVEN_UP, /* by `wait` */
  CLEAVE_FRAME_BROKEN,   /* no frame, or one beyond the limit */
  CLEAVE_FRAME_NO_MEMORY
} cleave_frame_status_t;

typedef struct cleave_channel {
  int socket;
  cleave_frame_wait_t wait; /* NULL: block */
  void *context;
  size_t limit; /* bytes of a frame that is received */
} cleave_channel_t;

/* A frame that was received. `data` is owned, and used again by the next call. */
typedef struct cleave_frame {
  uint32_t kind;
  unsigned char *data;
  size_t length;
  size_t capacity;
  int fd; /* that came with it, owned; -1 */
} cleave_frame_t;

/* `fd` -1: none; it stays the caller's. */
cleave_frame_status_t cleave_channel_send(const cleave_channel_t *channel, uint32_t kind, const void *data,
                                          size_t length, int fd);
cleave_frame_status_t cleave_channel_receive(const cleave_channel_t *channel, cleave_frame_t *frame);

#endif /* CLEAVE_BACKEND_WORKER_PROTOCOL_H */
