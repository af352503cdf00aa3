// SPDX-License-Identifier: Apache-2.0
// oneDNN 3. Its descriptors are made out of our values for one call, and destroyed after it; this happens
// while compiling only. Version 2 is in library_2.c.
// Long file: one function for each call of oneDNN's interface.
#include "onednn/library/library.h"

#if DNNL_VERSION_MAJOR >= 3

#include <stdlib.h>
#include <string.h>

enum { MAX_DESCRIPTORS = 4 };

// Descriptors of one call.
typedef struct descriptors {
  dnnl_memory_desc_t items[MAX_DESCRIPTORS];
  int count;
  dnnl_status_t status;  // the first failure
} descriptors_t;

// NULL for NULL, and after a failure.
static const_dnnl_memory_desc_t use(descriptors_t *all, const onednn_layout_t *layout) {
  dnnl_memory_desc_t made = NULL;
  if (layout == NULL || all->status != dnnl_success) {
    return NULL;
  }
  all->status = layout->blob_bytes == 0 ? dnnl_invalid_arguments
                                        : dnnl_memory_desc_create_with_blob(&made, layout->blob);
  if (all->status == dnnl_success) {
    all->items[all->count++] = made;
  }
  return made;
}

static dnnl_status_t done(descriptors_t *all) {
  while (all->count > 0) {
    (void)dnnl_memory_desc_destroy(all->items[--all->count]);
  }
  return all->status;
}

static void read_dims(const_dnnl_memory_desc_t from, dnnl_query_t what, int count, dnnl_dims_t out) {
  const dnnl_dims_t *dims = NULL;
  if (count > 0 && dnnl_memory_desc_query(from, what, (void *)&dims) == dnnl_success && dims != NULL) {
    memcpy(out, *dims, (size_t)count * sizeof(dnnl_dim_t));
  }
}

static dnnl_status_t read_layout(const_dnnl_memory_desc_t from, onednn_layout_t *out) {
  int blocks = 0;
  memset(out, 0, sizeof(*out));
  dnnl_status_t status = dnnl_memory_desc_query(from, dnnl_query_ndims_s32, &out->ndims);
  if (status == dnnl_success) {
    status = dnnl_memory_desc_query(from, dnnl_query_format_kind, &out->format_kind);
  }
  if (status == dnnl_success) {
    status = dnnl_memory_desc_query(from, dnnl_query_data_type, &out->data_type);
  }
  if (status == dnnl_success) {
    status = dnnl_memory_desc_get_blob(NULL, &out->blob_bytes, from);
  }
  if (status != dnnl_success || out->blob_bytes > sizeof(out->blob)) {
    out->blob_bytes = 0;
    return status != dnnl_success ? status : dnnl_unimplemented;
  }
  read_dims(from, dnnl_query_dims, out->ndims, out->dims);
  read_dims(from, dnnl_query_padded_dims, out->ndims, out->padded_dims);
  if (out->format_kind == dnnl_blocked) {
    onednn_blocking_t *blocking = &out->format_desc.blocking;
    read_dims(from, dnnl_query_strides, out->ndims, blocking->strides);
    if (dnnl_memory_desc_query(from, dnnl_query_inner_nblks_s32, &blocks) == dnnl_success) {
      blocking->inner_nblks = blocks;
      read_dims(from, dnnl_query_inner_blks, blocks, blocking->inner_blks);
      read_dims(from, dnnl_query_inner_idxs, blocks, blocking->inner_idxs);
    }
  }
  out->bytes = dnnl_memory_desc_get_size(from);
  return dnnl_memory_desc_get_blob(out->blob, &out->blob_bytes, from);
}

// Takes over a descriptor that a call has made.
static dnnl_status_t take(dnnl_status_t status, const dnnl_memory_desc_t *made, onednn_layout_t *out) {
  if (status == dnnl_success) {
    status = read_layout(*made, out);
    (void)dnnl_memory_desc_destroy(*made);
  }
  return status;
}

const onednn_wino_t *onednn_layout_wino(const onednn_layout_t *layout) {
  (void)layout;
  return NULL;
}

bool onednn_layout_has_extra(const onednn_layout_t *layout) {
  (void)layout;
  return false;
}

bool onednn_layout_pieces(const onednn_layout_t *layout, onednn_piece_fn_t piece, void *context) {
  piece(context, layout->blob, layout->blob_bytes);
  return layout->blob_bytes > 0;
}

// ---- memory descriptors ----

dnnl_status_t onednn_md_strided(onednn_layout_t *out, int rank, const dnnl_dims_t dims,
                                const dnnl_dims_t strides) {
  dnnl_memory_desc_t made = NULL;
  return take(dnnl_memory_desc_create_with_strides(&made, rank, dims, dnnl_f32, strides), &made, out);
}

dnnl_status_t onednn_md_tagged(onednn_layout_t *out, int rank, const dnnl_dims_t dims,
                               dnnl_format_tag_t tag) {
  dnnl_memory_desc_t made = NULL;
  return take(dnnl_memory_desc_create_with_tag(&made, rank, dims, dnnl_f32, tag), &made, out);
}

dnnl_status_t onednn_md_typed(onednn_layout_t *out, const onednn_layout_t *layout, dnnl_data_type_t type) {
  static const dnnl_format_tag_t tags[] = {
      dnnl_aBc16b,  dnnl_aBcd16b, dnnl_aBcde16b, dnnl_aBc8b,   dnnl_aBcd8b,
      dnnl_aBcde8b, dnnl_aBc4b,   dnnl_aBcd4b,   dnnl_aBcde4b,
  };
  dnnl_memory_desc_t made = NULL;
  if (layout->format_kind == dnnl_format_kind_any) {
    return take(
        dnnl_memory_desc_create_with_tag(&made, layout->ndims, layout->dims, type, dnnl_format_tag_any),
        &made, out);
  }
  if (layout->format_kind != dnnl_blocked) {
    return dnnl_unimplemented;
  }
  if (layout->format_desc.blocking.inner_nblks == 0) {
    return take(dnnl_memory_desc_create_with_strides(&made, layout->ndims, layout->dims, type,
                                                     layout->format_desc.blocking.strides),
                &made, out);
  }
  for (size_t k = 0; k < sizeof(tags) / sizeof(tags[0]); k++) {
    onednn_layout_t old;
    if (take(dnnl_memory_desc_create_with_tag(&made, layout->ndims, layout->dims, layout->data_type, tags[k]),
             &made, &old) == dnnl_success &&
        onednn_md_equal(&old, layout)) {
      return take(dnnl_memory_desc_create_with_tag(&made, layout->ndims, layout->dims, type, tags[k]), &made,
                  out);
    }
  }
  return dnnl_unimplemented;
}

dnnl_status_t onednn_md_reshaped(onednn_layout_t *out, const onednn_layout_t *layout, int rank,
                                 const dnnl_dims_t dims) {
  descriptors_t all = {.count = 0};
  dnnl_memory_desc_t made = NULL;
  const_dnnl_memory_desc_t from = use(&all, layout);
  if (from != NULL) {
    all.status = take(dnnl_memory_desc_reshape(&made, from, rank, dims), &made, out);
  }
  return done(&all);
}

dnnl_status_t onednn_md_permuted(onednn_layout_t *out, const onednn_layout_t *layout, const int *positions) {
  descriptors_t all = {.count = 0};
  dnnl_memory_desc_t made = NULL;
  const_dnnl_memory_desc_t from = use(&all, layout);
  if (from != NULL) {
    all.status = take(dnnl_memory_desc_permute_axes(&made, from, positions), &made, out);
  }
  return done(&all);
}

// The part that begins at the origin has the same strides; only the offset is that of the part itself.
dnnl_status_t onednn_md_part(onednn_layout_t *out, const onednn_layout_t *layout, const dnnl_dims_t dims,
                             const dnnl_dims_t starts, dnnl_dim_t *offset) {
  static const dnnl_dims_t origin = {0};
  descriptors_t all = {.count = 0};
  dnnl_memory_desc_t made = NULL;
  const_dnnl_memory_desc_t from = use(&all, layout);
  if (from != NULL) {
    all.status = dnnl_memory_desc_create_submemory(&made, from, dims, starts);
  }
  if (all.status == dnnl_success) {
    all.status = dnnl_memory_desc_query(made, dnnl_query_submemory_offset_s64, offset);
    (void)dnnl_memory_desc_destroy(made);
    made = NULL;
  }
  if (all.status == dnnl_success) {
    all.status = take(dnnl_memory_desc_create_submemory(&made, from, dims, origin), &made, out);
  }
  return done(&all);
}

bool onednn_md_equal(const onednn_layout_t *a, const onednn_layout_t *b) {
  descriptors_t all = {.count = 0};
  if (a->blob_bytes == b->blob_bytes && memcmp(a->blob, b->blob, a->blob_bytes) == 0) {
    return true;
  }
  const_dnnl_memory_desc_t left = use(&all, a);
  const_dnnl_memory_desc_t right = use(&all, b);
  bool equal = left != NULL && right != NULL && dnnl_memory_desc_equal(left, right) != 0;
  (void)done(&all);
  return equal;
}

size_t onednn_md_bytes(const onednn_layout_t *layout) {
  return layout->bytes;
}

dnnl_status_t onednn_memory_create(dnnl_memory_t *out, const onednn_layout_t *layout, dnnl_engine_t engine,
                                   void *data) {
  descriptors_t all = {.count = 0};
  const_dnnl_memory_desc_t descriptor = use(&all, layout);
  if (descriptor != NULL) {
    all.status = dnnl_memory_create(out, descriptor, engine, data);
  }
  return done(&all);
}

bool onednn_query_layout(const_dnnl_primitive_desc_t description, dnnl_query_t what, onednn_layout_t *out) {
  const_dnnl_memory_desc_t found = dnnl_primitive_desc_query_md(description, what, 0);
  return found != NULL && read_layout(found, out) == dnnl_success && out->ndims > 0;
}

bool onednn_copies_well(const onednn_layout_t *layout) {
  size_t count = 1;
  for (int d = 0; d < layout->ndims; d++) {
    count *= (size_t)layout->dims[d];
  }
  return layout->format_kind != dnnl_blocked || layout->format_desc.blocking.inner_nblks != 0 ||
         layout->bytes == count * dnnl_data_type_size(layout->data_type);
}

// ---- post-ops ----

dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops, float scale, dnnl_data_type_t type) {
  return dnnl_post_ops_append_sum(ops, scale, 0, type);
}

// Parameters that version 2 has built in.
static void complete(dnnl_alg_kind_t algorithm, float *alpha, float *beta) {
  if (algorithm == dnnl_eltwise_soft_relu) {
    *alpha = 1.0F;
  } else if (algorithm == dnnl_eltwise_hardswish) {
    *alpha = 1.0F / 6.0F;
    *beta = 0.5F;
  }
}

dnnl_status_t onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta) {
  complete(algorithm, &alpha, &beta);
  return dnnl_post_ops_append_eltwise(ops, algorithm, alpha, beta);
}

dnnl_status_t onednn_append_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm,
                                   const onednn_layout_t *operand) {
  descriptors_t all = {.count = 0};
  const_dnnl_memory_desc_t descriptor = use(&all, operand);
  if (descriptor != NULL) {
    all.status = dnnl_post_ops_append_binary(ops, algorithm, descriptor);
  }
  return done(&all);
}

// ---- products of 8-bit integers ----

dnnl_status_t onednn_set_quantized(dnnl_primitive_attr_t attributes, const onednn_quantized_t *q) {
  dnnl_status_t status = dnnl_primitive_attr_set_scales_mask(attributes, DNNL_ARG_WEIGHTS, q->weights_mask);
  return status == dnnl_success && q->zero_point != 0
             ? dnnl_primitive_attr_set_zero_points_mask(attributes, DNNL_ARG_SRC, 0)
             : status;
}

// ---- primitives ----

// Makes descriptors of the layouts, in order, then the primitive descriptor, whose call reads d[0], d[1] and
// so on, the engine and the attributes.
#define MAKE(call, ...)                                                 \
  do {                                                                  \
    const onednn_layout_t *const layouts[] = {__VA_ARGS__};             \
    const_dnnl_memory_desc_t d[MAX_DESCRIPTORS] = {NULL};               \
    descriptors_t all = {.count = 0};                                   \
    for (size_t k = 0; k < sizeof(layouts) / sizeof(layouts[0]); k++) { \
      d[k] = use(&all, layouts[k]);                                     \
    }                                                                   \
    if (all.status == dnnl_success) {                                   \
      all.status = (call);                                              \
    }                                                                   \
    return done(&all);                                                  \
  } while (0)

// Goes on to the implementation behind those that are passed over.
static dnnl_status_t pass_over(const onednn_maker_t *m, dnnl_status_t status) {
  for (int k = 0; k < m->skipped && status == dnnl_success; k++) {
    status = dnnl_primitive_desc_next_impl(*m->out);
    if (status != dnnl_success) {
      (void)dnnl_primitive_desc_destroy(*m->out);
      *m->out = NULL;
    }
  }
  return status;
}

dnnl_status_t onednn_make_convolution(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                      const onednn_operands_t *o, const onednn_geometry_t *g) {
  MAKE(pass_over(m, dnnl_convolution_forward_primitive_desc_create(
                        m->out, m->engine, dnnl_forward_inference, algorithm, d[0], d[1], d[2], d[3],
                        g->strides, g->dilations, g->pad_begin, g->pad_end, m->attributes)),
       o->source, o->weights, o->bias, o->result);
}

dnnl_status_t onednn_make_deconvolution(const onednn_maker_t *m, const onednn_operands_t *o,
                                        const onednn_geometry_t *g) {
  MAKE(dnnl_deconvolution_forward_primitive_desc_create(
           m->out, m->engine, dnnl_forward_inference, dnnl_deconvolution_direct, d[0], d[1], d[2], d[3],
           g->strides, g->dilations, g->pad_begin, g->pad_end, m->attributes),
       o->source, o->weights, o->bias, o->result);
}

dnnl_status_t onednn_make_convolution_weights(const onednn_maker_t *m, const onednn_operands_t *o,
                                              const onednn_geometry_t *g) {
  MAKE(dnnl_convolution_backward_weights_primitive_desc_create(
           m->out, m->engine, dnnl_convolution_direct, d[0], d[1], NULL, d[2], g->strides, g->dilations,
           g->pad_begin, g->pad_end, NULL, m->attributes),
       o->source, o->weights, o->result);
}

// Version 3.7 finds matrices of a batch by the strides of dimensions of size 1, too, and takes those for the
// outermost. So they become that.
static const onednn_layout_t *ones_outermost(const onednn_layout_t *layout, onednn_layout_t *out) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  dnnl_dims_t strides = {0};
  dnnl_dim_t extent = 1;
  if (layout->format_kind != dnnl_blocked || blocking->inner_nblks != 0) {
    return layout;
  }
  for (int d = 0; d < layout->ndims; d++) {
    dnnl_dim_t reach = layout->dims[d] * blocking->strides[d];
    strides[d] = blocking->strides[d];
    extent = layout->dims[d] > 1 && reach > extent ? reach : extent;
  }
  for (int d = 0; d + 2 < layout->ndims; d++) {
    strides[d] = layout->dims[d] == 1 ? extent : strides[d];
  }
  onednn_layout_t plain;
  return onednn_md_strided(&plain, layout->ndims, layout->dims, strides) == dnnl_success &&
                 onednn_md_typed(out, &plain, layout->data_type) == dnnl_success
             ? out
             : layout;
}

dnnl_status_t onednn_make_matmul(const onednn_maker_t *m, const onednn_operands_t *o) {
  onednn_layout_t made[3];
  MAKE(dnnl_matmul_primitive_desc_create(m->out, m->engine, d[0], d[1], d[2], d[3], m->attributes),
       ones_outermost(o->source, &made[0]), ones_outermost(o->weights, &made[1]), o->bias,
       ones_outermost(o->result, &made[2]));
}

// Does a binary post-op read more than one number for each channel?
static bool reads_images(const_dnnl_primitive_attr_t attributes) {
  const_dnnl_post_ops_t ops = NULL;
  if (dnnl_primitive_attr_get_post_ops(attributes, &ops) != dnnl_success) {
    return false;
  }
  for (int k = 0; k < dnnl_post_ops_len(ops); k++) {
    const_dnnl_memory_desc_t operand = NULL;
    dnnl_dims_t dims = {0};
    int rank = 0;
    if (dnnl_post_ops_get_kind(ops, k) != dnnl_binary ||
        dnnl_post_ops_get_params_binary(ops, k, NULL, &operand) != dnnl_success ||
        dnnl_memory_desc_query(operand, dnnl_query_ndims_s32, &rank) != dnnl_success) {
      continue;
    }
    read_dims(operand, dnnl_query_dims, rank, dims);
    for (int d = 0; d < rank; d++) {
      if (d != 1 && dims[d] > 1) {
        return true;
      }
    }
  }
  return false;
}

// Are pixels neighbours, rather than channels?
static bool is_row_major(const onednn_layout_t *layout) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  return layout->format_kind == dnnl_blocked && layout->ndims > 2 && blocking->inner_nblks == 0 &&
         blocking->strides[1] > blocking->strides[layout->ndims - 1];
}

// With AVX-512, version 3.7 copies row-major images into blocks and reads the operands of post-ops as if they
// were in blocks, too: those that are images are refused.
dnnl_status_t onednn_make_pooling(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *source, const onednn_layout_t *result,
                                  const onednn_geometry_t *g) {
  if (is_row_major(source) && reads_images(m->attributes)) {
    return dnnl_unimplemented;
  }
  MAKE(dnnl_pooling_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference, algorithm, d[0],
                                                  d[1], g->strides, g->kernel, g->dilations, g->pad_begin,
                                                  g->pad_end, m->attributes),
       source, result);
}

dnnl_status_t onednn_make_max_pooling_with_places(const onednn_maker_t *m, const onednn_layout_t *source,
                                                  const onednn_layout_t *result, const onednn_geometry_t *g) {
  MAKE(dnnl_pooling_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_training, dnnl_pooling_max,
                                                  d[0], d[1], g->strides, g->kernel, g->dilations,
                                                  g->pad_begin, g->pad_end, m->attributes),
       source, result);
}

dnnl_status_t onednn_make_pooling_gradient(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                           const onednn_layout_t *source, const onednn_layout_t *result,
                                           const onednn_geometry_t *g, const_dnnl_primitive_desc_t forward) {
  MAKE(dnnl_pooling_backward_primitive_desc_create(m->out, m->engine, algorithm, d[0], d[1], g->strides,
                                                   g->kernel, g->dilations, g->pad_begin, g->pad_end, forward,
                                                   m->attributes),
       source, result);
}

dnnl_status_t onednn_make_eltwise(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *data, float alpha, float beta) {
  complete(algorithm, &alpha, &beta);
  MAKE(dnnl_eltwise_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference, algorithm, d[0],
                                                  d[0], alpha, beta, m->attributes),
       data);
}

dnnl_status_t onednn_make_binary(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                 const onednn_layout_t *left, const onednn_layout_t *right,
                                 const onednn_layout_t *result) {
  MAKE(dnnl_binary_primitive_desc_create(m->out, m->engine, algorithm, d[0], d[1], d[2], m->attributes), left,
       right, result);
}

dnnl_status_t onednn_make_batch_normalization(const onednn_maker_t *m, const onednn_layout_t *data,
                                              float epsilon, unsigned flags) {
  MAKE(dnnl_batch_normalization_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference, d[0],
                                                              d[0], epsilon, flags, m->attributes),
       data);
}

dnnl_status_t onednn_make_batch_normalization_gradient(const onednn_maker_t *m, const onednn_layout_t *data,
                                                       float epsilon) {
  const unsigned flags = dnnl_use_scale | dnnl_use_shift;
  MAKE(dnnl_batch_normalization_backward_primitive_desc_create(m->out, m->engine, dnnl_backward, d[0], d[0],
                                                               d[0], epsilon, flags, NULL, m->attributes),
       data);
}

dnnl_status_t onednn_make_layer_normalization(const onednn_maker_t *m, const onednn_layout_t *source,
                                              const onednn_layout_t *result, float epsilon, unsigned flags) {
  MAKE(dnnl_layer_normalization_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference, d[0],
                                                              d[1], NULL, epsilon, flags, m->attributes),
       source, result);
}

dnnl_status_t onednn_make_softmax(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *source, const onednn_layout_t *result, int axis) {
  MAKE(dnnl_softmax_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference, algorithm, d[0],
                                                  d[1], axis, m->attributes),
       source, result);
}

dnnl_status_t onednn_make_lrn(const onednn_maker_t *m, const onednn_layout_t *data, dnnl_dim_t size,
                              float alpha, float beta, float bias) {
  MAKE(dnnl_lrn_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference,
                                              dnnl_lrn_across_channels, d[0], d[0], size, alpha, beta, bias,
                                              m->attributes),
       data);
}

dnnl_status_t onednn_make_reduction(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                    const onednn_layout_t *source, const onednn_layout_t *result,
                                    float power) {
  MAKE(dnnl_reduction_primitive_desc_create(m->out, m->engine, algorithm, d[0], d[1], power, 0.0F,
                                            m->attributes),
       source, result);
}

// Version 3 takes the first of these layouts that fits its source, whatever the strides of dimensions of size
// 1 are, and then reads the stride of the last dimension, which for images of one column may be another one.
// So the source gets the strides of the layout that will be taken.
static void settle_strides(const onednn_layout_t *source, onednn_layout_t *out) {
  static const dnnl_format_tag_t tags[][4] = {{dnnl_nCw16c, dnnl_nCw8c, dnnl_nwc, dnnl_ncw},
                                              {dnnl_nChw16c, dnnl_nChw8c, dnnl_nhwc, dnnl_nchw},
                                              {dnnl_nCdhw16c, dnnl_nCdhw8c, dnnl_ndhwc, dnnl_ncdhw}};
  *out = *source;
  if (source->ndims < 3 || source->ndims > 5 || source->dims[source->ndims - 1] != 1) {
    return;
  }
  for (int k = 0; k < 4; k++) {
    onednn_layout_t named;
    if (onednn_md_tagged(&named, source->ndims, source->dims, tags[source->ndims - 3][k]) == dnnl_success &&
        onednn_md_typed(&named, &named, source->data_type) == dnnl_success &&
        onednn_md_equal(&named, source)) {
      *out = named;
      return;
    }
  }
}

dnnl_status_t onednn_make_resampling(const onednn_maker_t *m, dnnl_alg_kind_t algorithm,
                                     const onednn_layout_t *source, const onednn_layout_t *result) {
  onednn_layout_t settled;
  settle_strides(source, &settled);
  MAKE(dnnl_resampling_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference, algorithm,
                                                     NULL, d[0], d[1], m->attributes),
       &settled, result);
}

dnnl_status_t onednn_make_prelu(const onednn_maker_t *m, const onednn_layout_t *data,
                                const onednn_layout_t *slope) {
  MAKE(dnnl_prelu_forward_primitive_desc_create(m->out, m->engine, dnnl_forward_inference, d[0], d[1], d[0],
                                                m->attributes),
       data, slope);
}

dnnl_status_t onednn_make_reorder(const onednn_maker_t *m, const onednn_layout_t *from,
                                  const onednn_layout_t *to) {
  MAKE(dnnl_reorder_primitive_desc_create(m->out, d[0], m->engine, d[1], m->engine, m->attributes), from, to);
}

dnnl_status_t onednn_make_concat(const onednn_maker_t *m, const onednn_layout_t *result, int count, int axis,
                                 const onednn_layout_t *sources) {
  dnnl_memory_desc_t *parts = calloc((size_t)count + 1, sizeof(dnnl_memory_desc_t));
  dnnl_status_t status = parts == NULL ? dnnl_out_of_memory : dnnl_success;
  for (int k = 0; k <= count && status == dnnl_success; k++) {
    status = dnnl_memory_desc_create_with_blob(&parts[k], k < count ? sources[k].blob : result->blob);
  }
  if (status == dnnl_success) {
    status = dnnl_concat_primitive_desc_create(m->out, m->engine, parts[count], count, axis,
                                               (const_dnnl_memory_desc_t const *)parts, m->attributes);
  }
  for (int k = 0; k <= count && parts != NULL; k++) {
    if (parts[k] != NULL) {
      (void)dnnl_memory_desc_destroy(parts[k]);
    }
  }
  free(parts);
  return status;
}

#endif
