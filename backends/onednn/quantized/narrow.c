// SPDX-License-Identifier: Apache-2.0
// Products of float32 data with constant integers, or with floats of 16 bits (kernels/matrix/narrow.h). What
// follows multiplies or adds per column goes into scales and bias. With integers infinities become NaN: an
// exact form computes in float32, as do processors without AVX2.
#include <string.h>

#include "onednn/library/types.h"
#include "onednn/loops/loops.h"
#include "onednn/plan/care.h"
#include "onednn/plan/constants.h"
#include "onednn/product/product.h"
#include "onednn/quantized/quantized.h"

typedef struct packing {
  const onednn_plan_t *plan;
  kernel_narrow_t narrow;
  kernel_narrow_source_t source;
  const cleave_value_view_t *numbers; /* of the model, or NULL */
  const onednn_bits_t *bits;          /* packed ones, or NULL */
  onednn_shape_t shape;
  onednn_content_t content;
  int64_t scale_count;
  bool is_flipped; /* the weights are [N, K] */
  bool is_asked;   /* the fusion wants it for any number of rows */
} packing_t;

/* Most rows of floats for which panels are made float32 in each run: for more, oneDNN reads packed float32.
 */
enum { MANY_ROWS = 16 };

typedef struct filling {
  const packing_t *packing;
  float *out;
} filling_t;

static void fill_panels(void *opaque, int64_t begin, int64_t end) {
  const filling_t *filling = opaque;
  kernel_narrow_pack(&filling->packing->narrow, &filling->packing->source, begin, end, filling->out);
}

static void fill(const void *context, float *out) {
  enum { GRAIN = 65536 /* numbers */ };
  const packing_t *packing = context;
  const kernel_narrow_t *narrow = &packing->narrow;
  filling_t filling = {packing, out};
  packing->plan->host->parallel_for(packing->plan->threads, kernel_narrow_panels(narrow),
                                    GRAIN / (narrow->matrix.depth * KERNEL_MATRIX_PANEL) + 1, fill_panels,
                                    &filling);
}

// ---- how the integers are stored ----

// Strides of the depth (its axis is `axis`) and of columns in row-major integers and their scales; false:
// blocks that the kernel does not know.
static bool set_strides(const onednn_quantization_t *numbers, const onednn_shape_t *shape, int32_t axis,
                        packing_t *packing) {
  kernel_narrow_source_t *source = &packing->source;
  int64_t depth = shape->dims[axis];
  int64_t columns = shape->dims[1 - axis];
  source->depth_stride = axis == 0 ? columns : 1;
  source->column_stride = axis == 0 ? 1 : depth;
  packing->narrow.block = depth;
  if (packing->bits != NULL) {
    source->column_stride = packing->bits->bytes;
    // Only numbers that follow each other along the depth.
    if ((axis == 0) != packing->bits->is_transposed) {
      return false;
    }
  }
  if (numbers->scales == NULL) {
    return true;
  }
  if (numbers->block == 0) {
    source->scale_stride = 1;
    return numbers->axis != axis;
  }
  int64_t block = numbers->block < depth ? numbers->block : depth;
  int64_t blocks = (depth - 1) / block + 1;
  packing->narrow.block = block;
  source->block_stride = axis == 0 ? columns : 1;
  source->scale_stride = axis == 0 ? 1 : blocks;
  return numbers->axis == axis && (block % 8 == 0 || block == depth);
}

ONEDNN_VECTOR static void find_range(const unsigned char *data, int64_t count, unsigned char flip,
                                     int32_t range[2]) {
  unsigned char low = UINT8_MAX;
  unsigned char high = 0;
  for (int64_t k = 0; k < count; k++) {
    unsigned char value = data[k] ^ flip;
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  range[0] = low;
  range[1] = high;
}

// The lowest and the highest integer; of packed ones, those that they may be.
static void set_range(const packing_t *packing, int32_t lowest, int32_t range[2]) {
  if (packing->bits != NULL) {
    range[0] = -packing->bits->least;
    range[1] = range[0] + (1 << packing->bits->bits) - 1;
    return;
  }
  // With the highest bit flipped, signed integers are in the order of unsigned ones.
  find_range(packing->source.numbers, onednn_shape_count(&packing->shape), lowest < 0 ? 0x80U : 0U, range);
  range[0] += lowest;
  range[1] += lowest;
}

// Four bits if integers and zero points have room in them.
static void set_bits(const onednn_quantization_t *numbers, bool is_signed, packing_t *packing) {
  int32_t range[2];
  int32_t lowest = is_signed ? INT8_MIN : 0;
  set_range(packing, lowest, range);
  for (int64_t k = 0; k < (numbers->zeros != NULL ? numbers->count : 1); k++) {
    int32_t zero = numbers->zeros != NULL ? numbers->zeros[k] : numbers->zero_point;
    range[0] = zero < range[0] ? zero : range[0];
    range[1] = zero > range[1] ? zero : range[1];
  }
  packing->narrow.bits = range[1] - range[0] < 1 << 4 ? 4 : 8;
  packing->source.lowest = packing->narrow.bits == 4 ? range[0] : lowest;
}

// The kernel's form of constant integers; false: they are not stored so that it can read them.
static bool describe_integers(const onednn_plan_t *plan, const onednn_tensor_t *weights, packing_t *packing) {
  const onednn_buffer_t *buffer = &plan->buffers[weights->buffer];
  const onednn_quantization_t *numbers = weights->quantization;
  onednn_shape_t shape = onednn_layout_shape(&weights->layout);
  packing->bits = onednn_buffer_bits(buffer);
  if (numbers == NULL || buffer->place != ONEDNN_CONSTANT ||
      (buffer->data == NULL && packing->bits == NULL) || weights->offset != 0 ||
      !onednn_layout_is_plain(&weights->layout) || shape.rank != 2) {
    return false;
  }
  packing->numbers = buffer->source;
  packing->shape = shape;
  packing->content = buffer->content;
  packing->scale_count = numbers->count;
  packing->source = (kernel_narrow_source_t){
      .numbers = packing->bits != NULL ? packing->bits->source->tensor.data : buffer->data,
      .packed = packing->bits != NULL ? packing->bits->bits : 0,
      .least = packing->bits != NULL ? packing->bits->least : 0,
      .scales = numbers->scales != NULL ? numbers->scales : &numbers->scale,
      .zeros = numbers->zeros};
  if (!set_strides(numbers, &shape, packing->is_flipped ? 1 : 0, packing)) {
    return false;
  }
  set_bits(numbers, weights->layout.data_type == dnnl_s8, packing);
  packing->narrow.has_zeros = numbers->zeros != NULL;
  packing->narrow.zero = (float)(numbers->zero_point - packing->source.lowest);
  return true;
}

// The same of constant floats.
static bool describe_floats(const onednn_plan_t *plan, const onednn_kernel_t *kernel, packing_t *packing) {
  const cleave_value_view_t *view = &plan->region->values[kernel->weights];
  onednn_shape_t shape = onednn_shape_of(view);
  if (!onednn_is_short(view) || shape.rank != 2) {
    return false;
  }
  bool is_half = view->tensor.dtype == CLEAVE_DTYPE_F16;
  packing->numbers = view;
  packing->shape = shape;
  packing->content = onednn_content_of(view);
  packing->source.numbers = view->tensor.data;
  packing->source.depth_stride = packing->is_flipped ? 1 : shape.dims[1];
  packing->source.column_stride = packing->is_flipped ? shape.dims[1] : 1;
  packing->narrow.kind = is_half ? KERNEL_NARROW_FLOAT16 : KERNEL_NARROW_BFLOAT16;
  packing->narrow.bits = 16;
  packing->narrow.block = shape.dims[packing->is_flipped ? 1 : 0];
  return true;
}

// ---- the product ----

// Packed when no program has it so yet; all that decides the bytes is part of the content.
static cleave_status_t pack(onednn_plan_t *plan, const packing_t *packing, onednn_tensor_t *out) {
  const kernel_narrow_t *narrow = &packing->narrow;
  const kernel_narrow_source_t *source = &packing->source;
  const int64_t key[] = {narrow->kind, narrow->matrix.columns, narrow->matrix.depth, narrow->block,
                         narrow->bits, source->lowest,         source->depth_stride, source->packed};
  size_t columns = (size_t)narrow->matrix.columns;
  size_t scales = (size_t)packing->scale_count;
  onednn_content_t content = onednn_content_mix(&packing->content, key, sizeof(key));
  content = onednn_content_mix(&content, source->scales, scales * sizeof(float));
  content =
      onednn_content_mix(&content, source->factors, source->factors != NULL ? columns * sizeof(float) : 0);
  content = onednn_content_mix(&content, source->zeros, source->zeros != NULL ? scales * sizeof(int32_t) : 0);
  onednn_shape_t shape = {.rank = 1,
                          .dims = {(int64_t)((kernel_narrow_bytes(narrow) - 1) / sizeof(float)) + 1}};
  onednn_layout_t layout = onednn_layout_plain(&shape);
  ONEDNN_TRY(onednn_plan_lazy(plan, &layout, &content, fill, packing, out));
  plan->buffers[out->buffer].source = packing->numbers;
  return CLEAVE_OK;
}

static const char *label_of(const kernel_narrow_t *narrow) {
  switch (narrow->kind) {
    case KERNEL_NARROW_FLOAT16: return "matmul float16";
    case KERNEL_NARROW_BFLOAT16: return "matmul bfloat16";
    default: return narrow->bits == 4 ? "matmul int4" : "matmul int8";
  }
}

static cleave_status_t emit(onednn_plan_t *plan, const onednn_kernel_t *kernel, packing_t *packing,
                            bool *done) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  bool flip = onednn_node_is(node, "Gemm") && cleave_view_int(node, "transA", 0) != 0;
  onednn_product_t product = {.tall = false};
  onednn_folding_t folding;
  onednn_tensor_t a;
  ONEDNN_TRY(onednn_plan_fetch(plan, kernel->source, &a));
  ONEDNN_TRY(onednn_product_matrix(plan, &a, flip, false, &a));
  product.result = onednn_plan_shape(plan, node->outputs[0]);
  product.a = onednn_layout_shape(&a.layout);
  product.b = packing->shape;
  if (packing->is_flipped) {
    product.b.dims[0] = packing->shape.dims[1];
    product.b.dims[1] = packing->shape.dims[0];
  }
  ONEDNN_TRY(onednn_product_check(plan, node, &product));
  ONEDNN_TRY(onednn_product_fold(plan, kernel, &product, true, &folding));
  onednn_product_shapes(plan, kernel, &product);
  if (!product.tall || (!packing->is_asked && product.a.dims[0] > MANY_ROWS)) {
    return CLEAVE_OK;
  }
  packing->source.factors = folding.scaled ? folding.scale : NULL;
  packing->narrow.matrix = (kernel_matrix_t){.rows = product.a.dims[0],
                                             .columns = product.b.dims[1],
                                             .depth = product.a.dims[1],
                                             .panel = kernel_matrix_panel(),
                                             .x_stride = product.a.dims[1]};
  onednn_matrix_request_t request = {.kind = ONEDNN_MATRIX_NARROW,
                                     .matrix = packing->narrow.matrix,
                                     .narrow = &packing->narrow,
                                     .has_bias = folding.shifted,
                                     .shape = product.result,
                                     .result = onednn_layout_plain(&product.kernel),
                                     .posts = kernel->posts + folding.posts,
                                     .post_count = kernel->post_count - folding.posts,
                                     .label = label_of(&packing->narrow)};
  if (folding.shifted) {
    ONEDNN_TRY(onednn_product_bias(plan, &product, &folding, &request.bias));
  }
  ONEDNN_TRY(onednn_plan_plain(plan, &a, &a));
  ONEDNN_TRY(onednn_plan_reshape(plan, &a, &product.a, &request.source));
  ONEDNN_TRY(pack(plan, packing, &request.weights));
  *done = true;
  return onednn_emit_matrix(plan, kernel, &request);
}

cleave_status_t onednn_emit_narrow(onednn_plan_t *plan, const onednn_kernel_t *kernel, bool *done) {
  *done = false;
  if (kernel->kind != ONEDNN_PRODUCT) {
    return CLEAVE_OK;
  }
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  bool runs = kernel_narrow_runs_here() && onednn_plan_computes(plan) == dnnl_f32;
  bool are_integers = kernel->fusion < plan->region->fusion_count &&
                      onednn_fusion_says(plan->region, kernel->fusion, "integers");
  packing_t *packing = kernel_arena_allocate(plan->arena, 1, sizeof(*packing));
  if (packing == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  packing->plan = plan;
  packing->is_flipped = onednn_node_is(node, "Gemm") && cleave_view_int(node, "transB", 0) != 0;
  packing->is_asked = are_integers || onednn_keeps_weights(plan->region, kernel->fusion);
  if (!are_integers) {
    return runs && describe_floats(plan, kernel, packing) ? emit(plan, kernel, packing, done) : CLEAVE_OK;
  }
  onednn_tensor_t weights;
  ONEDNN_TRY(onednn_plan_stored(plan, kernel->weights, &weights));
  if (runs && describe_integers(plan, &weights, packing) && onednn_may_raise(plan)) {
    ONEDNN_TRY(emit(plan, kernel, packing, done));
  }
  return *done ? CLEAVE_OK
               : onednn_plan_fetch(plan, kernel->weights, &plan->bindings[kernel->weights].tensor);
}
