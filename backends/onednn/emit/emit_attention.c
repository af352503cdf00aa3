// SPDX-License-Identifier: Apache-2.0
// Attention as one loop of our own: operands are read where they are, whatever their strides, so that heads
// need not be apart. Blocks of queries are dealt out to slots, one per thread, each with scratch memory of
// its own; what is computed does not depend on their number.
#include <math.h>
#include <string.h>

#include "kernels/attention/attention.h"
#include "onednn/emit/emit.h"

enum { Q, K, V, MASK };

typedef struct context {
  kernel_attention_t attention;
  const kernel_attention_loops_t *loops;
  int64_t items;
  int64_t slots;
  size_t scratch; /* floats per slot */
  bool has_mask;
} context_t;

typedef struct body {
  const context_t *context;
  kernel_attention_data_t data;
  float *scratch;
} body_t;

static void run_slots(void *opaque, int64_t begin, int64_t end) {
  const body_t *body = opaque;
  const context_t *context = body->context;
  for (int64_t slot = begin; slot < end; slot++) {
    float *scratch = body->scratch + (size_t)slot * context->scratch;
    for (int64_t item = slot; item < context->items; item += context->slots) {
      context->loops->block(&context->attention, &body->data, item, scratch);
    }
  }
}

static bool run_attention(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *data) {
  const context_t *context = loop->context;
  uint32_t next = MASK;
  body_t body = {.context = context, .data = {.q = data[Q], .k = data[K], .v = data[V]}};
  body.data.mask = context->has_mask ? data[next++] : NULL;
  body.scratch = data[next++];
  body.data.y = data[next];
  crew->host->parallel_for(crew->threads, context->slots, 1, run_slots, &body);
  return true;
}

// [batch, heads, length, size] of an operand: its shape and its strides.
static cleave_status_t read_strides(onednn_plan_t *plan, onednn_tensor_t *tensor, int64_t heads,
                                    onednn_shape_t *shape, int64_t *strides) {
  onednn_shape_t own = onednn_layout_shape(&tensor->layout);
  if (own.rank == 3 && heads > 0) {
    *shape = (onednn_shape_t){.rank = 4, .dims = {own.dims[0], own.dims[1], heads, own.dims[2] / heads}};
  } else {
    *shape = own;
  }
  if (!onednn_layout_is_strided(&tensor->layout)) {
    ONEDNN_TRY(onednn_plan_plain(plan, tensor, tensor));
  }
  ONEDNN_TRY(onednn_plan_reshape(plan, tensor, shape, tensor));
  const dnnl_dim_t *from = tensor->layout.format_desc.blocking.strides;
  for (int32_t d = 0; d < 4; d++) {
    int32_t place = own.rank == 3 && (d == 1 || d == 2) ? 3 - d : d;
    strides[d] = from[place];
  }
  if (own.rank == 3) {
    *shape = (onednn_shape_t){.rank = 4, .dims = {own.dims[0], heads, own.dims[1], own.dims[2] / heads}};
  }
  return CLEAVE_OK;
}

static cleave_status_t refuse_shapes(onednn_plan_t *plan, const cleave_node_view_t *node, const char *what) {
  return kernel_fail(plan->message, CLEAVE_ERROR_SHAPE, "%s '%s': the shapes of %s do not fit", node->op,
                     onednn_node_name(node), what);
}

static cleave_status_t read_sizes(onednn_plan_t *plan, const cleave_node_view_t *node,
                                  onednn_argument_t *arguments, kernel_attention_t *out) {
  int64_t *const strides[] = {out->q_strides, out->k_strides, out->v_strides};
  onednn_shape_t shapes[3];
  for (uint32_t k = Q; k <= V; k++) {
    ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[k], &arguments[k].tensor));
    onednn_shape_t shape = onednn_layout_shape(&arguments[k].tensor.layout);
    int64_t heads = shape.rank == 3 ? cleave_view_int(node, k == Q ? "q_num_heads" : "kv_num_heads", 0) : 0;
    if (shape.rank != 4 && (shape.rank != 3 || heads < 1 || shape.dims[2] % heads != 0)) {
      return refuse_shapes(plan, node, "Q, K and V");
    }
    ONEDNN_TRY(read_strides(plan, &arguments[k].tensor, heads, &shapes[k], strides[k]));
  }
  const int64_t *q = shapes[Q].dims;
  const int64_t *k = shapes[K].dims;
  const int64_t *v = shapes[V].dims;
  if (k[0] != q[0] || v[0] != q[0] || k[1] != v[1] || q[1] % k[1] != 0 || k[2] != v[2] || k[3] != q[3]) {
    return refuse_shapes(plan, node, "Q, K and V");
  }
  out->batch = q[0];
  out->heads = q[1];
  out->key_heads = k[1];
  out->queries = q[2];
  out->keys = k[2];
  out->size = q[3];
  out->value_size = v[3];
  out->softcap = (float)cleave_view_float(node, "softcap", 0);
  out->is_causal = cleave_view_int(node, "is_causal", 0) != 0;
  out->scale = (float)(cleave_view_attribute(node, "scale") != NULL ? cleave_view_float(node, "scale", 1)
                                                                    : 1 / sqrt((double)out->size));
  return CLEAVE_OK;
}

// The mask with its queries next to each other, as the loop reads them; a constant is turned now.
static cleave_status_t read_mask(onednn_plan_t *plan, const cleave_node_view_t *node, onednn_tensor_t *mask,
                                 kernel_attention_t *out) {
  static const int32_t order[] = {0, 1, 3, 2};
  const int64_t whole[] = {out->batch, out->heads, out->queries, out->keys};
  ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[MASK], mask));
  onednn_shape_t own = onednn_layout_shape(&mask->layout);
  onednn_shape_t shape = own.rank <= 4 ? onednn_shape_pad(&own, 4) : own;
  for (int32_t d = 0; d < 4; d++) {
    if (shape.rank != 4 || (shape.dims[d] != 1 && shape.dims[d] != whole[d])) {
      return refuse_shapes(plan, node, "the mask and the scores");
    }
  }
  ONEDNN_TRY(onednn_plan_reshape(plan, mask, &shape, mask));
  onednn_layout_t turned = onednn_layout_ordered(&shape, order);
  ONEDNN_TRY(onednn_plan_convert(plan, mask, &turned, mask));
  for (int32_t d = 0; d < 4; d++) {
    out->mask_strides[d] = shape.dims[d] == 1 ? 0 : turned.format_desc.blocking.strides[d];
  }
  return CLEAVE_OK;
}

// Memory for the result, in the layout that its readers prefer.
static cleave_status_t make_result(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                   onednn_tensor_t *result, kernel_attention_t *out) {
  onednn_layout_t layout = onednn_plan_wanted(plan, kernel->output);
  onednn_shape_t shape = onednn_layout_shape(&layout);
  const bool flat = shape.rank == 3;
  const int64_t apart[] = {out->batch, out->heads, out->queries, out->value_size};
  const int64_t joined[] = {out->batch, out->queries, out->heads * out->value_size};
  const int64_t *expected = flat ? joined : apart;
  if ((shape.rank != 3 && shape.rank != 4) ||
      memcmp(shape.dims, expected, (size_t)shape.rank * sizeof(int64_t)) != 0) {
    return refuse_shapes(plan, &plan->region->nodes[kernel->node], "the result");
  }
  ONEDNN_TRY(onednn_plan_make(plan, kernel->output, &layout, result));
  const dnnl_dim_t *strides = result->layout.format_desc.blocking.strides;
  for (int32_t d = 0; d < 4; d++) {
    out->y_strides[d] = strides[flat && d > 0 ? (d == 2 ? 1 : 2) : d];
  }
  if (flat) {
    out->y_strides[1] = out->value_size * strides[2];
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_emit_attention(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_argument_t arguments[ONEDNN_LOOP_ARGUMENTS] = {0};
  uint32_t count = MASK;
  context_t *context = kernel_arena_allocate(plan->arena, 1, sizeof(*context));
  if (context == NULL) {
    return onednn_plan_out_of_memory(plan);
  }
  kernel_attention_t *attention = &context->attention;
  ONEDNN_TRY(read_sizes(plan, node, arguments, attention));
  context->has_mask = cleave_view_input(plan->region, node, MASK) != NULL;
  if (context->has_mask) {
    ONEDNN_TRY(read_mask(plan, node, &arguments[count++].tensor, attention));
  }
  context->loops = kernel_attention_choose(2);
  context->items = kernel_attention_items(attention);
  context->slots = context->items < plan->threads ? context->items : plan->threads;
  context->scratch = kernel_attention_scratch(attention);
  if (context->scratch == 0) {
    return kernel_fail(plan->message, CLEAVE_ERROR_LIMIT, "%s '%s': its heads are too large", node->op,
                       onednn_node_name(node));
  }
  onednn_plan_scratch(plan, context->scratch * (size_t)context->slots * sizeof(float),
                      &arguments[count++].tensor);
  ONEDNN_TRY(make_result(plan, kernel, &arguments[count].tensor, attention));
  const onednn_loop_t loop = {.run = run_attention, .context = context, .context_bytes = sizeof(*context)};
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, count + 1, kernel->node, "attention loop"));
  return onednn_plan_bind(plan, kernel->output, &arguments[count].tensor);
}
