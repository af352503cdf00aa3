// SPDX-License-Identifier: Apache-2.0
// Parts of layouts are oneDNN's, cut at multiples of 64, which all blocks of weights divide.
#include "onednn/weights/stretches.h"

#include "onednn/weights/winograd.h"

enum { UNIT = 64, MAX_STRETCHES = 32 };

static const size_t least_bytes = (size_t)2 << 20;

static const dnnl_dim_t *strides_of(const onednn_layout_t *layout) {
  return layout->format_desc.blocking.strides;
}

// Bytes from the first element of a layout without blocks to the end of the last one.
static size_t span_of(const onednn_layout_t *layout) {
  int64_t last = 0;
  for (int d = 0; d < layout->ndims; d++) {
    last += (layout->dims[d] - 1) * strides_of(layout)[d];
  }
  return (size_t)(last + 1) * onednn_layout_element(layout);
}

static bool is_float(const onednn_layout_t *layout) {
  return layout->data_type == dnnl_f32 || layout->data_type == dnnl_bf16 || layout->data_type == dnnl_f16;
}

// The part of `layout` that holds `range` of the axis.
static bool part_of(const onednn_layout_t *layout, int32_t axis, const int64_t range[2], onednn_layout_t *out,
                    size_t *out_offset) {
  dnnl_dims_t dims;
  dnnl_dims_t offsets = {0};
  for (int d = 0; d < layout->ndims; d++) {
    dims[d] = layout->dims[d];
  }
  dims[axis] = range[1] - range[0];
  offsets[axis] = range[0];
  dnnl_dim_t offset = 0;
  if (onednn_md_part(out, layout, dims, offsets, &offset) != dnnl_success) {
    return false;
  }
  *out_offset = (size_t)offset * onednn_layout_element(layout);
  return true;
}

bool onednn_stretches_of(const onednn_layout_t *from, const onednn_layout_t *to, onednn_stretches_t *out) {
  if (from->data_type != dnnl_f32 || !is_float(to) || !onednn_layout_is_strided(from)) {
    return false;
  }
  *out = (onednn_stretches_t){.from = from, .to = to};
  for (int32_t d = 1; d < from->ndims; d++) {
    bool is_outer = from->dims[out->axis] == 1 || strides_of(from)[d] > strides_of(from)[out->axis];
    out->axis = from->dims[d] > 1 && is_outer ? d : out->axis;
  }
  int64_t units = (from->dims[out->axis] - 1) / UNIT + 1;
  size_t stretch = span_of(from) / MAX_STRETCHES;
  stretch = stretch < least_bytes ? least_bytes : stretch;
  size_t line = (size_t)strides_of(from)[out->axis] * sizeof(float);
  out->length = ((int64_t)(stretch / (line * UNIT)) + 1) * UNIT;
  out->count = (from->dims[out->axis] - 1) / out->length + 1;
  onednn_stretch_t first;
  onednn_stretch_t last;
  return units > 1 && out->count > 1 && onednn_stretches_at(out, 0, &first) &&
         onednn_stretches_at(out, out->count - 1, &last);
}

bool onednn_stretches_at(const onednn_stretches_t *stretches, int64_t index, onednn_stretch_t *out) {
  const onednn_layout_t *to = stretches->to;
  int32_t axis = stretches->axis;
  int64_t end = (index + 1) * stretches->length;
  out->range[0] = index * stretches->length;
  out->range[1] = end < stretches->from->dims[axis] ? end : stretches->from->dims[axis];
  if (!part_of(stretches->from, axis, out->range, &out->from, &out->from_offset)) {
    return false;
  }
  out->from_bytes = span_of(&out->from);
  if (onednn_winograd_packs(stretches->from, to)) {
    out->to = *to;
    out->to_offset = 0;
    return axis == 0;
  }
  return to->ndims == stretches->from->ndims && part_of(to, axis, out->range, &out->to, &out->to_offset);
}
