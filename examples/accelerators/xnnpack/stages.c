// SPDX-License-Identifier: Apache-2.0
/*
 * Layout bookkeeping. Operators over height and width want channels last, and what is pointwise between them
 * follows. A value is made in one form; a unit that reads it in the other one goes to a later stage.
 */
#include "stages.h"

#include <string.h>

#include "memory.h"

bool xnnpack_forms_are_same(const cleave_tensor_view_t *tensor) {
  return tensor->rank != 4 || tensor->dims[1] == 1 || tensor->dims[2] * tensor->dims[3] == 1;
}

form_t xnnpack_unit_form(const builder_t *builder, const unit_t *unit) {
  unit_class_t class = xnnpack_unit_class(unit);
  bool is_last =
      class == CLASS_SPATIAL || (class == CLASS_POINTWISE && builder->values[unit->output].wants_last);
  return is_last ? FORM_LAST : FORM_PLAIN;
}

/* Values of run time that the unit reads. */
static bool reads(const unit_t *unit, uint32_t input, uint32_t *out_value) {
  const cleave_value_view_t *value = cleave_view_input(unit->region, unit->head, input);
  if (value == NULL || value->tensor.data != NULL) {
    return false;
  }
  *out_value = unit->head->inputs[input];
  return true;
}

/* All values of a pointwise unit have one form. Returns whether something changed. */
static bool spread(builder_t *builder, const unit_t *unit) {
  value_state_t *values = builder->values;
  unit_class_t class = xnnpack_unit_class(unit);
  uint32_t value;
  bool is_last = class == CLASS_SPATIAL || values[unit->output].wants_last;
  bool has_changed = false;
  if (class == CLASS_PLAIN) {
    return false;
  }
  for (uint32_t k = 0; k < unit->head->input_count; k++) {
    is_last = is_last || (reads(unit, k, &value) && values[value].wants_last);
  }
  if (!is_last) {
    return false;
  }
  for (uint32_t k = 0; k < unit->head->input_count; k++) {
    if (reads(unit, k, &value)) {
      has_changed = has_changed || !values[value].wants_last;
      values[value].wants_last = true;
    }
  }
  has_changed = has_changed || !values[unit->output].wants_last;
  values[unit->output].wants_last = true;
  return has_changed;
}

static void choose_forms(builder_t *builder, const unit_t *units, uint32_t unit_count) {
  bool has_changed = true;
  while (has_changed) {
    has_changed = false;
    for (uint32_t k = 0; k < unit_count; k++) {
      has_changed = spread(builder, &units[k]) || has_changed;
    }
    for (uint32_t k = unit_count; k > 0; k--) {
      has_changed = spread(builder, &units[k - 1]) || has_changed;
    }
  }
}

/* ---- buffers and conversions ---- */

static cleave_status_t add_buffer(builder_t *builder, uint32_t value, form_t form) {
  program_t *program = builder->program;
  int64_t count = cleave_view_element_count(&builder->region->values[value].tensor);
  if (builder->values[value].buffer[form] != 0) {
    return CLEAVE_OK;
  }
  float **buffers = xnnpack_memory_grow(program->buffers, &program->buffer_capacity, program->buffer_count,
                                        sizeof *buffers);
  float *memory = NULL;
  if (buffers != NULL) {
    program->buffers = buffers;
    memory = xnnpack_memory_allocate((size_t)count * sizeof *memory + XNN_EXTRA_BYTES);
  }
  if (memory == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->buffers[program->buffer_count++] = memory;
  builder->values[value].buffer[form] = program->buffer_count;
  return CLEAVE_OK;
}

static cleave_status_t add_conversion(builder_t *builder, uint32_t value, form_t from, form_t to,
                                      conversion_t conversion) {
  program_t *program = builder->program;
  const cleave_tensor_view_t *tensor = &builder->region->values[value].tensor;
  conversion.shuffle = (shuffle_t){1, 1, (size_t)cleave_view_element_count(tensor)};
  if (from != to && !xnnpack_forms_are_same(tensor)) {
    size_t channels = (size_t)tensor->dims[1];
    size_t pixels = (size_t)(tensor->dims[2] * tensor->dims[3]);
    conversion.shuffle = from == FORM_PLAIN ? (shuffle_t){(size_t)tensor->dims[0], channels, pixels}
                                            : (shuffle_t){(size_t)tensor->dims[0], pixels, channels};
  }
  conversion_t *conversions = xnnpack_memory_grow(program->conversions, &program->conversion_capacity,
                                                  program->conversion_count, sizeof *conversions);
  if (conversions == NULL) {
    return CLEAVE_ERROR_OUT_OF_MEMORY;
  }
  program->conversions = conversions;
  program->conversions[program->conversion_count++] = conversion;
  return CLEAVE_OK;
}

/* In the order they run: inputs, what later stages read otherwise than it is made, outputs. */
static cleave_status_t list_conversions(builder_t *builder, uint32_t stage_count) {
  const cleave_region_view_t *region = builder->region;
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t k = 0; status == CLEAVE_OK && k < region->input_count; k++) {
    const value_state_t *state = &builder->values[region->inputs[k]];
    for (int form = 0; status == CLEAVE_OK && form < FORM_COUNT; form++) {
      if (state->buffer[form] != 0) {
        conversion_t conversion = {.place = PLACE_INPUT, .index = k, .to = state->buffer[form] - 1};
        status = add_conversion(builder, region->inputs[k], FORM_PLAIN, (form_t)form, conversion);
      }
    }
  }
  for (uint32_t s = 0; s < stage_count; s++) {
    for (uint32_t v = 0; status == CLEAVE_OK && v < region->value_count; v++) {
      const value_state_t *state = &builder->values[v];
      form_t other = state->form == FORM_PLAIN ? FORM_LAST : FORM_PLAIN;
      if (region->values[v].tensor.data == NULL && state->stage == (int32_t)s && state->buffer[other] != 0) {
        conversion_t conversion = {.place = PLACE_STAGE,
                                   .stage = (int32_t)s,
                                   .index = state->buffer[state->form] - 1,
                                   .to = state->buffer[other] - 1};
        status = add_conversion(builder, v, state->form, other, conversion);
      }
    }
  }
  for (uint32_t k = 0; status == CLEAVE_OK && k < region->output_count; k++) {
    const value_state_t *state = &builder->values[region->outputs[k]];
    conversion_t conversion = {.place = PLACE_OUTPUT, .index = state->buffer[state->form] - 1, .to = k};
    status = add_conversion(builder, region->outputs[k], state->form, FORM_PLAIN, conversion);
  }
  return status;
}

/* Buffers for what a unit reads from an earlier stage: as it is made, and as it is read. */
static cleave_status_t add_crossings(builder_t *builder, const unit_t *unit, int32_t stage) {
  form_t form = xnnpack_unit_form(builder, unit);
  uint32_t value;
  for (uint32_t k = 0; k < unit->head->input_count; k++) {
    if (!reads(unit, k, &value) || builder->values[value].stage == stage) {
      continue;
    }
    const value_state_t *state = &builder->values[value];
    bool is_same = xnnpack_forms_are_same(&builder->region->values[value].tensor);
    cleave_status_t status = CLEAVE_OK;
    if (state->stage >= 0) {
      status = add_buffer(builder, value, state->form);
    }
    if (status == CLEAVE_OK) {
      status = add_buffer(builder, value, is_same ? state->form : form);
    }
    if (status != CLEAVE_OK) {
      return status;
    }
  }
  return CLEAVE_OK;
}

cleave_status_t xnnpack_stages_assign(builder_t *builder, const unit_t *units, uint32_t unit_count,
                                      int32_t *stages, uint32_t *out_count) {
  const cleave_region_view_t *region = builder->region;
  value_state_t *values = builder->values;
  cleave_status_t status = CLEAVE_OK;
  uint32_t value;
  *out_count = 0;
  for (uint32_t k = 0; k < region->value_count; k++) {
    values[k] = (value_state_t){.form = FORM_PLAIN, .stage = -1};
  }
  choose_forms(builder, units, unit_count);
  for (uint32_t u = 0; u < unit_count; u++) {
    const unit_t *unit = &units[u];
    form_t form = xnnpack_unit_form(builder, unit);
    stages[u] = 0;
    for (uint32_t k = 0; k < unit->head->input_count; k++) {
      if (reads(unit, k, &value)) {
        bool is_cut = values[value].stage >= 0 && values[value].form != form &&
                      !xnnpack_forms_are_same(&region->values[value].tensor);
        int32_t earliest = values[value].stage + (is_cut ? 1 : 0);
        stages[u] = earliest > stages[u] ? earliest : stages[u];
      }
    }
    values[unit->output].stage = stages[u];
    values[unit->output].form = form;
    *out_count = (uint32_t)stages[u] + 1 > *out_count ? (uint32_t)stages[u] + 1 : *out_count;
  }
  for (uint32_t u = 0; status == CLEAVE_OK && u < unit_count; u++) {
    status = add_crossings(builder, &units[u], stages[u]);
  }
  for (uint32_t k = 0; status == CLEAVE_OK && k < region->output_count; k++) {
    status = add_buffer(builder, region->outputs[k], values[region->outputs[k]].form);
  }
  return status == CLEAVE_OK ? list_conversions(builder, *out_count) : status;
}
