// SPDX-License-Identifier: Apache-2.0
// Files of ranges: written and read again, and what is refused in them.
#include "formats/ranges.h"

#include <unistd.h>

#include "session_case.h"
#include "system/file.h"
#include "unit.h"

typedef struct ranges_case {
  session_case_t graph;
  cleave_value_t x;
  cleave_value_t y;
  char path[64];
} ranges_case_t;

/* y = relu(x), z = y + y; without ranges. */
static ranges_case_t begin(const char *name) {
  ranges_case_t c = {.graph = session_case_create()};
  c.x = session_case_input(&c.graph, "x", CLEAVE_DTYPE_F32, 1, (const cleave_dim_t[]){4});
  c.y = session_case_node(&c.graph, "Relu", name, c.x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE);
  session_case_output(&c.graph, session_case_node(&c.graph, "Add", "z", c.y, c.y, CLEAVE_VALUE_NONE));
  session_case_infer(&c.graph);
  (void)snprintf(c.path, sizeof c.path, "ranges_%d.json", (int)getpid());
  return c;
}

static void end(ranges_case_t *c) {
  (void)unlink(c->path);
  session_case_deinit(&c->graph);
}

static void write_text(const ranges_case_t *c, const char *text) {
  unit_ok(cleave_file_write(c->path, text, strlen(text), e));
}

/* What a case with ranges of x and y writes. */
static cleave_text_t printed(ranges_case_t *c) {
  const cleave_ranges_source_t source = {.method = "minmax", .samples = 3};
  cleave_text_t text = {0};
  cleave_graph_set_range(c->graph.graph, c->x, -1.5F, 0.1F);
  cleave_graph_set_range(c->graph.graph, c->y, 0.0F, 3.4e38F);
  unit_ok(cleave_ranges_print(c->graph.graph, &source, &text, e));
  return text;
}

UNIT_TEST(what_is_written_is_read_bit_by_bit) {
  ranges_case_t c = begin("y");
  ranges_case_t other = begin("y");
  cleave_text_t text = printed(&c);
  write_text(&c, cleave_text_get(&text));
  unit_ok(cleave_ranges_read(c.path, other.graph.graph, e));
  for (uint32_t k = 0; k < cleave_graph_value_bound(c.graph.graph); k++) {
    const cleave_value_record_t *a = &c.graph.graph->values.items[k];
    const cleave_value_record_t *b = &other.graph.graph->values.items[k];
    ck_assert_int_eq(a->has_range, b->has_range);
    ck_assert(a->low == b->low && a->high == b->high);
  }
  cleave_text_deinit(&text);
  end(&other);
  end(&c);
}

/* The text with `from` replaced by `to`, if `from` is not NULL, is refused with a message. */
static void refused(const char *from, const char *to, cleave_status_t status, const char *message) {
  ranges_case_t c = begin("y");
  ranges_case_t other = begin("y");
  cleave_text_t text = printed(&c);
  cleave_text_t changed = {0};
  const char *place = strstr(cleave_text_get(&text), from);
  ck_assert_msg(place != NULL, "'%s' is not in %s", from, cleave_text_get(&text));
  cleave_text_format(&changed, "%.*s%s%s", (int)(place - cleave_text_get(&text)), cleave_text_get(&text), to,
                     place + strlen(from));
  write_text(&c, cleave_text_get(&changed));
  unit_fails_with(cleave_ranges_read(c.path, other.graph.graph, e), status, message);
  ck_assert(!cleave_graph_value(other.graph.graph, other.x)->has_range);
  cleave_text_deinit(&text);
  cleave_text_deinit(&changed);
  end(&other);
  end(&c);
}

UNIT_TEST(another_model_is_refused_by_hash_and_by_name) {
  refused("\"hash\":\"", "\"hash\":\"z", CLEAVE_ERROR_FORMAT, "hash");
  refused("\"name\":\"y\"", "\"name\":\"relu\"", CLEAVE_ERROR_INVALID_ARGUMENT,
          "another model: they have 'relu' where the model has 'y'");
  ranges_case_t c = begin("y");
  cleave_text_t text = printed(&c);
  write_text(&c, cleave_text_get(&text));
  session_case_t longer = session_case_create();
  cleave_value_t x = session_case_input(&longer, "x", CLEAVE_DTYPE_F32, 1, (const cleave_dim_t[]){4});
  session_case_output(&longer,
                      session_case_node(&longer, "Relu", "y", x, CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE));
  session_case_infer(&longer);
  unit_fails_with(cleave_ranges_read(c.path, longer.graph, e), CLEAVE_ERROR_INVALID_ARGUMENT,
                  "the ranges are of another model: its hash is ");
  cleave_text_deinit(&text);
  session_case_deinit(&longer);
  end(&c);
}

UNIT_TEST(what_is_not_right_in_a_file_is_named) {
  refused("cleave-ranges", "cleave-plan", CLEAVE_ERROR_FORMAT,
          "expected the format 'cleave-ranges', found 'cleave-plan'");
  refused("\"version\": 1", "\"version\": 2", CLEAVE_ERROR_FORMAT, "expected version 1, found 2");
  refused("\"position\":0", "\"position\":7", CLEAVE_ERROR_FORMAT,
          "values[1].position: expected 0 to 1, found 7");
  refused("\"input\":0", "\"input\":1", CLEAVE_ERROR_FORMAT, "values[0].input: expected 0 to 0, found 1");
  refused("\"output\":0", "\"output\":-1", CLEAVE_ERROR_FORMAT,
          "values[1].output: expected 0 to 0, found -1");
  refused("\"min\":-1.5", "\"min\":1", CLEAVE_ERROR_FORMAT,
          "values[0]: expected finite numbers, min no more than max");
  refused("\"min\":-1.5", "\"min\":\"-inf\"", CLEAVE_ERROR_FORMAT, "values[0]: expected finite numbers");
  refused("\"min\":-1.5,", "", CLEAVE_ERROR_FORMAT, "values[0]: member 'min' is missing");
  refused("\"min\":", "\"least\":", CLEAVE_ERROR_FORMAT, "'least'");
  refused("]\n}", "]", CLEAVE_ERROR_FORMAT, "not JSON");
}

UNIT_SUITE("ranges")
