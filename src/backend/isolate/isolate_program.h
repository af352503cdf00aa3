// SPDX-License-Identifier: Apache-2.0
/*
 * A program of an isolated library: a compiled region, an executor of a single operator, or a kernel of an
 * operator of the library. Its inputs and outputs lie in memory that the worker maps too, each with marks
 * around it. If only a run knows a shape, the memory is allocated then.
 */
#ifndef CLEAVE_BACKEND_ISOLATE_ISOLATE_PROGRAM_H
#define CLEAVE_BACKEND_ISOLATE_ISOLATE_PROGRAM_H

#include "backend/isolate/isolate_internal.h"

/* An input or output. */
typedef struct cleave_isolated_port {
  cleave_port_kind_t kind; /* as it is bound */
  cleave_dtype_t dtype;
  int32_t rank; /* -1: not known */
  int64_t dims[CLEAVE_MAX_RANK];
  uint64_t version;        /* FIXED: of the constant */
  cleave_area_part_t part; /* BUFFER: of the program's area; OPEN: of its own */
  unsigned char *own;      /* OPEN: memory that the run at hand asked for; NULL: it did not */
} cleave_isolated_port_t;

typedef struct cleave_isolated_program {
  cleave_isolate_t *isolate;
  cleave_worker_t *worker; /* retained */
  uint32_t id;
  cleave_program_way_t way;
  char name[96]; /* of the region or operator, for messages */
  uint32_t input_count;
  uint32_t output_count;
  cleave_isolated_port_t *ports; /* inputs, then outputs */
  bool is_open;                  /* a shape was not known when it was made */
  bool is_made;                  /* the worker has it */
  bool is_bound;
  unsigned char *area;
  size_t area_bytes;
  uint32_t *constants; /* ids that it keeps */
  uint32_t constant_count;
  cleave_program_info_t info;
  char note[CLEAVE_PROGRAM_NOTE_BYTES]; /* of `info` */
  cleave_step_time_t *steps;            /* of the last run, in `arena` */
  uint32_t step_count;
  cleave_arena_t arena;
} cleave_isolated_program_t;

/* A program is made of this. */
typedef struct cleave_isolate_request {
  cleave_program_way_t way;
  uint32_t number;  /* of the operator or the blob, if the way has one */
  const char *name; /* for messages; may be NULL */
  const cleave_region_view_t *region;
  const cleave_compile_options_t *options;
} cleave_isolate_request_t;

CLEAVE_STATUS cleave_isolate_make(cleave_isolate_t *isolate, const cleave_isolate_request_t *request,
                                  void **out_program, cleave_message_t *message);

/* A call about the program, in words that fit it. */
cleave_worker_call_t cleave_isolate_program_call(const cleave_isolated_program_t *program, uint32_t kind);

/* Makes memory for the shapes that the ports have. The process is not asked for anything else meanwhile: the
 * caller has begun a call, and begins its request anew. */
CLEAVE_STATUS cleave_isolate_bind(cleave_isolated_program_t *program, cleave_message_t *message);

/* Memory for one buffer, mapped, with marks around it; its descriptor is the caller's. */
CLEAVE_STATUS cleave_isolate_make_area(size_t bytes, cleave_area_part_t *out_part, unsigned char **out_area,
                                       int *out_fd, cleave_message_t *message);

/* The memory that the last run asked for. */
void cleave_isolate_forget_own(cleave_isolated_port_t *port);

#endif /* CLEAVE_BACKEND_ISOLATE_ISOLATE_PROGRAM_H */
