// SPDX-License-Identifier: Apache-2.0
// Planning: which phase computes a value, in which order, and which slot holds it. Inputs are loaded again in
// each phase that reads them; other values that a later phase reads are kept over the row, unless they can as
// well be computed there. A reduction of elements less a value of their row takes that off itself.
#include "kernels/execute/plan.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/instructions.h"

typedef struct planner {
  kernel_plan_t *plan;
  const kernel_program_t *program;
  uint32_t tile[KERNEL_MAX_VALUES];       /* of a reduction: the value that it reads */
  uint32_t about[KERNEL_MAX_VALUES];      /* of a reduction: what it takes off that, or CLEAVE_INDEX_NONE */
  uint32_t available[KERNEL_MAX_VALUES];  /* the first phase that can read a value */
  uint32_t phase[KERNEL_MAX_VALUES];      /* the phase that computes it */
  uint32_t last_phase[KERNEL_MAX_VALUES]; /* that reads it */
  bool used[KERNEL_MAX_VALUES];
  uint32_t loaded[KERNEL_MAX_VALUES]; /* 1 + the last phase that has a load or expansion of it */
  uint32_t last_step[KERNEL_MAX_VALUES];
  uint32_t slot[KERNEL_MAX_VALUES];
  bool taken[2 * KERNEL_MAX_VALUES];
  kernel_step_t scratch[KERNEL_MAX_STEPS];
} planner_t;

static bool is_source(const kernel_value_t *value) {
  return value->op == KERNEL_LOAD || value->op == KERNEL_CONSTANT;
}

/* Does only a step per tile hold the value? It is then neither a constant nor a value that lies somewhere
 * over the whole row. */
static bool has_slot(const planner_t *planner, uint32_t value) {
  return planner->program->values[value].op != KERNEL_CONSTANT &&
         planner->plan->kept[value] == KERNEL_NO_SLOT;
}

static bool is_reduction(const kernel_value_t *value) {
  return kernel_op_info(value->op)->kind == KERNEL_KIND_REDUCTION;
}

static void find_reductions(planner_t *planner) {
  const kernel_program_t *program = planner->program;
  for (uint32_t v = 0; v < program->value_count; v++) {
    const kernel_value_t *value = &program->values[v];
    if (!is_reduction(value)) {
      continue;
    }
    const kernel_value_t *elements = &program->values[value->operands[0]];
    bool is_about = elements->op == KERNEL_Sub && elements->dtype == CLEAVE_DTYPE_F32 &&
                    planner->plan->loops->reduce_about[value->op].row != NULL &&
                    !program->values[elements->operands[0]].per_row &&
                    program->values[elements->operands[1]].per_row;
    planner->tile[v] = is_about ? elements->operands[0] : value->operands[0];
    planner->about[v] = is_about ? elements->operands[1] : CLEAVE_INDEX_NONE;
  }
}

/* Lists the values that the value is computed from: at most three, in `operands`. */
static uint32_t read_operands(const planner_t *planner, uint32_t v, uint32_t *operands) {
  const kernel_value_t *value = &planner->program->values[v];
  uint32_t count = kernel_op_info(value->op)->operand_count;
  memcpy(operands, value->operands, sizeof value->operands);
  if (is_reduction(value)) {
    count = 1;
    operands[0] = planner->tile[v];
    operands[1] = planner->about[v];
    count += planner->about[v] != CLEAVE_INDEX_NONE;
  }
  return count;
}

/* Values of elements that only later phases read are computed in the first of these, if their operands are
 * there anyway. */
static void delay(planner_t *planner) {
  const kernel_program_t *program = planner->program;
  uint32_t first[KERNEL_MAX_VALUES]; /* the first phase that reads a value */
  uint32_t operands[3];
  for (uint32_t v = 0; v < program->value_count; v++) {
    first[v] = UINT32_MAX;
  }
  for (uint32_t k = 0; k < program->output_count; k++) {
    first[program->outputs[k].value] = 0;
  }
  for (uint32_t v = program->value_count; v-- > 0;) {
    const kernel_value_t *value = &program->values[v];
    if (!planner->used[v]) {
      continue;
    }
    uint32_t count = read_operands(planner, v, operands);
    bool moves =
        !is_source(value) && !value->per_row && first[v] != UINT32_MAX && first[v] > planner->phase[v];
    for (uint32_t k = 0; k < count && moves; k++) {
      const kernel_value_t *operand = &program->values[operands[k]];
      moves = is_source(operand) || operand->per_row ||
              planner->last_phase[operands[k]] > planner->phase[operands[k]];
    }
    if (moves) {
      planner->phase[v] = planner->available[v] = first[v];
    }
    for (uint32_t k = 0; k < count; k++) {
      uint32_t *reader = &planner->last_phase[operands[k]];
      *reader = planner->phase[v] > *reader ? planner->phase[v] : *reader;
      first[operands[k]] = planner->phase[v] < first[operands[k]] ? planner->phase[v] : first[operands[k]];
    }
  }
}

static void find_phases(planner_t *planner) {
  const kernel_program_t *program = planner->program;
  uint32_t operands[3];
  for (uint32_t k = 0; k < program->output_count; k++) {
    planner->used[program->outputs[k].value] = true;
  }
  for (uint32_t v = program->value_count; v-- > 0;) {
    uint32_t count = planner->used[v] ? read_operands(planner, v, operands) : 0;
    for (uint32_t k = 0; k < count; k++) {
      planner->used[operands[k]] = true;
    }
  }
  uint32_t last = 0;
  for (uint32_t v = 0; v < program->value_count; v++) {
    if (!planner->used[v]) {
      continue;
    }
    uint32_t count = read_operands(planner, v, operands);
    for (uint32_t k = 0; k < count; k++) {
      uint32_t ready = planner->available[operands[k]];
      planner->phase[v] = ready > planner->phase[v] ? ready : planner->phase[v];
    }
    planner->available[v] = planner->phase[v] + (is_reduction(&program->values[v]) ? 1 : 0);
    last = planner->available[v] > last ? planner->available[v] : last;
    for (uint32_t k = 0; k < count; k++) {
      uint32_t *reader = &planner->last_phase[operands[k]];
      *reader = planner->phase[v] > *reader ? planner->phase[v] : *reader;
    }
  }
  planner->plan->phase_count = last + 1;
}

static void number_values(planner_t *planner) {
  kernel_plan_t *plan = planner->plan;
  for (uint32_t v = 0; v < planner->program->value_count; v++) {
    const kernel_value_t *value = &planner->program->values[v];
    const kernel_op_info_t *info = kernel_op_info(value->op);
    plan->kept[v] = KERNEL_NO_SLOT;
    plan->rows[v] = KERNEL_NO_SLOT;
    plan->lanes[v] = KERNEL_NO_SLOT;
    if (!planner->used[v] || value->op == KERNEL_CONSTANT) {
      continue;
    }
    if (info->kind == KERNEL_KIND_REDUCTION) {
      plan->lanes[v] = plan->lanes_count++;
    }
    if (value->per_row) {
      plan->rows[v] = plan->row_count++;
    } else {
      plan->cost += info->cost;
      if (!is_source(value) && planner->last_phase[v] > planner->phase[v]) {
        plan->kept[v] = plan->kept_count++;
      }
    }
    if (cleave_dtype_size(value->dtype) == 8) {
      plan->tile = KERNEL_SLOT_BYTES / 8;
    }
  }
}

static void add_step(planner_t *planner, kernel_step_kind_t kind, uint32_t value, uint32_t output) {
  kernel_plan_t *plan = planner->plan;
  plan->steps[plan->step_count++] =
      (kernel_step_t){.kind = kind, .value = value, .slot = KERNEL_NO_SLOT, .output = output};
}

/* Brings inputs and values per row before the step per tile that reads them. */
static void add_operand(planner_t *planner, uint32_t value, uint32_t phase) {
  const kernel_value_t *operand = &planner->program->values[value];
  if ((operand->op != KERNEL_LOAD && !operand->per_row) || planner->loaded[value] == phase + 1) {
    return;
  }
  planner->loaded[value] = phase + 1;
  add_step(planner, operand->per_row ? KERNEL_STEP_EXPAND : KERNEL_STEP_LOAD, value, CLEAVE_INDEX_NONE);
}

/* The first output that the operator may write to instead of a slot. */
static uint32_t direct_output(const planner_t *planner, uint32_t value) {
  const kernel_program_t *program = planner->program;
  const kernel_value_t *self = &program->values[value];
  for (uint32_t k = 0; k < program->output_count; k++) {
    const kernel_output_t *output = &program->outputs[k];
    if (output->value == value && !output->adds && output->dtype == self->dtype && !self->per_row) {
      return k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static bool is_stored(const kernel_program_t *program, uint32_t value) {
  for (uint32_t k = 0; k < program->output_count; k++) {
    if (program->outputs[k].value == value) {
      return true;
    }
  }
  return false;
}

static void add_stores(planner_t *planner, uint32_t value, uint32_t direct) {
  const kernel_program_t *program = planner->program;
  for (uint32_t k = 0; k < program->output_count; k++) {
    if (program->outputs[k].value == value && k != direct) {
      add_step(planner, KERNEL_STEP_STORE, value, k);
    }
  }
}

static void add_phase(planner_t *planner, uint32_t phase) {
  kernel_plan_t *plan = planner->plan;
  const kernel_program_t *program = planner->program;
  kernel_phase_t *self = &plan->phases[phase];
  self->row_begin = plan->step_count;
  for (uint32_t v = 0; v < program->value_count; v++) {
    if (!planner->used[v] || plan->rows[v] == KERNEL_NO_SLOT || planner->available[v] != phase) {
      continue;
    }
    if (!is_reduction(&program->values[v])) {
      add_step(planner, KERNEL_STEP_APPLY, v, CLEAVE_INDEX_NONE);
    }
    add_stores(planner, v, CLEAVE_INDEX_NONE);
  }
  self->tile_begin = plan->step_count;
  for (uint32_t v = 0; v < program->value_count; v++) {
    const kernel_value_t *value = &program->values[v];
    bool reduces = is_reduction(value);
    if (!planner->used[v] || planner->phase[v] != phase || (value->per_row && !reduces)) {
      continue;
    }
    if (is_source(value)) {
      if (is_stored(program, v)) {
        add_operand(planner, v, phase);
        add_stores(planner, v, CLEAVE_INDEX_NONE);
      }
      continue;
    }
    if (reduces) {
      add_operand(planner, planner->tile[v], phase);
      add_step(planner, KERNEL_STEP_REDUCE, v, CLEAVE_INDEX_NONE);
      plan->steps[plan->step_count - 1].tile = planner->tile[v];
      plan->steps[plan->step_count - 1].about = planner->about[v];
      continue;
    }
    for (uint32_t k = 0; k < kernel_op_info(value->op)->operand_count; k++) {
      add_operand(planner, value->operands[k], phase);
    }
    uint32_t direct = direct_output(planner, v);
    plan->kept_outputs[v] = direct;
    add_step(planner, KERNEL_STEP_APPLY, v, direct);
    add_stores(planner, v, direct);
  }
  self->end = plan->step_count;
}

static uint32_t take_slot(planner_t *planner) {
  uint32_t slot = 0;
  while (planner->taken[slot]) {
    slot++;
  }
  planner->taken[slot] = true;
  planner->plan->slot_count = slot + 1 > planner->plan->slot_count ? slot + 1 : planner->plan->slot_count;
  return slot;
}

/* A slot is free again behind the last step that reads it; an output may take that of an operand whose
 * elements have the same size. */
static void give_slots(planner_t *planner, const kernel_phase_t *phase) {
  kernel_plan_t *plan = planner->plan;
  const kernel_program_t *program = planner->program;
  uint32_t operands[3];
  memset(planner->taken, 0, sizeof planner->taken);
  for (uint32_t s = phase->tile_begin; s < phase->end; s++) {
    uint32_t count = kernel_step_operands(program, &plan->steps[s], operands);
    planner->last_step[plan->steps[s].value] = s;
    for (uint32_t k = 0; k < count; k++) {
      planner->last_step[operands[k]] = s;
    }
  }
  for (uint32_t v = 0; v < program->value_count; v++) {
    planner->slot[v] = KERNEL_NO_SLOT;
  }
  for (uint32_t s = phase->tile_begin; s < phase->end; s++) {
    kernel_step_t *step = &plan->steps[s];
    uint32_t count = kernel_step_operands(program, step, operands);
    bool makes = step->kind == KERNEL_STEP_LOAD || step->kind == KERNEL_STEP_EXPAND ||
                 (step->kind == KERNEL_STEP_APPLY && has_slot(planner, step->value));
    for (int is_late = 0; is_late < 2; is_late++) {
      for (uint32_t k = 0; k < count; k++) {
        uint32_t slot = planner->slot[operands[k]];
        bool same_size = cleave_dtype_size(program->values[operands[k]].dtype) ==
                         cleave_dtype_size(program->values[step->value].dtype);
        if (planner->last_step[operands[k]] == s && slot != KERNEL_NO_SLOT && (is_late != 0 || same_size)) {
          planner->taken[slot] = false;
          planner->slot[operands[k]] = KERNEL_NO_SLOT;
        }
      }
      if (is_late == 0 && makes) {
        step->slot = take_slot(planner);
        planner->slot[step->value] = step->slot;
      }
    }
    if (makes && planner->last_step[step->value] == s) {
      planner->taken[step->slot] = false;
      planner->slot[step->value] = KERNEL_NO_SLOT;
    }
  }
}

cleave_status_t kernel_plan_create(const kernel_program_t *program, const kernel_loops_t *loops,
                                   kernel_plan_t **out_plan, cleave_message_t *message) {
  *out_plan = NULL;
  size_t values = (size_t)program->value_count + 1;
  kernel_plan_t *plan = calloc(1, sizeof *plan);
  planner_t *planner = calloc(1, sizeof *planner);
  if (plan != NULL) {
    plan->kept = calloc(values, sizeof *plan->kept);
    plan->kept_outputs = calloc(values, sizeof *plan->kept_outputs);
    plan->rows = calloc(values, sizeof *plan->rows);
    plan->lanes = calloc(values, sizeof *plan->lanes);
    plan->phases = calloc(values + 1, sizeof *plan->phases);
    plan->steps = calloc(KERNEL_MAX_STEPS, sizeof *plan->steps);
  }
  if (plan == NULL || planner == NULL || plan->kept == NULL || plan->kept_outputs == NULL ||
      plan->rows == NULL || plan->lanes == NULL || plan->phases == NULL || plan->steps == NULL) {
    free(planner);
    kernel_plan_destroy(plan);
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "no memory for a plan");
  }
  plan->program = *program;
  plan->loops = loops;
  plan->fetches = kernel_gains_by_fetching();
  plan->tile = KERNEL_SLOT_BYTES / 4;
  planner->plan = plan;
  planner->program = &plan->program;
  find_reductions(planner);
  find_phases(planner);
  delay(planner);
  number_values(planner);
  for (uint32_t p = 0; p < plan->phase_count; p++) {
    add_phase(planner, p);
  }
  for (uint32_t p = 0; p < plan->phase_count; p++) {
    kernel_plan_chains(plan, &plan->phases[p], planner->scratch);
    give_slots(planner, &plan->phases[p]);
  }
  plan->slot_count++;
  free(planner);
  *out_plan = plan;
  return CLEAVE_OK;
}

void kernel_plan_destroy(kernel_plan_t *plan) {
  if (plan == NULL) {
    return;
  }
  free(plan->kept);
  free(plan->kept_outputs);
  free(plan->rows);
  free(plan->lanes);
  free(plan->phases);
  free(plan->steps);
  free(plan);
}
