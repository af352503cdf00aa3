// SPDX-License-Identifier: Apache-2.0
// A library that sees nothing but cleave/backend.h, in plain C11: float32 Neg of any rank. It gives every
// struct of the interface that a library fills in a body, and calls every reader of views, so that a header
// that asks for more does not build here.
#include "cleave/backend.h"

typedef struct program {
  cleave_program_info_t info;
  size_t elements;
} program_t;

static program_t programs[64]; /* no other header, so no allocation */
static size_t program_count;

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  message->code = CLEAVE_REASON_NONE;
  if (host->size > offsetof(cleave_host_t, log) && host->log != NULL) {
    host->log(host, 3, "a library built against the header alone");
  }
  *out_state = programs;
  return CLEAVE_OK;
}

static void destroy(void *state) {
  (void)state;
}

static cleave_status_t refuse(cleave_message_t *message, cleave_reason_code_t code, const char *text) {
  size_t k = 0;
  for (; text[k] != '\0' && k + 1 < sizeof message->text; k++) {
    message->text[k] = text[k];
  }
  message->text[k] = '\0';
  message->code = code;
  return CLEAVE_ERROR_UNSUPPORTED;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  (void)state;
  const cleave_node_view_t *node = &view->nodes[0];
  const cleave_value_view_t *input = cleave_view_input(view, node, 0);
  const cleave_value_view_t *output = cleave_view_output(view, node, 0);
  uint32_t count = 0;
  bool has_settings =
      cleave_view_int(node, "axis", 0) != 0 || cleave_view_float(node, "alpha", 0.0) > 0.0 ||
      cleave_view_string(node, "mode", NULL) != NULL || cleave_view_ints(node, "axes", &count) != NULL ||
      cleave_view_attribute(node, "to") != NULL || cleave_view_region_attribute(view, "device") != NULL ||
      (view->fusion_count > 0 && cleave_view_fusion_attribute(view, 0, "kind") != NULL);
  if (view->node_count != 1 || !cleave_view_text_equal(node->op, "Neg") || has_settings) {
    return refuse(reason, CLEAVE_REASON_OPERATOR, "only Neg is known");
  }
  if (input == NULL || output == NULL || input->tensor.data != NULL ||
      input->tensor.dtype != CLEAVE_DTYPE_F32 || cleave_view_element_count(&input->tensor) < 0) {
    return refuse(reason, CLEAVE_REASON_SHAPE, "expected float32 of known shape");
  }
  return CLEAVE_OK;
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  (void)options;
  if (supports(state, region, message) != CLEAVE_OK ||
      program_count == sizeof programs / sizeof programs[0]) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  program_t *program = &programs[program_count++];
  *program = (program_t){.info = {.size = sizeof program->info}};
  program->elements = (size_t)cleave_view_element_count(&region->values[region->inputs[0]].tensor);
  *out_program = program;
  return CLEAVE_OK;
}

static void unload(void *program) {
  ((program_t *)program)->elements = 0;
}

static const cleave_program_info_t *info(const void *program) {
  return &((const program_t *)program)->info;
}

static cleave_status_t run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  (void)message;
  const program_t *program = memory;
  const unsigned char *from = args->inputs[0].data;
  unsigned char *to = (unsigned char *)(uintptr_t)args->outputs[0].data;
  for (size_t k = 0; k < program->elements * cleave_dtype_size(CLEAVE_DTYPE_F32); k++) {
    to[k] = (unsigned char)(k % 4 == 3 ? from[k] ^ 0x80 : from[k]); /* the sign of each float */
  }
  return CLEAVE_OK;
}

static const cleave_backend_t backend = {.size = sizeof(cleave_backend_t),
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "header",
                                         .version = "1",
                                         .description = "C11 and one header",
                                         .initialise = initialise,
                                         .destroy = destroy,
                                         .supports = supports,
                                         .compile = compile,
                                         .unload = unload,
                                         .info = info,
                                         .run = run};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major;
  (void)abi_minor;
  (void)message;
  return &backend;
}
