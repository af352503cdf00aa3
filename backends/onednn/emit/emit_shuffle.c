// SPDX-License-Identifier: Apache-2.0
// Channel shuffle: one pass over the pixels of images with channels last, which joins its inputs, deals their
// channels out and cuts the result; planes of row-major images are copied.
#include "onednn/emit/emit.h"

_Static_assert((int)ONEDNN_SHUFFLE_VALUES <= (int)ONEDNN_LOOP_ARGUMENTS,
               "a loop has all values of a shuffle");

// Elements between two pixels, if channels are neighbours and all pixels equally far apart.
static bool pixels_apart(const onednn_layout_t *layout, int64_t *apart) {
  onednn_shape_t shape = onednn_layout_shape(layout);
  const int64_t *strides = layout->format_desc.blocking.strides;
  int64_t next = 0;
  if (!onednn_layout_is_strided(layout) || (shape.dims[1] != 1 && strides[1] != 1)) {
    return false;
  }
  for (int32_t d = shape.rank - 1; d >= 0; d--) {
    if (d == 1 || shape.dims[d] == 1) {
      continue;
    }
    if (next != 0 && strides[d] != next) {
      return false;
    }
    *apart = next == 0 ? strides[d] : *apart;
    next = strides[d] * shape.dims[d];
  }
  *apart = next == 0 ? shape.dims[1] : *apart;
  return true;
}

// The place where a group begins; each source has whole groups.
typedef struct place {
  uint32_t source;
  int64_t channel;
} place_t;

static void place_groups(const onednn_shuffle_t *shuffle, const onednn_tensor_t *sources, int64_t channels,
                         place_t *places) {
  uint32_t source = 0;
  int64_t channel = 0;
  for (int64_t g = 0; g < shuffle->groups; g++) {
    places[g] = (place_t){.source = source, .channel = channel};
    channel += channels;
    if (channel >= sources[source].layout.dims[1]) {
      source++;
      channel = 0;
    }
  }
}

static cleave_status_t emit_pixels(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                   onednn_tensor_t *sources, const place_t *places) {
  const onednn_shuffle_t *shuffle = kernel->shuffle;
  onednn_shuffle_loop_t *context = kernel_arena_allocate(plan->arena, 1, sizeof(*context));
  onednn_argument_t arguments[ONEDNN_SHUFFLE_VALUES];
  onednn_tensor_t results[ONEDNN_SHUFFLE_VALUES];
  int64_t apart[ONEDNN_SHUFFLE_VALUES] = {0};
  if (context == NULL) {
    return kernel_fail(plan->message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while compiling");
  }
  context->groups = shuffle->groups;
  context->part_count = shuffle->part_count;
  for (uint32_t k = 0; k < shuffle->source_count; k++) {
    if (!pixels_apart(&sources[k].layout, &apart[k])) {
      onednn_shape_t shape = onednn_layout_shape(&sources[k].layout);
      onednn_layout_t last = onednn_layout_channels_last(&shape);
      ONEDNN_TRY(onednn_plan_convert(plan, &sources[k], &last, &sources[k]));
      apart[k] = shape.dims[1];
    }
    arguments[k] = (onednn_argument_t){.name = DNNL_ARG_MULTIPLE_SRC + (int)k, .tensor = sources[k]};
  }
  for (int64_t g = 0; g < shuffle->groups; g++) {
    context->argument[g] = places[g].source;
    context->offset[g] = places[g].channel;
    context->apart[g] = apart[places[g].source];
  }
  for (uint32_t k = 0; k < shuffle->part_count; k++) {
    onednn_shape_t shape = onednn_plan_shape(plan, shuffle->parts[k]);
    onednn_layout_t last = onednn_layout_channels_last(&shape);
    ONEDNN_TRY(onednn_plan_make(plan, shuffle->parts[k], &last, &results[k]));
    context->result[k] = shuffle->source_count + k;
    context->start[k] = shuffle->starts[k];
    context->count[k] = shape.dims[1];
    arguments[context->result[k]] =
        (onednn_argument_t){.name = DNNL_ARG_MULTIPLE_DST + (int)k, .tensor = results[k]};
  }
  onednn_shape_t image = onednn_layout_shape(&sources[0].layout);
  const onednn_loop_t loop = {.run = onednn_loop_shuffle,
                              .rank = 1,
                              .dims = {image.dims[0] * image.dims[2] * image.dims[3]},
                              .context = context,
                              .context_bytes = sizeof(*context)};
  ONEDNN_TRY(onednn_plan_loop(plan, &loop, arguments, shuffle->source_count + shuffle->part_count,
                              kernel->node, "shuffle loop"));
  for (uint32_t k = 0; k < shuffle->part_count; k++) {
    ONEDNN_TRY(onednn_plan_bind(plan, shuffle->parts[k], &results[k]));
  }
  return CLEAVE_OK;
}

// Part of a tensor along its channels; false if it would cut a block.
static bool cut(const onednn_tensor_t *tensor, int64_t channel, int64_t channels, onednn_tensor_t *out) {
  onednn_shape_t shape = onednn_layout_shape(&tensor->layout);
  int64_t starts[CLEAVE_MAX_RANK] = {0, channel};
  size_t offset = 0;
  shape.dims[1] = channels;
  *out = *tensor;
  bool cuts = onednn_layout_slice(&tensor->layout, starts, NULL, &shape, &out->layout, &offset);
  out->offset += offset;
  return cuts;
}

static cleave_status_t emit_planes(onednn_plan_t *plan, const onednn_kernel_t *kernel,
                                   const onednn_tensor_t *sources, const place_t *places, int64_t channels) {
  const onednn_shuffle_t *shuffle = kernel->shuffle;
  onednn_shape_t shape = onednn_layout_shape(&sources[0].layout);
  shape.dims[1] = channels * shuffle->groups;
  onednn_layout_t plain = onednn_layout_plain(&shape);
  onednn_shape_t own = onednn_plan_shape(plan, shuffle->parts[0]);
  bool whole = shuffle->part_count == 1 && onednn_shape_equal(&own, &shape);
  onednn_tensor_t result;
  ONEDNN_TRY(onednn_plan_make(plan, whole ? shuffle->parts[0] : CLEAVE_INDEX_NONE, &plain, &result));
  int64_t plane = shape.dims[2] * shape.dims[3];
  const int64_t strides[CLEAVE_MAX_RANK] = {shape.dims[1] * plane, shuffle->groups * plane, shape.dims[3], 1};
  onednn_shape_t group = shape;
  group.dims[1] = channels;
  for (int64_t g = 0; g < shuffle->groups; g++) {
    onednn_tensor_t from;
    onednn_tensor_t to = {.layout = onednn_layout_strided(&group, strides),
                          .buffer = result.buffer,
                          .offset = result.offset + (size_t)(g * plane) * sizeof(float)};
    if (!cut(&sources[places[g].source], places[g].channel, channels, &from)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "'%s': a group of channels is not a view",
                         onednn_node_name(&plan->region->nodes[kernel->node]));
    }
    ONEDNN_TRY(onednn_plan_copy(plan, &from, &to));
  }
  for (uint32_t k = 0; k < shuffle->part_count; k++) {
    onednn_tensor_t part;
    if (!cut(&result, shuffle->starts[k], onednn_plan_shape(plan, shuffle->parts[k]).dims[1], &part)) {
      return kernel_fail(plan->message, CLEAVE_ERROR_INTERNAL, "'%s': a part of its channels is not a view",
                         onednn_node_name(&plan->region->nodes[kernel->node]));
    }
    ONEDNN_TRY(onednn_plan_bind(plan, shuffle->parts[k], &part));
  }
  return CLEAVE_OK;
}

cleave_status_t onednn_emit_shuffle(onednn_plan_t *plan, const onednn_kernel_t *kernel) {
  const onednn_shuffle_t *shuffle = kernel->shuffle;
  onednn_tensor_t sources[ONEDNN_SHUFFLE_VALUES];
  place_t places[ONEDNN_SHUFFLE_GROUPS];
  bool plain = true;
  int64_t channels = 0;
  for (uint32_t k = 0; k < shuffle->source_count; k++) {
    ONEDNN_TRY(onednn_plan_fetch(plan, shuffle->sources[k], &sources[k]));
    plain = plain && onednn_layout_is_plain(&sources[k].layout);
    channels += sources[k].layout.dims[1];
  }
  channels /= shuffle->groups;
  place_groups(shuffle, sources, channels, places);
  return plain ? emit_planes(plan, kernel, sources, places, channels)
               : emit_pixels(plan, kernel, sources, places);
}
