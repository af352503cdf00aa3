// SPDX-License-Identifier: Apache-2.0
// What the kernels of this room share.
#include "images.h"

#include "kernels/convert.h"
#include "kernels/cuda/expression.h"

enum { BLOCK = 256 };

void cuda_images_write_coordinates(cuda_writer_t *writer, const char *name, cleave_dtype_t dtype) {
  cuda_write(writer, "typedef %s %s_element;\n#define widen_%s(x) (double)%s(x)\n", cuda_type(dtype), name,
             name,
             dtype == CLEAVE_DTYPE_F16    ? "half_to_float"
             : dtype == CLEAVE_DTYPE_BF16 ? "bfloat_to_float"
                                          : "");
}

cleave_status_t cuda_images_need_floats(cuda_plan_t *plan, const cleave_node_view_t *node, uint32_t index) {
  const cleave_tensor_view_t *tensor = cuda_input(plan, node, index);
  return tensor != NULL && cpu_dtype_is_float(tensor->dtype)
             ? CLEAVE_OK
             : cuda_plan_refuse(plan, CLEAVE_REASON_DTYPE, "expected floating-point numbers");
}

cleave_status_t cuda_images_emit(cuda_plan_t *plan, cleave_dtype_t dtype, const cuda_writer_t *more,
                                 cuda_kernel_call_t *call) {
  char types[256];
  cuda_writer_t defines = {0};
  (void)cuda_text_defines(dtype, types, sizeof types);
  cuda_write(&defines, "%s%s", types, more->text == NULL ? "" : more->text);
  call->defines = defines.text;
  call->label = plan->region->nodes[plan->node].op;
  call->block = BLOCK;
  cleave_status_t status =
      defines.failed || more->failed ? cuda_plan_no_memory(plan) : cuda_plan_kernel(plan, call);
  cuda_writer_deinit(&defines);
  return status;
}
