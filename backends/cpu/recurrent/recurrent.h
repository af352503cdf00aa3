// SPDX-License-Identifier: Apache-2.0
/*
 * RNN, GRU and LSTM of ONNX (opset 14: `layout`), for float and double: all directions, activations, clips,
 * peepholes and sequence lengths. `cpu` runs them as kernels, and other backends inside their regions, so
 * this header stands on cleave/backend.h alone.
 *
 * Weights are packed once: in panels of as many hidden units as fit 64 bytes (`lanes`), gate by gate, so that
 * a step reads them from start to end. The product of all steps with the input weights is one matrix product;
 * a step adds the product with the hidden state, and finishes the gates while they are in the cache. A
 * sequence that is over keeps its state and writes zeros.
 */
#ifndef CLEAVE_CPU_RECURRENT_H
#define CLEAVE_CPU_RECURRENT_H

#include "cleave/backend.h"

typedef enum cpu_recurrent_kind { CPU_RNN, CPU_GRU, CPU_LSTM } cpu_recurrent_kind_t;

typedef enum cpu_recurrent_function {
  CPU_RECURRENT_TANH,
  CPU_RECURRENT_SIGMOID,
  CPU_RECURRENT_RELU,
  CPU_RECURRENT_AFFINE,
  CPU_RECURRENT_LEAKY_RELU,
  CPU_RECURRENT_THRESHOLDED_RELU,
  CPU_RECURRENT_SCALED_TANH,
  CPU_RECURRENT_HARD_SIGMOID,
  CPU_RECURRENT_ELU,
  CPU_RECURRENT_SOFTSIGN,
  CPU_RECURRENT_SOFTPLUS,
  CPU_RECURRENT_FUNCTION_COUNT
} cpu_recurrent_function_t;

typedef struct cpu_recurrent_activation {
  cpu_recurrent_function_t function;
  double alpha;
  double beta;
} cpu_recurrent_activation_t;

/* The attributes of a node. */
typedef struct cpu_recurrent {
  cpu_recurrent_kind_t kind;
  int64_t gates; /* 1, 3 or 4 blocks of hidden_size rows in W and R; in ONNX's order: i; z r h; i o f c */
  int32_t directions;
  bool reverse;     /* the first direction runs backwards */
  bool batch_first; /* layout 1 */
  bool linear_before_reset;
  bool input_forget;
  double clip;                                  /* infinite: none */
  cpu_recurrent_activation_t activations[2][3]; /* f, g, h per direction */
} cpu_recurrent_t;

typedef struct cpu_recurrent_sizes {
  int64_t steps;
  int64_t batch;
  int64_t input;
  int64_t hidden;
} cpu_recurrent_sizes_t;

/* Inputs and outputs of the operator by their names in ONNX, dense and row-major, float or double; NULL: left
 * out. `lengths`: `batch` entries from 0 to `steps`, checked by the caller. */
typedef struct cpu_recurrent_data {
  const void *x;
  const void *w;
  const void *r;
  const void *b;
  const int64_t *lengths;
  const void *initial_h;
  const void *initial_c;
  const void *p;
  void *y;
  void *y_h;
  void *y_c;
} cpu_recurrent_data_t;

typedef void (*cpu_recurrent_loop_fn_t)(int32_t threads, int64_t count, int64_t grain,
                                        cleave_parallel_fn_t body, void *context);

/* The memory and the threads of a run. */
typedef struct cpu_recurrent_run {
  const void *packed; /* what cpu_recurrent_pack_* wrote: w, r and b are not read then, and p only says that
                       * there are peepholes. NULL: a run packs into its scratch memory */
  void *scratch;      /* 64-byte aligned */
  int32_t threads;
  cpu_recurrent_loop_fn_t parallel_for; /* of the host */
} cpu_recurrent_run_t;

/* Reads the attributes of an RNN, GRU or LSTM. CLEAVE_ERROR_UNSUPPORTED, and the reason, for what ONNX does
 * not know. */
CLEAVE_MUST_USE cleave_status_t cpu_recurrent_read(const cleave_node_view_t *node, cpu_recurrent_t *out,
                                                   cleave_message_t *message);

/* The sizes of a node in a region, all of whose shapes are known. Every operand and result has as many
 * elements as these say; otherwise CLEAVE_ERROR_SHAPE. */
CLEAVE_MUST_USE cleave_status_t cpu_recurrent_measure(const cpu_recurrent_t *recurrent,
                                                      const cleave_region_view_t *region,
                                                      const cleave_node_view_t *node,
                                                      cpu_recurrent_sizes_t *out, cleave_message_t *message);

/* Bytes of packed weights, and of scratch memory; SIZE_MAX if they do not fit. */
size_t cpu_recurrent_packed_bytes_f32(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes);
size_t cpu_recurrent_packed_bytes_f64(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes);
size_t cpu_recurrent_scratch_f32(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                                 bool is_packed);
size_t cpu_recurrent_scratch_f64(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                                 bool is_packed);

/* Packs w, r, b and p of `data`; of `sizes`, only `input` and `hidden` count. All of `out` is written. */
void cpu_recurrent_pack_f32(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                            const cpu_recurrent_data_t *data, void *out);
void cpu_recurrent_pack_f64(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                            const cpu_recurrent_data_t *data, void *out);

/* All steps of all directions. The same numbers on any number of threads. */
void cpu_recurrent_run_f32(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                           const cpu_recurrent_data_t *data, const cpu_recurrent_run_t *run);
void cpu_recurrent_run_f64(const cpu_recurrent_t *recurrent, const cpu_recurrent_sizes_t *sizes,
                           const cpu_recurrent_data_t *data, const cpu_recurrent_run_t *run);

#endif /* CLEAVE_CPU_RECURRENT_H */
