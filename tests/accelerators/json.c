// SPDX-License-Identifier: Apache-2.0
/* Nothing is wrong with this one: its compiler takes text. A region becomes JSON, and what is read back from
 * that is compiled. */
#include "relu.h"

static const cleave_host_t *host;

static cleave_status_t initialise(const cleave_host_t *given, void **out_state, cleave_message_t *message) {
  host = given;
  return relu_initialise(given, out_state, message);
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  char *text = NULL;
  size_t length = 0;
  const cleave_region_view_t *again = NULL;
  cleave_status_t status = host->region_to_json(region, false, &text, &length, message);
  if (status != CLEAVE_OK) {
    return status;
  }
  status = host->region_from_json("{\"format\": 1}", 13, &again, message);
  if (status != CLEAVE_ERROR_FORMAT || again != NULL || strstr(message->text, "region: ") == NULL) {
    host->free_json(text);
    return CLEAVE_ERROR_BACKEND;
  }
  status = host->region_from_json(text, length, &again, message);
  if (status == CLEAVE_OK && again->hash != region->hash) {
    (void)snprintf(message->text, sizeof message->text, "another hash");
    status = CLEAVE_ERROR_BACKEND;
  }
  if (status == CLEAVE_OK) {
    status = relu_compile(state, again, options, out_program, message);
  }
  host->free_region(again);
  host->free_json(text);
  return status;
}

static const cleave_backend_t backend = {.size = sizeof backend,
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "json",
                                         .version = "1",
                                         .description = "a test",
                                         .initialise = initialise,
                                         .destroy = relu_destroy,
                                         .supports = relu_supports,
                                         .compile = compile,
                                         .unload = relu_unload,
                                         .info = relu_info,
                                         .run = relu_run};

RELU_ENTRY()
