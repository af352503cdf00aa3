// SPDX-License-Identifier: Apache-2.0
/* From units to runtimes: a subgraph per stage, emitted unit by unit, and set up on the program's own buffers
 * once and for all. */
#include <stdlib.h>

#include "builder.h"
#include "operators.h"
#include "stages.h"

/* Runtime of the units of one stage. */
static cleave_status_t build_stage(builder_t *builder, const unit_t *units, const int32_t *stages,
                                   uint32_t unit_count, pthreadpool_t pool, xnn_runtime_t *out_runtime) {
  const cleave_region_view_t *region = builder->region;
  builder->unit = NULL;
  builder->external_count = 0;
  for (uint32_t v = 0; v < region->value_count; v++) {
    builder->values[v].id[FORM_PLAIN] = builder->values[v].id[FORM_LAST] = XNN_INVALID_VALUE_ID;
  }
  cleave_status_t status = xnnpack_builder_check(
      builder, xnn_create_subgraph((uint32_t)builder->program->buffer_count, 0, &builder->subgraph),
      "subgraph");
  for (uint32_t u = 0; status == CLEAVE_OK && u < unit_count; u++) {
    if (stages[u] == builder->stage) {
      builder->unit = &units[u];
      builder->form = xnnpack_unit_form(builder, &units[u]);
      status = units[u].operator->emit(&units[u], builder);
    }
  }
  if (status == CLEAVE_OK) {
    builder->unit = NULL;
    status = xnnpack_builder_check(
        builder, xnn_create_runtime_v2(builder->subgraph, pool, XNN_FLAG_YIELD_WORKERS, out_runtime),
        "runtime");
  }
  if (status == CLEAVE_OK && *out_runtime == NULL) { /* what this version answers where it finds no memory */
    status = xnnpack_builder_check(builder, xnn_status_out_of_memory, "runtime");
  }
  if (status == CLEAVE_OK) {
    status = xnnpack_builder_check(
        builder, xnn_setup_runtime(*out_runtime, builder->external_count, builder->externals), "setup");
  }
  if (builder->subgraph != NULL) {
    (void)xnn_delete_subgraph(builder->subgraph);
    builder->subgraph = NULL;
  }
  return status;
}

cleave_status_t xnnpack_build(const cleave_region_view_t *region, const unit_t *units, uint32_t unit_count,
                              pthreadpool_t pool, program_t *program, cleave_message_t *message) {
  builder_t builder = {.region = region, .program = program, .message = message};
  int32_t *stages = calloc((size_t)unit_count + 1, sizeof *stages);
  builder.values = calloc((size_t)region->value_count + 1, sizeof *builder.values);
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  uint32_t stage_count = 0;
  if (stages != NULL && builder.values != NULL) {
    status = xnnpack_stages_assign(&builder, units, unit_count, stages, &stage_count);
  }
  if (status == CLEAVE_OK) {
    builder.externals = calloc(program->buffer_count + 1, sizeof *builder.externals);
    program->stages = calloc((size_t)stage_count + 1, sizeof *program->stages);
    status = builder.externals == NULL || program->stages == NULL ? CLEAVE_ERROR_OUT_OF_MEMORY : CLEAVE_OK;
  }
  for (uint32_t s = 0; status == CLEAVE_OK && s < stage_count; s++) {
    builder.stage = (int32_t)s;
    program->stage_count = s + 1;
    status = build_stage(&builder, units, stages, unit_count, pool, &program->stages[s]);
  }
  free(builder.externals);
  free(builder.values);
  free(stages);
  return status;
}
