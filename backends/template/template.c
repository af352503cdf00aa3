/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest complete accelerator library: float32 Relu and Add, in host memory. Copy the folder, give it a
 * name, and put your device where the comments say so. Built against cleave/backend.h alone.
 */
#include "cleave/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One operator of a compiled region: out = max(a, 0), or out = a + b; numbers of the region's values. */
typedef struct step {
  bool is_add;
  uint32_t a, b, out;
} step_t;

/* What `compile` makes of a region, and `run` executes. */
typedef struct program {
  cleave_program_info_t info;
  size_t elements; /* of every value: see `supports` */
  uint32_t step_count, input_count, output_count;
  step_t *steps;
  uint32_t *inputs, *outputs; /* values, as in the region */
  float **memory;             /* by value: `own`, or that of the run for inputs and outputs */
  float *own;                 /* room for all values; constants are copied here once */
} program_t;

/* Called once, before all else. Find your device here; refuse with a reason where there is none. */
static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)host; /* services of cleave: a thread pool, a log */
  (void)message;
  *out_state = NULL; /* handed to all functions below */
  return CLEAVE_OK;
}

static void destroy(void *state) {
  (void)state;
}

/* May these nodes run here? One node, or one fusion. Say why not: people read it in `cleave why`. */
static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  (void)state;
  int64_t elements = region->value_count > 0 ? cleave_view_element_count(&region->values[0].tensor) : -1;
  for (uint32_t k = 0; k < region->node_count; k++) {
    const char *op = region->nodes[k].op;
    if (!cleave_view_text_equal(op, "Relu") && !cleave_view_text_equal(op, "Add")) {
      reason->code = CLEAVE_REASON_OPERATOR;
      (void)snprintf(reason->text, sizeof reason->text, "%s: only Relu and Add are known", op);
      return CLEAVE_ERROR_UNSUPPORTED;
    }
  }
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_tensor_view_t *tensor = &region->values[k].tensor;
    if (tensor->dtype != CLEAVE_DTYPE_F32 || elements < 0 || cleave_view_element_count(tensor) != elements) {
      reason->code = CLEAVE_REASON_SHAPE;
      (void)snprintf(reason->text, sizeof reason->text, "'%s': expected float32 of one known shape",
                     region->values[k].name);
      return CLEAVE_ERROR_UNSUPPORTED;
    }
  }
  return CLEAVE_OK;
}

static void unload(void *memory) {
  program_t *program = memory;
  free(program->steps);
  free(program->inputs);
  free(program->memory);
  free(program->own);
  free(program);
}

/* Compiles a region, every node of which `supports` was asked about. Take your time here, not in `run`. */
static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  (void)options; /* threads, device, options of the user */
  if (supports(state, region, message) != CLEAVE_OK) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  program_t *program = calloc(1, sizeof *program);
  if (program == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->info.size = sizeof program->info; /* no workspace, no output that may lie over an input */
  program->elements = (size_t)cleave_view_element_count(&region->values[0].tensor);
  program->step_count = region->node_count;
  program->input_count = region->input_count;
  program->output_count = region->output_count;
  program->steps = calloc(region->node_count, sizeof *program->steps);
  program->inputs = calloc((size_t)region->input_count + region->output_count + 1, sizeof *program->inputs);
  program->memory = calloc(region->value_count, sizeof *program->memory);
  program->own = calloc(region->value_count * program->elements + 1, sizeof *program->own);
  if (program->steps == NULL || program->inputs == NULL || program->memory == NULL || program->own == NULL) {
    unload(program);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->outputs = program->inputs + region->input_count;
  memcpy(program->inputs, region->inputs, region->input_count * sizeof *program->inputs);
  memcpy(program->outputs, region->outputs, region->output_count * sizeof *program->outputs);
  for (uint32_t k = 0; k < region->value_count; k++) {
    program->memory[k] = program->own + k * program->elements;
    if (region->values[k].tensor.data != NULL) { /* a constant: upload it once */
      memcpy(program->memory[k], region->values[k].tensor.data, program->elements * sizeof(float));
    }
  }
  for (uint32_t k = 0; k < region->node_count; k++) {
    const cleave_node_view_t *node = &region->nodes[k];
    bool is_add = cleave_view_text_equal(node->op, "Add");
    program->steps[k] = (step_t){is_add, node->inputs[0], node->inputs[is_add ? 1 : 0], node->outputs[0]};
  }
  *out_program = program;
  return CLEAVE_OK;
}

static const cleave_program_info_t *info(const void *program) {
  return &((const program_t *)program)->info;
}

/* Runs once. Nothing is allocated, nothing is looked up by name. */
static cleave_status_t run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  program_t *program = memory;
  (void)message;
  for (uint32_t k = 0; k < program->input_count; k++) { /* users' buffers may be unaligned: copy */
    memcpy(program->memory[program->inputs[k]], args->inputs[k].data, program->elements * sizeof(float));
  }
  for (uint32_t s = 0; s < program->step_count; s++) {
    const step_t *step = &program->steps[s];
    const float *a = program->memory[step->a];
    const float *b = program->memory[step->b];
    float *out = program->memory[step->out];
    for (size_t k = 0; k < program->elements; k++) {
      out[k] = step->is_add ? a[k] + b[k] : a[k] > 0.0f ? a[k] : 0.0f;
    }
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    memcpy((void *)(uintptr_t)args->outputs[k].data, program->memory[program->outputs[k]],
           program->elements * sizeof(float));
  }
  return CLEAVE_OK;
}

static const cleave_backend_t backend = {
    .size = sizeof backend, /* how much of the struct this library knows */
    .abi_major = CLEAVE_BACKEND_ABI_MAJOR,
    .abi_minor = CLEAVE_BACKEND_ABI_MINOR,
    .name = "template", /* what a ruleset's `backend` says */
    .version = "1.0",
    .description = "Relu and Add on float32: a library to copy",
    .initialise = initialise,
    .destroy = destroy,
    .supports = supports,
    .compile = compile,
    .unload = unload,
    .info = info,
    .run = run};

/* The one symbol that cleave looks for. */
const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message);
const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_minor; /* an older cleave leaves younger fields alone */
  if (abi_major != CLEAVE_BACKEND_ABI_MAJOR) {
    (void)snprintf(message->text, sizeof message->text, "built for interface %u", CLEAVE_BACKEND_ABI_MAJOR);
    return NULL;
  }
  return &backend;
}
