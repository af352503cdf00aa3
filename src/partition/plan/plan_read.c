// SPDX-License-Identifier: Apache-2.0
// Reads a plan file into its document. The file is not trusted: jansson bounds the depth, every member is
// read by name and type, unknown ones are refused, and every index is checked against its list.

#include "partition/plan/plan_read.h"

#include <inttypes.h>
#include <string.h>

#include "json/json_attribute.h"
#include "partition/plan/edits_json.h"

enum { VERSION = 1 };

typedef struct plan_reader {
  cleave_json_reader_t base;
  cleave_plan_document_t *document; /* being filled in; its arena owns all copies */
} plan_reader_t;

static cleave_plan_document_t *document_of(cleave_json_reader_t *reader) {
  return ((plan_reader_t *)(void *)reader)->document;
}

/* ---- nodes and values ---- */

static cleave_status_t read_node(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"position", "op", "name", "label", NULL};
  cleave_document_node_t *node = item;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_index(reader, json, "position", document_of(reader)->node_count, "node",
                                     &node->position));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "op", NULL, &node->op));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "name", "", &node->name));
  return cleave_reader_get_text(reader, json, "label", "", &node->label);
}

static cleave_status_t read_value(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"position", "output", "input", "name", NULL};
  cleave_document_value_t *value = item;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "name", "", &value->name));
  if (json_object_get(json, "input") != NULL) {
    if (json_object_get(json, "position") != NULL || json_object_get(json, "output") != NULL) {
      return cleave_reader_fail(reader, "a value is an input or the output of a node, not both");
    }
    value->position = CLEAVE_INDEX_NONE;
    return cleave_reader_get_index(reader, json, "input", document_of(reader)->graph_input_count, "input",
                                   &value->index);
  }
  CLEAVE_TRY(cleave_reader_get_index(reader, json, "position", document_of(reader)->node_count, "node",
                                     &value->position));
  return cleave_reader_get_number(reader, json, "output", UINT16_MAX, &value->index);
}

/* ---- rules, regions, steps, notes ---- */

static cleave_status_t read_rule(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"kind", "name",  "ruleset", "backend", "file",
                                     "line", "tries", "matches", "refused", NULL};
  static const cleave_rule_kind_t kinds[] = {CLEAVE_RULE_FUSE, CLEAVE_RULE_REGION, CLEAVE_RULE_REWRITE,
                                             CLEAVE_RULE_PASS, CLEAVE_RULE_STAGE};
  cleave_plan_rule_t *rule = item;
  const char *kind = NULL;
  uint32_t line = 0;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "kind", NULL, &kind));
  bool is_known = false;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    if (strcmp(cleave_rule_kind_name(kinds[k]), kind) == 0) {
      rule->kind = kinds[k];
      is_known = true;
    }
  }
  if (!is_known) {
    return cleave_reader_fail(reader, "kind '%.40s' is none of fuse, region, rewrite, pass, stage", kind);
  }
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "name", NULL, &rule->name));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "ruleset", NULL, &rule->ruleset));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "backend", NULL, &rule->backend));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "file", NULL, &rule->file));
  CLEAVE_TRY(cleave_reader_get_number(reader, json, "line", INT32_MAX, &line));
  rule->line = (int32_t)line;
  CLEAVE_TRY(cleave_reader_get_number(reader, json, "tries", UINT32_MAX, &rule->tries));
  CLEAVE_TRY(cleave_reader_get_number(reader, json, "matches", UINT32_MAX, &rule->matches));
  return cleave_reader_get_number(reader, json, "refused", UINT32_MAX, &rule->refused);
}

static cleave_status_t get_rule(cleave_json_reader_t *reader, const json_t *object, uint32_t *out_rule) {
  return cleave_reader_get_index(reader, object, "rule", document_of(reader)->rule_count, "rule", out_rule);
}

static cleave_status_t get_attributes(cleave_json_reader_t *reader, const json_t *object,
                                      const cleave_attribute_t **out_attributes, uint32_t *out_count) {
  cleave_attribute_t *attributes = NULL;
  cleave_status_t status = cleave_reader_get_attributes(reader, object, true, &attributes, out_count);
  *out_attributes = attributes;
  return status;
}

static cleave_status_t read_fusion(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"rule", "attributes", "nodes", NULL};
  cleave_document_fusion_t *fusion = item;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(get_rule(reader, json, &fusion->rule));
  CLEAVE_TRY(get_attributes(reader, json, &fusion->attributes, &fusion->attribute_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "nodes", sizeof *fusion->nodes, read_node, &fusion->nodes,
                                    &fusion->node_count));
  if (document_of(reader)->rules[fusion->rule].kind != CLEAVE_RULE_FUSE) {
    return cleave_reader_fail(reader, "rule %u makes no fusions", (unsigned)fusion->rule);
  }
  return fusion->node_count > 0 ? CLEAVE_OK : cleave_reader_fail(reader, "a fusion has no nodes");
}

static cleave_status_t read_region(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"name",    "backend", "rule",  "attributes", "inputs",
                                     "outputs", "fusions", "nodes", NULL};
  cleave_document_region_t *region = item;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "name", NULL, &region->name));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "backend", NULL, &region->backend));
  CLEAVE_TRY(get_rule(reader, json, &region->rule));
  CLEAVE_TRY(get_attributes(reader, json, &region->attributes, &region->attribute_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "inputs", sizeof *region->inputs, read_value,
                                    &region->inputs, &region->input_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "outputs", sizeof *region->outputs, read_value,
                                    &region->outputs, &region->output_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "fusions", sizeof *region->fusions, read_fusion,
                                    &region->fusions, &region->fusion_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, json, "nodes", sizeof *region->nodes, read_node, &region->nodes,
                                    &region->node_count));
  return region->node_count > 0 ? CLEAVE_OK : cleave_reader_fail(reader, "a region has no nodes");
}

/* Regions run in the order of their list, so that the next one is the only one a step can name. */
static cleave_status_t read_step(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"region", NULL};
  cleave_plan_document_t *document = document_of(reader);
  cleave_document_step_t *step = item;
  uint32_t *next = &document->step_count; /* regions so far, while the list is being read */
  step->region = CLEAVE_INDEX_NONE;
  if (json_object_get(json, "stage") != NULL) {
    CLEAVE_TRY(cleave_reader_get_number(reader, json, "stage", CLEAVE_STAGE_LIMIT - 1, &step->stage));
    document->stage_count = step->stage >= document->stage_count ? step->stage + 1 : document->stage_count;
    (void)json_object_del(json, "stage"); /* a node elsewhere has no such member */
  }
  if (json_object_get(json, "region") == NULL) {
    return read_node(reader, json, &step->node);
  }
  const char *name = NULL;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "region", NULL, &name));
  if (*next >= document->region_count || strcmp(document->regions[*next].name, name) != 0) {
    return cleave_reader_fail(
        reader, "expected region '%.80s', found '%.80s'",
        *next < document->region_count ? document->regions[*next].name : "(none is left)", name);
  }
  step->region = (*next)++;
  return CLEAVE_OK;
}

static const cleave_plan_note_kind_t note_kinds[] = {
    CLEAVE_PLAN_NOTE_WHERE,    CLEAVE_PLAN_NOTE_BACKEND, CLEAVE_PLAN_NOTE_REVIEW, CLEAVE_PLAN_NOTE_THRESHOLD,
    CLEAVE_PLAN_NOTE_CYCLE,    CLEAVE_PLAN_NOTE_FILTER,  CLEAVE_PLAN_NOTE_TAKEN,  CLEAVE_PLAN_NOTE_LIMIT,
    CLEAVE_PLAN_NOTE_LEFT_OUT, CLEAVE_PLAN_NOTE_STAGE,   CLEAVE_PLAN_NOTE_OUTPUT};
enum { NOTE_KINDS = sizeof note_kinds / sizeof note_kinds[0] };

static cleave_status_t read_note(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"kind", "rule", "node", "reason", NULL};
  cleave_document_note_t *note = item;
  const char *kind = NULL;
  json_t *node = NULL;
  bool is_known = false;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "kind", NULL, &kind));
  for (uint32_t k = 0; k < NOTE_KINDS && !is_known; k++) {
    note->kind = note_kinds[k];
    is_known = strcmp(cleave_plan_note_name(note->kind), kind) == 0;
  }
  if (!is_known) {
    return cleave_reader_fail(reader, "kind '%.40s' of a note is unknown", kind);
  }
  CLEAVE_TRY(get_rule(reader, json, &note->rule));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "reason", NULL, &note->reason));
  CLEAVE_TRY(cleave_reader_get(reader, json, "node", JSON_OBJECT, "an object", &node));
  size_t before = cleave_reader_enter(reader, "node", CLEAVE_INDEX_NONE);
  CLEAVE_TRY(read_node(reader, node, &note->node));
  cleave_reader_leave(reader, before);
  return CLEAVE_OK;
}

/* ---- the whole ---- */

static cleave_status_t read_graph(cleave_json_reader_t *reader, json_t *root) {
  static const char *const keys[] = {"name", "hash", "nodes", NULL};
  cleave_plan_document_t *document = document_of(reader);
  json_t *json = NULL;
  CLEAVE_TRY(cleave_reader_get(reader, root, "graph", JSON_OBJECT, "an object", &json));
  size_t before = cleave_reader_enter(reader, "graph", CLEAVE_INDEX_NONE);
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "name", NULL, &document->graph_name));
  CLEAVE_TRY(cleave_reader_get_hash(reader, json, "hash", &document->graph_hash));
  CLEAVE_TRY(cleave_reader_get_number(reader, json, "nodes", UINT32_MAX - 1, &document->node_count));
  cleave_reader_leave(reader, before);
  return CLEAVE_OK;
}

static cleave_status_t read_input(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"name", "type", NULL};
  cleave_document_input_t *input = item;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "name", NULL, &input->name));
  return cleave_reader_get_text(reader, json, "type", NULL, &input->type);
}

static cleave_status_t read_setting(cleave_json_reader_t *reader, json_t *json, void *item) {
  static const char *const keys[] = {"name", "value", NULL};
  cleave_setting_t *setting = item;
  CLEAVE_TRY(cleave_reader_check_keys(reader, json, keys));
  CLEAVE_TRY(cleave_reader_get_text(reader, json, "name", NULL, &setting->name));
  return cleave_reader_get_text(reader, json, "value", NULL, &setting->value);
}

/* `seen`: per position: is it in an earlier step? */
static cleave_status_t see(cleave_json_reader_t *reader, uint8_t *seen, const cleave_document_node_t *node) {
  if (seen[node->position] != 0) {
    return cleave_reader_fail(reader, "node %u is in two steps", (unsigned)node->position);
  }
  seen[node->position] = 1;
  return CLEAVE_OK;
}

/* Every position of the graph is in one step, and every region too. */
static cleave_status_t check_steps(cleave_json_reader_t *reader, uint32_t region_count) {
  const cleave_plan_document_t *document = document_of(reader);
  if (region_count != document->region_count) {
    return cleave_reader_fail(reader, "region '%.80s' is in no step", document->regions[region_count].name);
  }
  uint64_t total = 0;
  for (uint32_t s = 0; s < document->step_count; s++) {
    const cleave_document_step_t *step = &document->steps[s];
    total += step->region == CLEAVE_INDEX_NONE ? 1 : document->regions[step->region].node_count;
  }
  if (total != document->node_count) {
    return cleave_reader_fail(reader, "the steps have %" PRIu64 " node%s, the graph %u", total,
                              CLEAVE_PLURAL(total), (unsigned)document->node_count);
  }
  uint8_t *seen = cleave_allocate_zeroed((size_t)document->node_count + 1, 1);
  CLEAVE_TRY_MEMORY(seen, reader->error);
  cleave_status_t status = CLEAVE_OK;
  for (uint32_t s = 0; s < document->step_count && status == CLEAVE_OK; s++) {
    const cleave_document_step_t *step = &document->steps[s];
    if (step->region == CLEAVE_INDEX_NONE) {
      status = see(reader, seen, &step->node);
      continue;
    }
    const cleave_document_region_t *region = &document->regions[step->region];
    for (uint32_t k = 0; k < region->node_count && status == CLEAVE_OK; k++) {
      status = see(reader, seen, &region->nodes[k]);
    }
  }
  cleave_free(seen);
  return status;
}

static cleave_status_t read_header(cleave_json_reader_t *reader, json_t *root) {
  static const char *const keys[] = {"format", "version", "cleave",  "graph", "inputs", "settings",
                                     "rules",  "edits",   "regions", "steps", "notes",  NULL};
  const char *format = NULL;
  uint32_t version = 0;
  if (!json_is_object(root)) {
    return cleave_reader_fail(reader, "expected an object, found %s", cleave_reader_type(root));
  }
  CLEAVE_TRY(cleave_reader_get_text(reader, root, "format", NULL, &format));
  if (strcmp(format, "cleave-plan") != 0) {
    return cleave_reader_fail(reader, "format: expected 'cleave-plan', found '%.40s'", format);
  }
  CLEAVE_TRY(cleave_reader_get_number(reader, root, "version", UINT32_MAX, &version));
  if (version != VERSION) {
    return cleave_reader_fail(reader, "version: this program reads plans of version %d, found %u", VERSION,
                              (unsigned)version);
  }
  return cleave_reader_check_keys(reader, root, keys);
}

/* Reads the member "edits", which may be missing. */
static cleave_status_t read_edits(cleave_json_reader_t *reader, json_t *root) {
  cleave_plan_document_t *document = document_of(reader);
  const json_t *json = json_object_get(root, "edits");
  if (json == NULL) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_edits_from_json(document->place, json, &document->edits, reader->error));
  document->owns_edits = true;
  for (size_t k = 0; k < document->edits->rules.count; k++) {
    const cleave_edit_rule_t *rule = &document->edits->rules.items[k];
    if (rule->number >= document->rule_count ||
        !cleave_rule_kind_changes_graph(document->rules[rule->number].kind)) {
      return cleave_reader_fail(reader, "edits.rules[%zu].number: rule %u is not a rewrite or pass", k,
                                (unsigned)rule->number);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t read_all(cleave_json_reader_t *reader, json_t *root) {
  cleave_plan_document_t *document = document_of(reader);
  cleave_setting_t *settings = NULL;
  uint32_t step_count = 0;
  CLEAVE_TRY(read_header(reader, root));
  CLEAVE_TRY(cleave_reader_get_text(reader, root, "cleave", NULL, &document->version));
  CLEAVE_TRY(read_graph(reader, root));
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "inputs", sizeof *document->graph_inputs, read_input,
                                    &document->graph_inputs, &document->graph_input_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "settings", sizeof *settings, read_setting, &settings,
                                    &document->setting_count));
  document->settings = settings;
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "rules", sizeof *document->rules, read_rule,
                                    &document->rules, &document->rule_count));
  CLEAVE_TRY(read_edits(reader, root));
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "regions", sizeof *document->regions, read_region,
                                    &document->regions, &document->region_count));
  CLEAVE_TRY(cleave_reader_get_list(reader, root, "steps", sizeof *document->steps, read_step,
                                    &document->steps, &step_count));
  uint32_t region_count = document->step_count;
  document->step_count = step_count;
  CLEAVE_TRY(check_steps(reader, region_count));
  return cleave_reader_get_list(reader, root, "notes", sizeof *document->notes, read_note, &document->notes,
                                &document->note_count);
}

cleave_status_t cleave_plan_document_read(const char *place, const char *text, size_t length,
                                          cleave_plan_document_t **out_document, cleave_error_t *error) {
  *out_document = NULL;
  json_t *root = NULL;
  cleave_plan_document_t *document = cleave_allocate_zeroed(1, sizeof *document);
  CLEAVE_TRY_MEMORY(document, error);
  plan_reader_t reader = {.base = {.place = place, .arena = &document->arena, .error = error},
                          .document = document};
  document->place = cleave_arena_copy_text(&document->arena, place, strlen(place));
  cleave_status_t status = document->place == NULL
                               ? cleave_error_out_of_memory(error)
                               : cleave_reader_parse(&reader.base, "a plan", text, length, &root);
  CLEAVE_THEN(status, read_all(&reader.base, root));
  json_decref(root);
  CLEAVE_TRY_OR(status, cleave_plan_document_destroy(document));
  *out_document = document;
  return CLEAVE_OK;
}
