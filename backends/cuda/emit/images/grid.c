// SPDX-License-Identifier: Apache-2.0
// GridSample and AffineGrid, over two or three axes.
#include <string.h>

#include "images.h"
#include "kernels/convert.h"

enum { LEAST_AXES = 2, MOST_AXES = 3, CHANNELS = 8 /* of a thread */ };

static const char *const modes[][2] = {{"linear", "bilinear"}, {"nearest", "nearest"}, {"cubic", "bicubic"}};
static const char *const paddings[] = {"zeros", "border", "reflection"};

static cleave_status_t read_modes(cuda_plan_t *plan, const cleave_node_view_t *node, int *out_mode,
                                  int *out_padding) {
  const char *mode = cleave_view_string(node, "mode", "linear");
  const char *padding = cleave_view_string(node, "padding_mode", "zeros");
  *out_mode = 0;
  *out_padding = 0;
  while (*out_mode < 3 && strcmp(mode, modes[*out_mode][0]) != 0 && strcmp(mode, modes[*out_mode][1]) != 0) {
    (*out_mode)++;
  }
  while (*out_padding < 3 && strcmp(padding, paddings[*out_padding]) != 0) {
    (*out_padding)++;
  }
  return *out_mode < 3 && *out_padding < 3
             ? CLEAVE_OK
             : cuda_plan_refuse(plan, CLEAVE_REASON_ATTRIBUTE, "its mode or padding_mode is unknown");
}

static bool fits(const cleave_tensor_view_t *x, const cleave_tensor_view_t *grid,
                 const cleave_tensor_view_t *y) {
  int32_t axes = x->rank - 2;
  bool fits = axes >= LEAST_AXES && axes <= MOST_AXES && grid->rank == x->rank && y->rank == x->rank &&
              grid->dims[0] == x->dims[0] && grid->dims[axes + 1] == axes && y->dims[0] == x->dims[0] &&
              y->dims[1] == x->dims[1];
  for (int32_t d = 0; fits && d < axes; d++) {
    fits = grid->dims[1 + d] == y->dims[2 + d] && x->dims[2 + d] > 0;
  }
  return fits;
}

cleave_status_t cuda_emit_grid_sample(cuda_plan_t *plan, const cleave_node_view_t *node) {
  static const int taps[] = {2, 1, 4};
  const cleave_tensor_view_t *x = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *grid = cuda_input(plan, node, 1);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int mode = 0;
  int padding = 0;
  CUDA_TRY(cuda_images_need_floats(plan, node, 0));
  CUDA_TRY(cuda_images_need_floats(plan, node, 1));
  CUDA_TRY(read_modes(plan, node, &mode, &padding));
  int32_t axes = x->rank - 2;
  if (!fits(x, grid, y) || (mode == 2 && axes != 2)) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE,
                            "its grid does not fit the data of 2 or 3 axes, 2 if it is cubic");
  }
  int64_t places = cuda_product_of(y->dims + 2, axes);
  int64_t parts = (x->dims[1] + CHANNELS - 1) / CHANNELS;
  cuda_kernel_call_t call = {.text = "grid_sample",
                             .pointer_count = 3,
                             .pointers = {{node->inputs[0], 0}, {node->inputs[1], 0}, {node->outputs[0], 0}},
                             .threads = x->dims[0] * parts * places,
                             .number_count = 4,
                             .numbers = {0, x->dims[1], parts, places}};
  call.numbers[0] = call.threads;
  int all_taps = 1;
  for (int32_t d = 0; d < axes; d++) {
    call.numbers[call.number_count++] = x->dims[2 + d];
    all_taps *= taps[mode];
  }
  call.is_wide = cuda_is_wide(cleave_view_element_count(x)) ||
                 cuda_is_wide(cleave_view_element_count(grid)) || cuda_is_wide(cleave_view_element_count(y));
  cuda_writer_t defines = {0};
  cuda_images_write_coordinates(&defines, "grid", grid->dtype);
  cuda_write(&defines, "#define AXES %d\n#define MODE %d\n#define PADDING %d\n#define ALIGNED %d\n",
             (int)axes, mode, padding, cleave_view_int(node, "align_corners", 0) != 0);
  cuda_write(&defines, "#define TAPS %d\n#define ALL_TAPS %d\n#define CHANNELS %d\n", taps[mode], all_taps,
             CHANNELS);
  cleave_status_t status = cuda_images_emit(plan, x->dtype, &defines, &call);
  cuda_writer_deinit(&defines);
  return status;
}

cleave_status_t cuda_emit_affine_grid(cuda_plan_t *plan, const cleave_node_view_t *node) {
  const cleave_tensor_view_t *theta = cuda_input(plan, node, 0);
  const cleave_tensor_view_t *y = cuda_output(plan, node, 0);
  int32_t axes = y->rank - 2;
  CUDA_TRY(cuda_images_need_floats(plan, node, 0));
  if (axes < LEAST_AXES || axes > MOST_AXES || y->dims[axes + 1] != axes || theta->rank != 3 ||
      theta->dims[0] != y->dims[0] || theta->dims[1] != axes || theta->dims[2] != axes + 1 ||
      theta->dtype != y->dtype) {
    return cuda_plan_refuse(plan, CLEAVE_REASON_SHAPE, "its matrices do not fit a grid of 2 or 3 axes");
  }
  cuda_kernel_call_t call = {.text = "affine_grid",
                             .pointer_count = 2,
                             .pointers = {{node->inputs[0], 0}, {node->outputs[0], 0}},
                             .threads = cuda_product_of(y->dims, axes + 1),
                             .is_wide = cuda_is_wide(cleave_view_element_count(y)),
                             .number_count = 1};
  call.numbers[0] = call.threads;
  for (int32_t d = 0; d < axes; d++) {
    call.numbers[call.number_count++] = y->dims[1 + d];
  }
  cuda_writer_t defines = {0};
  cuda_write(&defines, "#define AXES %d\n#define ALIGNED %d\n", (int)axes,
             cleave_view_int(node, "align_corners", 0) != 0);
  if (kernel_compute_dtype(y->dtype) != y->dtype) { /* rounded once */
    cuda_write(&defines, "#undef narrow\n#define narrow(x) %s(x)\n",
               y->dtype == CLEAVE_DTYPE_F16 ? "double_to_half" : "double_to_bfloat");
  }
  cleave_status_t status = cuda_images_emit(plan, y->dtype, &defines, &call);
  cuda_writer_deinit(&defines);
  return status;
}
