// SPDX-License-Identifier: Apache-2.0
// Ranges as JSON, a value a line. The file is not trusted: unknown members are refused, and all values are
// found in the graph before any of them changes.
#include "formats/ranges.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "graph/compare/structural_hash.h"
#include "graph/order.h"
#include "json/json_read.h"
#include "json/json_write.h"
#include "system/file.h"

enum { VERSION = 1 };

static const char FORMAT[] = "cleave-ranges";

/* The nodes of a graph in topological order, and the other way round. */
typedef struct places {
  cleave_node_t *order;
  uint32_t *position; /* by node index */
} places_t;

static cleave_status_t places_init(const cleave_graph_t *graph, places_t *places, cleave_error_t *error) {
  places->order = cleave_allocate(graph->live_node_count + 1, sizeof *places->order);
  places->position = cleave_allocate((size_t)cleave_graph_node_bound(graph) + 1, sizeof *places->position);
  return places->order == NULL || places->position == NULL
             ? cleave_error_out_of_memory(error)
             : cleave_graph_topological_order(graph, places->order, places->position, error);
}

static void places_deinit(places_t *places) {
  cleave_free(places->order);
  cleave_free(places->position);
}

// ---- writing ----

static uint32_t find_input(const cleave_graph_t *graph, uint32_t value) {
  for (size_t k = 0; k < graph->inputs.count; k++) {
    if (graph->inputs.items[k].index == value) {
      return (uint32_t)k;
    }
  }
  return CLEAVE_INDEX_NONE;
}

/* NULL also for a value that is neither made by a node nor an input. */
static json_t *value_json(const cleave_graph_t *graph, const places_t *places, uint32_t index) {
  const cleave_value_record_t *value = &graph->values.items[index];
  json_t *json = json_object();
  if (value->producer != CLEAVE_INDEX_NONE) {
    cleave_json_set(&json, "position", cleave_json_number(places->position[value->producer]));
    cleave_json_set(&json, "output", cleave_json_number(value->output_index));
  } else {
    cleave_json_set(&json, "input", cleave_json_number(find_input(graph, index)));
  }
  const char *name = cleave_value_name(graph, (cleave_value_t){index});
  cleave_json_set(&json, "name", cleave_json_bytes(name, strlen(name)));
  cleave_json_set(&json, "min", cleave_json_float(value->low));
  cleave_json_set(&json, "max", cleave_json_float(value->high));
  return json;
}

static bool is_written(const cleave_graph_t *graph, uint32_t index) {
  const cleave_value_record_t *value = &graph->values.items[index];
  return value->has_range && !value->is_removed && value->tensor == NULL &&
         (value->producer != CLEAVE_INDEX_NONE || value->is_input);
}

cleave_status_t cleave_ranges_print(const cleave_graph_t *graph, const cleave_ranges_source_t *source,
                                    cleave_text_t *text, cleave_error_t *error) {
  places_t places = {0};
  uint64_t hash = 0;
  bool is_first = true;
  cleave_status_t status = places_init(graph, &places, error);
  CLEAVE_THEN(status, cleave_graph_hash(graph, &hash, error));
  if (status == CLEAVE_OK) {
    json_t *about = json_object();
    cleave_json_set(&about, "name", cleave_json_text(cleave_strings_text(&graph->strings, graph->name)));
    cleave_json_set(&about, "hash", cleave_json_hash(hash));
    cleave_json_set(&about, "nodes", cleave_json_number(graph->live_node_count));
    cleave_text_add(text, "{\n");
    cleave_json_write_member(text, "  ", "format", cleave_json_text(FORMAT), true);
    cleave_json_write_member(text, "  ", "version", cleave_json_number(VERSION), true);
    cleave_json_write_member(text, "  ", "graph", about, true);
    cleave_json_write_member(text, "  ", "method", cleave_json_text(source->method), true);
    cleave_json_write_member(text, "  ", "samples", cleave_json_number(source->samples), true);
    cleave_json_open_list(text, "  ", "values");
    for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
      if (is_written(graph, k)) {
        cleave_json_write_item(text, "    ", is_first, value_json(graph, &places, k));
        is_first = false;
      }
    }
    cleave_json_close_list(text, "  ", is_first, false);
    cleave_text_add(text, "}\n");
    status = cleave_text_check(text, error);
  }
  places_deinit(&places);
  return status;
}

// ---- reading ----

typedef struct range {
  cleave_value_t value;
  float low;
  float high;
} range_t;

typedef struct ranges_reader {
  cleave_json_reader_t base;
  const cleave_graph_t *graph;
  const places_t *places;
  range_t *ranges;
  uint32_t count;
} ranges_reader_t;

static cleave_status_t fail_other(const ranges_reader_t *reader, const char *format, const char *found,
                                  const char *expected) {
  char what[384];
  (void)snprintf(what, sizeof what, format, found, expected);
  return cleave_error_set(reader->base.error, CLEAVE_ERROR_INVALID_ARGUMENT,
                          "%s: the ranges are of another model: %s", reader->base.place, what);
}

static cleave_status_t get_place(ranges_reader_t *reader, const json_t *json, const char *key, size_t count,
                                 uint32_t *out_place) {
  return count == 0 ? cleave_reader_fail(&reader->base, "member '%s': the model has none", key)
                    : cleave_reader_get_number(&reader->base, json, key, (uint32_t)count - 1, out_place);
}

/* The value of the graph that an item means. */
static cleave_status_t find_value(ranges_reader_t *reader, const json_t *json, cleave_value_t *out_value) {
  const cleave_graph_t *graph = reader->graph;
  uint32_t place = 0;
  if (json_object_get(json, "input") != NULL) {
    CLEAVE_TRY(get_place(reader, json, "input", graph->inputs.count, &place));
    *out_value = graph->inputs.items[place];
    return CLEAVE_OK;
  }
  CLEAVE_TRY(get_place(reader, json, "position", graph->live_node_count, &place));
  cleave_node_t node = reader->places->order[place];
  CLEAVE_TRY(get_place(reader, json, "output", cleave_node_output_count(graph, node), &place));
  *out_value = cleave_node_output(graph, node, place);
  return CLEAVE_OK;
}

static cleave_status_t get_float(cleave_json_reader_t *reader, const json_t *json, const char *key,
                                 float *out_number) {
  const json_t *number = json_object_get(json, key);
  return number == NULL ? cleave_reader_fail(reader, "member '%s' is missing", key)
                        : cleave_reader_read_float(reader, number, out_number);
}

static cleave_status_t read_value(cleave_json_reader_t *base, json_t *json, void *item) {
  static const char *const keys[] = {"position", "output", "input", "name", "min", "max", NULL};
  ranges_reader_t *reader = (ranges_reader_t *)(void *)base;
  range_t *range = item;
  const char *name = NULL;
  CLEAVE_TRY(cleave_reader_check_keys(base, json, keys));
  CLEAVE_TRY(find_value(reader, json, &range->value));
  CLEAVE_TRY(cleave_reader_get_name(base, json, "name", true, &name));
  CLEAVE_TRY(get_float(base, json, "min", &range->low));
  CLEAVE_TRY(get_float(base, json, "max", &range->high));
  const char *found = cleave_value_name(reader->graph, range->value);
  if (strcmp(found, name) != 0) {
    return fail_other(reader, "they have '%.100s' where the model has '%.100s'", name, found);
  }
  if (!isfinite(range->low) || !isfinite(range->high) || range->low > range->high) {
    return cleave_reader_fail(base, "expected finite numbers, min no more than max");
  }
  return CLEAVE_OK;
}

static cleave_status_t check_graph(ranges_reader_t *reader, const json_t *root) {
  static const char *const keys[] = {"name", "hash", "nodes", NULL};
  json_t *about = NULL;
  uint64_t hash = 0;
  uint64_t own = 0;
  char texts[2][24];
  CLEAVE_TRY(cleave_reader_get(&reader->base, root, "graph", JSON_OBJECT, "an object", &about));
  CLEAVE_TRY(cleave_reader_check_keys(&reader->base, about, keys));
  CLEAVE_TRY(cleave_reader_get_hash(&reader->base, about, "hash", &hash));
  CLEAVE_TRY(cleave_graph_hash(reader->graph, &own, reader->base.error));
  if (hash != own) {
    (void)snprintf(texts[0], sizeof texts[0], "%016" PRIx64, hash);
    (void)snprintf(texts[1], sizeof texts[1], "%016" PRIx64, own);
    return fail_other(reader, "its hash is %s, expected %s", texts[0], texts[1]);
  }
  return CLEAVE_OK;
}

static cleave_status_t read_root(ranges_reader_t *reader, json_t *root) {
  static const char *const keys[] = {"format", "version", "graph", "method", "samples", "values", NULL};
  cleave_json_reader_t *base = &reader->base;
  const char *format = NULL;
  uint32_t version = 0;
  CLEAVE_TRY(cleave_reader_check_keys(base, root, keys));
  CLEAVE_TRY(cleave_reader_get_text(base, root, "format", NULL, &format));
  if (strcmp(format, FORMAT) != 0) {
    return cleave_reader_fail(base, "expected the format '%s', found '%.40s'", FORMAT, format);
  }
  CLEAVE_TRY(cleave_reader_get_number(base, root, "version", UINT32_MAX, &version));
  if (version != VERSION) {
    return cleave_reader_fail(base, "expected version %d, found %u", (int)VERSION, (unsigned)version);
  }
  CLEAVE_TRY(check_graph(reader, root));
  return cleave_reader_get_list(base, root, "values", sizeof *reader->ranges, read_value, &reader->ranges,
                                &reader->count);
}

cleave_status_t cleave_ranges_read(const char *path, cleave_graph_t *graph, cleave_error_t *error) {
  cleave_arena_t arena = {0};
  places_t places = {0};
  json_t *root = NULL;
  cleave_file_t *file = NULL;
  ranges_reader_t reader = {
      .base = {.place = path, .arena = &arena, .error = error}, .graph = graph, .places = &places};
  cleave_status_t status = cleave_file_open(path, &file, error);
  CLEAVE_THEN(status, places_init(graph, &places, error));
  CLEAVE_THEN(status, cleave_reader_parse(&reader.base, "ranges", (const char *)cleave_file_data(file),
                                          cleave_file_size(file), &root));
  CLEAVE_THEN(status, read_root(&reader, root));
  for (uint32_t k = 0; status == CLEAVE_OK && k < reader.count; k++) {
    cleave_graph_set_range(graph, reader.ranges[k].value, reader.ranges[k].low, reader.ranges[k].high);
  }
  json_decref(root);
  places_deinit(&places);
  cleave_file_release(file);
  cleave_arena_deinit(&arena);
  return status;
}
