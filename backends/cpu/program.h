// SPDX-License-Identifier: Apache-2.0
/*
 * A program of the reference backend: the nodes of a region in order, each with its kernel, prepared state
 * and tensors. Made once by compile.c, run many times by program.c. All memory comes from one arena, except
 * for two buffers that grow if shapes are known only at run time.
 */
#ifndef CLEAVE_CPU_PROGRAM_H
#define CLEAVE_CPU_PROGRAM_H

#include "cpu/common/kernel.h"
#include "kernels/arena.h"
#include "kernels/show/texts.h"

/* The state that `initialise` makes: the kernels sorted by operator. Immutable after that, except for texts.
 */
typedef struct cpu_backend {
  const cleave_host_t *host;
  uint32_t kernel_count;
  const cpu_kernel_t *const *kernels;
  kernel_texts_t *texts;
  cleave_key_value_t answer; /* of a question about these */
} cpu_backend_t;

/* All kernels, sorted by operator, in memory of malloc's; false without memory. */
bool cpu_kernel_table_make(const cpu_kernel_t *const **out_kernels, uint32_t *out_count);
/* The kernel of an operator, or NULL. */
const cpu_kernel_t *cpu_backend_kernel(const cpu_backend_t *backend, const cleave_node_view_t *node);

typedef struct cpu_program cpu_program_t;

/* Plans of kernels (fused.c). */
typedef struct cpu_fused_plan {
  struct kernel_plan *plan;
  struct cpu_fused_plan *next;
} cpu_fused_plan_t;

typedef struct cpu_step {
  cpu_program_t *program;
  const cpu_kernel_t *kernel;
  cpu_call_t call;
  const uint32_t *input_values;  /* per input of the call: value of the region, or CLEAVE_INDEX_NONE */
  const uint32_t *output_values; /* per output, CLEAVE_INDEX_NONE if nothing uses it */
  const char *name;              /* of the node, for messages */
  uint32_t node;                 /* of a kernel: its first one */
  uint32_t inplace;              /* inputs that output 0 may overwrite, as bits */
  bool is_static;                /* all shapes are known: scratch is planned */
  size_t scratch_bytes;
  size_t scratch_offset; /* in the workspace */
} cpu_step_t;

/* Memory of a tensor that is not fixed at compile time. */
typedef struct cpu_placement {
  uint32_t value;
  size_t offset; /* in the workspace */
} cpu_placement_t;

struct cpu_program {
  kernel_arena_t arena;
  const cleave_host_t *host;
  kernel_texts_t *texts; /* of the backend */
  cpu_tensor_t *tensors; /* one per value of the region */
  uint32_t value_count;
  uint32_t step_count;
  cpu_step_t *steps;
  uint32_t placement_count;
  cpu_placement_t *placements; /* intermediate values */
  uint32_t input_count;
  const uint32_t *inputs; /* value of every region input */
  uint32_t output_count;
  const uint32_t *outputs;       /* value of every region output */
  const uint32_t *value_outputs; /* region output of every value, or CLEAVE_INDEX_NONE */
  const bool *known;             /* per value: shape known at compile time */
  cleave_program_info_t info;
  cleave_step_time_t *times; /* NULL unless compiled with `profile` */
  uint32_t time_count;
  const cleave_run_args_t *args; /* during a run */
  /* Grow-only memory: scratch of steps without known shapes, and copies of unaligned inputs. */
  void *scratch;
  size_t scratch_size;
  void **input_copies; /* per region input */
  size_t *input_copy_sizes;
  cpu_fused_plan_t *fused; /* of all steps that are kernels */
};

/* A node of a region may be run: looks up its kernel and prepares `*out_state` (in `arena`). */
CLEAVE_MUST_USE cleave_status_t cpu_prepare_node(const cpu_backend_t *backend,
                                                 const cleave_region_view_t *region, uint32_t node,
                                                 kernel_arena_t *arena, const cpu_kernel_t **out_kernel,
                                                 void **out_state, cleave_message_t *message);

CLEAVE_MUST_USE cleave_status_t cpu_program_compile(const cpu_backend_t *backend,
                                                    const cleave_region_view_t *region,
                                                    const cleave_compile_options_t *options,
                                                    cpu_program_t **out_program, cleave_message_t *message);

CLEAVE_MUST_USE cleave_status_t cpu_program_run(cpu_program_t *program, const cleave_run_args_t *args,
                                                cleave_message_t *message);

/* Gives a tensor its shape and data; fails if there are elements but no data. */
CLEAVE_MUST_USE cleave_status_t cpu_program_bind(cpu_tensor_t *tensor, int32_t rank, const int64_t *dims,
                                                 const void *data);

void cpu_program_destroy(cpu_program_t *program);

/* Gives every intermediate value and every step's scratch its place in the workspace: first fit by lifetime,
 * an output taking over a dying input if the kernel allows it. Sets placements, scratch offsets and
 * info.workspace_bytes; `region` is the one the program is made from. */
CLEAVE_MUST_USE cleave_status_t cpu_program_plan(cpu_program_t *program, const cleave_region_view_t *region,
                                                 cleave_message_t *message);

#endif /* CLEAVE_CPU_PROGRAM_H */
