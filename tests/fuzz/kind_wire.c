// SPDX-License-Identifier: Apache-2.0
// Messages between processes: regions, and what a pass says to the editor. What reads as a region is a view
// that can be written again, and comes back the same.
#include <stdlib.h>
#include <string.h>

#include "backend/region/region_file.h"
#include "backend/region/region_wire.h"
#include "damage.h"
#include "fuzz.h"

typedef struct edits {
  cleave_new_node_t node;
  const cleave_tensor_view_t *tensors[2];
} edits_t;

static void go_over(const cleave_edit_wire_t *wire, edits_t *edits) {
  const char *name = NULL;
  cleave_edit_wire_node(wire, &edits->node);
  for (uint32_t k = 0; k < 2; k++) {
    cleave_edit_wire_value(wire, &name, &edits->tensors[k]);
  }
}

static void put_edits(const cleave_region_view_t *region, cleave_wire_out_t *out) {
  const cleave_node_view_t *node = &region->nodes[damage_random(region->node_count)];
  edits_t edits = {.node = {.op = node->op,
                            .inputs = damage_random(4) == 0 ? NULL : node->inputs,
                            .input_count = node->input_count,
                            .attributes = node->attributes,
                            .attribute_count = node->attribute_count,
                            .output_count = node->output_count}};
  for (uint32_t k = 0; k < 2; k++) {
    edits.tensors[k] = &region->values[damage_random(region->value_count)].tensor;
  }
  go_over(&(cleave_edit_wire_t){.out = out}, &edits);
}

static void draw(cleave_text_t *out) {
  cleave_text_t text = {0};
  cleave_region_file_t *region = NULL;
  cleave_wire_out_t message = {0};
  fuzz_regions.draw(&text);
  fuzz_ok(cleave_region_json_read("r.json", text.data, text.length, NULL, &region, e));
  cleave_text_deinit(&text);
  if (damage_random(3) == 0) {
    put_edits(&region->view, &message);
  } else {
    fuzz_ok(cleave_region_write(&region->view, NULL, NULL, &message, e));
  }
  cleave_text_append(out, (const char *)message.data, message.length);
  cleave_wire_deinit(&message);
  cleave_region_file_destroy(region);
}

static size_t damage(char *data, size_t size, size_t room) {
  return damage_bytes(data, size, room);
}

/* Everything that is read as an edit is looked at as an editor does, which refuses what is too long. */
static bool read_edits(const void *data, size_t size) {
  cleave_arena_t arena = {0};
  cleave_wire_in_t in = cleave_wire_read(data, size);
  uint64_t sum = 0;
  edits_t edits = {0};
  const cleave_new_node_t *node = &edits.node;
  go_over(&(cleave_edit_wire_t){.in = &in, .arena = &arena}, &edits);
  sum += node->op == NULL ? 0 : strlen(node->op);
  uint32_t count = node->attribute_count;
  for (uint32_t k = 0; node->attributes != NULL && count <= CLEAVE_EDIT_LIST_LIMIT && k < count; k++) {
    sum += node->attributes[k].name == NULL ? 0 : strlen(node->attributes[k].name);
  }
  for (uint32_t k = 0;
       node->inputs != NULL && node->input_count <= CLEAVE_EDIT_LIST_LIMIT && k < node->input_count; k++) {
    sum += node->inputs[k];
  }
  for (int k = 0; k < 2; k++) {
    const cleave_tensor_view_t *tensor = edits.tensors[k];
    for (int32_t d = 0;
         tensor != NULL && tensor->dims != NULL && tensor->rank <= CLEAVE_MAX_RANK && d < tensor->rank; d++) {
      sum += (uint64_t)tensor->dims[d];
    }
  }
  static volatile uint64_t seen;
  seen = sum;
  (void)seen;
  cleave_arena_deinit(&arena);
  return cleave_wire_is_done(&in);
}

/* Written, read and written again: texts that are not there become empty the first time. */
static void write_again(const cleave_region_view_t *region) {
  cleave_arena_t arena = {0};
  cleave_wire_out_t first = {0};
  cleave_wire_out_t second = {0};
  cleave_text_t text = {0};
  cleave_region_view_t again;
  fuzz_ok(cleave_region_write(region, NULL, NULL, &first, e));
  cleave_wire_in_t in = cleave_wire_read(first.data, first.length);
  fuzz_ok(cleave_region_read(&in, &arena, NULL, NULL, &again, e));
  fuzz_expect(cleave_wire_is_done(&in), "%zu bytes", first.length);
  fuzz_ok(cleave_region_write(&again, NULL, NULL, &second, e));
  fuzz_expect(first.length == second.length && memcmp(first.data, second.data, first.length) == 0,
              "%zu bytes, then %zu", first.length, second.length);
  cleave_error_t error = CLEAVE_ERROR_INIT;
  fuzz_check(cleave_region_json_print(region, NULL, &text, &error), &error,
             FUZZ_STATUS(UNSUPPORTED) | FUZZ_STATUS(FORMAT) | FUZZ_STATUS(LIMIT));
  cleave_text_deinit(&text);
  cleave_wire_deinit(&first);
  cleave_wire_deinit(&second);
  cleave_arena_deinit(&arena);
}

static fuzz_outcome_t run(const void *data, size_t size) {
  cleave_arena_t arena = {0};
  cleave_region_view_t region;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  void *copy = fuzz_copy(data, size);
  cleave_wire_in_t in = cleave_wire_read(copy, size);
  cleave_status_t status = cleave_region_read(&in, &arena, NULL, NULL, &region, &error);
  fuzz_check(status, &error, FUZZ_STATUS(FORMAT));
  fuzz_expect(arena.total <= 65536 + 64 * size, "%zu bytes of memory for %zu", arena.total, size);
  fuzz_outcome_t outcome = FUZZ_REFUSED;
  if (status == CLEAVE_OK) {
    write_again(&region);
    outcome = FUZZ_USED;
  }
  outcome = read_edits(copy, size) && outcome == FUZZ_REFUSED ? FUZZ_READ : outcome;
  cleave_arena_deinit(&arena);
  free(copy);
  return outcome;
}

const fuzz_kind_t fuzz_wire = {draw, damage, run};
