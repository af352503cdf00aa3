// SPDX-License-Identifier: Apache-2.0
/*
 * Memory descriptors of oneDNN with offset0 = 0: making, comparing and re-viewing them. What is made out of
 * a shape is float32, what is made out of a layout has its type. A
 * descriptor maps logical indices to places; two descriptors that map every index to the same place are the
 * same layout here even if oneDNN writes them differently (nChw16c of a 1x1 image is nchw).
 * Scalars have one dimension of size 1, since oneDNN has no rank 0.
 */
#ifndef ONEDNN_LAYOUT_H
#define ONEDNN_LAYOUT_H

#include "onednn/library/values.h"

/* Row-major. */
onednn_layout_t onednn_layout_plain(const onednn_shape_t *shape);

/* oneDNN's choice. */
onednn_layout_t onednn_layout_any(const onednn_shape_t *shape);

/* Without gaps, dimension order[0] outermost. */
onednn_layout_t onednn_layout_ordered(const onednn_shape_t *shape, const int32_t *order);

/* Batch, spatial dimensions, channels innermost. */
onednn_layout_t onednn_layout_channels_last(const onednn_shape_t *shape);

/* Channels in blocks of 16, as oneDNN's direct and Winograd convolutions like them; rank 3 to 5. */
onednn_layout_t onednn_layout_blocked(const onednn_shape_t *shape);

/* Channels in blocks of 8, which oneDNN's convolutions for AVX2 prefer. */
onednn_layout_t onednn_layout_blocked_by_8(const onednn_shape_t *shape);

/* Rank 3: the first dimension in blocks of 16, which lie innermost. */
onednn_layout_t onednn_layout_panels(const onednn_shape_t *shape);

/* A matrix [K, N] as oneDNN's products with AVX-512 read it: columns in panels of 64, each contiguous, rows
 * in multiples of 16. */
onednn_layout_t onednn_layout_product_panels(const onednn_shape_t *shape);

/* A matrix of bfloat16 or 8-bit integers as its products with AMX read it: as above, but elements of two or
 * four rows side by side, and rows in multiples of 32 or 64. */
onednn_layout_t onednn_layout_amx_panels(const onednn_shape_t *shape, dnnl_data_type_t type);

onednn_layout_t onednn_layout_strided(const onednn_shape_t *shape, const int64_t *strides);

/* The layout with elements of another type in the same places; and the bytes of an element. */
onednn_layout_t onednn_layout_typed(const onednn_layout_t *layout, dnnl_data_type_t type);
size_t onednn_layout_element(const onednn_layout_t *layout);

/* The shape that a descriptor describes. */
onednn_shape_t onednn_layout_shape(const onednn_layout_t *layout);

/* Do they have the same shape and type, and every element in the same place? */
bool onednn_layout_equal(const onednn_layout_t *a, const onednn_layout_t *b);
bool onednn_layout_is_plain(const onednn_layout_t *layout);

/* Strides only: no blocks. */
bool onednn_layout_is_strided(const onednn_layout_t *layout);

/* Are there more elements in memory than the shape has? */
bool onednn_layout_is_padded(const onednn_layout_t *layout);

/* Without gaps or padding: bytes = elements. */
bool onednn_layout_is_dense(const onednn_layout_t *layout);

/* Keeps the places under another shape with as many elements. False if strides cannot express it. */
bool onednn_layout_reshape(const onednn_layout_t *layout, const onednn_shape_t *shape, onednn_layout_t *out);

/* ONNX Transpose: dimension d of `out` is dimension permutation[d] of `layout`. */
bool onednn_layout_transpose(const onednn_layout_t *layout, const int32_t *permutation, onednn_layout_t *out);

/* The part that begins at `starts` with shape `shape`, every steps[d]-th element of dimension d (NULL: every
 * one), and where it begins in bytes. False where it would cut a block or reach outside. */
bool onednn_layout_slice(const onednn_layout_t *layout, const int64_t *starts, const int64_t *steps,
                         const onednn_shape_t *shape, onednn_layout_t *out, size_t *offset_bytes);

/* The blocking (or order) of `layout` for another shape of the same rank: what a broadcast operand of a
 * blocked tensor must look like. False if there is none. */
bool onednn_layout_like(const onednn_layout_t *layout, const onednn_shape_t *shape, onednn_layout_t *out);

/* Shape `from` in front of which ones are put until it has `rank` dimensions (at most CLEAVE_MAX_RANK). */
onednn_shape_t onednn_shape_pad(const onednn_shape_t *from, int32_t rank);

/* Merges neighbours that all operands treat alike, and removes ones. */
onednn_shape_t onednn_shape_collapse(const onednn_shape_t *shape, const onednn_shape_t *operands,
                                     uint32_t count);

/* "aBcd16b", "acb": dimensions from outer to inner, blocked ones capital. */
void onednn_layout_text(const onednn_layout_t *layout, char *text, size_t size);

#endif /* ONEDNN_LAYOUT_H */
