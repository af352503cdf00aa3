// SPDX-License-Identifier: Apache-2.0
// The subgraph operator: whole regions of Exp and Log nodes are compiled to a list of steps and run in one
// call. What belongs to rules (who may be in a region, what its review says, the pass) is in exp_log_rules.c.
#include "exp_log.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct step {
  bool is_exp;
  uint32_t from; /* values of the region */
  uint32_t to;
} step_t;

typedef struct program {
  cleave_program_info_t info;
  size_t elements; /* of every value: all have one shape */
  uint32_t step_count;
  step_t *steps;
  uint32_t value_count;
  uint32_t
      *places; /* per value: input k, output k (from OUTPUTS on), or a buffer of the workspace (BUFFERS) */
  const char *label; /* what review attached to the region */
  char text[64];
} program_t;

enum { OUTPUTS = 1 << 28, BUFFERS = 1 << 29 };

static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)message;
  *out_state = (void *)(uintptr_t)host; /* all that is needed later */
  return CLEAVE_OK;
}

static void destroy(void *state) {
  (void)state;
}

static cleave_status_t refuse(cleave_message_t *reason, cleave_reason_code_t code, const char *text) {
  reason->code = code;
  (void)snprintf(reason->text, sizeof reason->text, "%s", text);
  return CLEAVE_ERROR_UNSUPPORTED;
}

cleave_status_t exp_log_supports_node(const cleave_region_view_t *view, const cleave_node_view_t *node,
                                      cleave_message_t *reason) {
  const cleave_value_view_t *x = cleave_view_input(view, node, 0);
  if (node->domain[0] != '\0' ||
      (!cleave_view_text_equal(node->op, "Exp") && !cleave_view_text_equal(node->op, "Log"))) {
    return refuse(reason, CLEAVE_REASON_OPERATOR, "only Exp and Log");
  }
  if (x == NULL || x->tensor.dtype != CLEAVE_DTYPE_F32) {
    return refuse(reason, CLEAVE_REASON_DTYPE, "only float32");
  }
  return CLEAVE_OK;
}

static cleave_status_t supports(void *state, const cleave_region_view_t *view, cleave_message_t *reason) {
  (void)state;
  for (uint32_t k = 0; k < view->node_count; k++) {
    cleave_status_t status = exp_log_supports_node(view, &view->nodes[k], reason);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  return CLEAVE_OK;
}

static void unload(void *memory) {
  program_t *program = memory;
  free(program->steps);
  free(program->places);
  free(program);
}

/* Where each value is while the program runs. */
static void place_values(program_t *program, const cleave_region_view_t *region) {
  uint32_t buffers = 0;
  for (uint32_t k = 0; k < region->value_count; k++) {
    program->places[k] = BUFFERS;
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    program->places[region->inputs[k]] = k;
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    program->places[region->outputs[k]] = OUTPUTS + k;
  }
  for (uint32_t k = 0; k < region->value_count; k++) {
    program->places[k] += program->places[k] == BUFFERS ? buffers++ : 0;
  }
  program->info.size = sizeof program->info;
  program->info.workspace_bytes = (size_t)buffers * program->elements * sizeof(float);
}

static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  const cleave_host_t *host = state;
  int64_t elements = cleave_view_element_count(&region->values[region->nodes[0].inputs[0]].tensor);
  (void)options;
  for (uint32_t k = 0; k < region->value_count; k++) {
    if (region->values[k].tensor.data != NULL) {
      return refuse(message, CLEAVE_REASON_CONSTANT, "no constants: cleave computes what follows from them");
    }
    if (cleave_view_element_count(&region->values[k].tensor) != elements || elements < 0) {
      return refuse(message, CLEAVE_REASON_SHAPE, "all values of a region have one shape, and it is known");
    }
  }
  program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->steps = calloc(region->node_count, sizeof *program->steps);
  program->places = calloc(region->value_count, sizeof *program->places);
  if (program->steps == NULL || program->places == NULL) {
    unload(program);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->elements = (size_t)elements;
  for (uint32_t k = 0; k < region->node_count; k++) {
    const cleave_node_view_t *node = &region->nodes[k];
    if (node->outputs[0] != CLEAVE_INDEX_NONE) {
      program->steps[program->step_count++] =
          (step_t){cleave_view_text_equal(node->op, "Exp"), node->inputs[0], node->outputs[0]};
    }
  }
  place_values(program, region);
  // What exp_log_review attached: the way from partitioning to the run.
  const cleave_attribute_view_t *label = cleave_view_region_attribute(region, "my_key");
  (void)snprintf(program->text, sizeof program->text, "exp_log: %u nodes, my_key=%.32s",
                 (unsigned)region->node_count,
                 label != NULL && label->kind == CLEAVE_ATTRIBUTE_STRING ? label->s : "(none)");
  if (host->log != NULL) {
    host->log(host, 3, program->text);
  }
  *out_program = program;
  return CLEAVE_OK;
}

static const cleave_program_info_t *info(const void *program) {
  return &((const program_t *)program)->info;
}

static float *find(const program_t *program, const cleave_run_args_t *args, uint32_t value) {
  uint32_t place = program->places[value];
  if (place >= BUFFERS) {
    return (float *)args->workspace + (size_t)(place - BUFFERS) * program->elements;
  }
  const void *data = place >= OUTPUTS ? args->outputs[place - OUTPUTS].data : args->inputs[place].data;
  return (float *)(uintptr_t)data;
}

static cleave_status_t run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  const program_t *program = memory;
  (void)message;
  for (uint32_t k = 0; k < program->step_count; k++) {
    const step_t *step = &program->steps[k];
    const float *from = find(program, args, step->from);
    float *to = find(program, args, step->to);
    for (size_t e = 0; e < program->elements; e++) {
      to[e] = step->is_exp ? expf(from[e]) : logf(from[e]);
    }
  }
  return CLEAVE_OK;
}

static const cleave_backend_t backend = {.size = sizeof(cleave_backend_t),
                                         .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
                                         .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
                                         .name = "exp_log",
                                         .version = "1.0",
                                         .description = "regions of Exp and Log, with rules in C",
                                         .initialise = initialise,
                                         .destroy = destroy,
                                         .supports = supports,
                                         .compile = compile,
                                         .unload = unload,
                                         .info = info,
                                         .run = run,
                                         .extensions = &exp_log_extensions};

const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message);

/* MXNet's `initialize`: a library may look at the version and refuse. */
const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  if (abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    (void)snprintf(message->text, sizeof message->text, "exp_log needs interface 2, this cleave has %u.%u",
                   (unsigned)abi_major, (unsigned)abi_minor);
    return NULL;
  }
  return &backend;
}
