// SPDX-License-Identifier: Apache-2.0
/*
 * Serving: requests from many threads, on a fixed number of sessions over one model, alone or in batches.
 *
 * A server has `sessions` threads of its own, each with its sessions and its share of the processors, so that
 * requests side by side do not take each other's cores, however many callers there are. Requests wait in one
 * queue and begin in the order in which they came.
 *
 * With a `batch_limit` above 1, requests that wait at the same time are joined along the first dimension of
 * every input, run as one, and each gets its rows of every output. A request waits for others for at most
 * `batch_window_us`. This needs a model whose inputs have an open first dimension, and which computes every
 * row by itself (cleave cannot see whether it does): then a request gets what it would get alone, up to the
 * rounding of kernels for another number of rows. Batches have 1, 2, 4, ... or `batch_limit` requests, for
 * which models are bound, partitioned and compiled beforehand (each session packs its own weights for each of
 * these sizes, which takes as many times their memory); five requests that wait run as four and one.
 * If the run of a batch fails, its requests run one by one, so that none gets the error of another one.
 *
 * Errors and ownership are as cleave/cleave.h says. cleave_server_run may be called from any number of
 * threads at once; the other functions that take a server that is not const, from one thread while no other
 * uses it.
 */
#ifndef CLEAVE_SERVER_H
#define CLEAVE_SERVER_H

#include "cleave/cleave.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cleave_server cleave_server_t;

/* All zero but `size`: one session with all threads, and no batches. */
typedef struct cleave_server_options {
  size_t size;      /* sizeof(cleave_server_options_t) */
  int32_t sessions; /* requests or batches that run at the same time, 1 to 1024; 0: 1 */
  /* The options of each session; NULL: defaults. Threads 0: the usable processors divided by `sessions`, at
   * least 1. A common cache of programs is not used, since sessions would wait for each other in it. */
  const cleave_session_options_t *session;
  int32_t batch_limit;      /* requests that may run as one, 1 to 1024; 0: 1 */
  uint32_t batch_window_us; /* that a request waits for others at most; 0: it takes those that wait already */
} cleave_server_options_t;

/* Partitions the model by `request` (as cleave_model_partition; NULL: every operator runs on `cpu`),
 * compiles, and starts the threads. `inputs[k]` has dtype, rank and dims of input k of one request (no data
 * needed; the rows of a request are its first dimension), or is NULL if the model says everything. The server
 * retains the model; nothing else is needed after the call. `options` may be NULL.
 *
 * CLEAVE_ERROR_UNSUPPORTED: a tensor of strings, an output whose shape depends on data, a rule that adds
 * inputs; with batches: an input whose first dimension the model does not leave open, or an output that does
 * not grow with the number of requests, by its name. CLEAVE_ERROR_INVALID_ARGUMENT: options out of range.
 * CLEAVE_ERROR_LIMIT: the system starts no more threads. */
CLEAVE_MUST_USE cleave_status_t cleave_server_create(cleave_model_t *model,
                                                     const cleave_partition_request_t *request,
                                                     const cleave_tensor_view_t *const *inputs,
                                                     size_t input_count,
                                                     const cleave_server_options_t *options,
                                                     cleave_server_t **out_server, cleave_error_t *error);

/* Answers the requests that wait, ends the threads, and frees all. No call of cleave_server_run may begin
 * meanwhile. NULL is a no-op. */
void cleave_server_destroy(cleave_server_t *server);

/* Types of one request, all dims known. The port points into the server. CLEAVE_ERROR_INVALID_ARGUMENT beyond
 * the last. */
CLEAVE_MUST_USE cleave_status_t cleave_server_input(const cleave_server_t *server, uint32_t index,
                                                    cleave_port_t *out_port, cleave_error_t *error);
CLEAVE_MUST_USE cleave_status_t cleave_server_output(const cleave_server_t *server, uint32_t index,
                                                     cleave_port_t *out_port, cleave_error_t *error);

/* One request: returns when the outputs are written. `inputs[k]` and `outputs[k]` have dtype and shape of the
 * server's, and data in host memory: read, and written, before the call returns, and not touched afterwards.
 * outputs[k] NULL: nobody wants it. Both counts are those of the model. Allocates nothing. Thread-safe.
 * CLEAVE_ERROR_SHAPE, CLEAVE_ERROR_INVALID_ARGUMENT: a tensor is not as it should be; nothing ran. */
CLEAVE_MUST_USE cleave_status_t cleave_server_run(cleave_server_t *server,
                                                  const cleave_tensor_view_t *const *inputs,
                                                  size_t input_count,
                                                  const cleave_tensor_view_t *const *outputs,
                                                  size_t output_count, cleave_error_t *error);

/* Counts of what the server has done so far. */
typedef struct {     /* without a name of its own, which is the function's */
  size_t size;       /* sizeof(cleave_server_counts_t) */
  uint64_t requests; /* that were answered */
  uint64_t runs;     /* of sessions; requests / runs is the mean size of a batch */
  uint64_t repeated; /* requests that ran again by themselves, since their batch had failed */
} cleave_server_counts_t;

/* Thread-safe. */
void cleave_server_counts(cleave_server_t *server, cleave_server_counts_t *out_counts);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_SERVER_H */
