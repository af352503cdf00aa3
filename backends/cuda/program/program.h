// SPDX-License-Identifier: Apache-2.0
/*
 * A compiled region: a plan whose steps are ready for a device. A run puts them on a stream; when the same
 * addresses come again, they become a CUDA graph, which is replayed from then on.
 */
#ifndef CLEAVE_CUDA_PROGRAM_H
#define CLEAVE_CUDA_PROGRAM_H

#include "cuda/choices/choices.h"
#include "cuda/compiler/compiler.h"
#include "cuda/emit/emit.h"

enum { CUDA_MAX_GRAPHS = 4 };

/* A step needs this beside its plan. */
typedef struct cuda_ready {
  cuda_function_t function;
  cuda_blas_desc_t desc;
  cuda_blas_layout_t layouts[3]; /* of a, b and d */
  cuda_dnn_tensor_t x;
  cuda_dnn_tensor_t y;
  cuda_dnn_filter_t w;
  cuda_dnn_convolution_t convolution;
  cuda_dnn_pooling_t pooling;
  cuda_dnn_activation_t activation;
  cuda_dnn_tensor_t channels; /* one element each: a bias, or numbers of batch normalization */
  cuda_choice_t choice;       /* its algorithm */
} cuda_ready_t;

typedef struct cuda_graph_entry {
  cuda_graph_exec_t exec;
  cuda_address_t *key; /* addresses of inputs, outputs and workspace */
  uint64_t used;
} cuda_graph_entry_t;

typedef struct cuda_program {
  cuda_state_t *state;
  uint32_t device;
  cuda_plan_t plan;
  cuda_ready_t *ready; /* per step */
  cuda_address_t constants;
  cuda_address_t *addresses; /* per slot, of this run */
  cuda_address_t *key;       /* of this run and of the last one */
  cuda_address_t *last_key;
  uint32_t key_count;
  uint32_t input_count;
  uint32_t output_count;
  bool uses_graphs;
  bool is_tuned; /* algorithms of libraries are measured */
  cuda_graph_entry_t graphs[CUDA_MAX_GRAPHS];
  uint64_t runs;
  cuda_stream_state_t *own_stream; /* for runs without one */
  cleave_program_info_t info;
  bool profiles;
  cleave_step_time_t *times;
} cuda_program_t;

CLEAVE_MUST_USE cleave_status_t cuda_program_create(cuda_state_t *state, const cleave_region_view_t *region,
                                                    const cleave_compile_options_t *options,
                                                    cuda_program_t **out_program, cleave_message_t *message);
void cuda_program_destroy(cuda_program_t *program);
CLEAVE_MUST_USE cleave_status_t cuda_program_run(cuda_program_t *program, const cleave_run_args_t *args,
                                                 cleave_message_t *message);

/* ---- cublaslt.c, cudnn.c: descriptors of steps, and their calls ---- */

/* CLEAVE_ERROR_UNSUPPORTED: the library does not have it. Sets the size of the step's workspace. */
CLEAVE_MUST_USE cleave_status_t cuda_ready_product(cuda_program_t *program, uint32_t step,
                                                   cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t cuda_run_product(cuda_program_t *program, uint32_t step, cuda_stream_t stream,
                                                 cleave_message_t *message);
void cuda_product_free(cuda_program_t *program, cuda_ready_t *ready);
/* Do the same for all steps of cuDNN. */
CLEAVE_MUST_USE cleave_status_t cuda_ready_dnn(cuda_program_t *program, uint32_t step,
                                               cleave_message_t *message);
CLEAVE_MUST_USE cleave_status_t cuda_run_dnn(cuda_program_t *program, uint32_t step, cuda_stream_t stream,
                                             cleave_message_t *message);
void cuda_dnn_free(cuda_program_t *program, cuda_ready_t *ready);

static inline cuda_address_t cuda_address_of(const cuda_program_t *program, cuda_pointer_t pointer) {
  return pointer.slot == CUDA_NO_SLOT ? 0
                                      : program->addresses[cuda_plan_root(&program->plan, pointer.slot)] +
                                            (cuda_address_t)pointer.offset;
}

/* ---- run.c ---- */

void cuda_program_drop_graphs(cuda_program_t *program);

#endif /* CLEAVE_CUDA_PROGRAM_H */
