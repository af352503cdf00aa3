// SPDX-License-Identifier: Apache-2.0
// Sizes of a match. The first dimension that a symbol stands for binds it; all others must agree. Expressions
// and conditions are tested as soon as their symbols are bound. Those that wait for a symbol are pending
// until the match is complete; a symbol that is still unbound then is unknown.

#include <string.h>

#include "partition/match/match_state.h"

// ---- the pattern ----

static uint32_t symbol_of(cleave_matcher_t *m, const char *name) {
  uint32_t k = 0;
  while (k < m->symbol_count && strcmp(m->symbols[k].name, name) != 0) {
    k++;
  }
  if (k == m->symbol_count) {
    m->symbols[m->symbol_count++].name = name;
  }
  return k;
}

/* Numbers of an expression's symbols, or NULL if there is no expression. */
static cleave_status_t number_symbols(cleave_matcher_t *m, const cleave_expression_t *expression,
                                      uint32_t **out_symbols, cleave_error_t *error) {
  *out_symbols = NULL;
  if (expression == NULL) {
    return CLEAVE_OK;
  }
  *out_symbols = cleave_arena_allocate(&m->arena, (size_t)expression->symbol_count + 1, sizeof **out_symbols);
  CLEAVE_TRY_MEMORY(*out_symbols, error);
  for (uint32_t k = 0; k < expression->symbol_count; k++) {
    (*out_symbols)[k] = symbol_of(m, expression->symbols[k]);
  }
  return CLEAVE_OK;
}

static size_t symbols_in(const cleave_expression_t *expression) {
  return expression == NULL ? 0 : expression->symbol_count;
}

cleave_status_t cleave_matcher_prepare_sizes(cleave_matcher_t *m, cleave_error_t *error) {
  const cleave_pattern_t *pattern = m->pattern;
  size_t dim_count = 0;
  size_t most_symbols = symbols_in(pattern->where);
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    const cleave_type_test_t *type = &pattern->nodes[p].type;
    m->symbol_starts[p] = (uint32_t)dim_count;
    most_symbols += symbols_in(pattern->nodes[p].where);
    for (int32_t d = 0; type->dims != NULL && d < type->rank; d++) {
      dim_count++;
      most_symbols += 1 + symbols_in(type->dims[d].expression);
    }
  }
  m->symbols_of = cleave_arena_allocate(&m->arena, dim_count + 1, sizeof *m->symbols_of);
  m->dim_symbols = cleave_arena_allocate(&m->arena, dim_count + 1, sizeof *m->dim_symbols);
  m->where_symbols =
      cleave_arena_allocate(&m->arena, (size_t)pattern->node_count + 1, sizeof *m->where_symbols);
  m->symbols = cleave_arena_allocate(&m->arena, most_symbols + 1, sizeof *m->symbols);
  CLEAVE_TRY_MEMORY(
      m->symbols_of != NULL && m->dim_symbols != NULL && m->where_symbols != NULL && m->symbols != NULL,
      error);
  m->symbol_count = 0;
  for (uint32_t p = 0; p < pattern->node_count; p++) {
    const cleave_pattern_node_t *node = &pattern->nodes[p];
    for (int32_t d = 0; node->type.dims != NULL && d < node->type.rank; d++) {
      const cleave_dim_test_t *dim = &node->type.dims[d];
      uint32_t slot = m->symbol_starts[p] + (uint32_t)d;
      bool has_symbol = dim->size < 0 && dim->symbol != NULL;
      m->symbols_of[slot] = has_symbol ? symbol_of(m, dim->symbol) : CLEAVE_INDEX_NONE;
      CLEAVE_TRY(number_symbols(m, dim->size < 0 && !has_symbol ? dim->expression : NULL,
                                &m->dim_symbols[slot], error));
    }
    CLEAVE_TRY(number_symbols(m, node->where, &m->where_symbols[p], error));
  }
  return number_symbols(m, pattern->where, &m->where_symbols[pattern->node_count], error);
}

// ---- expressions ----

static bool symbols_are_bound(const cleave_matcher_t *m, const cleave_expression_t *expression,
                              const uint32_t *symbols) {
  for (uint32_t k = 0; k < expression->symbol_count; k++) {
    if (!m->symbols[symbols[k]].is_bound) {
      return false;
    }
  }
  return true;
}

/* The table for arithmetic over symbolic sizes: a copy, because matching does not change the graph. */
static cleave_status_t prepare_dims(cleave_matcher_t *m, cleave_error_t *error) {
  if (m->dims == NULL || m->dims_are_old) {
    cleave_dims_destroy(m->dims);
    m->dims = NULL;
    CLEAVE_TRY(cleave_dims_copy(m->graph->dims, &m->dims, error));
    m->dims_are_old = false;
  }
  return CLEAVE_OK;
}

static cleave_status_t holds(cleave_matcher_t *m, const pending_t *pending, bool *out_holds,
                             cleave_error_t *error) {
  const cleave_expression_t *expression = pending->expression;
  cleave_dim_t sizes[CLEAVE_EXPRESSION_MAX_SYMBOLS];
  CLEAVE_TRY(prepare_dims(m, error));
  for (uint32_t k = 0; k < expression->symbol_count; k++) {
    const symbol_t *symbol = &m->symbols[pending->symbols[k]];
    sizes[k] = symbol->is_bound ? symbol->dim : CLEAVE_DIM_UNKNOWN;
  }
  if (expression->kind == CLEAVE_EXPRESSION_CONDITION) {
    *out_holds = cleave_expression_test(expression, m->dims, sizes) == CLEAVE_TRUE;
  } else {
    cleave_dim_t size = cleave_expression_size(expression, m->dims, sizes);
    *out_holds = size != CLEAVE_DIM_UNKNOWN && size == pending->dim;
  }
  return CLEAVE_OK;
}

/* Tests the expressions whose symbols are bound; the others stay pending. */
static cleave_status_t ask(cleave_matcher_t *m, const pending_t *pending, bool *out_fits,
                           cleave_error_t *error) {
  if (symbols_are_bound(m, pending->expression, pending->symbols)) {
    if (pending->expression->symbol_count > 0) {
      cleave_matcher_depend(m, 0);
    }
    return holds(m, pending, out_fits, error);
  }
  *out_fits = true;
  CLEAVE_TRY(cleave_array_reserve(&m->pending, 1, error));
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_PENDING, 0, 0, error));
  cleave_array_push_reserved(&m->pending, *pending);
  return CLEAVE_OK;
}

static cleave_status_t bind_symbol(cleave_matcher_t *m, uint32_t index, cleave_dim_t dim, bool *out_fits,
                                   cleave_error_t *error) {
  symbol_t *symbol = &m->symbols[index];
  if (symbol->is_bound) {
    cleave_matcher_depend(m, 0);
    *out_fits = symbol->dim != CLEAVE_DIM_UNKNOWN && symbol->dim == dim;
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_matcher_push_trail(m, TRAIL_SYMBOL, index, 0, error));
  symbol->is_bound = true;
  symbol->dim = dim;
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_bind_sizes(cleave_matcher_t *m, uint32_t pattern, cleave_value_t value,
                                          bool *out_fits, cleave_error_t *error) {
  const cleave_pattern_node_t *part = &m->pattern->nodes[pattern];
  const cleave_type_test_t *type = &part->type;
  const cleave_value_record_t *record = cleave_graph_value(m->graph, value);
  *out_fits = true;
  for (int32_t d = 0; type->dims != NULL && d < type->rank && *out_fits; d++) {
    uint32_t symbol = m->symbols_of[m->symbol_starts[pattern] + (uint32_t)d];
    if (symbol != CLEAVE_INDEX_NONE) {
      CLEAVE_TRY(bind_symbol(m, symbol, record->dims[d], out_fits, error));
    }
  }
  for (int32_t d = 0; type->dims != NULL && d < type->rank && *out_fits; d++) {
    const uint32_t *symbols = m->dim_symbols[m->symbol_starts[pattern] + (uint32_t)d];
    if (symbols != NULL) {
      pending_t pending = {type->dims[d].expression, symbols, record->dims[d]};
      CLEAVE_TRY(ask(m, &pending, out_fits, error));
    }
  }
  if (*out_fits && part->where != NULL) {
    pending_t pending = {part->where, m->where_symbols[pattern], CLEAVE_DIM_UNKNOWN};
    CLEAVE_TRY(ask(m, &pending, out_fits, error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_matcher_sizes_hold(cleave_matcher_t *m, bool *out_hold, cleave_error_t *error) {
  *out_hold = true;
  for (size_t k = 0; k < m->pending.count && *out_hold; k++) {
    CLEAVE_TRY(holds(m, &m->pending.items[k], out_hold, error));
  }
  if (*out_hold && m->pattern->where != NULL) {
    pending_t pending = {m->pattern->where, m->where_symbols[m->pattern->node_count], CLEAVE_DIM_UNKNOWN};
    CLEAVE_TRY(holds(m, &pending, out_hold, error));
  }
  return CLEAVE_OK;
}
