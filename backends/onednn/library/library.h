// SPDX-License-Identifier: Apache-2.0
/*
 * What differs between oneDNN 2 and oneDNN 3, behind one interface: the rest of the backend is written
 * against this header and what both have in common. Version 2 describes an operation, then asks for a
 * primitive; version 3 does both at once. Memory descriptors are structs in version 2 and opaque in version
 * 3; here they are values whose fields have the names of version 2.
 */
#ifndef ONEDNN_LIBRARY_H
#define ONEDNN_LIBRARY_H

#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Are there convolutions by Winograd's algorithm? Version 3 has none on x86. */
#define ONEDNN_LIBRARY_WINOGRAD (DNNL_VERSION_MAJOR < 3)

#if DNNL_VERSION_MAJOR < 3

typedef dnnl_memory_desc_t onednn_layout_t;
typedef dnnl_blocking_desc_t onednn_blocking_t;
typedef dnnl_wino_desc_t onednn_wino_t;

#else

typedef struct onednn_blocking {
  dnnl_dims_t strides; /* between the outermost blocks of a dimension */
  int inner_nblks;
  dnnl_dims_t inner_blks;
  dnnl_dims_t inner_idxs;
} onednn_blocking_t;

enum { ONEDNN_BLOB_BYTES = 1024 };

typedef struct onednn_layout {
  int ndims;
  dnnl_dims_t dims;
  dnnl_dims_t padded_dims;
  dnnl_data_type_t data_type;
  dnnl_format_kind_t format_kind;
  struct {
    onednn_blocking_t blocking; /* format_kind dnnl_blocked */
  } format_desc;
  size_t bytes;
  size_t blob_bytes;
  uint8_t blob[ONEDNN_BLOB_BYTES]; /* the descriptor itself, as oneDNN writes it */
} onednn_layout_t;

/* Version 3 has no such layouts on x86, and shows none. */
enum { dnnl_wino_wei_aaOio, dnnl_wino_wei_aaOBiOo, dnnl_wino_wei_OBaaIBOIio };
typedef struct onednn_wino {
  int wino_format;
  int r, alpha, ic, oc, ic_block, oc_block, ic2_block, oc2_block;
  float adj_scale;
  size_t size;
} onednn_wino_t;

#endif

/* Weights in a layout of Winograd's algorithm that is known field by field, or NULL. */
const onednn_wino_t *onednn_layout_wino(const onednn_layout_t *layout);

/* Does the layout hold more than the elements of the tensor (sums for other data types)? */
bool onednn_layout_has_extra(const onednn_layout_t *layout);

/* Gives `use` all that tells a layout from others, in pieces; false if the layout is not known. */
typedef void (*onednn_piece_fn_t)(void *context, const void *data, size_t bytes);
bool onednn_layout_pieces(const onednn_layout_t *layout, onednn_piece_fn_t use, void *context);

/* ---- memory descriptors ---------------------------------------------------------------------------- */

/* Both are float32. */
dnnl_status_t onednn_md_strided(onednn_layout_t *out, int rank, const dnnl_dims_t dims,
                                const dnnl_dims_t strides);
dnnl_status_t onednn_md_tagged(onednn_layout_t *out, int rank, const dnnl_dims_t dims, dnnl_format_tag_t tag);

/* Elements of another type in the same places: of a layout without blocks, one in blocks of channels (tags
 * aBc16b, aBc8b, aBc4b and those of more dimensions), or `any`. */
dnnl_status_t onednn_md_typed(onednn_layout_t *out, const onednn_layout_t *layout, dnnl_data_type_t type);
dnnl_status_t onednn_md_reshaped(onednn_layout_t *out, const onednn_layout_t *layout, int rank,
                                 const dnnl_dims_t dims);

/* Dimension d of `layout` becomes dimension positions[d]. */
dnnl_status_t onednn_md_permuted(onednn_layout_t *out, const onednn_layout_t *layout, const int *positions);

/* The part from `starts` on, as if it began at its memory; `*offset`: where it begins, in elements. */
dnnl_status_t onednn_md_part(onednn_layout_t *out, const onednn_layout_t *layout, const dnnl_dims_t dims,
                             const dnnl_dims_t starts, dnnl_dim_t *offset);
bool onednn_md_equal(const onednn_layout_t *a, const onednn_layout_t *b);
size_t onednn_md_bytes(const onednn_layout_t *layout);
dnnl_status_t onednn_memory_create(dnnl_memory_t *out, const onednn_layout_t *layout, dnnl_engine_t engine,
                                   void *data);

/* The layout that a primitive has chosen; false if it has none of this kind. */
bool onednn_query_layout(const_dnnl_primitive_desc_t description, dnnl_query_t what, onednn_layout_t *out);

/* Does oneDNN copy right between two tensors of this layout? Version 3.7 copies strided ones as if they had
 * no gaps. */
bool onednn_copies_well(const onednn_layout_t *layout);

/* ---- post-ops -------------------------------------------------------------------------------------- */

/* dst is an operand of `type` (undef: that of the result) times `scale`, to which the result is added. */
dnnl_status_t onednn_append_sum(dnnl_post_ops_t ops, float scale, dnnl_data_type_t type);
dnnl_status_t onednn_append_eltwise(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm, float alpha, float beta);
dnnl_status_t onednn_append_binary(dnnl_post_ops_t ops, dnnl_alg_kind_t algorithm,
                                   const onednn_layout_t *operand);

/* ---- products of 8-bit integers ------------------------------------------------------------------- */

/* A sum of products of integers, less the zero point of the source, times a scale is a number: posts follow.
 * The masks say along which dimension of result and weights there is one scale each; 0: one scale for all. */
typedef struct onednn_quantized {
  const float *scales;
  dnnl_dim_t count;
  int result_mask;
  int weights_mask;
  int32_t zero_point; /* of the source, if the sums do not have it already; or 0 */
} onednn_quantized_t;

dnnl_status_t onednn_set_quantized(dnnl_primitive_attr_t attributes, const onednn_quantized_t *quantized);

/* Version 2 adds a bias to the sums, before they are scaled, and compiles scales and zero point into the
 * primitive; version 3 adds it to the scaled numbers, and takes the two as arguments. */
#define ONEDNN_BIAS_BEFORE_SCALES (DNNL_VERSION_MAJOR < 3)
#define ONEDNN_QUANTIZED_ARGUMENTS (DNNL_VERSION_MAJOR >= 3)

/* ---- primitives: arguments mean what oneDNN's documentation says --------------------- */

/* The arguments that all of them have. */
typedef struct onednn_maker {
  dnnl_engine_t engine;
  const_dnnl_primitive_attr_t attributes;
  dnnl_primitive_desc_t *out;
  int skipped; /* convolutions: implementations that are passed over, in oneDNN's order */
} onednn_maker_t;

/* The tensors of a convolution or product; `bias` may be NULL. */
typedef struct onednn_operands {
  const onednn_layout_t *source;
  const onednn_layout_t *weights;
  const onednn_layout_t *bias;
  const onednn_layout_t *result;
} onednn_operands_t;

/* dilations: 0 is dense. */
typedef struct onednn_geometry {
  const dnnl_dim_t *kernel; /* of a pooling */
  const dnnl_dim_t *strides;
  const dnnl_dim_t *dilations;
  const dnnl_dim_t *pad_begin;
  const dnnl_dim_t *pad_end;
} onednn_geometry_t;

dnnl_status_t onednn_make_convolution(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                      const onednn_operands_t *operands, const onednn_geometry_t *geometry);
dnnl_status_t onednn_make_deconvolution(const onednn_maker_t *maker, const onednn_operands_t *operands,
                                        const onednn_geometry_t *geometry);
dnnl_status_t onednn_make_matmul(const onednn_maker_t *maker, const onednn_operands_t *operands);
dnnl_status_t onednn_make_pooling(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *source, const onednn_layout_t *result,
                                  const onednn_geometry_t *geometry);

/* Gradients. `weights`: of the weights, the result; `result`: of the result of the convolution. */
dnnl_status_t onednn_make_convolution_weights(const onednn_maker_t *maker, const onednn_operands_t *operands,
                                              const onednn_geometry_t *geometry);

/* A max pooling that writes the places of its maxima to a workspace, and the gradient of a pooling. The
 * gradient of an average takes no `forward`, which is NULL. */
dnnl_status_t onednn_make_max_pooling_with_places(const onednn_maker_t *maker, const onednn_layout_t *source,
                                                  const onednn_layout_t *result,
                                                  const onednn_geometry_t *geometry);
dnnl_status_t onednn_make_pooling_gradient(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                           const onednn_layout_t *source, const onednn_layout_t *result,
                                           const onednn_geometry_t *geometry,
                                           const_dnnl_primitive_desc_t forward);

/* Makes the gradients of data, scale and shift of a batch normalization in training; all images have the
 * layout `data`. */
dnnl_status_t onednn_make_batch_normalization_gradient(const onednn_maker_t *maker,
                                                       const onednn_layout_t *data, float epsilon);

dnnl_status_t onednn_make_eltwise(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *data, float alpha, float beta);
dnnl_status_t onednn_make_binary(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                 const onednn_layout_t *left, const onednn_layout_t *right,
                                 const onednn_layout_t *result);
dnnl_status_t onednn_make_batch_normalization(const onednn_maker_t *maker, const onednn_layout_t *data,
                                              float epsilon, unsigned flags);
/* Version 2 has one layout for source and result. */
dnnl_status_t onednn_make_layer_normalization(const onednn_maker_t *maker, const onednn_layout_t *source,
                                              const onednn_layout_t *result, float epsilon, unsigned flags);
dnnl_status_t onednn_make_softmax(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                  const onednn_layout_t *source, const onednn_layout_t *result, int axis);
dnnl_status_t onednn_make_lrn(const onednn_maker_t *maker, const onednn_layout_t *data, dnnl_dim_t size,
                              float alpha, float beta, float bias);
dnnl_status_t onednn_make_reduction(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                    const onednn_layout_t *source, const onednn_layout_t *result,
                                    float power);
dnnl_status_t onednn_make_resampling(const onednn_maker_t *maker, dnnl_alg_kind_t algorithm,
                                     const onednn_layout_t *source, const onednn_layout_t *result);
dnnl_status_t onednn_make_prelu(const onednn_maker_t *maker, const onednn_layout_t *data,
                                const onednn_layout_t *slope);
dnnl_status_t onednn_make_reorder(const onednn_maker_t *maker, const onednn_layout_t *from,
                                  const onednn_layout_t *to);
dnnl_status_t onednn_make_concat(const onednn_maker_t *maker, const onednn_layout_t *result, int count,
                                 int axis, const onednn_layout_t *sources);

#endif /* ONEDNN_LIBRARY_H */
