// SPDX-License-Identifier: Apache-2.0
// oneDNN 2: an operation descriptor, and a primitive descriptor out of it.
#include "onednn/library/library.h"

#if DNNL_VERSION_MAJOR < 3

#include <string.h>

const onednn_wino_t *onednn_layout_wino(const onednn_layout_t *layout) {
  return layout->format_kind == dnnl_format_kind_wino && layout->extra.flags == 0
             ? &layout->format_desc.wino_desc
             : NULL;
}

bool onednn_layout_has_extra(const onednn_layout_t *layout) {
  return layout->extra.flags != 0;
}

bool onednn_layout_pieces(const onednn_layout_t *layout, onednn_piece_fn_t piece, void *context) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  const onednn_wino_t *wino = onednn_layout_wino(layout);
  size_t dims = (size_t)layout->ndims * sizeof(dnnl_dim_t);
  const int kinds[] = {layout->ndims, (int)layout->format_kind, (int)layout->data_type};
  piece(context, kinds, sizeof(kinds));
  piece(context, &layout->offset0, sizeof(layout->offset0));
  piece(context, layout->dims, dims);
  piece(context, layout->padded_dims, dims);
  piece(context, layout->padded_offsets, dims);
  piece(context, &layout->extra.flags, sizeof(layout->extra.flags));
  piece(context, &layout->extra.compensation_mask, sizeof(layout->extra.compensation_mask));
  piece(context, &layout->extra.scale_adjust, sizeof(layout->extra.scale_adjust));
  piece(context, &layout->extra.asymm_compensation_mask, sizeof(layout->extra.asymm_compensation_mask));
  if (layout->format_kind == dnnl_blocked) {
    size_t blocks = (size_t)blocking->inner_nblks * sizeof(dnnl_dim_t);
    piece(context, blocking->strides, dims);
    piece(context, blocking->inner_blks, blocks);
    piece(context, blocking->inner_idxs, blocks);
    return true;
  }
  if (wino == NULL) {
    return false;
  }
  const int fields[] = {wino->wino_format, wino->r,        wino->alpha,     wino->ic,       wino->oc,
                        wino->ic_block,    wino->oc_block, wino->ic2_block, wino->oc2_block};
  piece(context, fields, sizeof(fields));
  piece(context, &wino->adj_scale, sizeof(wino->adj_scale));
  piece(context, &wino->size, sizeof(wino->size));
  return true;
}

// ---- memory descriptors ----

dnnl_status_t onednn_md_strided(onednn_layout_t *out, int rank, const dnnl_dims_t dims,
                                const dnnl_dims_t strides) {
  return dnnl_memory_desc_init_by_strides(out, rank, dims, dnnl_f32, strides);
}

dnnl_status_t onednn_md_tagged(onednn_layout_t *out, int rank, const dnnl_dims_t dims,
                               dnnl_format_tag_t tag) {
  return dnnl_memory_desc_init_by_tag(out, rank, dims, dnnl_f32, tag);
}

dnnl_status_t onednn_md_typed(onednn_layout_t *out, const onednn_layout_t *layout, dnnl_data_type_t type) {
  if (layout->extra.flags != 0 ||
      (layout->format_kind != dnnl_blocked && layout->format_kind != dnnl_format_kind_any)) {
    return dnnl_unimplemented;
  }
  *out = *layout;
  out->data_type = type;
  return dnnl_success;
}

dnnl_status_t onednn_md_reshaped(onednn_layout_t *out, const onednn_layout_t *layout, int rank,
                                 const dnnl_dims_t dims) {
  return dnnl_memory_desc_reshape(out, layout, rank, dims);
}

dnnl_status_t onednn_md_permuted(onednn_layout_t *out, const onednn_layout_t *layout, const int *positions) {
  return dnnl_memory_desc_permute_axes(out, layout, positions);
}

dnnl_status_t onednn_md_part(onednn_layout_t *out, const onednn_layout_t *layout, const dnnl_dims_t dims,
                             const dnnl_dims_t starts, dnnl_dim_t *offset) {
  dnnl_status_t status = dnnl_memory_desc_init_submemory(out, layout, dims, starts);
  if (status == dnnl_success) {
    *offset = out->offset0;
    out->offset0 = 0;
  }
  return status;
}

bool onednn_md_equal(const onednn_layout_t *a, const onednn_layout_t *b) {
  return dnnl_memory_desc_equal(a, b) != 0;
}

size_t onednn_md_bytes(const onednn_layout_t *layout) {
  return dnnl_memory_desc_get_size(layout);
}

dnnl_status_t onednn_memory_create(dnnl_memory_t *out, const onednn_layout_t *layout, dnnl_engine_t engine,
                                   void *data) {
  return dnnl_memory_create(out, layout, engine, data);
}

bool onednn_query_layout(const_dnnl_primitive_desc_t description, dnnl_query_t what, onednn_layout_t *out) {
  const dnnl_memory_desc_t *found = dnnl_primitive_desc_query_md(description, what, 0);
  if (found == NULL || found->ndims == 0) {
    return false;
  }
  *out = *found;
  return true;
}

bool onednn_copies_well(const onednn_layout_t *layout) {
  (void)layout;
  return true;
}

// ---- post-ops ----

dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops, float scale, dnnl_data_type_t type) {
  return dnnl_post_ops_append_sum_v2(ops, scale, type);
}

dnnl_status_t onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta) {
  return dnnl_post_ops_append_eltwise(ops, 1.0F, algorithm, alpha, beta);
}

dnnl_status_t onednn_append_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm,
                                   const onednn_layout_t *operand) {
  return dnnl_post_ops_append_binary(ops, algorithm, operand);
}

// ---- products of 8-bit integers ----

dnnl_status_t onednn_set_quantized(dnnl_primitive_attr_t attributes, const onednn_quantized_t *q) {
  dnnl_status_t status =
      dnnl_primitive_attr_set_output_scales(attributes, q->count, q->result_mask, q->scales);
  return status == dnnl_success && q->zero_point != 0
             ? dnnl_primitive_attr_set_zero_points(attributes, DNNL_ARG_SRC, 1, 0, &q->zero_point)
             : status;
}

// ---- primitives ----

// Takes the first implementation after `skipped` ones, in the order of the iterator.
static dnnl_status_t create_nth(const onednn_maker_t *m, const_dnnl_op_desc_t operation,
                                const_dnnl_primitive_desc_t forward) {
  if (m->skipped == 0) {
    return dnnl_primitive_desc_create(m->out, operation, m->attributes, m->engine, forward);
  }
  dnnl_primitive_desc_iterator_t iterator = NULL;
  dnnl_status_t status =
      dnnl_primitive_desc_iterator_create(&iterator, operation, m->attributes, m->engine, forward);
  for (int k = 0; k < m->skipped && status == dnnl_success; k++) {
    status = dnnl_primitive_desc_iterator_next(iterator);
  }
  if (status == dnnl_success) {
    *m->out = dnnl_primitive_desc_iterator_fetch(iterator);
    status = *m->out == NULL ? dnnl_out_of_memory : dnnl_success;
  }
  if (iterator != NULL) {
    (void)dnnl_primitive_desc_iterator_destroy(iterator);
  }
  return status;
}

static dnnl_status_t create_after(const onednn_maker_t *m, dnnl_status_t status,
                                  const_dnnl_op_desc_t operation, const_dnnl_primitive_desc_t forward) {
  return status == dnnl_success ? create_nth(m, operation, forward) : status;
}

static dnnl_status_t create(const onednn_maker_t *m, dnnl_status_t status, const_dnnl_op_desc_t operation) {
  return create_after(m, status, operation, NULL);
}

dnnl_status_t onednn_make_convolution(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                      const onednn_operands_t *o, const onednn_geometry_t *g) {
  dnnl_convolution_desc_t operation;
  dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
      &operation, dnnl_forward_inference, algorithm, o->source, o->weights, o->bias, o->result, g->strides,
      g->dilations, g->pad_begin, g->pad_end);
  return create(m, status, &operation);
}

dnnl_status_t onednn_make_deconvolution(const onednn_maker_t *m, const onednn_operands_t *o,
                                        const onednn_geometry_t *g) {
  dnnl_deconvolution_desc_t operation;
  dnnl_status_t status = dnnl_dilated_deconvolution_forward_desc_init(
      &operation, dnnl_forward_inference, dnnl_deconvolution_direct, o->source, o->weights, o->bias,
      o->result, g->strides, g->dilations, g->pad_begin, g->pad_end);
  return create(m, status, &operation);
}

dnnl_status_t onednn_make_convolution_weights(const onednn_maker_t *m, const onednn_operands_t *o,
                                              const onednn_geometry_t *g) {
  dnnl_convolution_desc_t operation;
  dnnl_status_t status = dnnl_dilated_convolution_backward_weights_desc_init(
      &operation, dnnl_convolution_direct, o->source, o->weights, NULL, o->result, g->strides, g->dilations,
      g->pad_begin, g->pad_end);
  return create(m, status, &operation);
}

dnnl_status_t onednn_make_matmul(const onednn_maker_t *m, const onednn_operands_t *o) {
  dnnl_matmul_desc_t operation;
  return create(m, dnnl_matmul_desc_init(&operation, o->source, o->weights, o->bias, o->result), &operation);
}

static bool is_dilated(const onednn_layout_t *source, const onednn_geometry_t *g) {
  for (int d = 0; d < source->ndims - 2; d++) {
    if (g->dilations[d] != 0) {
      return true;
    }
  }
  return false;
}

static dnnl_status_t make_pooling(const onednn_maker_t *m, dnnl_prop_kind_t kind, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *source, const onednn_layout_t *result,
                                  const onednn_geometry_t *g) {
  dnnl_pooling_v2_desc_t dilated;
  dnnl_pooling_desc_t dense;
  if (is_dilated(source, g)) {
    return create(m,
                  dnnl_pooling_v2_forward_desc_init(&dilated, kind, algorithm, source, result, g->strides,
                                                    g->kernel, g->dilations, g->pad_begin, g->pad_end),
                  &dilated);
  }
  return create(m,
                dnnl_pooling_forward_desc_init(&dense, kind, algorithm, source, result, g->strides, g->kernel,
                                               g->pad_begin, g->pad_end),
                &dense);
}

dnnl_status_t onednn_make_pooling(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *source, const onednn_layout_t *result,
                                  const onednn_geometry_t *g) {
  return make_pooling(m, dnnl_forward_inference, algorithm, source, result, g);
}

dnnl_status_t onednn_make_max_pooling_with_places(const onednn_maker_t *m, const onednn_layout_t *source,
                                                  const onednn_layout_t *result, const onednn_geometry_t *g) {
  return make_pooling(m, dnnl_forward_training, dnnl_pooling_max, source, result, g);
}

dnnl_status_t onednn_make_pooling_gradient(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                           const onednn_layout_t *source, const onednn_layout_t *result,
                                           const onednn_geometry_t *g, const_dnnl_primitive_desc_t forward) {
  dnnl_pooling_v2_desc_t dilated;
  dnnl_pooling_desc_t dense;
  if (is_dilated(source, g)) {
    return create_after(m,
                        dnnl_pooling_v2_backward_desc_init(&dilated, algorithm, source, result, g->strides,
                                                           g->kernel, g->dilations, g->pad_begin, g->pad_end),
                        &dilated, forward);
  }
  return create_after(m,
                      dnnl_pooling_backward_desc_init(&dense, algorithm, source, result, g->strides,
                                                      g->kernel, g->pad_begin, g->pad_end),
                      &dense, forward);
}

dnnl_status_t onednn_make_eltwise(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *data, float alpha, float beta) {
  dnnl_eltwise_desc_t operation;
  return create(
      m, dnnl_eltwise_forward_desc_init(&operation, dnnl_forward_inference, algorithm, data, alpha, beta),
      &operation);
}

dnnl_status_t onednn_make_binary(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                 const onednn_layout_t *left, const onednn_layout_t *right,
                                 const onednn_layout_t *result) {
  dnnl_binary_desc_t operation;
  return create(m, dnnl_binary_desc_init(&operation, algorithm, left, right, result), &operation);
}

dnnl_status_t onednn_make_batch_normalization(const onednn_maker_t *m, const onednn_layout_t *data,
                                              float epsilon, unsigned flags) {
  dnnl_batch_normalization_desc_t operation;
  return create(
      m, dnnl_batch_normalization_forward_desc_init(&operation, dnnl_forward_inference, data, epsilon, flags),
      &operation);
}

dnnl_status_t onednn_make_batch_normalization_gradient(const onednn_maker_t *m, const onednn_layout_t *data,
                                                       float epsilon) {
  const unsigned flags = dnnl_use_scale | dnnl_use_shift;
  dnnl_batch_normalization_desc_t operation;
  return create(
      m, dnnl_batch_normalization_backward_desc_init(&operation, dnnl_backward, data, data, epsilon, flags),
      &operation);
}

dnnl_status_t onednn_make_layer_normalization(const onednn_maker_t *m, const onednn_layout_t *source,
                                              const onednn_layout_t *result, float epsilon, unsigned flags) {
  dnnl_layer_normalization_desc_t operation;
  if (!onednn_md_equal(source, result)) {
    return dnnl_unimplemented;
  }
  return create(m,
                dnnl_layer_normalization_forward_desc_init(&operation, dnnl_forward_inference, source, NULL,
                                                           epsilon, flags),
                &operation);
}

dnnl_status_t onednn_make_softmax(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *source, const onednn_layout_t *result, int axis) {
  dnnl_softmax_v2_desc_t operation;
  return create(
      m,
      dnnl_softmax_v2_forward_desc_init(&operation, dnnl_forward_inference, algorithm, source, result, axis),
      &operation);
}

dnnl_status_t onednn_make_lrn(const onednn_maker_t *m, const onednn_layout_t *data, dnnl_dim_t size,
                              float alpha, float beta, float bias) {
  dnnl_lrn_desc_t operation;
  return create(m,
                dnnl_lrn_forward_desc_init(&operation, dnnl_forward_inference, dnnl_lrn_across_channels, data,
                                           size, alpha, beta, bias),
                &operation);
}

dnnl_status_t onednn_make_reduction(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                    const onednn_layout_t *source, const onednn_layout_t *result,
                                    float power) {
  dnnl_reduction_desc_t operation;
  return create(m, dnnl_reduction_desc_init(&operation, algorithm, source, result, power, 0.0F), &operation);
}

dnnl_status_t onednn_make_resampling(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                     const onednn_layout_t *source, const onednn_layout_t *result) {
  dnnl_resampling_desc_t operation;
  return create(
      m,
      dnnl_resampling_forward_desc_init(&operation, dnnl_forward_inference, algorithm, NULL, source, result),
      &operation);
}

dnnl_status_t onednn_make_prelu(const onednn_maker_t *m, const onednn_layout_t *data,
                                const onednn_layout_t *slope) {
  dnnl_prelu_desc_t operation;
  return create(m, dnnl_prelu_forward_desc_init(&operation, dnnl_forward_inference, data, slope), &operation);
}

dnnl_status_t onednn_make_reorder(const onednn_maker_t *m, const onednn_layout_t *from,
                                  const onednn_layout_t *to) {
  return dnnl_reorder_primitive_desc_create(m->out, from, m->engine, to, m->engine, m->attributes);
}

dnnl_status_t onednn_make_concat(const onednn_maker_t *m, const onednn_layout_t *result, int count, int axis,
                                 const onednn_layout_t *sources) {
  return dnnl_concat_primitive_desc_create(m->out, result, count, axis, sources, m->attributes, m->engine);
}

#endif
