// SPDX-License-Identifier: Apache-2.0
// Custom operators: my.company.Gemm, and my.company.StatefulGemm, which counts its runs. Both come with
// inference and a kernel, so that models with them run although no backend has them; the library's own
// `supports` takes nothing.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cleave/backend.h"

/* ---- inference: [m, k] x [k, n] -> [m, n] ---- */

typedef struct sizes {
  int64_t m, k, n; /* negative: not known before the run */
} sizes_t;

/* Sizes of A and B as they stand in a product; false where a rank is not known yet. */
static bool read_sizes(const cleave_region_view_t *view, sizes_t *sizes, cleave_status_t *status,
                       cleave_message_t *message) {
  const cleave_node_view_t *node = &view->nodes[0];
  const cleave_tensor_view_t *a = &cleave_view_input(view, node, 0)->tensor;
  const cleave_tensor_view_t *b = &cleave_view_input(view, node, 1)->tensor;
  bool transposed = cleave_view_int(node, "transB", 0) != 0;
  *status = CLEAVE_OK;
  if (a->rank < 0 || b->rank < 0) {
    return false;
  }
  if (a->rank != 2 || b->rank != 2) {
    (void)snprintf(message->text, sizeof message->text, "expected matrices, found ranks %d and %d",
                   (int)a->rank, (int)b->rank);
    *status = CLEAVE_ERROR_SHAPE;
    return false;
  }
  int64_t rows = b->dims[transposed ? 1 : 0];
  *sizes = (sizes_t){.m = a->dims[0], .k = a->dims[1], .n = b->dims[transposed ? 0 : 1]};
  if (sizes->k >= 0 && rows >= 0 && sizes->k != rows) {
    (void)snprintf(message->text, sizeof message->text, "columns of A and rows of B: %lld and %lld",
                   (long long)sizes->k, (long long)rows);
    *status = CLEAVE_ERROR_SHAPE;
    return false;
  }
  return true;
}

static cleave_status_t infer_gemm(void *self, const cleave_region_view_t *view, cleave_tensor_view_t *outputs,
                                  int64_t (*dims)[CLEAVE_MAX_RANK], cleave_message_t *message) {
  (void)self;
  sizes_t sizes;
  cleave_status_t status = CLEAVE_OK;
  outputs[0].dtype = cleave_view_input(view, &view->nodes[0], 0)->tensor.dtype;
  if (read_sizes(view, &sizes, &status, message)) {
    outputs[0].rank = 2;
    dims[0][0] = sizes.m; /* a size that is not known stays the same size when it is copied */
    dims[0][1] = sizes.n;
  }
  return status;
}

static cleave_status_t infer_stateful(void *self, const cleave_region_view_t *view,
                                      cleave_tensor_view_t *outputs, int64_t (*dims)[CLEAVE_MAX_RANK],
                                      cleave_message_t *message) {
  if (view->nodes[0].output_count > 1) {
    outputs[1].dtype = CLEAVE_DTYPE_I64;
    outputs[1].rank = 0;
  }
  return infer_gemm(self, view, outputs, dims, message);
}

/* ---- kernels ---- */

typedef struct executor {
  float alpha;
  bool transposed;
  uint32_t a; /* inputs and outputs of a run, by what they are to the operator */
  uint32_t b;
  uint32_t c;
  uint32_t count; /* CLEAVE_INDEX_NONE: nobody reads it */
  int64_t runs;   /* the state */
} executor_t;

/* Where a value is in a list of values, or CLEAVE_INDEX_NONE: a run gets every input once, also where a node
 * reads it twice, and the outputs that somebody uses. */
static uint32_t find(const uint32_t *values, uint32_t count, uint32_t value) {
  for (uint32_t k = 0; k < count && value != CLEAVE_INDEX_NONE; k++) {
    if (values[k] == value) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static cleave_status_t create(void *self, const cleave_region_view_t *view,
                              const cleave_compile_options_t *options, void **out_executor,
                              cleave_message_t *message) {
  (void)self;
  const cleave_node_view_t *node = &view->nodes[0];
  (void)options;
  if (cleave_view_input(view, node, 0)->tensor.dtype != CLEAVE_DTYPE_F32 ||
      cleave_view_input(view, node, 1)->tensor.dtype != CLEAVE_DTYPE_F32) {
    (void)snprintf(message->text, sizeof message->text, "only float32");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  executor_t *executor = calloc(1, sizeof *executor);
  if (executor == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  executor->alpha = (float)cleave_view_float(node, "alpha", 1.0);
  executor->transposed = cleave_view_int(node, "transB", 0) != 0;
  executor->runs = cleave_view_int(node, "start", 0);
  executor->a = find(view->inputs, view->input_count, node->inputs[0]);
  executor->b = find(view->inputs, view->input_count, node->inputs[1]);
  executor->c = find(view->outputs, view->output_count, node->outputs[0]);
  executor->count =
      node->output_count > 1 ? find(view->outputs, view->output_count, node->outputs[1]) : CLEAVE_INDEX_NONE;
  *out_executor = executor;
  return CLEAVE_OK;
}

static void destroy(void *executor) {
  free(executor);
}

/* Constants of models may be unaligned. */
static float read(const cleave_tensor_view_t *tensor, int64_t index) {
  float value;
  memcpy(&value, (const char *)tensor->data + index * (int64_t)sizeof value, sizeof value);
  return value;
}

static void multiply(const executor_t *executor, const cleave_run_args_t *args) {
  const cleave_tensor_view_t *a = &args->inputs[executor->a];
  const cleave_tensor_view_t *b = &args->inputs[executor->b];
  int64_t inner = a->dims[1];
  int64_t columns = b->dims[executor->transposed ? 0 : 1];
  float *to = (float *)(uintptr_t)args->outputs[executor->c].data;
  for (int64_t row = 0; row < a->dims[0]; row++) {
    for (int64_t column = 0; column < columns; column++) {
      float sum = 0.0f;
      for (int64_t k = 0; k < inner; k++) {
        sum += read(a, row * inner + k) *
               read(b, executor->transposed ? column * inner + k : k * columns + column);
      }
      *to++ = executor->alpha * sum;
    }
  }
}

static cleave_status_t execute(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  executor_t *executor = memory;
  (void)message;
  executor->runs++;
  if (executor->c != CLEAVE_INDEX_NONE) {
    multiply(executor, args);
  }
  if (executor->count != CLEAVE_INDEX_NONE) {
    *(int64_t *)(uintptr_t)args->outputs[executor->count].data = executor->runs;
  }
  return CLEAVE_OK;
}

static const cleave_custom_operator_t gemm = {.size = sizeof(cleave_custom_operator_t),
                                              .domain = "my.company",
                                              .name = "Gemm",
                                              .version = 1,
                                              .inputs = "A B",
                                              .outputs = "C",
                                              .attributes = "alpha:f=1 transB:i=0",
                                              .infer = infer_gemm,
                                              .create = create,
                                              .destroy = destroy,
                                              .execute = execute};

/* Each node of it in a session has an executor of its own: the count goes on from run to run. */
static const cleave_custom_operator_t stateful_gemm = {.size = sizeof(cleave_custom_operator_t),
                                                       .domain = "my.company",
                                                       .name = "StatefulGemm",
                                                       .version = 1,
                                                       .inputs = "A B",
                                                       .outputs = "C Runs?",
                                                       .attributes = "alpha:f=1 transB:i=0 start:i=0",
                                                       .is_stateful = true,
                                                       .infer = infer_stateful,
                                                       .create = create,
                                                       .destroy = destroy,
                                                       .execute = execute};

/* ---- the library: operators only ---- */

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)host;
  (void)message;
  *out_state = NULL;
  return CLEAVE_OK;
}

static void destroy_state(void *state) {
  (void)state;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  (void)state;
  (void)view;
  (void)snprintf(reason->text, sizeof reason->text, "the library brings operators, and runs no regions");
  return CLEAVE_ERROR_UNSUPPORTED;
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  (void)options;
  (void)out_program;
  return supports(state, region, message);
}

static void unload(void *program) {
  (void)program;
}

static const cleave_program_info_t *info(const void *program) {
  (void)program;
  return NULL;
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  (void)program;
  (void)args;
  (void)message;
  return CLEAVE_ERROR_UNSUPPORTED;
}

static const cleave_custom_operator_t *const operators[] = {&gemm, &stateful_gemm};

static const cleave_backend_extensions_t extensions = {
    .size = sizeof extensions, .operators = operators, .operator_count = 2};

static const cleave_backend_t backend = {.size = sizeof backend,
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "gemms",
                                         .version = "1.0",
                                         .description = "two matrix products that ONNX does not have",
                                         .initialise = initialise,
                                         .destroy = destroy_state,
                                         .supports = supports,
                                         .compile = compile,
                                         .unload = unload,
                                         .info = info,
                                         .run = run,
                                         .extensions = &extensions};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message);

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_minor;
  (void)message;
  return abi_major == CLEAVE_BACKEND_ABI_MAJOR ? &backend : NULL;
}
