// SPDX-License-Identifier: Apache-2.0
// Order maintenance after Bender and others, "Two simplified algorithms for maintaining order in a list":
// labels leave gaps; if a gap is used up, the smallest surrounding range of labels that is thin enough is
// spread out evenly. Inserting costs O(log n) amortised.

#include "graph/contraction/contraction.h"

#define LABEL_BITS 62
#define LABEL_END (UINT64_C(1) << LABEL_BITS)

cleave_status_t cleave_order_list_init(cleave_order_list_t *list, uint32_t count, cleave_error_t *error) {
  size_t slots = (size_t)count + 1;
  list->sentinel = count;
  list->labels = cleave_allocate(slots, sizeof *list->labels);
  list->before = cleave_allocate(slots, sizeof *list->before);
  list->after = cleave_allocate(slots, sizeof *list->after);
  if (list->labels == NULL || list->before == NULL || list->after == NULL) {
    cleave_order_list_deinit(list);
    return cleave_error_out_of_memory(error);
  }
  cleave_order_list_start(list, count);
  for (uint32_t e = 0; e < count; e++) {
    cleave_order_list_append(list, e);
  }
  return CLEAVE_OK;
}

void cleave_order_list_deinit(cleave_order_list_t *list) {
  cleave_free(list->labels);
  cleave_free(list->before);
  cleave_free(list->after);
  *list = (cleave_order_list_t){0};
}

void cleave_order_list_start(cleave_order_list_t *list, uint32_t count) {
  list->gap = LABEL_END / ((uint64_t)count + 1);
  list->labels[list->sentinel] = 0;
  list->before[list->sentinel] = list->sentinel;
  list->after[list->sentinel] = list->sentinel;
}

void cleave_order_list_append(cleave_order_list_t *list, uint32_t element) {
  uint32_t last = list->before[list->sentinel];
  list->labels[element] = list->labels[last] + list->gap;
  list->before[element] = last;
  list->after[element] = list->sentinel;
  list->after[last] = element;
  list->before[list->sentinel] = element;
}

/* Label past which an element after `element` must not go. */
static uint64_t label_after(const cleave_order_list_t *list, uint32_t element) {
  uint32_t next = list->after[element];
  return next == list->sentinel ? LABEL_END : list->labels[next];
}

void cleave_order_list_remove(cleave_order_list_t *list, uint32_t element) {
  list->after[list->before[element]] = list->after[element];
  list->before[list->after[element]] = list->before[element];
}

/* Spreads labels around `element` until there is room after it: the smallest aligned range of labels that
 * is thinly enough used, the thinner the larger the range. */
static void make_room(cleave_order_list_t *list, uint32_t element) {
  uint32_t sentinel = list->sentinel;
  uint32_t first = element == sentinel ? list->after[sentinel] : element;
  if (first == sentinel) {
    return;
  }
  uint32_t last = first;
  uint64_t count = 1;
  double capacity = 1.0;
  for (uint32_t bits = 1; bits <= LABEL_BITS; bits++) {
    uint64_t width = UINT64_C(1) << bits;
    uint64_t base = list->labels[first] & ~(width - 1);
    while (list->before[first] != sentinel && list->labels[list->before[first]] >= base) {
      first = list->before[first];
      count++;
    }
    while (list->after[last] != sentinel && list->labels[list->after[last]] - base < width) {
      last = list->after[last];
      count++;
    }
    capacity *= 1.4;
    if (bits < LABEL_BITS && ((double)count > capacity || width / (count + 1) < 4)) {
      continue;
    }
    uint64_t gap = width / (count + 1);
    uint64_t label = base;
    for (uint32_t e = first;; e = list->after[e]) {
      label += gap;
      list->labels[e] = label;
      if (e == last) {
        return;
      }
    }
  }
}

void cleave_order_list_insert_after(cleave_order_list_t *list, uint32_t element, const uint32_t *elements,
                                    size_t count) {
  for (size_t k = 0; k < count; k++) {
    if (label_after(list, element) - list->labels[element] < 2) {
      make_room(list, element);
    }
    uint64_t low = list->labels[element];
    uint64_t gap = (label_after(list, element) - low) / (count - k + 1);
    uint32_t e = elements[k];
    list->labels[e] = low + (gap == 0 ? 1 : gap);
    list->before[e] = element;
    list->after[e] = list->after[element];
    list->before[list->after[element]] = e;
    list->after[element] = e;
    element = e;
  }
}

void cleave_order_list_replace(cleave_order_list_t *list, uint32_t element, uint32_t replacement) {
  if (element == replacement) {
    return;
  }
  list->labels[replacement] = list->labels[element];
  list->before[replacement] = list->before[element];
  list->after[replacement] = list->after[element];
  list->after[list->before[element]] = replacement;
  list->before[list->after[element]] = replacement;
}
