// SPDX-License-Identifier: Apache-2.0
// Memory descriptors. Comparison goes through the list of loops a descriptor stands for: per dimension, from
// the innermost, an extent and a stride; loops of extent 1 vanish, and neighbours that continue one another
// become one.
#include "onednn/library/layout.h"

#include <stdio.h>
#include <string.h>

typedef struct loop {
  int64_t extent;
  int64_t stride;
} loop_t;

enum { MAX_LOOPS = DNNL_MAX_NDIMS + 1 };

static int fill_dims(const onednn_shape_t *shape, dnnl_dims_t dims) {
  int rank = shape->rank > 0 ? (int)shape->rank : 1;
  dims[0] = 1;
  for (int32_t d = 0; d < shape->rank; d++) {
    dims[d] = shape->dims[d];
  }
  return rank;
}

static onednn_layout_t invalid(void) {
  onednn_layout_t layout;
  memset(&layout, 0, sizeof(layout));
  return layout;
}

onednn_layout_t onednn_layout_strided(const onednn_shape_t *shape, const int64_t *strides) {
  onednn_layout_t layout = invalid();
  dnnl_dims_t dims;
  dnnl_dims_t steps = {1};
  int rank = fill_dims(shape, dims);
  for (int32_t d = 0; d < shape->rank; d++) {
    steps[d] = strides[d];
  }
  if (onednn_md_strided(&layout, rank, dims, steps) != dnnl_success) {
    return invalid();
  }
  return layout;
}

onednn_layout_t onednn_layout_ordered(const onednn_shape_t *shape, const int32_t *order) {
  int64_t strides[CLEAVE_MAX_RANK] = {1};
  int64_t step = 1;
  for (int32_t k = shape->rank - 1; k >= 0; k--) {
    strides[order[k]] = step;
    step *= shape->dims[order[k]];
  }
  return onednn_layout_strided(shape, strides);
}

onednn_layout_t onednn_layout_plain(const onednn_shape_t *shape) {
  int32_t order[CLEAVE_MAX_RANK];
  for (int32_t d = 0; d < CLEAVE_MAX_RANK; d++) {
    order[d] = d;
  }
  return onednn_layout_ordered(shape, order);
}

onednn_layout_t onednn_layout_channels_last(const onednn_shape_t *shape) {
  int32_t order[CLEAVE_MAX_RANK] = {0};
  for (int32_t d = 1; d + 1 < shape->rank; d++) {
    order[d] = d + 1;
  }
  if (shape->rank > 1) {
    order[shape->rank - 1] = 1;
  }
  return onednn_layout_ordered(shape, order);
}

onednn_layout_t onednn_layout_any(const onednn_shape_t *shape) {
  onednn_layout_t layout = invalid();
  dnnl_dims_t dims;
  int rank = fill_dims(shape, dims);
  if (onednn_md_tagged(&layout, rank, dims, dnnl_format_tag_any) != dnnl_success) {
    return invalid();
  }
  return layout;
}

// `tags`: for rank 3, 4 and 5.
static onednn_layout_t in_blocks(const onednn_shape_t *shape, const dnnl_format_tag_t tags[3]) {
  onednn_layout_t layout = invalid();
  dnnl_dims_t dims;
  int rank = fill_dims(shape, dims);
  if (rank < 3 || rank > 5 || onednn_md_tagged(&layout, rank, dims, tags[rank - 3]) != dnnl_success) {
    return invalid();
  }
  return layout;
}

onednn_layout_t onednn_layout_blocked(const onednn_shape_t *shape) {
  static const dnnl_format_tag_t tags[] = {dnnl_aBc16b, dnnl_aBcd16b, dnnl_aBcde16b};
  return in_blocks(shape, tags);
}

onednn_layout_t onednn_layout_blocked_by_8(const onednn_shape_t *shape) {
  static const dnnl_format_tag_t tags[] = {dnnl_aBc8b, dnnl_aBcd8b, dnnl_aBcde8b};
  return in_blocks(shape, tags);
}

onednn_layout_t onednn_layout_panels(const onednn_shape_t *shape) {
  static const dnnl_format_tag_t tags[] = {dnnl_Abc16a, dnnl_format_tag_undef, dnnl_format_tag_undef};
  return in_blocks(shape, tags);
}

static onednn_layout_t in_panels(const onednn_shape_t *shape, dnnl_format_tag_t tag) {
  onednn_layout_t layout = invalid();
  dnnl_dims_t dims;
  int rank = fill_dims(shape, dims);
  return rank == 2 && onednn_md_tagged(&layout, rank, dims, tag) == dnnl_success ? layout : invalid();
}

onednn_layout_t onednn_layout_product_panels(const onednn_shape_t *shape) {
  return in_panels(shape, dnnl_BA16a64b);
}

onednn_layout_t onednn_layout_amx_panels(const onednn_shape_t *shape, dnnl_data_type_t type) {
  onednn_layout_t layout = in_panels(shape, type == dnnl_bf16 ? dnnl_BA16a64b2a : dnnl_BA16a64b4a);
  return onednn_layout_typed(&layout, type);
}

onednn_layout_t onednn_layout_typed(const onednn_layout_t *layout, dnnl_data_type_t type) {
  onednn_layout_t out;
  if (layout->data_type == type) {
    return *layout;
  }
  return onednn_md_typed(&out, layout, type) == dnnl_success ? out : invalid();
}

size_t onednn_layout_element(const onednn_layout_t *layout) {
  return dnnl_data_type_size(layout->data_type);
}

onednn_shape_t onednn_layout_shape(const onednn_layout_t *layout) {
  onednn_shape_t shape = {.rank = layout->ndims, .dims = {0}};
  for (int d = 0; d < layout->ndims; d++) {
    shape.dims[d] = layout->dims[d];
  }
  return shape;
}

// Loops of dimension `d`, innermost first; returns their number.
static int loops_of(const onednn_layout_t *layout, int d, loop_t *loops) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  int64_t inner = 1;
  int64_t blocked = 1;
  int count = 0;
  for (int b = blocking->inner_nblks - 1; b >= 0; b--) {
    if (blocking->inner_idxs[b] == d) {
      loops[count++] = (loop_t){.extent = blocking->inner_blks[b], .stride = inner};
      blocked *= blocking->inner_blks[b];
    }
    inner *= blocking->inner_blks[b];
  }
  loops[count++] = (loop_t){.extent = layout->padded_dims[d] / blocked, .stride = blocking->strides[d]};
  int kept = 0;
  for (int k = 0; k < count; k++) {
    loop_t *last = kept > 0 ? &loops[kept - 1] : NULL;
    if (loops[k].extent == 1) {
      continue;
    }
    if (last != NULL && loops[k].stride == last->extent * last->stride) {
      last->extent *= loops[k].extent;
    } else {
      loops[kept++] = loops[k];
    }
  }
  return kept;
}

bool onednn_layout_is_padded(const onednn_layout_t *layout) {
  for (int d = 0; d < layout->ndims; d++) {
    if (layout->padded_dims[d] != layout->dims[d]) {
      return true;
    }
  }
  return false;
}

bool onednn_layout_equal(const onednn_layout_t *a, const onednn_layout_t *b) {
  if (onednn_md_equal(a, b)) {
    return true;
  }
  if (a->format_kind != dnnl_blocked || b->format_kind != dnnl_blocked || a->ndims != b->ndims ||
      a->data_type != b->data_type || onednn_layout_is_padded(a) || onednn_layout_is_padded(b) ||
      onednn_layout_has_extra(a) || onednn_layout_has_extra(b)) {
    return false;
  }
  for (int d = 0; d < a->ndims; d++) {
    loop_t la[MAX_LOOPS];
    loop_t lb[MAX_LOOPS];
    int na = loops_of(a, d, la);
    int nb = loops_of(b, d, lb);
    if (a->dims[d] != b->dims[d] || na != nb) {
      return false;
    }
    for (int k = 0; k < na; k++) {
      if (la[k].extent != lb[k].extent || la[k].stride != lb[k].stride) {
        return false;
      }
    }
  }
  return true;
}

bool onednn_layout_is_plain(const onednn_layout_t *layout) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  onednn_layout_t plain = onednn_layout_plain(&shape);
  plain = onednn_layout_typed(&plain, layout->data_type);
  return onednn_layout_equal(layout, &plain);
}

bool onednn_layout_is_strided(const onednn_layout_t *layout) {
  return layout->format_kind == dnnl_blocked && layout->format_desc.blocking.inner_nblks == 0;
}

bool onednn_layout_is_dense(const onednn_layout_t *layout) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  return layout->format_kind == dnnl_blocked && !onednn_layout_is_padded(layout) &&
         !onednn_layout_has_extra(layout) &&
         onednn_md_bytes(layout) == (size_t)onednn_shape_count(&shape) * onednn_layout_element(layout);
}

bool onednn_layout_reshape(const onednn_layout_t *layout, const onednn_shape_t *shape, onednn_layout_t *out) {
  dnnl_dims_t dims;
  int rank = fill_dims(shape, dims);
  if (onednn_layout_is_plain(layout)) {
    *out = onednn_layout_plain(shape);
    *out = onednn_layout_typed(out, layout->data_type);
    return true;
  }
  return layout->format_kind == dnnl_blocked && !onednn_layout_is_padded(layout) &&
         onednn_md_reshaped(out, layout, rank, dims) == dnnl_success;
}

bool onednn_layout_transpose(const onednn_layout_t *layout, const int32_t *permutation,
                             onednn_layout_t *out) {
  int positions[DNNL_MAX_NDIMS];
  for (int d = 0; d < layout->ndims; d++) {
    positions[permutation[d]] = d;
  }
  return layout->format_kind == dnnl_blocked && onednn_md_permuted(out, layout, positions) == dnnl_success;
}

// Does a dimension end inside a block? Then its last block has elements of whatever lies next to it.
static bool cuts_block(const onednn_layout_t *layout) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  dnnl_dims_t blocks;
  for (int d = 0; d < DNNL_MAX_NDIMS; d++) {
    blocks[d] = 1;
  }
  for (int k = 0; k < blocking->inner_nblks; k++) {
    blocks[blocking->inner_idxs[k]] *= blocking->inner_blks[k];
  }
  for (int d = 0; d < layout->ndims; d++) {
    if (layout->dims[d] % blocks[d] != 0) {
      return true;
    }
  }
  return false;
}

// Strides times steps.
static bool step_slice(const onednn_layout_t *layout, const int64_t *starts, const int64_t *steps,
                       const onednn_shape_t *shape, onednn_layout_t *out, size_t *offset_bytes) {
  int64_t strides[CLEAVE_MAX_RANK];
  int64_t offset = 0;
  if (!onednn_layout_is_strided(layout)) {
    return false;
  }
  for (int32_t d = 0; d < shape->rank; d++) {
    int64_t stride = layout->format_desc.blocking.strides[d];
    if (starts[d] < 0 || starts[d] >= layout->dims[d] ||
        shape->dims[d] - 1 > (layout->dims[d] - 1 - starts[d]) / steps[d]) {
      return false;
    }
    offset += starts[d] * stride;
    strides[d] = stride * (shape->dims[d] == 1 ? 1 : steps[d]);
  }
  *out = onednn_layout_strided(shape, strides);
  *out = onednn_layout_typed(out, layout->data_type);
  *offset_bytes = (size_t)offset * onednn_layout_element(layout);
  return true;
}

bool onednn_layout_slice(const onednn_layout_t *layout, const int64_t *starts, const int64_t *steps,
                         const onednn_shape_t *shape, onednn_layout_t *out, size_t *offset_bytes) {
  dnnl_dims_t dims;
  dnnl_dims_t offsets = {0};
  bool steps_over = false;
  (void)fill_dims(shape, dims);
  for (int32_t d = 0; d < shape->rank; d++) {
    offsets[d] = starts[d];
    steps_over = steps_over || (steps != NULL && steps[d] != 1);
  }
  if (layout->format_kind != dnnl_blocked || layout->ndims != shape->rank) {
    return false;
  }
  if (steps_over) {
    return step_slice(layout, starts, steps, shape, out, offset_bytes);
  }
  dnnl_dim_t offset = 0;
  if (onednn_md_part(out, layout, dims, offsets, &offset) != dnnl_success || onednn_layout_is_padded(out) ||
      cuts_block(out)) {
    return false;
  }
  *offset_bytes = (size_t)offset * onednn_layout_element(layout);
  return true;
}

bool onednn_layout_like(const onednn_layout_t *layout, const onednn_shape_t *shape, onednn_layout_t *out) {
  static const dnnl_format_tag_t tags[] = {
      dnnl_aBc16b,  dnnl_aBcd16b, dnnl_aBcde16b, dnnl_aBc8b,   dnnl_aBcd8b,
      dnnl_aBcde8b, dnnl_aBc4b,   dnnl_aBcd4b,   dnnl_aBcde4b,
  };
  dnnl_dims_t dims;
  int rank = fill_dims(shape, dims);
  if (onednn_layout_is_strided(layout)) {
    int32_t order[CLEAVE_MAX_RANK];
    for (int32_t d = 0; d < shape->rank; d++) {
      int32_t at = d;
      while (at > 0 &&
             layout->format_desc.blocking.strides[order[at - 1]] < layout->format_desc.blocking.strides[d]) {
        order[at] = order[at - 1];
        at--;
      }
      order[at] = d;
    }
    *out = onednn_layout_ordered(shape, order);
    *out = onednn_layout_typed(out, layout->data_type);
    return true;
  }
  for (size_t k = 0; k < sizeof(tags) / sizeof(tags[0]); k++) {
    onednn_layout_t same;
    if (onednn_md_tagged(&same, layout->ndims, layout->dims, tags[k]) == dnnl_success &&
        onednn_md_typed(&same, &same, layout->data_type) == dnnl_success && onednn_md_equal(&same, layout)) {
      return onednn_md_tagged(out, rank, dims, tags[k]) == dnnl_success &&
             onednn_md_typed(out, out, layout->data_type) == dnnl_success;
    }
  }
  return false;
}

onednn_shape_t onednn_shape_pad(const onednn_shape_t *from, int32_t rank) {
  onednn_shape_t shape = {.rank = rank, .dims = {0}};
  int32_t missing = rank - from->rank;
  for (int32_t d = 0; d < rank; d++) {
    shape.dims[d] = d < missing ? 1 : from->dims[d - missing];
  }
  return shape;
}

// Is dimension `d` of the result broadcast in the operand?
static bool is_broadcast(const onednn_shape_t *operand, const onednn_shape_t *shape, int32_t d) {
  int32_t at = d - (shape->rank - operand->rank);
  return at < 0 || operand->dims[at] == 1;
}

onednn_shape_t onednn_shape_collapse(const onednn_shape_t *shape, const onednn_shape_t *operands,
                                     uint32_t count) {
  onednn_shape_t out = {.rank = 0, .dims = {0}};
  int32_t last = -1;
  for (int32_t d = 0; d < shape->rank; d++) {
    if (shape->dims[d] == 1) {
      continue;
    }
    bool alike = last >= 0;
    for (uint32_t k = 0; k < count && alike; k++) {
      alike = is_broadcast(&operands[k], shape, d) == is_broadcast(&operands[k], shape, last);
    }
    if (alike) {
      out.dims[out.rank - 1] *= shape->dims[d];
    } else {
      out.dims[out.rank++] = shape->dims[d];
    }
    last = d;
  }
  return out.rank > 0 ? out : onednn_shape_pad(&out, 1);
}

void onednn_layout_text(const onednn_layout_t *layout, char *text, size_t size) {
  const onednn_blocking_t *blocking = &layout->format_desc.blocking;
  size_t used = 0;
  int order[DNNL_MAX_NDIMS];
  text[0] = '\0';
  if (layout->format_kind != dnnl_blocked) {
    (void)snprintf(text, size, "%s", layout->format_kind == dnnl_format_kind_any ? "any" : "packed");
    return;
  }
  for (int d = 0; d < layout->ndims; d++) {
    int at = d;
    while (at > 0 && blocking->strides[order[at - 1]] < blocking->strides[d]) {
      order[at] = order[at - 1];
      at--;
    }
    order[at] = d;
  }
  for (int k = 0; k < layout->ndims && used + 1 < size; k++) {
    bool blocked = false;
    for (int b = 0; b < blocking->inner_nblks; b++) {
      blocked = blocked || blocking->inner_idxs[b] == order[k];
    }
    text[used++] = (char)((blocked ? 'A' : 'a') + order[k]);
    text[used] = '\0';
  }
  for (int b = 0; b < blocking->inner_nblks && used + 1 < size; b++) {
    int written = snprintf(text + used, size - used, "%d%c", (int)blocking->inner_blks[b],
                           (char)('a' + (int)blocking->inner_idxs[b]));
    used = written > 0 ? used + (size_t)written : size;
  }
}
