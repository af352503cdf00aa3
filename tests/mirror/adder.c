// SPDX-License-Identifier: Apache-2.0
// Requests to add: the sum is an Add of the cpu backend itself, compiled when an output asks for it first and
// kept for as long as the type stays the same.
#include <string.h>

#include "program.h"

void mirror_adder_deinit(mirror_program_t *program, mirror_adder_t *adder) {
  if (adder->program != NULL) {
    program->mirror->cpu->unload(adder->program);
  }
  adder->program = NULL;
  mirror_buffer_free(program, &adder->workspace);
  mirror_buffer_free(program, &adder->target);
}

static bool fits(const mirror_adder_t *adder, const cleave_tensor_view_t *type) {
  return adder->program != NULL && adder->dtype == type->dtype && adder->rank == type->rank &&
         (type->rank == 0 ||
          memcmp(adder->dims, type->dims, (size_t)type->rank * sizeof adder->dims[0]) == 0);
}

/* sum = there + new */
static cleave_status_t compile(mirror_program_t *program, mirror_adder_t *adder,
                               const cleave_tensor_view_t *type, cleave_message_t *message) {
  static const uint32_t OPERANDS[2] = {0, 1};
  static const uint32_t RESULT[1] = {2};
  static const char *const NAMES[3] = {"there", "new", "sum"};
  const cleave_backend_t *cpu = program->mirror->cpu;
  cleave_value_view_t values[3];
  for (uint32_t v = 0; v < 3; v++) {
    values[v] = (cleave_value_view_t){.size = sizeof values[v],
                                      .name = NAMES[v],
                                      .tensor = {.size = sizeof values[v].tensor,
                                                 .dtype = type->dtype,
                                                 .rank = type->rank,
                                                 .dims = type->dims},
                                      .producer = v == 2 ? 0 : CLEAVE_INDEX_NONE,
                                      .is_output = v == 2};
  }
  cleave_node_view_t node = {.size = sizeof node,
                             .op = "Add",
                             .domain = "",
                             .name = "",
                             .opset_version = 14,
                             .input_count = 2,
                             .output_count = 1,
                             .inputs = OPERANDS,
                             .outputs = RESULT,
                             .fusion = CLEAVE_INDEX_NONE};
  cleave_region_view_t region = {.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED,
                                 .name = "add",
                                 .rule = "",
                                 .value_count = 3,
                                 .node_count = 1,
                                 .input_count = 2,
                                 .output_count = 1,
                                 .values = values,
                                 .nodes = &node,
                                 .inputs = OPERANDS,
                                 .outputs = RESULT};
  cleave_compile_options_t options = {.size = sizeof options, .threads = 1};
  if (adder->program != NULL) {
    cpu->unload(adder->program);
    adder->program = NULL;
  }
  cleave_status_t status =
      cpu->compile(program->mirror->cpu_state, &region, &options, &adder->program, message);
  if (status != CLEAVE_OK) {
    adder->program = NULL;
    return status;
  }
  adder->dtype = type->dtype;
  adder->rank = type->rank;
  for (int32_t d = 0; d < type->rank; d++) {
    adder->dims[d] = type->dims[d];
  }
  return mirror_buffer_reserve(program, &adder->workspace, cpu->info(adder->program)->workspace_bytes,
                               message);
}

cleave_status_t mirror_add(mirror_program_t *program, mirror_adder_t *adder, const cleave_tensor_view_t *to,
                           void *from, cleave_message_t *message) {
  if (!fits(adder, to)) {
    cleave_status_t status = compile(program, adder, to, message);
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  cleave_tensor_view_t inputs[2] = {*to, *to};
  cleave_tensor_view_t sum = *to;
  inputs[1].data = from;
  cleave_run_args_t args = {
      .size = sizeof args, .inputs = inputs, .outputs = &sum, .workspace = adder->workspace.memory};
  return program->mirror->cpu->run(adder->program, &args, message);
}
