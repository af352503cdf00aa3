// SPDX-License-Identifier: Apache-2.0
// Fusions that begin with a product or a convolution. Behind it, a bias and an activation go into the call of
// the library, and so does a residual behind a convolution, whose batch normalization goes into its weights.
// What is left is one kernel, which adds a convolution's bias if the call cannot.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emit.h"
#include "kernels/convert.h"

typedef struct fused {
  cuda_plan_t *plan;
  const uint32_t *nodes; /* that are left, behind the product */
  uint32_t count;
  const cleave_node_view_t *head;
  uint32_t value; /* that the product makes */
} fused_t;

bool cuda_is_product(const cleave_node_view_t *node) {
  return strcmp(node->op, "Conv") == 0 || strcmp(node->op, "MatMul") == 0 || strcmp(node->op, "Gemm") == 0;
}

/* Whether the only reader of the value is the first node that is left. */
static bool has_one_reader(const fused_t *self) {
  const cleave_node_view_t *next = self->count > 0 ? &self->plan->region->nodes[self->nodes[0]] : NULL;
  bool reads = false;
  for (uint32_t i = 0; next != NULL && i < next->input_count; i++) {
    reads = reads || next->inputs[i] == self->value;
  }
  return reads && self->plan->readers[self->value] == 1;
}

static void take_next(fused_t *self) {
  self->value = self->plan->region->nodes[self->nodes[0]].outputs[0];
  self->nodes++;
  self->count--;
}

static cleave_status_t lower_rest(const fused_t *self) {
  return self->count == 0 ? CLEAVE_OK
                          : cuda_emit_lowered(self->plan, self->plan->region, self->nodes, self->count, NULL);
}

/* ---- products ---- */

static bool is_row(const fused_t *self, uint32_t value) {
  const cleave_tensor_view_t *y = cuda_tensor(self->plan, self->value);
  const cleave_tensor_view_t *bias = cuda_tensor(self->plan, value);
  return y->rank > 0 && bias->rank > 0 && bias->rank <= y->rank && bias->dtype == y->dtype &&
         bias->dims[bias->rank - 1] == y->dims[y->rank - 1] &&
         cleave_view_element_count(bias) == y->dims[y->rank - 1];
}

static cuda_epilogue_t find_epilogue(fused_t *self) {
  cuda_epilogue_t epilogue = {.bias = CUDA_NO_SLOT, .residual = CUDA_NO_SLOT};
  const cleave_region_view_t *region = self->plan->region;
  bool is_fast = cuda_product_is_fast(self->plan, cuda_tensor(self->plan, self->value)->dtype);
  bool has_c = strcmp(self->head->op, "Gemm") == 0 && cuda_input(self->plan, self->head, 2) != NULL;
  const cleave_node_view_t *next = is_fast && has_one_reader(self) ? &region->nodes[self->nodes[0]] : NULL;
  if (next != NULL && !has_c && strcmp(next->op, "Add") == 0) {
    uint32_t other = next->inputs[0] == self->value ? next->inputs[1] : next->inputs[0];
    if (is_row(self, other)) {
      epilogue.bias = other;
      take_next(self);
      next = has_one_reader(self) ? &region->nodes[self->nodes[0]] : NULL;
    }
  }
  bool is_relu = next != NULL && strcmp(next->op, "Relu") == 0;
  bool is_gelu = next != NULL && strcmp(next->op, "Gelu") == 0 &&
                 strcmp(cleave_view_string(next, "approximate", "none"), "tanh") == 0;
  if (is_relu || is_gelu) {
    epilogue.activation = is_relu ? CUDA_BLAS_EPILOGUE_RELU : CUDA_BLAS_EPILOGUE_GELU_TANH;
    take_next(self);
  }
  epilogue.result = self->value;
  return epilogue;
}

static cleave_status_t fuse_product(fused_t *self) {
  cuda_epilogue_t epilogue = find_epilogue(self);
  bool is_gemm = strcmp(self->head->op, "Gemm") == 0;
  bool is_plain = epilogue.bias == CUDA_NO_SLOT && epilogue.activation == 0;
  const cuda_epilogue_t *given = is_plain ? NULL : &epilogue;
  CUDA_TRY(is_gemm ? cuda_emit_gemm(self->plan, self->head, given)
                   : cuda_emit_matmul(self->plan, self->head, given));
  return lower_rest(self);
}

/* ---- convolutions ---- */

/* The elements of a constant, as double; NULL if it is none, or memory is out. */
static double *read_doubles(const fused_t *self, uint32_t value) {
  const cleave_tensor_view_t *tensor = cuda_tensor(self->plan, value);
  const void *data = cuda_plan_data(self->plan, value);
  int64_t count = cleave_view_element_count(tensor);
  double *doubles = data == NULL ? NULL : malloc((size_t)(count + 1) * sizeof *doubles);
  if (doubles != NULL) {
    cpu_convert(tensor->dtype, data, CLEAVE_DTYPE_F64, doubles, count);
  }
  return doubles;
}

static cleave_status_t keep_doubles(const fused_t *self, cleave_dtype_t dtype, const double *doubles,
                                    int64_t count, uint32_t *out_slot) {
  int64_t bytes = count * (int64_t)cleave_dtype_size(dtype);
  void *data = cuda_plan_allocate(self->plan, (size_t)bytes, 1);
  if (data == NULL) {
    return cuda_plan_no_memory(self->plan);
  }
  cpu_convert(CLEAVE_DTYPE_F64, doubles, dtype, data, count);
  return cuda_plan_constant(self->plan, data, bytes, out_slot);
}

/* Scale, shift, mean, variance of the norm, weights and bias of the convolution. */
static cleave_status_t fold(const fused_t *self, const cleave_node_view_t *norm, double *const *parts,
                            uint32_t *out_w, uint32_t *out_bias) {
  const cleave_tensor_view_t *w = cuda_input(self->plan, self->head, 1);
  int64_t outputs = w->dims[0];
  int64_t each = outputs > 0 ? cleave_view_element_count(w) / outputs : 0;
  double epsilon = cleave_view_float(norm, "epsilon", 1e-5);
  double *bias = malloc((size_t)(outputs + 1) * sizeof *bias);
  if (bias == NULL) {
    return cuda_plan_no_memory(self->plan);
  }
  for (int64_t c = 0; c < outputs; c++) {
    double factor = parts[0][c] / sqrt(parts[3][c] + epsilon);
    bias[c] = ((parts[5] != NULL ? parts[5][c] : 0.0) - parts[2][c]) * factor + parts[1][c];
    for (int64_t k = 0; k < each; k++) {
      parts[4][c * each + k] *= factor;
    }
  }
  cleave_status_t status = keep_doubles(self, w->dtype, parts[4], outputs * each, out_w);
  status = status == CLEAVE_OK ? keep_doubles(self, w->dtype, bias, outputs, out_bias) : status;
  free(bias);
  return status;
}

/* *out_done: the norm is in weights and bias. */
static cleave_status_t fold_norm(fused_t *self, uint32_t *out_w, uint32_t *out_bias, bool *out_done) {
  const cleave_node_view_t *norm = &self->plan->region->nodes[self->nodes[0]];
  bool has_bias = cuda_input(self->plan, self->head, 2) != NULL;
  bool is_plain = norm->input_count == 5 && cleave_view_int(norm, "training_mode", 0) == 0 &&
                  cuda_output(self->plan, norm, 1) == NULL;
  double *parts[6] = {NULL};
  bool is_whole = is_plain;
  for (uint32_t k = 0; k < 6 && is_whole; k++) {
    if (k < 5 || has_bias) {
      parts[k] = read_doubles(self, k < 4 ? norm->inputs[k + 1] : self->head->inputs[k - 3]);
      is_whole = parts[k] != NULL;
    }
  }
  cleave_status_t status = is_whole ? fold(self, norm, parts, out_w, out_bias) : CLEAVE_OK;
  *out_done = is_whole;
  for (uint32_t k = 0; k < 6; k++) {
    free(parts[k]);
  }
  if (is_whole) {
    take_next(self);
  }
  return status;
}

/* The nodes that are left, behind an Add of the bias: slot `raw` is the convolution without it. */
static cleave_status_t lower_biased(const fused_t *self, uint32_t raw, uint32_t bias) {
  const cuda_bias_t call = {
      .nodes = self->nodes, .count = self->count, .value = self->value, .raw = raw, .bias = bias};
  kernel_arena_t arena = {0};
  cuda_part_t part;
  cleave_status_t status = cuda_plan_part(self->plan, &call, &arena, &part);
  if (status == CLEAVE_OK) {
    status = cuda_emit_lowered(self->plan, &part.region, part.nodes, part.region.node_count, part.slots);
  }
  kernel_arena_free(&arena);
  return status;
}

/* The node that alone reads the value, or NULL. */
static const cleave_node_view_t *find_next(const fused_t *self) {
  return has_one_reader(self) ? &self->plan->region->nodes[self->nodes[0]] : NULL;
}

static bool is_alike(const cleave_tensor_view_t *x, const cleave_tensor_view_t *y) {
  bool is = x->dtype == y->dtype && x->rank == y->rank;
  for (int32_t d = 0; is && d < x->rank; d++) {
    is = x->dims[d] == y->dims[d];
  }
  return is;
}

/* Finds what the library adds to the convolution, with a bias or none, in the same call. */
static cuda_epilogue_t find_whole(fused_t *self, uint32_t bias) {
  cuda_epilogue_t epilogue = {.bias = bias, .residual = CUDA_NO_SLOT};
  const cleave_node_view_t *next = find_next(self);
  if (next != NULL && strcmp(next->op, "Add") == 0) {
    uint32_t other = next->inputs[0] == self->value ? next->inputs[1] : next->inputs[0];
    if (other != self->value &&
        is_alike(cuda_tensor(self->plan, other), cuda_tensor(self->plan, self->value))) {
      epilogue.residual = other;
      take_next(self);
      next = find_next(self);
    }
  }
  if (next != NULL && strcmp(next->op, "Relu") == 0) {
    epilogue.activation = CUDA_BLAS_EPILOGUE_RELU;
    take_next(self);
  }
  epilogue.result = self->value;
  return epilogue;
}

static cleave_status_t fuse_convolution(fused_t *self) {
  uint32_t w = self->head->inputs[1];
  uint32_t bias = cuda_input(self->plan, self->head, 2) != NULL ? self->head->inputs[2] : CUDA_NO_SLOT;
  bool is_folded = true;
  if (has_one_reader(self) &&
      strcmp(self->plan->region->nodes[self->nodes[0]].op, "BatchNormalization") == 0) {
    CUDA_TRY(fold_norm(self, &w, &bias, &is_folded));
  }
  if (!is_folded) {
    return cuda_plan_refuse(self->plan, CLEAVE_REASON_CONSTANT,
                            "weights or numbers of its norm are not constants");
  }
  if (cuda_convolution_is_whole(self->plan, self->head)) {
    cuda_epilogue_t epilogue = find_whole(self, bias);
    bool is_plain = bias == CUDA_NO_SLOT && epilogue.residual == CUDA_NO_SLOT && epilogue.activation == 0;
    CUDA_TRY(is_plain ? cuda_emit_convolution(self->plan, self->head, w, self->value)
                      : cuda_emit_whole_convolution(self->plan, self->head, w, &epilogue));
    return lower_rest(self);
  }
  uint32_t to = self->value;
  if (bias != CUDA_NO_SLOT) {
    CUDA_TRY(cuda_plan_scratch(self->plan, self->plan->slots[self->value].bytes, &to));
  }
  CUDA_TRY(cuda_emit_convolution(self->plan, self->head, w, to));
  if (bias != CUDA_NO_SLOT) {
    return lower_biased(self, to, bias);
  }
  return lower_rest(self);
}

cleave_status_t cuda_emit_fused_product(cuda_plan_t *plan, const uint32_t *nodes, uint32_t count) {
  const cleave_node_view_t *head = &plan->region->nodes[nodes[0]];
  fused_t self = {
      .plan = plan, .nodes = nodes + 1, .count = count - 1, .head = head, .value = head->outputs[0]};
  return strcmp(head->op, "Conv") == 0 ? fuse_convolution(&self) : fuse_product(&self);
}
