// SPDX-License-Identifier: Apache-2.0
/*
 * Several processes that work on one thing: what they need of each other is a structure of functions, so that
 * libcleave itself is built against no library of messages. One for MPI comes with cleave; programs that have
 * a communication of their own fill the structure in.
 *
 * cleave/train.h divides minibatches among the processes of a communicator. Errors, pointers and structs with
 * `size` are as cleave/cleave.h says.
 */
#ifndef CLEAVE_DISTRIBUTED_H
#define CLEAVE_DISTRIBUTED_H

#include "cleave/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cleave_transfer_kind {
  /* Every process starts it: `data` of all is added up, element by element, and each gets the sums, all of
   * them the same bits. Float32, float64 and int64. */
  CLEAVE_TRANSFER_SUM = 1,
  /* Every process starts it: each gets what process `peer` has. Any dtype but strings. */
  CLEAVE_TRANSFER_BROADCAST = 2,
  /* To process `peer`, which receives as many bytes with the same `tag`; those of one tag in order. */
  CLEAVE_TRANSFER_SEND = 3,
  CLEAVE_TRANSFER_RECEIVE = 4
} cleave_transfer_kind_t;

typedef struct cleave_transfer {
  size_t size; /* sizeof(cleave_transfer_t) */
  cleave_transfer_kind_t kind;
  cleave_dtype_t dtype;
  void *data;    /* stays where it is, and is left alone by the caller, until the transfer was waited for */
  int64_t count; /* elements */
  int32_t peer;
  int32_t tag; /* SEND, RECEIVE: 0 to 32767 */
} cleave_transfer_t;

/* When a transfer was under way, in nanoseconds of CLOCK_MONOTONIC. */
typedef struct cleave_transfer_times {
  uint64_t start_ns;
  uint64_t end_ns;
} cleave_transfer_times_t;

/* Functions are called from one thread at a time. The structure is read where it lies, as long as it is in
 * use; `size` says which fields it has. */
typedef struct cleave_communicator {
  size_t size;         /* sizeof(cleave_communicator_t) */
  void *self;          /* of the functions */
  int32_t rank;        /* of this process, from 0 */
  int32_t count;       /* processes */
  int32_t local_count; /* of them on this host; 0: not known */
  /* Begins a transfer and returns at once; it goes on while the caller computes. All processes start those
   * that every process starts in the same order. */
  cleave_status_t (*start)(void *self, const cleave_transfer_t *transfer, uint64_t *out_number,
                           cleave_message_t *message);
  /* Until the transfer is done; each one is waited for once. `out_times` may be NULL. CLEAVE_ERROR_IO:
   * another process was lost, or the connection to it. */
  cleave_status_t (*wait)(void *self, uint64_t number, cleave_transfer_times_t *out_times,
                          cleave_message_t *message);
  /* Ends all processes, this one too, with an exit status. Does not return. */
  void (*abort)(void *self, int status);
  /* The end, which all processes reach; then the structure is not used any more. */
  void (*close)(void *self);
} cleave_communicator_t;

/* The processes that `mpirun` started, of which this is one: loads cleave's library for MPI and starts MPI,
 * once in the life of a process. NULL in *out_communicator if `mpirun` (or another starter of MPI programs)
 * did not start this process. CLEAVE_ERROR_UNSUPPORTED: it did, and cleave was built without MPI.
 * CLEAVE_ERROR_BACKEND: MPI does not start. */
CLEAVE_MUST_USE cleave_status_t cleave_communicator_open(cleave_communicator_t **out_communicator,
                                                         cleave_error_t *error);
/* Calls its `close`; NULL is a no-op. */
void cleave_communicator_close(cleave_communicator_t *communicator);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_DISTRIBUTED_H */
