// SPDX-License-Identifier: Apache-2.0
/*
 * The table of interface changes, and the operators that vanish: Constant, Identity, Dropout. Lines of one
 * operator apply from top to bottom, so that a line may count on those above it.
 */
#include "formats/onnx/read/onnx_maker.h"

#include <string.h>

enum { ANY = INT32_MAX };

/* ONNX 23 defines RotaryEmbedding by a function. */
static cleave_status_t rewrite_rotary_embedding(cleave_onnx_call_t *call, cleave_error_t *error) {
  return cleave_onnx_make(call, cleave_onnx_mean_rotary_embedding_23, error);
}

static const cleave_onnx_change_t changes[] = {
    {"Constant", 1, ANY, cleave_onnx_rewrite_constant},
    {"Identity", 1, ANY, cleave_onnx_rewrite_identity},
    {"Dropout", 1, ANY, cleave_onnx_rewrite_dropout},

    {"Add Sub Mul Div Pow And Or Xor Equal Greater Less", 1, 6, cleave_onnx_rewrite_broadcast},
    {"PRelu", 1, 6, cleave_onnx_rewrite_prelu},
    {"QuantizeLinear", 21, ANY, cleave_onnx_check_quantize},
    {"Gemm", 1, 6, cleave_onnx_rewrite_gemm},
    {"Selu", 1, 5, cleave_onnx_rewrite_selu},
    {"Cast", 1, 5, cleave_onnx_rewrite_cast_names},
    {"Clip", 1, 10, cleave_onnx_rewrite_clip},

    {"RNN GRU LSTM", 1, 6, cleave_onnx_rewrite_recurrent},
    {"LpPool GlobalLpPool", 1, 1, cleave_onnx_rewrite_norm_order},
    {"BatchNormalization", 1, 13, cleave_onnx_rewrite_batch_normalization},
    {"GroupNormalization", 18, 20, cleave_onnx_rewrite_group_normalization},
    {"Softmax LogSoftmax Hardmax", 1, 12, cleave_onnx_rewrite_softmax},
    {"Upsample", 1, ANY, cleave_onnx_rewrite_upsample},
    {"Resize", 10, 10, cleave_onnx_rewrite_resize_10},
    {"Resize", 11, ANY, cleave_onnx_rewrite_resize},
    {"GridSample", 16, 19, cleave_onnx_rewrite_grid_sample},
    {"RoiAlign", 10, 15, cleave_onnx_rewrite_roi_align},

    {"Concat", 1, 3, cleave_onnx_rewrite_concat},
    {"Reshape", 1, 4, cleave_onnx_rewrite_reshape},
    {"Tile", 1, 5, cleave_onnx_rewrite_tile},
    {"Pad", 1, 10, cleave_onnx_rewrite_pad},
    {"Slice", 1, 9, cleave_onnx_rewrite_slice},
    {"TopK", 1, 9, cleave_onnx_rewrite_top_k},
    {"Split", 1, 17, cleave_onnx_rewrite_split},
    {"Squeeze Unsqueeze ReduceSum", 1, 12, cleave_onnx_rewrite_axes},
    {"ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
     "ReduceSumSquare",
     1, 17, cleave_onnx_rewrite_axes},
    {"Scatter", 9, ANY, cleave_onnx_rewrite_scatter},
    {"DFT", 17, 19, cleave_onnx_rewrite_dft},
    {"RotaryEmbedding", 23, ANY, rewrite_rotary_embedding},
};

cleave_status_t cleave_onnx_canonicalise(cleave_onnx_call_t *call, cleave_error_t *error) {
  const char *op_type = call->op_type;
  if (strcmp(call->node->domain, "com.microsoft") == 0 && strcmp(op_type, "MatMulNBits") == 0) {
    return cleave_onnx_rewrite_matmul_n_bits(call, error);
  }
  cleave_onnx_meaning_t meaning = cleave_onnx_find_microsoft(call->node);
  if (meaning != NULL) {
    return cleave_onnx_make(call, meaning, error);
  }
  if (call->node->domain[0] != '\0') {
    return CLEAVE_OK;
  }
  if (call->version < 7) {
    cleave_onnx_call_remove(call, "consumed_inputs");
  }
  for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
    const cleave_onnx_change_t *change = &changes[k];
    if (call->version >= change->first && call->version <= change->last &&
        cleave_text_has_word(change->op_types, op_type)) {
      CLEAVE_TRY(change->rewrite(call, error));
    }
  }
  return CLEAVE_OK;
}

/* The tensor of a Constant node, whichever of its attributes gives it. */
static cleave_status_t constant_tensor(cleave_onnx_call_t *call, const cleave_attribute_t *value,
                                       cleave_tensor_t **out_tensor, cleave_error_t *error) {
  int64_t count = (int64_t)value->count;
  switch (value->kind) {
    case CLEAVE_ATTRIBUTE_TENSOR: *out_tensor = cleave_tensor_retain(value->held); return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_INT: return cleave_tensor_create_ints(0, &value->i, 1, out_tensor, error);
    case CLEAVE_ATTRIBUTE_INTS: return cleave_tensor_create_ints(1, value->ints, count, out_tensor, error);
    case CLEAVE_ATTRIBUTE_FLOAT: return cleave_tensor_create_float((float)value->f, out_tensor, error);
    case CLEAVE_ATTRIBUTE_FLOATS:
      CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, &count, out_tensor, error));
      if (count > 0) {
        memcpy((*out_tensor)->data, value->floats, (size_t)count * sizeof *value->floats);
      }
      return CLEAVE_OK;
    case CLEAVE_ATTRIBUTE_STRING:
      CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_STRING, 0, NULL, out_tensor, error));
      return cleave_tensor_set_string(*out_tensor, 0, value->s, strlen(value->s), error);
    case CLEAVE_ATTRIBUTE_STRINGS:
      CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_STRING, 1, &count, out_tensor, error));
      for (int64_t k = 0; k < count; k++) {
        CLEAVE_TRY(
            cleave_tensor_set_string(*out_tensor, k, value->strings[k], strlen(value->strings[k]), error));
      }
      return CLEAVE_OK;
  }
  return cleave_onnx_call_refuse(call, "its value is of an unknown kind", error);
}

cleave_status_t cleave_onnx_rewrite_constant(cleave_onnx_call_t *call, cleave_error_t *error) {
  cleave_graph_t *graph = call->builder->graph;
  const char *name = call->attributes.count == 1 ? call->attributes.items[0].name : "";
  if ((strncmp(name, "value", 5) != 0 && strcmp(name, "sparse_value") != 0) ||
      call->node->output_count != 1) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "node '%s': expected a Constant with one value and one output, found %zu and %u",
                            call->node->label, call->attributes.count, call->node->output_count);
  }
  cleave_tensor_t *tensor = NULL;
  cleave_value_t value;
  cleave_status_t status = constant_tensor(call, &call->attributes.items[0], &tensor, error);
  CLEAVE_THEN(status,
              cleave_graph_add_constant(graph, cleave_strings_text(&graph->strings, call->node->outputs[0]),
                                        tensor, &value, error));
  cleave_tensor_release(tensor);
  CLEAVE_TRY(status);
  cleave_onnx_call_bind(call, 0, value);
  call->is_done = true;
  return CLEAVE_OK;
}

cleave_status_t cleave_onnx_rewrite_identity(cleave_onnx_call_t *call, cleave_error_t *error) {
  cleave_value_t input = cleave_onnx_call_input(call, 0);
  if (call->inputs.count != 1 || call->node->output_count != 1 || !cleave_value_exists(input)) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT,
                            "node '%s': expected an Identity with one input and one output, found %zu and %u",
                            call->node->label, call->inputs.count, call->node->output_count);
  }
  cleave_onnx_call_bind(call, 0, input);
  call->is_done = true;
  return CLEAVE_OK;
}

/* Is the input a constant false, or the number 0? */
static bool is_zero(const cleave_onnx_call_t *call, cleave_value_t value) {
  if (!cleave_value_exists(value)) {
    return false;
  }
  const cleave_tensor_t *tensor = cleave_graph_value(call->builder->graph, value)->tensor;
  return tensor != NULL && tensor->count == 1 && tensor->dtype != CLEAVE_DTYPE_STRING &&
         cleave_tensor_get_float(tensor, 0) == 0.0;
}

/* Dropout: 1 and 6 (is_test), 7 and 10 (inference only), 12 (ratio and training_mode are inputs). In training
 * with a ratio of 0, as exporters write for layers whose dropout is switched off, nothing is dropped either.
 */
cleave_status_t cleave_onnx_rewrite_dropout(cleave_onnx_call_t *call, cleave_error_t *error) {
  cleave_value_t data = cleave_onnx_call_input(call, 0);
  bool mask_used = cleave_onnx_call_output_used(call, 1);
  bool is_old = call->version < 12;
  cleave_value_t training = cleave_onnx_call_input(call, 2);
  bool drops = !is_old && cleave_value_exists(training) && !is_zero(call, training) &&
               !is_zero(call, cleave_onnx_call_input(call, 1));
  if (cleave_value_exists(data) && !mask_used && !drops) {
    cleave_onnx_call_bind(call, 0, data);
    call->is_done = true;
    return CLEAVE_OK;
  }
  if (!is_old) {
    return CLEAVE_OK;
  }
  if (call->version < 10 && mask_used) {
    return cleave_onnx_call_refuse(call, "its mask is not a boolean tensor in this version", error);
  }
  cleave_value_t ratio;
  CLEAVE_TRY(cleave_onnx_call_number(call, CLEAVE_DTYPE_F32, cleave_onnx_call_float(call, "ratio", 0.5),
                                     &ratio, error));
  cleave_onnx_call_remove(call, "ratio");
  cleave_onnx_call_remove(call, "is_test");
  return cleave_onnx_call_set_input(call, 1, ratio, error);
}
