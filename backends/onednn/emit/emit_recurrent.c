// SPDX-License-Identifier: Apache-2.0
// RNN, GRU and LSTM inside a region, by the code that cpu/recurrent/recurrent.h shares: weights are packed
// when the region is compiled, and programs share them. Operands and results are dense and row-major.
#include "onednn/emit/emit.h"

#include <string.h>

#include "cpu/recurrent/recurrent.h"

enum { X, W, R, B, LENGTHS, INITIAL_H, INITIAL_C, P };

/* What is packed; lives as long as the plan. */
typedef struct weights {
  cpu_recurrent_t recurrent;
  cpu_recurrent_sizes_t sizes;
  cpu_recurrent_data_t data;
} weights_t;

/* The context of a step, with places in its arguments: 0 if one is left out, X is the first. */
typedef struct layer {
  cpu_recurrent_t recurrent;
  cpu_recurrent_sizes_t sizes;
  const void *p;
  uint32_t packed;
  uint32_t scratch;
  uint32_t states[2];
  uint32_t outputs[3];
} layer_t;

static bool run_layer(const onednn_loop_t *loop, const onednn_crew_t *crew, float *const *memories) {
  const layer_t *layer = loop->context;
  float *at[ONEDNN_LOOP_ARGUMENTS];
  memcpy(at, memories, sizeof(at));
  at[0] = NULL;
  const cpu_recurrent_data_t data = {.x = memories[0],
                                     .p = layer->p,
                                     .initial_h = at[layer->states[0]],
                                     .initial_c = at[layer->states[1]],
                                     .y = at[layer->outputs[0]],
                                     .y_h = at[layer->outputs[1]],
                                     .y_c = at[layer->outputs[2]]};
  const cpu_recurrent_run_t run = {.packed = at[layer->packed],
                                   .scratch = at[layer->scratch],
                                   .threads = crew->threads,
                                   .parallel_for = crew->host->parallel_for};
  cpu_recurrent_run_f32(&layer->recurrent, &layer->sizes, &data, &run);
  return true;
}

static void fill_packed(const void *context, float *out) {
  const weights_t *weights = context;
  cpu_recurrent_pack_f32(&weights->recurrent, &weights->sizes, &weights->data, out);
}

static bool is_used(const onednn_plan_t *plan, const cleave_node_view_t *node, uint32_t output) {
  const cleave_value_view_t *value = cleave_view_output(plan->region, node, output);
  return value != NULL && (value->is_output || onednn_use_count(plan->analysis, node->outputs[output]) > 0);
}

/* The numbers of a constant, aligned; NULL if it is left out. Its content becomes a part of `content`. */
static cleave_status_t read_weights(onednn_plan_t *plan, const cleave_node_view_t *node, uint32_t input,
                                    onednn_content_t *content, const void **out) {
  const cleave_value_view_t *view = cleave_view_input(plan->region, node, input);
  *out = NULL;
  if (view == NULL) {
    return CLEAVE_OK;
  }
  onednn_content_t own = onednn_content_of(view);
  *content = onednn_content_known(&own) ? onednn_content_mix(content, &own, sizeof(own))
                                        : (onednn_content_t){{0, 0}};
  *content = onednn_content_mix(content, &input, sizeof(input));
  *out = view->tensor.data;
  if ((uintptr_t)view->tensor.data % sizeof(float) != 0) {
    size_t count = (size_t)cleave_view_element_count(&view->tensor);
    float *copy = kernel_arena_allocate(plan->arena, count, sizeof(float));
    if (copy == NULL) {
      return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "%s '%s': no memory for its weights",
                         node->op, onednn_node_name(node));
    }
    onednn_floats(view, copy, count);
    *out = copy;
  }
  return CLEAVE_OK;
}

/* The layout of `bytes` as floats. */
static onednn_layout_t flat(size_t bytes) {
  onednn_shape_t shape = {.rank = 1, .dims = {(int64_t)(bytes / sizeof(float))}};
  return onednn_layout_plain(&shape);
}

static cleave_status_t pack(onednn_plan_t *plan, const cleave_node_view_t *node, layer_t *layer,
                            onednn_tensor_t *out) {
  const cpu_recurrent_t *recurrent = &layer->recurrent;
  weights_t *weights = kernel_arena_allocate(plan->arena, 1, sizeof(*weights));
  if (weights == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while compiling");
  }
  *weights = (weights_t){.recurrent = *recurrent, .sizes = layer->sizes};
  const uint64_t form[] = {0x7265637572,
                           (uint64_t)recurrent->kind,
                           (uint64_t)recurrent->linear_before_reset,
                           (uint64_t)recurrent->directions,
                           (uint64_t)layer->sizes.hidden,
                           (uint64_t)layer->sizes.input};
  onednn_content_t content = onednn_content_of(cleave_view_input(plan->region, node, W));
  content = onednn_content_mix(&content, form, sizeof(form));
  ONEDNN_TRY(read_weights(plan, node, W, &content, &weights->data.w));
  ONEDNN_TRY(read_weights(plan, node, R, &content, &weights->data.r));
  ONEDNN_TRY(read_weights(plan, node, B, &content, &weights->data.b));
  ONEDNN_TRY(read_weights(plan, node, P, &content, &weights->data.p));
  layer->p = weights->data.p;
  onednn_layout_t layout = flat(cpu_recurrent_packed_bytes_f32(recurrent, &layer->sizes));
  return onednn_plan_lazy(plan, &layout, &content, fill_packed, weights, out);
}

/* Dense memory for an output: where the region wants it, if that is dense. */
static cleave_status_t make_output(onednn_plan_t *plan, uint32_t value, onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_plan_shape(plan, value);
  onednn_layout_t layout = onednn_layout_plain(&shape);
  ONEDNN_TRY(onednn_plan_make(plan, value, &layout, out));
  return onednn_layout_is_plain(&out->layout) ? CLEAVE_OK
                                              : onednn_plan_make(plan, CLEAVE_INDEX_NONE, &layout, out);
}

cleave_status_t onednn_emit_recurrent(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const cleave_node_view_t *node = &plan->region->nodes[kernel->node];
  onednn_argument_t arguments[ONEDNN_LOOP_ARGUMENTS];
  uint32_t count = 0;
  layer_t *layer = kernel_arena_allocate(plan->arena, 1, sizeof(*layer));
  if (layer == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while compiling");
  }
  ONEDNN_TRY(cpu_recurrent_read(node, &layer->recurrent, plan->message));
  ONEDNN_TRY(cpu_recurrent_measure(&layer->recurrent, plan->region, node, &layer->sizes, plan->message));
  size_t scratch_bytes = cpu_recurrent_scratch_f32(&layer->recurrent, &layer->sizes, true);
  if (scratch_bytes > SIZE_MAX / 64) {
    return kernel_fail(plan->message, CLEAVE_ERROR_LIMIT, "%s '%s': its workspace is too large", node->op,
                       onednn_node_name(node));
  }
  ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[X], &arguments[count].tensor));
  ONEDNN_TRY(onednn_plan_plain(plan, &arguments[count].tensor, &arguments[count].tensor));
  layer->packed = ++count;
  ONEDNN_TRY(pack(plan, node, layer, &arguments[count].tensor));
  layer->scratch = ++count;
  onednn_plan_scratch(plan, scratch_bytes, &arguments[count++].tensor);
  for (uint32_t k = 0; k < 2; k++) {
    if (cleave_view_input(plan->region, node, INITIAL_H + k) != NULL) {
      layer->states[k] = count;
      ONEDNN_TRY(onednn_plan_fetch(plan, node->inputs[INITIAL_H + k], &arguments[count].tensor));
      ONEDNN_TRY(onednn_plan_plain(plan, &arguments[count].tensor, &arguments[count].tensor));
      count++;
    }
  }
  for (uint32_t k = 0; k < 3; k++) {
    if (is_used(plan, node, k)) {
      layer->outputs[k] = count;
      ONEDNN_TRY(make_output(plan, node->outputs[k], &arguments[count++].tensor));
    }
  }
  const onednn_loop_t loop = {.run = run_layer, .context = layer, .context_bytes = sizeof(*layer)};
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, count, kernel->node, node->op));
  for (uint32_t k = 0; k < 3; k++) {
    if (layer->outputs[k] != 0) {
      ONEDNN_TRY(onednn_plan_bind(plan, node->outputs[k], &arguments[layer->outputs[k]].tensor));
    }
  }
  return CLEAVE_OK;
}
