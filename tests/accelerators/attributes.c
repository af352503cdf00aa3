// SPDX-License-Identifier: Apache-2.0
/* Nothing is wrong with this one either: a Relu that adds what rules attach, `offset` of the region and
 * `bias` of the fusion, refuses fusions whose rule says `forbidden`, and has a second look at regions. */
#include "relu.h"

typedef struct offset_program {
  relu_program_t relu;
  float offset;
} offset_program_t;

static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  if (region->fusion_count > 0 && cleave_view_fusion_attribute(region, 0, "forbidden") != NULL) {
    (void)snprintf(reason->text, sizeof reason->text, "forbidden by its rule");
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  return relu_supports(state, region, reason);
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  (void)options;
  if (supports(state, region, message) != CLEAVE_OK) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  offset_program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  const cleave_attribute_view_t *offset = cleave_view_region_attribute(region, "offset");
  const cleave_attribute_view_t *bias =
      region->fusion_count > 0 ? cleave_view_fusion_attribute(region, 0, "bias") : NULL;
  program->relu.info.size = sizeof program->relu.info;
  program->relu.elements = (size_t)cleave_view_element_count(&region->values[region->inputs[0]].tensor);
  program->offset += offset != NULL && offset->kind == CLEAVE_ATTRIBUTE_FLOAT ? (float)offset->f : 0.0f;
  program->offset += bias != NULL && bias->kind == CLEAVE_ATTRIBUTE_INT ? (float)bias->i : 0.0f;
  *out_program = program;
  return CLEAVE_OK;
}

static cleave_status_t run(void *program, const cleave_run_args_t *args, cleave_message_t *message) {
  const offset_program_t *self = program;
  (void)message;
  relu_compute(&self->relu, args, self->offset);
  return CLEAVE_OK;
}

/* One node is enough for a program, and none may be called "never". */
static cleave_status_t review(void *state, const cleave_region_view_t *region, bool *keep,
                              cleave_message_t *message) {
  (void)state;
  for (uint32_t k = 0; k < region->node_count; k++) {
    keep[k] = k == 0;
    if (cleave_view_text_equal(region->nodes[k].name, "never")) {
      (void)snprintf(message->text, sizeof message->text, "it says never");
      return CLEAVE_ERROR_UNSUPPORTED;
    }
  }
  (void)snprintf(message->text, sizeof message->text, "one node is enough");
  return CLEAVE_OK;
}

static const cleave_backend_t backend = {.size = sizeof(cleave_backend_t),
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "attributes",
                                         .version = "1",
                                         .description = "a test",
                                         .initialise = relu_initialise,
                                         .destroy = relu_destroy,
                                         .supports = supports,
                                         .compile = compile,
                                         .unload = relu_unload,
                                         .info = relu_info,
                                         .run = run,
                                         .review = review};

RELU_ENTRY()
