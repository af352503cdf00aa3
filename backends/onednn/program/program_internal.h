// SPDX-License-Identifier: Apache-2.0
/* A program as program.c makes it and run.c runs it. */
#ifndef ONEDNN_PROGRAM_INTERNAL_H
#define ONEDNN_PROGRAM_INTERNAL_H

#include <omp.h>

#include "onednn/program/program.h"

typedef struct program_memory {
  dnnl_memory_t memory;
  uint32_t group; /* CLEAVE_INDEX_NONE: constant */
  size_t offset;
  uint32_t buffer; /* while compiling, as what follows: to find it again */
  const onednn_layout_t *layout;
  size_t tensor_offset;
} program_memory_t;

typedef struct program_group {
  uint32_t first; /* into memories, which are sorted by group */
  uint32_t count;
  const void *at; /* where they point */
} program_group_t;

/* Is the scratch memory of a step zeroed before it runs? */
typedef enum program_cleaning { CLEANS_NEVER, CLEANS_ON_TRIAL, CLEANS_ALWAYS } program_cleaning_t;

typedef struct program_step {
  dnnl_primitive_t primitive; /* or NULL: `loop` */
  const onednn_loop_t *loop;
  dnnl_exec_arg_t *arguments;
  int argument_count;
  bool shrinks;          /* fewer threads than the program has may compute it: those left over end */
  bool serial;           /* one thread computes it */
  dnnl_memory_t scratch; /* whose content may raise the flag, or NULL */
  size_t scratch_bytes;
  program_cleaning_t cleaning;
} program_step_t;

struct onednn_program {
  cleave_program_info_t info;
  kernel_arena_t arena; /* of what follows */
  dnnl_stream_t stream;
  int32_t threads;
  bool profile;
  const cleave_host_t *host;
  bool raises; /* some step may raise the flag */
  bool probed; /* `shrinks` of the steps is known */
  bool untidy; /* some step has `scratch` */
  program_step_t *steps;
  uint32_t step_count;
  program_memory_t *memories;
  uint32_t memory_count;
  program_group_t *groups;
  uint32_t group_count;
  uint32_t input_count;
  uint32_t output_count;
  bool *needed;  /* per input: some step reads it */
  size_t *bytes; /* per input, then per output */
  onednn_slab_t **slabs;
  uint32_t slab_count;
  onednn_packed_t *packed; /* what later processes need not pack again */
  uint32_t packed_count;
  cleave_step_time_t *times;
};

/* How many threads oneDNN uses for what it makes or runs next. */
static inline void onednn_program_set_threads(int32_t threads) {
  if (omp_get_max_threads() != threads) {
    omp_set_num_threads(threads);
  }
}

#endif /* ONEDNN_PROGRAM_INTERNAL_H */
