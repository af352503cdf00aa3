// SPDX-License-Identifier: Apache-2.0
#include "runtime/lanes/schedule.h"

#include <string.h>

/* The cost of continuing on another worker, whose thread sleeps and has to be woken. */
static const double handover_ns = 20000.0;

static double max_of(double a, double b) {
  return a > b ? a : b;
}

/* When the unit's inputs are there, for this worker. */
static double find_ready(const cleave_unit_t *units, const cleave_unit_t *unit, const uint32_t *before,
                         uint32_t worker) {
  double ready = 0.0;
  for (uint32_t k = 0; k < unit->before_count; k++) {
    const cleave_unit_t *source = &units[before[unit->first_before + k]];
    bool stays = !source->is_elsewhere && source->worker == worker;
    ready = max_of(ready, source->end + (stays ? 0.0 : handover_ns));
  }
  return ready;
}

static void place(cleave_unit_t *units, cleave_unit_t *unit, const uint32_t *before, double *free_from,
                  uint32_t worker_count) {
  unit->start = find_ready(units, unit, before, 0);
  if (!unit->is_elsewhere) {
    unit->start = max_of(unit->start, free_from[0]);
    for (uint32_t worker = 1; worker < worker_count; worker++) {
      double start = max_of(find_ready(units, unit, before, worker), free_from[worker]);
      if (start < unit->start) {
        unit->start = start;
        unit->worker = worker;
      }
    }
    free_from[unit->worker] = unit->start + unit->ns;
  }
  unit->end = unit->start + unit->ns;
}

/* Lists the units of each worker, in order of time: `heads` is where a list begins. */
static void list_units(cleave_unit_t *units, size_t unit_count, uint32_t *heads) {
  for (size_t k = unit_count; k-- > 0;) {
    if (!units[k].is_elsewhere) {
      units[k].next = heads[units[k].worker];
      heads[units[k].worker] = (uint32_t)k;
    }
  }
}

/* How long the worker of a list computes during the unit. Units that ended before it began ended before every
 * later unit of its worker, too: `first` is where to begin, and moves past them. */
static double find_beside(const cleave_unit_t *units, const cleave_unit_t *unit, uint32_t *first) {
  double beside = 0.0;
  while (*first != CLEAVE_INDEX_NONE && units[*first].end <= unit->start) {
    *first = units[*first].next;
  }
  for (uint32_t k = *first; k != CLEAVE_INDEX_NONE && units[k].start < unit->end; k = units[k].next) {
    const cleave_unit_t *other = &units[k];
    beside += (other->end < unit->end ? other->end : unit->end) - max_of(other->start, unit->start);
  }
  return beside;
}

cleave_status_t cleave_schedule(cleave_unit_t *units, size_t unit_count, const uint32_t *before,
                                uint32_t worker_count, cleave_error_t *error) {
  double *free_from = cleave_allocate_zeroed(worker_count, sizeof *free_from);
  uint32_t *heads = cleave_allocate(worker_count, sizeof *heads);
  uint32_t *first = cleave_allocate((size_t)worker_count * worker_count, sizeof *first);
  cleave_status_t status = CLEAVE_OK;
  CLEAVE_TRY_MEMORY_CLEANUP(free_from != NULL && heads != NULL && first != NULL, error);
  for (size_t k = 0; k < unit_count; k++) {
    units[k].worker = 0;
    units[k].is_beside = false;
    place(units, &units[k], before, free_from, worker_count);
  }
  memset(heads, 0xff, worker_count * sizeof *heads); /* CLEAVE_INDEX_NONE */
  list_units(units, unit_count, heads);
  for (uint32_t worker = 0; worker < worker_count; worker++) {
    memcpy(&first[(size_t)worker * worker_count], heads, worker_count * sizeof *heads);
  }
  for (size_t k = 0; k < unit_count; k++) {
    cleave_unit_t *unit = &units[k];
    double beside = 0.0;
    for (uint32_t worker = 0; worker < worker_count && !unit->is_elsewhere; worker++) {
      if (worker != unit->worker) {
        beside =
            max_of(beside, find_beside(units, unit, &first[(size_t)unit->worker * worker_count + worker]));
      }
    }
    unit->is_beside = beside > unit->ns * 0.5;
  }
cleanup:
  cleave_free(free_from);
  cleave_free(heads);
  cleave_free(first);
  return status;
}
