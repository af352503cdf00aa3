// SPDX-License-Identifier: Apache-2.0
/*
 * What cleave and the process that runs an isolated library say to each other (worker_messages.inc). cleave
 * asks, the worker answers each request with one reply; callbacks of the library, and lines for the log, come
 * in between. Frames go over a stream socket, at the end of which the other side is gone; memory is handed
 * over as file descriptors with a frame.
 */
#ifndef CLEAVE_BACKEND_PROCESS_WORKER_PROTOCOL_H
#define CLEAVE_BACKEND_PROCESS_WORKER_PROTOCOL_H

#include "backend/wire/wire.h"

/* CLEAVE_FRAME_OPEN, ... 0 is none. */
typedef enum cleave_frame_kind {
  CLEAVE_FRAME_NONE,
#define CLEAVE_REMARK(kind) CLEAVE_FRAME_##kind,
#define CLEAVE_REQUEST(kind, function, limit, words) CLEAVE_FRAME_##kind,
#define CLEAVE_NOTICE(kind, function) CLEAVE_FRAME_##kind,
#define CLEAVE_CALLBACK(kind) CLEAVE_FRAME_##kind,
#include "backend/process/worker_messages.inc"
  CLEAVE_FRAME_COUNT
} cleave_frame_kind_t;

/* A library may call back so during a request. */
bool cleave_frame_is_callback(uint32_t kind);

/* The exit status of a worker whose library closed the socket. */
enum { CLEAVE_WORKER_EXIT_CLOSED = 77 };

/* Room for what a library says of a program; what is longer is cut. */
enum { CLEAVE_PROGRAM_NOTE_BYTES = 384 };

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
  CLEAVE_HAS_IMPERATIVE = 1 << 14, /* all three functions */
  CLEAVE_HAS_BLOBS = 1 << 15       /* all three */
};

/* The optional members of what a library adds to cleave. */
enum {
  CLEAVE_OPERATOR_HAS_INFER = 1 << 0,
  CLEAVE_OPERATOR_HAS_CREATE = 1 << 1,
  CLEAVE_OPERATOR_HAS_DESTROY = 1 << 2,
  CLEAVE_OPERATOR_HAS_EXECUTE = 1 << 3,
  CLEAVE_OPERATOR_IS_COMMUTATIVE = 1 << 4,
  CLEAVE_OPERATOR_IS_STATEFUL = 1 << 5,
  CLEAVE_PARTITIONER_HAS_SUPPORTED = 1 << 0,
  CLEAVE_PARTITIONER_HAS_CREATE = 1 << 1,
  CLEAVE_PARTITIONER_HAS_DESTROY = 1 << 2,
  CLEAVE_PARTITIONER_HAS_SELECT = 1 << 3,
  CLEAVE_PARTITIONER_HAS_SELECT_INPUT = 1 << 4,
  CLEAVE_PARTITIONER_HAS_SELECT_OUTPUT = 1 << 5,
  CLEAVE_PARTITIONER_HAS_FILTER = 1 << 6,
  CLEAVE_PARTITIONER_HAS_REVIEW = 1 << 7,
  CLEAVE_PARTITIONER_HAS_BEGIN = 1 << 8,
  CLEAVE_PARTITIONER_HAS_END = 1 << 9,
  CLEAVE_PASS_HAS_RUN = 1 << 0
};

/* At most so many entries of the lists of a library are sent, with the number of all. */
enum { CLEAVE_MAX_EXTENSIONS = 1024, CLEAVE_MAX_RULE_FILES = 64, CLEAVE_MAX_OPTION_KEYS = 1024 };

/* COMPILE: what makes the program, and what `number` is then. */
typedef enum cleave_program_way {
  CLEAVE_WAY_COMPILE,
  CLEAVE_WAY_LOAD,     /* from a blob: the constant that it is handed over as */
  CLEAVE_WAY_EXECUTOR, /* of a single operator */
  CLEAVE_WAY_KERNEL,   /* of the library's own operator: its number */
  CLEAVE_WAY_COUNT
} cleave_program_way_t;

/* BIND: an input or output of a program. */
typedef enum cleave_port_kind {
  CLEAVE_PORT_BUFFER, /* a shape follows; it lies in the memory that comes along */
  CLEAVE_PORT_FIXED,  /* an input whose content is a constant of the region */
  CLEAVE_PORT_OPEN,   /* an output whose shape the run tells, by RESIZE */
  CLEAVE_PORT_COUNT
} cleave_port_kind_t;

/* SELECT. */
typedef enum cleave_select_question {
  CLEAVE_SELECT_NODE,
  CLEAVE_SELECT_INPUT,
  CLEAVE_SELECT_OUTPUT,
  CLEAVE_SELECT_COUNT
} cleave_select_question_t;

/* The content of a reply begins at a multiple of this; a library has at most so many devices. */
enum { CLEAVE_REPLY_ALIGNMENT = 16, CLEAVE_MAX_DEVICES = 64 };

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

/* Places buffers of these sizes. False if the sum overflows. */
bool cleave_area_place(const size_t *bytes, uint32_t count, cleave_area_part_t *out_parts, size_t *out_total);
/* Puts the marks around a buffer. `pages` is where its span begins. */
void cleave_area_mark(const cleave_area_part_t *part, unsigned char *pages);
/* Bytes of marks that are gone, from the first one to the last, before (*out_behind false) or behind it; 0
 * if all are there. */
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

#endif /* CLEAVE_BACKEND_PROCESS_WORKER_PROTOCOL_H */
