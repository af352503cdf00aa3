// SPDX-License-Identifier: Apache-2.0
// Which operators go through registers together. A chain begins with an operator and goes on with a reader of
// its result, as long as everything else that the reader needs is there before the chain begins.
#include <string.h>

#include "kernels/execute/plan.h"

enum {
  MAX_LINKS = 32,
  MAX_LOADS = 6, /* tiles that a chain reads at a time stay in the first cache */
};

typedef struct chains {
  const kernel_plan_t *plan;
  kernel_step_t *steps; /* of the phase, as they were */
  uint32_t count;
  kernel_step_t *ordered;
  uint32_t ordered_count;
  uint32_t
      makers[KERNEL_MAX_VALUES]; /* per value: the step that makes it in this phase, or CLEAVE_INDEX_NONE */
  bool is_done[KERNEL_MAX_STEPS];
  uint32_t links[MAX_LINKS];
  uint32_t link_count;
  uint32_t load_count;
} chains_t;

uint32_t kernel_step_operands(const kernel_program_t *program, const kernel_step_t *step, uint32_t *values) {
  const kernel_value_t *value = &program->values[step->value];
  uint32_t count = 0;
  if (step->kind == KERNEL_STEP_STORE) {
    values[count++] = step->value;
  } else if (step->kind == KERNEL_STEP_REDUCE) {
    values[count++] = step->tile;
  } else if (step->kind == KERNEL_STEP_APPLY) {
    for (uint32_t k = 0; k < kernel_op_info(value->op)->operand_count; k++) {
      values[count++] = value->operands[k];
    }
  }
  return count;
}

static bool is_chained(const kernel_plan_t *plan, const kernel_step_t *step) {
  const kernel_value_t *value = &plan->program.values[step->value];
  if (step->kind != KERNEL_STEP_APPLY || value->dtype != CLEAVE_DTYPE_F32) {
    return false;
  }
  const kernel_chain_loops_t *loops = plan->loops->chain;
  return loops->unary[value->op] != NULL || loops->binary[value->op][KERNEL_FORM_ACC_TILE] != NULL;
}

bool kernel_step_is_costly(const kernel_plan_t *plan, const kernel_step_t *step) {
  return kernel_op_info(plan->program.values[step->value].op)->cost > KERNEL_CHAIN_COST;
}

bool kernel_chain_is_costly(const kernel_plan_t *plan, const kernel_step_t *first) {
  bool is_costly = false;
  for (uint32_t k = 0; k < first->chain; k++) {
    is_costly = is_costly || kernel_step_is_costly(plan, first + k);
  }
  return is_costly;
}

static bool is_load(const kernel_step_t *step) {
  return step->kind == KERNEL_STEP_LOAD || step->kind == KERNEL_STEP_EXPAND;
}

static bool is_link(const chains_t *chains, uint32_t step) {
  for (uint32_t k = 0; k < chains->link_count; k++) {
    if (chains->links[k] == step) {
      return true;
    }
  }
  return false;
}

/* Can the step run once the links so far have? Counts in `loads` what it loads first. */
static bool can_follow(const chains_t *chains, uint32_t step, uint32_t *loads) {
  uint32_t operands[3];
  uint32_t count = kernel_step_operands(&chains->plan->program, &chains->steps[step], operands);
  *loads = 0;
  for (uint32_t k = 0; k < count; k++) {
    uint32_t maker = chains->makers[operands[k]];
    if (maker == CLEAVE_INDEX_NONE || chains->is_done[maker] || is_link(chains, maker)) {
      continue;
    }
    if (!is_load(&chains->steps[maker])) {
      return false;
    }
    *loads += 1;
  }
  return true;
}

static bool reads(const chains_t *chains, uint32_t step, uint32_t value) {
  uint32_t operands[3];
  uint32_t count = kernel_step_operands(&chains->plan->program, &chains->steps[step], operands);
  for (uint32_t k = 0; k < count; k++) {
    if (operands[k] == value) {
      return true;
    }
  }
  return false;
}

/* The next link, or CLEAVE_INDEX_NONE. */
static uint32_t find_next(chains_t *chains) {
  uint32_t last = chains->links[chains->link_count - 1];
  uint32_t loads = 0;
  for (uint32_t s = last + 1; s < chains->count && chains->link_count < MAX_LINKS; s++) {
    if (!chains->is_done[s] && is_chained(chains->plan, &chains->steps[s]) &&
        reads(chains, s, chains->steps[last].value) && can_follow(chains, s, &loads) &&
        chains->load_count + loads <= MAX_LOADS) {
      chains->load_count += loads;
      return s;
    }
  }
  return CLEAVE_INDEX_NONE;
}

static void emit(chains_t *chains, uint32_t step) {
  chains->ordered[chains->ordered_count++] = chains->steps[step];
  chains->is_done[step] = true;
}

/* Emits what the links read before all of them. */
static void emit_chain(chains_t *chains) {
  uint32_t operands[3];
  for (uint32_t k = 0; k < chains->link_count; k++) {
    uint32_t count = kernel_step_operands(&chains->plan->program, &chains->steps[chains->links[k]], operands);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t maker = chains->makers[operands[i]];
      if (maker != CLEAVE_INDEX_NONE && is_load(&chains->steps[maker]) && !chains->is_done[maker]) {
        emit(chains, maker);
      }
    }
  }
  for (uint32_t k = 0; k < chains->link_count; k++) {
    kernel_step_t *step = &chains->steps[chains->links[k]];
    step->chain = chains->link_count - k;
    for (uint32_t s = 0; s < chains->count && !step->is_read; s++) {
      bool is_next = k + 1 < chains->link_count && s == chains->links[k + 1];
      step->is_read = !is_next && reads(chains, s, step->value);
    }
    emit(chains, chains->links[k]);
  }
}

static void order_steps(chains_t *chains) {
  for (uint32_t s = 0; s < chains->count; s++) {
    if (chains->is_done[s]) {
      continue;
    }
    if (!is_chained(chains->plan, &chains->steps[s])) {
      emit(chains, s);
      continue;
    }
    chains->links[0] = s;
    chains->link_count = 1;
    can_follow(chains, s, &chains->load_count);
    for (uint32_t next = find_next(chains); next != CLEAVE_INDEX_NONE; next = find_next(chains)) {
      chains->links[chains->link_count++] = next;
    }
    if (chains->link_count == 1 && kernel_step_is_costly(chains->plan, &chains->steps[s])) {
      emit(chains, s); /* its loop over the tile does without the way through registers */
    } else {
      emit_chain(chains);
    }
  }
}

static bool is_read_outside(const kernel_plan_t *plan, const kernel_phase_t *phase, uint32_t step) {
  for (uint32_t r = step + 1; r < phase->end; r++) {
    uint32_t operands[3];
    uint32_t count = kernel_step_operands(&plan->program, &plan->steps[r], operands);
    for (uint32_t k = 0; k < count && plan->steps[r].chain == 0; k++) {
      if (operands[k] == plan->steps[step].value) {
        return true;
      }
    }
  }
  return false;
}

/* A value per row is expanded for steps outside of chains alone: chains take it row by row. */
static void drop_expansions(kernel_plan_t *plan, kernel_phase_t *phase) {
  uint32_t end = phase->tile_begin;
  for (uint32_t s = phase->tile_begin; s < phase->end; s++) {
    kernel_step_t *step = &plan->steps[s];
    step->is_read = is_load(step) ? is_read_outside(plan, phase, s) : step->is_read;
    if (step->kind != KERNEL_STEP_EXPAND || step->is_read) {
      plan->steps[end++] = *step;
    }
  }
  phase->end = end;
}

void kernel_plan_chains(kernel_plan_t *plan, kernel_phase_t *phase, kernel_step_t *scratch) {
  chains_t chains = {.plan = plan,
                     .steps = plan->steps + phase->tile_begin,
                     .count = phase->end - phase->tile_begin,
                     .ordered = scratch};
  for (uint32_t v = 0; v < plan->program.value_count; v++) {
    chains.makers[v] = CLEAVE_INDEX_NONE;
  }
  for (uint32_t s = 0; s < chains.count; s++) {
    if (is_load(&chains.steps[s]) || chains.steps[s].kind == KERNEL_STEP_APPLY) {
      chains.makers[chains.steps[s].value] = s;
    }
  }
  order_steps(&chains);
  memcpy(chains.steps, scratch, chains.count * sizeof *scratch);
  drop_expansions(plan, phase);
}
