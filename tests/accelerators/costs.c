// SPDX-License-Identifier: Apache-2.0
/*
 * A Relu on a device far away: 20 us to get there, and a nanosecond for every 8 bytes that cross the border;
 * computing costs nothing. Of tensors of 1 to 6 elements it says what nobody can: NaN, less than nothing,
 * without end, nothing at all, that it does not know, and a number that is no status.
 */
#include "relu.h"

#include <math.h>

static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  (void)state;
  for (uint32_t k = 0; k < region->node_count; k++) {
    if (!cleave_view_text_equal(region->nodes[k].op, "Relu")) {
      (void)snprintf(reason->text, sizeof reason->text, "only Relu");
      return CLEAVE_ERROR_UNSUPPORTED;
    }
  }
  return CLEAVE_OK;
}

static double border_bytes(const cleave_region_view_t *view) {
  double bytes = 0.0;
  for (uint32_t k = 0; k < view->input_count; k++) {
    bytes += 4.0 * (double)cleave_view_element_count(&view->values[view->inputs[k]].tensor);
  }
  for (uint32_t k = 0; k < view->output_count; k++) {
    bytes += 4.0 * (double)cleave_view_element_count(&view->values[view->outputs[k]].tensor);
  }
  return bytes;
}

static cleave_status_t cost(void *state, const cleave_region_view_t *view, double *out_nanoseconds,
                            cleave_message_t *message) {
  (void)state;
  *out_nanoseconds = 20000.0 + border_bytes(view) / 8.0;
  switch (cleave_view_element_count(&view->values[view->inputs[0]].tensor)) {
    case 1: *out_nanoseconds = (double)NAN; break;
    case 2: *out_nanoseconds = -5.0; break;
    case 3: *out_nanoseconds = (double)INFINITY; break;
    case 4: *out_nanoseconds = 0.0; break;
    case 5: memset(message->text, 'x', sizeof message->text); return CLEAVE_ERROR_UNSUPPORTED;
    case 6: return (cleave_status_t)4711;
    default: break;
  }
  return CLEAVE_OK;
}

static const cleave_backend_t backend = {.size = sizeof(cleave_backend_t),
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "costs",
                                         .version = "1",
                                         .description = "a test",
                                         .initialise = relu_initialise,
                                         .destroy = relu_destroy,
                                         .supports = supports,
                                         .compile = relu_compile,
                                         .unload = relu_unload,
                                         .info = relu_info,
                                         .run = relu_run,
                                         .cost = cost};

RELU_ENTRY()
