// SPDX-License-Identifier: Apache-2.0
// RoiAlign and MaxRoiPool: bins of regions.
#include <string.h>

#include "images.h"

enum { MOST_SAMPLES = 1 << 20 /* of a bin, as on `cpu` */ };

/* Both have a thread for each element of y; `columns` is the number of coordinates of a region. */
static cleave_status_t emit_regions(cuda_plan_t *plan, const cleave_node_view_t *node, int64_t columns,
                                    cuda_writer_t *defines) {
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *rois = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  CUDA_TRY(cuda_images_need_floats(plan, node, 0));
  CUDA_TRY(cuda_images_need_floats(plan, node, 1));
  if (x->rank != 4 || y->rank != 4 || rois->rank != 2 || rois->dims[1] != columns ||
      y->dims[0] != rois->dims[0] || y->dims[1] != x->dims[1] || cleave_view_element_count(x) == 0) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its regions do not fit images, or these are empty");
  }
  cuda_images_write_coordinates(defines, "roi", rois->dtype);
  cuda_write(defines, "#define SCALE %.17g\n", cleave_view_float(node, "spatial_scale", 1));
  cuda_kernel_call_t call = {
      .text = columns == 4 ? "roi_align" : "roi_pool",
      .threads = cleave_view_element_count(y),
      .number_count = 7,
      .numbers = {0, x->dims[0], x->dims[1], x->dims[2], x->dims[3], y->dims[2], y->dims[3]}};
  call.numbers[0] = call.threads;
  call.is_wide = cuda_is_wide(cleave_view_element_count(x)) || cuda_is_wide(call.threads) ||
                 cuda_is_wide(cleave_view_element_count(rois));
  for (uint32_t k = 0; k < node->input_count; k++) {
    call.pointers[call.pointer_count++] = (cuda_pointer_t){node->inputs[k], 0};
  }
  call.pointers[call.pointer_count++] = (cuda_pointer_t){node->outputs[0], 0};
  return cuda_images_emit(plan, x->dtype, defines, &call);
}

cleave_status_t cuda_emit_roi_align(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const char *mode = cleave_view_string(node, "mode", "avg");
  const char *shift = cleave_view_string(node, "coordinate_transformation_mode", "half_pixel");
  const cleave_tensor_view_t *images = cuda_input(plan, node, 2);
  bool is_largest = strcmp(mode, "max") == 0;
  bool is_shifted = strcmp(shift, "half_pixel") == 0;
  if ((!is_largest && strcmp(mode, "avg") != 0) || (!is_shifted && strcmp(shift, "output_half_pixel") != 0)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE,
                            "its mode or coordinate_transformation_mode is unknown");
  }
  if (images->dtype != CLEAVE_DTYPE_I64 ||
      cleave_view_element_count(images) != cuda_input(plan, node, 1)->dims[0]) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "its batch_indices are not one int64 for each region");
  }
  cuda_writer_t defines = {0};
  cuda_write(&defines, "#define LARGEST %d\n#define OFFSET %s\n#define SAMPLES %lld\n#define MOST %d.0\n",
             is_largest, is_shifted ? "0.5" : "0.0", (long long)cleave_view_int(node, "sampling_ratio", 0),
             MOST_SAMPLES);
  cleave_status_t status = emit_regions(plan, node, 4, &defines);
  cuda_writer_deinit(&defines);
  return status;
}

cleave_status_t cuda_emit_roi_pool(cuda_plan_t *plan, const cleave_node_view_t *node) {
  cuda_writer_t defines = {0};
  cleave_status_t status = emit_regions(plan, node, 5, &defines);
  cuda_writer_deinit(&defines);
  return status;
}
