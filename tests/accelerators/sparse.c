// SPDX-License-Identifier: Apache-2.0
/* Nothing is wrong with this one: float32 products of a matrix with a sparse constant one, of which it reads
 * what is stored only. */
#include "relu.h"

typedef struct product {
  cleave_program_info_t info;
  int64_t rows; /* of the left matrix */
  int64_t depth;
  int64_t columns;
  int64_t *offsets;
  int64_t *indices;
  float *values;
} product_t;

static const cleave_tensor_view_t *right_of(const cleave_region_view_t *region) {
  const cleave_value_view_t *right =
      region->node_count == 1 ? cleave_view_input(region, &region->nodes[0], 1) : NULL;
  return right == NULL ? NULL : &right->tensor;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  const cleave_tensor_view_t *right = right_of(region);
  (void)state;
  bool is_product = right != NULL && cleave_view_text_equal(region->nodes[0].op, "MatMul") &&
                    right->dtype == CLEAVE_DTYPE_F32 && right->rank == 2 && region->input_count == 1 &&
                    region->values[region->inputs[0]].tensor.rank == 2;
  if (!is_product || right->storage != CLEAVE_STORAGE_CSR || right->sparse == NULL || !right->is_weight) {
    (void)snprintf(reason->text, sizeof reason->text, "%s",
                   is_product ? "the right matrix is not sparse" : "only float32 products of two matrices");
    reason->code = is_product ? CLEAVE_REASON_CONSTANT : CLEAVE_REASON_OPERATOR;
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  return CLEAVE_OK;
}

static void unload(void *program) {
  product_t *product = program;
  free(product->offsets);
  free(product->indices);
  free(product->values);
  free(product);
}

static void *copy(const void *from, size_t bytes) {
  void *to = malloc(bytes + 1);
  return to == NULL ? NULL : memcpy(to, from, bytes);
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  const cleave_tensor_view_t *right = right_of(region);
  (void)options;
  if (supports(state, region, message) != CLEAVE_OK) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  product_t *product = calloc(1, sizeof *product);
  if (product == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  const cleave_sparse_view_t *sparse = right->sparse;
  size_t stored = (size_t)sparse->stored;
  *product = (product_t){.info = {.size = sizeof product->info},
                         .rows = region->values[region->inputs[0]].tensor.dims[0],
                         .depth = right->dims[0],
                         .columns = right->dims[1],
                         .offsets = copy(sparse->offsets, ((size_t)right->dims[0] + 1) * sizeof(int64_t)),
                         .indices = copy(sparse->indices, stored * sizeof(int64_t)),
                         .values = copy(right->data, stored * sizeof(float))};
  if (product->offsets == NULL || product->indices == NULL || product->values == NULL) {
    unload(product);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  *out_program = product;
  return CLEAVE_OK;
}

static const cleave_program_info_t *info(const void *program) {
  return &((const product_t *)program)->info;
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  const product_t *product = program;
  const char *from = args->inputs[0].data;
  float *to = (float *)(uintptr_t)args->outputs[0].data;
  (void)message;
  for (int64_t row = 0; row < product->rows; row++, to += product->columns) {
    memset(to, 0, (size_t)product->columns * sizeof *to);
    for (int64_t k = 0; k < product->depth; k++) {
      float x;
      memcpy(&x, from + (size_t)(row * product->depth + k) * sizeof x, sizeof x);
      for (int64_t at = product->offsets[k]; at < product->offsets[k + 1]; at++) {
        to[product->indices[at]] += x * product->values[at];
      }
    }
  }
  return CLEAVE_OK;
}

static const cleave_backend_t backend = {.size = sizeof(cleave_backend_t),
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "sparse",
                                         .version = "1",
                                         .description = "a test",
                                         .initialise = relu_initialise,
                                         .destroy = relu_destroy,
                                         .supports = supports,
                                         .compile = compile,
                                         .unload = unload,
                                         .info = info,
                                         .run = run,
                                         .takes_sparse = true};

RELU_ENTRY()
