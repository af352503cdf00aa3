// SPDX-License-Identifier: Apache-2.0
/*
 * A launchable: a region or a single operator, compiled by the cpu backend within this library, with its
 * weights in memory of the device. A run whose tensors all lie on the device and are written goes straight to
 * the cpu backend; every other one (tensors of the host, requests to add, outputs that nobody wants, shapes
 * that only the run can tell) goes through arguments of the program's own.
 */
#ifndef MIRROR_PROGRAM_H
#define MIRROR_PROGRAM_H

#include "mirror.h"

/* Memory of the device that belongs to a program; it only grows. */
typedef struct mirror_buffer {
  void *memory;
  size_t bytes;
} mirror_buffer_t;

/* Adds what was computed to what was there: an Add of the cpu backend, for one dtype and shape. */
typedef struct mirror_adder {
  void *program; /* or NULL */
  mirror_buffer_t workspace;
  mirror_buffer_t target; /* copy of what is there, where that lies in host memory */
  cleave_dtype_t dtype;
  int32_t rank;
  int64_t dims[CLEAVE_MAX_RANK];
} mirror_adder_t;

/* What an output of a run needs beside the cpu program's own work. */
typedef struct mirror_output {
  mirror_buffer_t buffer; /* where it is computed, if not in place */
  mirror_adder_t adder;
  int64_t dims[CLEAVE_MAX_RANK]; /* of a shape that the run told */
  bool is_redirected;            /* in this run: to `buffer` */
} mirror_output_t;

typedef struct mirror_program {
  mirror_t *mirror;
  uint32_t device;
  bool is_single; /* an executor: one node, and nobody gives it a workspace */
  bool has_open_shapes;
  uint64_t hash; /* of the region */
  uint64_t latency_ns;
  void *program; /* of the cpu backend */
  cleave_program_info_t info;
  uint32_t weight_count;
  size_t weight_bytes;
  void **weights;
  uint32_t input_count;
  uint32_t output_count;
  cleave_tensor_view_t *inputs; /* arguments of its own */
  cleave_tensor_view_t *outputs;
  mirror_buffer_t *staged; /* per input */
  mirror_output_t *extras; /* per output */
  mirror_buffer_t workspace;
  const cleave_run_args_t *args; /* of the run at work */
  atomic_bool is_busy;
} mirror_program_t;

/* Constants among the region's inputs come with every run. `is_single`: an executor, of one node. */
CLEAVE_MUST_USE cleave_status_t mirror_program_create(mirror_t *mirror, const cleave_region_view_t *region,
                                                      const cleave_compile_options_t *options, bool is_single,
                                                      mirror_program_t **out_program,
                                                      cleave_message_t *message);
void mirror_program_destroy(mirror_program_t *program);

/* Runs, or puts the run on the stream of `args`. */
CLEAVE_MUST_USE cleave_status_t mirror_program_launch(mirror_program_t *program,
                                                      const cleave_run_args_t *args,
                                                      cleave_message_t *message);

/* What the stream calls in its turn, on its own thread. A program may wait on a stream many times, but it
 * does not run on two threads at once. */
CLEAVE_MUST_USE cleave_status_t mirror_program_execute(mirror_program_t *program,
                                                       const cleave_run_args_t *args,
                                                       cleave_message_t *message);

/* ---- placement.c: where the tensors of a run lie ---- */

/* Room for `bytes`; what was there is lost when it grows. */
CLEAVE_MUST_USE cleave_status_t mirror_buffer_reserve(mirror_program_t *program, mirror_buffer_t *buffer,
                                                      size_t bytes, cleave_message_t *message);
void mirror_buffer_free(mirror_program_t *program, mirror_buffer_t *buffer);

/* A tensor of a run: `what` and `index` name it in messages. *out_staged: it lies in host memory, which the
 * settings allow. */
CLEAVE_MUST_USE cleave_status_t mirror_place(mirror_program_t *program, const cleave_tensor_view_t *tensor,
                                             const char *what, uint32_t index, bool *out_staged,
                                             cleave_message_t *message);

/* Runs by way of arguments of the program's own. */
CLEAVE_MUST_USE cleave_status_t mirror_program_detour(mirror_program_t *program,
                                                      const cleave_run_args_t *args,
                                                      cleave_message_t *message);

/* ---- adder.c ---- */

/* to += what `from` holds; both in memory of the device, of the type of `to`. */
CLEAVE_MUST_USE cleave_status_t mirror_add(mirror_program_t *program, mirror_adder_t *adder,
                                           const cleave_tensor_view_t *to, void *from,
                                           cleave_message_t *message);
void mirror_adder_deinit(mirror_program_t *program, mirror_adder_t *adder);

#endif /* MIRROR_PROGRAM_H */
