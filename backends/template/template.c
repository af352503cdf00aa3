// SPDX-License-Identifier: Apache-2.0
// The smallest complete accelerator library: float32 Relu and Add and their gradients, in host memory, and an
// operator of its own. Copy the folder, give it a name, and put your device where the comments say so. Built
// against cleave/backend.h alone, as C11 or as C++11.
#include "cleave/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What `compile` makes of a region, and `run` executes: a list of steps over values, which are numbered as in
 * the region. LOAD fetches input `a` of the region, STORE hands out its output `out`. */
typedef enum step_kind { LOAD, RELU, ADD, RELU_GRAD, STORE } step_kind_t;
typedef struct step {
  step_kind_t kind;
  uint32_t a, b, out;
} step_t;

typedef struct program {
  cleave_program_info_t info; /* workspace, outputs that may lie over inputs: here there are none */
  size_t elements;            /* of every value: see `supports` */
  size_t step_count;
  step_t *steps;
  float *memory; /* room for all values, one after the other; constants are copied here once */
} program_t;

/* Called first, once for each state. Find your device here; refuse with a reason if there is none. */
static cleave_status_t initialise(const cleave_host_t *host, void **out_state, cleave_message_t *message) {
  (void)host, (void)message; /* services of cleave: threads, a log, JSON; and where a reason goes */
  *out_state = NULL;         /* handed to `supports` and `compile`, and to `destroy` at the end */
  return CLEAVE_OK;
}

static cleave_status_t refuse(cleave_message_t *reason, cleave_reason_code_t code, const char *what,
                              const char *why) {
  reason->code = code; /* for programs; the text is for people */
  (void)snprintf(reason->text, sizeof reason->text, "'%.80s': %s", what, why);
  return CLEAVE_ERROR_UNSUPPORTED;
}

/* The step that computes a node; LOAD: none does. */
static step_kind_t kind_of(const cleave_node_view_t *node) {
  return cleave_view_text_equal(node->op, "Add")        ? ADD
         : cleave_view_text_equal(node->op, "Relu")     ? RELU
         : cleave_view_text_equal(node->op, "ReluGrad") ? RELU_GRAD
                                                        : LOAD;
}

/* May these nodes run here? One node, or one fusion. Say why not: people read it in `cleave why`. */
static cleave_status_t supports(void *state, const cleave_region_view_t *region, cleave_message_t *reason) {
  (void)state;
  int64_t elements = region->value_count > 0 ? cleave_view_element_count(&region->values[0].tensor) : -1;
  for (uint32_t k = 0; k < region->node_count; k++) {
    if (kind_of(&region->nodes[k]) == LOAD) {
      return refuse(reason, CLEAVE_REASON_OPERATOR, region->nodes[k].op, "only Relu and Add are known");
    }
  }
  for (uint32_t k = 0; k < region->value_count; k++) {
    const cleave_tensor_view_t *tensor = &region->values[k].tensor;
    if (tensor->dtype != CLEAVE_DTYPE_F32 || elements < 0 || cleave_view_element_count(tensor) != elements) {
      return refuse(reason, CLEAVE_REASON_SHAPE, region->values[k].name,
                    "expected float32 of one known size");
    }
  }
  return CLEAVE_OK;
}

static void unload(void *memory) {
  program_t *program = (program_t *)memory;
  free(program->steps);
  free(program->memory);
  free(program);
}

static step_t *add_step(step_t *step, step_kind_t kind, uint32_t a, uint32_t b, uint32_t out) {
  step->kind = kind;
  step->a = a;
  step->b = b;
  step->out = out;
  return step + 1;
}

/* Compiles a region, every node of which `supports` was asked about. Take your time here, not in `run`. */
static cleave_status_t compile(void *state, const cleave_region_view_t *region,
                               const cleave_compile_options_t *options, void **out_program,
                               cleave_message_t *message) {
  (void)options; /* threads, device, options of the user */
  if (supports(state, region, message) != CLEAVE_OK) {
    return CLEAVE_ERROR_UNSUPPORTED;
  }
  size_t elements = (size_t)cleave_view_element_count(&region->values[0].tensor);
  size_t most = (size_t)region->input_count + region->node_count + region->output_count;
  program_t *program = (program_t *)calloc(1, sizeof *program);
  step_t *step = (step_t *)calloc(most, sizeof *step);
  float *memory = (float *)calloc(region->value_count * elements + 1, sizeof *memory);
  if (program == NULL || step == NULL || memory == NULL) {
    free(program), free(step), free(memory);
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->info.size = sizeof program->info;
  program->elements = elements;
  program->step_count = most;
  program->steps = step;
  program->memory = memory;
  for (uint32_t k = 0; k < region->value_count; k++) {
    if (region->values[k].tensor.data != NULL) { /* a constant: upload it once */
      memcpy(memory + k * elements, region->values[k].tensor.data, elements * sizeof *memory);
    }
  }
  for (uint32_t k = 0; k < region->input_count; k++) {
    step = add_step(step, LOAD, k, 0, region->inputs[k]);
  }
  for (uint32_t k = 0; k < region->node_count; k++) { /* in an order that runs */
    const cleave_node_view_t *node = &region->nodes[k];
    step =
        add_step(step, kind_of(node), node->inputs[0], node->inputs[node->input_count - 1], node->outputs[0]);
  }
  for (uint32_t k = 0; k < region->output_count; k++) {
    step = add_step(step, STORE, region->outputs[k], 0, k);
  }
  *out_program = program;
  return CLEAVE_OK;
}

static const cleave_program_info_t *info(const void *program) {
  return &((const program_t *)program)->info;
}

/* Runs once. Nothing is allocated, nothing is looked up by name. */
static cleave_status_t run(void *memory, const cleave_run_args_t *args, cleave_message_t *message) {
  const program_t *program = (const program_t *)memory;
  size_t bytes = program->elements * sizeof *program->memory;
  (void)message;
  for (const step_t *step = program->steps; step < program->steps + program->step_count; step++) {
    const float *a = program->memory + step->a * program->elements;
    const float *b = program->memory + step->b * program->elements;
    float *out = program->memory + step->out * program->elements;
    if (step->kind == LOAD) { /* users' buffers may be unaligned: copy */
      memcpy(out, args->inputs[step->a].data, bytes);
    } else if (step->kind == STORE) {
      memcpy((void *)(uintptr_t)args->outputs[step->out].data, a, bytes);
    }
    for (size_t k = 0; k < program->elements && step->kind != LOAD && step->kind != STORE; k++) {
      out[k] = step->kind == ADD ? a[k] + b[k] : b[k] > 0.0f ? a[k] : 0.0f; /* of Relu, a and b are one */
    }
  }
  return CLEAVE_OK;
}

/* ---- gradients of a region, in training; leave this out, and cleave's rules make them ---- */

/* A node of the backward graph. */
static cleave_status_t grow(const cleave_backward_request_t *request, const char *domain, const char *op,
                            uint32_t a, uint32_t b, uint32_t *out, cleave_message_t *reason) {
  const uint32_t inputs[2] = {a, b};
  cleave_new_node_t node = {sizeof(cleave_new_node_t), domain, op, NULL, inputs, 2, NULL, 0, 1};
  return request->editor->add_node(request->editor->graph, &node, out, reason);
}

/* From the last node to the first: what is given to a value is added up. */
static cleave_status_t backward(void *state, const cleave_backward_request_t *request,
                                cleave_message_t *reason) {
  const cleave_region_view_t *region = request->forward;
  uint32_t *d = request->results;
  cleave_status_t status = CLEAVE_OK;
  (void)state;
  for (uint32_t k = 0; k < region->output_count; k++) {
    d[region->outputs[k]] = request->gradients[k];
  }
  for (uint32_t k = region->node_count; k-- > 0 && status == CLEAVE_OK;) {
    const cleave_node_view_t *node = &region->nodes[k];
    uint32_t y = node->outputs[0], dx = d[y];
    if (kind_of(node) == RELU_GRAD ||
        (node->input_count == 2 &&
         region->values[node->inputs[0]].tensor.rank != region->values[node->inputs[1]].tensor.rank)) {
      return refuse(reason, CLEAVE_REASON_OPERATOR, node->op, "no gradient, or one of another rank");
    }
    if (kind_of(node) == RELU && dx != CLEAVE_INDEX_NONE) {
      status = grow(request, "cleave", "ReluGrad", dx, request->values[y], &dx, reason);
    }
    for (uint32_t i = 0; i < node->input_count && dx != CLEAVE_INDEX_NONE && status == CLEAVE_OK; i++) {
      uint32_t *given = &d[node->inputs[i]];
      status = *given == CLEAVE_INDEX_NONE ? CLEAVE_OK : grow(request, "", "Add", *given, dx, given, reason);
      *given = *given == CLEAVE_INDEX_NONE ? dx : *given;
    }
  }
  return status;
}

/* ---- an operator that ONNX does not have, y = 2 x; leave this out if there is none ---- */

static cleave_status_t infer_twice(void *self, const cleave_region_view_t *node,
                                   cleave_tensor_view_t *outputs, int64_t (*dims)[CLEAVE_MAX_RANK],
                                   cleave_message_t *message) {
  (void)self;
  const cleave_tensor_view_t *x = &cleave_view_input(node, &node->nodes[0], 0)->tensor;
  if (x->dtype != CLEAVE_DTYPE_F32 && x->dtype != CLEAVE_DTYPE_UNKNOWN) {
    (void)snprintf(message->text, sizeof message->text, "expected float32");
    return CLEAVE_ERROR_SHAPE; /* an error of the model */
  }
  outputs[0].dtype = x->dtype;
  outputs[0].rank = x->rank; /* -1: not known yet */
  for (int32_t d = 0; d < x->rank; d++) {
    dims[0][d] = x->dims[d];
  }
  return CLEAVE_OK;
}

/* Its kernel, used if no backend takes the node. */
static cleave_status_t create_twice(void *self, const cleave_region_view_t *node,
                                    const cleave_compile_options_t *options, void **out_executor,
                                    cleave_message_t *message) {
  static int nothing; /* what a kernel keeps between runs */
  (void)self, (void)node, (void)options, (void)message;
  *out_executor = &nothing;
  return CLEAVE_OK;
}

static void destroy_twice(void *executor) {
  (void)executor;
}

static cleave_status_t execute_twice(void *executor, const cleave_run_args_t *args,
                                     cleave_message_t *message) {
  int64_t count = cleave_view_element_count(&args->inputs[0]);
  (void)executor, (void)message;
  for (int64_t k = 0; k < count; k++) {
    float x;
    memcpy(&x, (const char *)args->inputs[0].data + (size_t)k * sizeof x, sizeof x); /* may be unaligned */
    ((float *)(uintptr_t)args->outputs[0].data)[k] = 2 * x;
  }
  return CLEAVE_OK;
}

/* ---- what cleave is told ---- */

static cleave_custom_operator_t twice;
static const cleave_custom_operator_t *const operators[] = {&twice};
static cleave_backend_extensions_t extensions;
static cleave_backend_t backend;

/* The one symbol that cleave looks for. NULL and a message refuse the cleave that asks. */
const cleave_backend_t *cleave_backend_entry(uint32_t abi_major, uint32_t abi_minor,
                                             cleave_message_t *message) {
  (void)abi_major, (void)abi_minor, (void)message;
  twice.size = sizeof twice;
  twice.domain = "template.ops";
  twice.name = "Twice";
  twice.version = 1; /* versions 1 to 2 of "template.ops" mean this; models of others are refused */
  twice.last_version = 2;
  twice.inputs = "X";
  twice.outputs = "Y";
  twice.infer = infer_twice;
  twice.create = create_twice;
  twice.destroy = destroy_twice;
  twice.execute = execute_twice;
  extensions.size = sizeof extensions;
  extensions.operators = operators;
  extensions.operator_count = 1;
  backend.size = sizeof backend; /* how much of the struct this library knows */
  backend.abi_major = CLEAVE_BACKEND_ABI_MAJOR;
  backend.abi_minor = CLEAVE_BACKEND_ABI_MINOR;
  backend.name = "template"; /* what a ruleset's `backend` says */
  backend.version = "1.0";
  backend.description = "Relu and Add on float32: a library to copy";
  backend.initialise = initialise;
  backend.destroy = free; /* gets the state */
  backend.supports = supports;
  backend.compile = compile;
  backend.unload = unload;
  backend.info = info;
  backend.run = run;
  backend.backward = backward;
  backend.extensions = &extensions;
  return &backend;
}
