// SPDX-License-Identifier: Apache-2.0
/*
 * The table of bodies. Any operator that lacks only an element type is computed in
 * a wider one in which it gives the same: float32 for shorter floats, int32 or int64 for shorter integers.
 */

#include "formats/onnx/write/onnx_lowering.h"
#include "ops/infer.h"
#include "tensor/dtype.h"

static const struct {
  cleave_op_id_t op;
  cleave_lower_t lower;
} bodies[] = {
    {CLEAVE_OP_AffineGrid, cleave_lower_affine_grid},
    {CLEAVE_OP_Attention, cleave_lower_attention},
    {CLEAVE_OP_BatchNormalization, cleave_lower_batch_normalization},
    {CLEAVE_OP_Bernoulli, cleave_lower_bernoulli},
    {CLEAVE_OP_BlackmanWindow, cleave_lower_window},
    {CLEAVE_OP_CastLike, cleave_lower_cast_like},
    {CLEAVE_OP_CenterCropPad, cleave_lower_center_crop_pad},
    {CLEAVE_OP_GRU, cleave_lower_recurrent},
    {CLEAVE_OP_Gelu, cleave_lower_gelu},
    {CLEAVE_OP_GroupNormalization, cleave_lower_group_normalization},
    {CLEAVE_OP_HammingWindow, cleave_lower_window},
    {CLEAVE_OP_HannWindow, cleave_lower_window},
    {CLEAVE_OP_HardSwish, cleave_lower_hard_swish},
    {CLEAVE_OP_LSTM, cleave_lower_recurrent},
    {CLEAVE_OP_LayerNormalization, cleave_lower_layer_normalization},
    {CLEAVE_OP_Mish, cleave_lower_mish},
    {CLEAVE_OP_Pad, cleave_lower_pad},
    {CLEAVE_OP_RMSNormalization, cleave_lower_rms_normalization},
    {CLEAVE_OP_RNN, cleave_lower_recurrent},
    {CLEAVE_OP_ReduceL1, cleave_lower_reduce},
    {CLEAVE_OP_ReduceL2, cleave_lower_reduce},
    {CLEAVE_OP_ReduceLogSum, cleave_lower_reduce},
    {CLEAVE_OP_ReduceLogSumExp, cleave_lower_reduce},
    {CLEAVE_OP_ReduceMean, cleave_lower_reduce},
    {CLEAVE_OP_ReduceSumSquare, cleave_lower_reduce},
    {CLEAVE_OP_Relu, cleave_lower_relu},
    {CLEAVE_OP_Shape, cleave_lower_shape},
    {CLEAVE_OP_Split, cleave_lower_split},
    {CLEAVE_OP_Swish, cleave_lower_swish},
    {CLEAVE_OP_Trilu, cleave_lower_trilu},
    {CLEAVE_OP_UnpackBits, cleave_lower_unpack_bits},
};

static cleave_lower_t lower_of(const cleave_op_t *op) {
  for (size_t k = 0; k < sizeof bodies / sizeof *bodies; k++) {
    if (bodies[k].op == op->id) {
      return bodies[k].lower;
    }
  }
  return NULL;
}

bool cleave_onnx_has_body(const cleave_op_t *op) {
  return lower_of(op) != NULL;
}

/* ---- a wider element type ---- */

static cleave_dtype_t wider(cleave_dtype_t dtype) {
  switch (dtype) {
    case CLEAVE_DTYPE_F16:
    case CLEAVE_DTYPE_BF16: return CLEAVE_DTYPE_F32;
    case CLEAVE_DTYPE_BOOL:
    case CLEAVE_DTYPE_I8:
    case CLEAVE_DTYPE_U8:
    case CLEAVE_DTYPE_I16:
    case CLEAVE_DTYPE_U16: return CLEAVE_DTYPE_I32;
    case CLEAVE_DTYPE_U32: return CLEAVE_DTYPE_I64;
    default: return CLEAVE_DTYPE_UNKNOWN;
  }
}

/* Puts the operator between casts of all that has the element type. */
static void lower_type(cleave_lowering_t *l, cleave_dtype_t narrow, cleave_dtype_t wide) {
  const cleave_node_record_t *record = cleave_graph_node(l->source, l->node);
  cleave_value_t *inputs = cleave_arena_copy(&l->graph->arena, l->inputs, l->input_count * sizeof *inputs);
  if (inputs == NULL) {
    l->status = cleave_error_out_of_memory(l->error);
    return;
  }
  for (uint32_t k = 0; k < l->input_count; k++) {
    if (cleave_lowering_dtype(l, k) == narrow) {
      inputs[k] = cleave_lowering_cast(l, inputs[k], narrow, wide);
    }
  }
  cleave_lowering_add(l, record->op, inputs, l->input_count, record->output_count);
  for (uint32_t k = 0; k < record->attribute_count && cleave_lowering_goes_on(l); k++) {
    l->status = cleave_graph_set_attribute(l->graph, l->last, &record->attributes[k], l->error);
  }
  cleave_node_t node = l->last;
  for (uint32_t k = 0; k < record->output_count && cleave_lowering_goes_on(l); k++) {
    cleave_value_t y = cleave_node_output(l->graph, node, k);
    bool is_narrow =
        cleave_graph_value(l->source, cleave_node_output(l->source, l->node, k))->dtype == (uint8_t)narrow;
    cleave_lowering_output(l, is_narrow ? cleave_lowering_cast(l, y, wide, narrow) : y);
  }
}

/* ---- the whole ---- */

/* Axes, sizes and the like: bodies have them as constants, too, since older forms may want them as
 * attributes. */
static bool is_operand(const cleave_tensor_t *tensor) {
  return tensor != NULL && tensor->dtype == CLEAVE_DTYPE_I64 && tensor->count <= 2 * CLEAVE_MAX_RANK;
}

/* Named dimensions belong to another graph: only sizes are taken over. */
static void add_inputs(cleave_lowering_t *l) {
  const cleave_op_t *op = cleave_node_op(l->source, l->node);
  for (uint32_t k = 0; k < l->input_count && cleave_lowering_goes_on(l); k++) {
    cleave_dim_t dims[CLEAVE_MAX_RANK];
    int32_t rank = cleave_lowering_rank(l, k);
    for (int32_t d = 0; d < rank; d++) {
      dims[d] = cleave_lowering_dim(l, k, d) >= 0 ? cleave_lowering_dim(l, k, d) : CLEAVE_DIM_UNKNOWN;
    }
    cleave_value_t value;
    l->status =
        cleave_graph_add_input(l->graph, op->inputs[k < op->input_count ? k : op->input_count - 1].name,
                               cleave_lowering_dtype(l, k), rank, dims, &value, l->error);
    cleave_value_t given = cleave_node_input(l->source, l->node, k);
    l->inputs[k] = cleave_value_exists(given) ? value : CLEAVE_VALUE_NONE;
    if (cleave_lowering_goes_on(l) && cleave_value_exists(given) &&
        is_operand(cleave_graph_value(l->source, given)->tensor)) {
      l->status = cleave_graph_add_constant(l->graph, NULL, cleave_graph_value(l->source, given)->tensor,
                                            &l->inputs[k], l->error);
    }
  }
}

static void make_body(cleave_lowering_t *l, cleave_dtype_t refused) {
  const cleave_op_t *op = cleave_node_op(l->source, l->node);
  cleave_lower_t lower = lower_of(op);
  cleave_dtype_t wide = wider(refused);
  add_inputs(l);
  if (wide != CLEAVE_DTYPE_UNKNOWN) {
    lower_type(l, refused, wide);
  } else if (lower != NULL) {
    lower(l);
  } else {
    cleave_lowering_refuse(l, "");
  }
}

cleave_status_t cleave_onnx_lower(const cleave_graph_t *graph, cleave_node_t node, cleave_dtype_t refused,
                                  cleave_graph_t **out_body, const char **out_reason, cleave_error_t *error) {
  cleave_lowering_t l = {.source = graph, .node = node, .last = CLEAVE_NODE_NONE, .error = error};
  cleave_infer_options_t options = {0};
  *out_body = NULL;
  *out_reason = NULL;
  l.status = cleave_graph_create(&l.graph, error);
  l.input_count = cleave_node_input_count(graph, node);
  if (l.status == CLEAVE_OK) {
    l.inputs = cleave_arena_allocate(&l.graph->arena, l.input_count, sizeof *l.inputs);
    l.status = l.inputs == NULL ? cleave_error_out_of_memory(error) : CLEAVE_OK;
  }
  if (l.status == CLEAVE_OK) {
    make_body(&l, refused);
  }
  if (cleave_lowering_goes_on(&l)) {
    l.status = cleave_graph_infer(l.graph, &options, NULL, error);
  }
  if (cleave_lowering_goes_on(&l)) {
    *out_body = l.graph;
    return CLEAVE_OK;
  }
  cleave_graph_destroy(l.graph);
  *out_reason = l.reason != NULL && l.reason[0] != '\0' ? l.reason : NULL;
  return l.status;
}
