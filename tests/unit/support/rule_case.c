// SPDX-License-Identifier: Apache-2.0
// Models and rules as text. Tests only: any failure fails the test.
#include "rule_case.h"

#include <math.h>
#include <unistd.h>

#include "base/text.h"
#include "partition/grow/partition.h"
#include "plan_case.h"
#include "runtime/model/model.h"
#include "unit.h"

enum { MAX_PORTS = 16 };

static const char *keep_text(cleave_text_t *text) {
  const char *kept = plan_case_keep(cleave_copy_text(cleave_text_get(text), strlen(cleave_text_get(text))));
  cleave_text_deinit(text);
  return kept;
}

/* A file with this text, in the build folder. */
static void write_file(const char *text, const char *extension, char *path, size_t size) {
  (void)snprintf(path, size, CLEAVE_BINARY_DIR "/rule_case_%ld.%s", (long)getpid(), extension);
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(text, file), 0);
  ck_assert_int_eq(fclose(file), 0);
}

static cleave_status_t create(const rule_case_request_t *request, bool stops_at_mistakes, rule_case_t *c,
                              cleave_error_t *error) {
  char path[512];
  char names[RULE_CASE_SETTINGS][64];
  cleave_setting_t settings[RULE_CASE_SETTINGS];
  cleave_rule_source_t sources[RULE_CASE_RULES];
  size_t setting_count = 0;
  size_t source_count = 0;
  bool is_path = request->model[0] == '/';
  if (!is_path) {
    write_file(request->model, "lua", path, sizeof path);
  }
  unit_ok(cleave_model_load(NULL, is_path ? request->model : path, NULL, &c->model, e));
  if (!is_path) {
    ck_assert_int_eq(remove(path), 0);
  }
  for (; setting_count < RULE_CASE_SETTINGS && request->settings[setting_count] != NULL; setting_count++) {
    const char *equals = strchr(request->settings[setting_count], '=');
    ck_assert_ptr_nonnull(equals);
    (void)snprintf(names[setting_count], sizeof names[0], "%.*s",
                   (int)(equals - request->settings[setting_count]), request->settings[setting_count]);
    settings[setting_count] = (cleave_setting_t){names[setting_count], equals + 1};
  }
  for (; source_count < RULE_CASE_RULES && request->rules[source_count] != NULL; source_count++) {
    const char *rules = request->rules[source_count];
    sources[source_count] =
        rules[0] == '/' ? (cleave_rule_source_t){.path = rules}
                        : (cleave_rule_source_t){.path = "r.lua", .text = rules, .length = strlen(rules)};
  }
  cleave_rule_list_options_t options = {.stops_at_mistakes = stops_at_mistakes};
  cleave_partition_request_t partition = {.size = sizeof partition,
                                          .sources = sources,
                                          .source_count = source_count,
                                          .settings = settings,
                                          .setting_count = setting_count,
                                          .backend = request->backend};
  return cleave_graph_partition(cleave_model_graph(c->model), &partition, &options, &c->plan, NULL, error);
}

rule_case_t rule_case_create(const rule_case_request_t *request) {
  rule_case_t c = {0};
  unit_ok(create(request, false, &c, e));
  unit_ok(cleave_plan_check(c.plan, e));
  return c;
}

void rule_case_deinit(rule_case_t *c) {
  cleave_plan_destroy(c->plan);
  cleave_model_release(c->model);
  *c = (rule_case_t){0};
}

const char *rule_case_failure(const rule_case_request_t *request) {
  rule_case_t c = {0};
  cleave_error_t error = CLEAVE_ERROR_INIT;
  ck_assert_int_ne(create(request, true, &c, &error), CLEAVE_OK);
  rule_case_deinit(&c);
  return plan_case_keep(cleave_copy_text(error.message, strlen(error.message)));
}

/* ---- plans as texts ---- */

const char *rule_case_regions(const rule_case_t *c) {
  cleave_text_t text = {0};
  for (uint32_t r = 0; r < c->plan->region_count; r++) {
    const cleave_plan_region_t *region = &c->plan->regions[r];
    cleave_text_format(&text, "%s%s{", r > 0 ? " " : "", region->backend);
    for (uint32_t k = 0; k < region->node_count; k++) {
      char label[64];
      cleave_text_format(&text, "%s%s", k > 0 ? " " : "",
                         cleave_node_label(c->plan->graph, region->nodes[k], label, sizeof label));
    }
    cleave_text_add(&text, "}");
  }
  return keep_text(&text);
}

const char *rule_case_fusions(const rule_case_t *c) {
  cleave_text_t text = {0};
  for (uint32_t f = 0; f < c->plan->fusion_count; f++) {
    const cleave_plan_fusion_t *fusion = &c->plan->fusions[f];
    cleave_text_format(&text, "%s%s(", f > 0 ? " " : "", c->plan->rules[fusion->rule].name);
    for (uint32_t k = 0; k < fusion->node_count; k++) {
      cleave_text_format(&text, "%s%s%s%s", k > 0 ? " " : "", fusion->labels[k],
                         fusion->labels[k][0] != '\0' ? "=" : "",
                         cleave_node_op(c->plan->graph, fusion->nodes[k])->name);
    }
    cleave_text_add(&text, ")");
  }
  return keep_text(&text);
}

const char *rule_case_boundary(const rule_case_t *c, uint32_t region) {
  cleave_text_t text = {0};
  const cleave_plan_region_t *r = &c->plan->regions[region];
  for (uint32_t k = 0; k < r->input_count; k++) {
    cleave_text_format(&text, "%s%s", k > 0 ? ", " : "", cleave_value_name(c->plan->graph, r->inputs[k]));
  }
  cleave_text_add(&text, " ->");
  for (uint32_t k = 0; k < r->output_count; k++) {
    cleave_text_format(&text, "%s %s", k > 0 ? "," : "", cleave_value_name(c->plan->graph, r->outputs[k]));
  }
  return keep_text(&text);
}

const char *rule_case_attributes(const rule_case_t *c, uint32_t region) {
  cleave_text_t text = {0};
  const cleave_plan_region_t *r = &c->plan->regions[region];
  for (uint32_t k = 0; k < r->attribute_count; k++) {
    const cleave_attribute_t *a = &r->attributes[k];
    cleave_text_format(&text, "%s%s=", k > 0 ? " " : "", a->name);
    switch (a->kind) {
      case CLEAVE_ATTRIBUTE_INT: cleave_text_format(&text, "%lld", (long long)a->i); continue;
      case CLEAVE_ATTRIBUTE_FLOAT: cleave_text_format(&text, "%g", a->f); continue;
      case CLEAVE_ATTRIBUTE_STRING: cleave_text_format(&text, "'%s'", a->s); continue;
      default: break;
    }
    for (uint32_t n = 0; n < a->count; n++) {
      cleave_text_add(&text, n > 0 ? "," : "[");
      if (a->kind == CLEAVE_ATTRIBUTE_INTS) {
        cleave_text_format(&text, "%lld", (long long)a->ints[n]);
      } else if (a->kind == CLEAVE_ATTRIBUTE_FLOATS) {
        cleave_text_format(&text, "%g", (double)a->floats[n]);
      } else {
        cleave_text_format(&text, "'%s'", a->strings[n]);
      }
    }
    cleave_text_add(&text, a->count > 0 ? "]" : "[]");
  }
  return keep_text(&text);
}

const char *rule_case_notes(const rule_case_t *c, cleave_plan_note_kind_t kind) {
  cleave_text_t text = {0};
  for (uint32_t k = 0; k < c->plan->note_count; k++) {
    const cleave_plan_note_t *note = &c->plan->notes[k];
    char label[64];
    if (note->kind == kind) {
      cleave_text_format(&text, "%s: %s\n",
                         cleave_node_label(c->plan->graph, note->node, label, sizeof label), note->reason);
    }
  }
  return keep_text(&text);
}

/* ---- values ---- */

typedef struct feed {
  cleave_tensor_t *tensors[MAX_PORTS];
  cleave_tensor_view_t views[MAX_PORTS];
  const cleave_tensor_view_t *pointers[MAX_PORTS];
  uint32_t count;
} feed_t;

static void make_feed(const cleave_model_t *model, feed_t *feed) {
  feed->count = cleave_model_input_count(model);
  ck_assert_uint_le(feed->count, MAX_PORTS);
  for (uint32_t k = 0; k < feed->count; k++) {
    cleave_port_t port = {.size = sizeof port};
    unit_ok(cleave_model_input(model, k, &port, e));
    unit_ok(
        cleave_tensor_create(port.tensor.dtype, port.tensor.rank, port.tensor.dims, &feed->tensors[k], e));
    cleave_tensor_fill_normal(feed->tensors[k], 1000 + k, 0.0, 1.0);
    feed->views[k] = port.tensor;
    feed->views[k].data = feed->tensors[k]->data;
    feed->pointers[k] = &feed->views[k];
  }
}

static cleave_session_t *run(cleave_model_t *model, const cleave_plan_t *plan, const feed_t *feed) {
  cleave_session_t *session = NULL;
  cleave_session_options_t options = {.size = sizeof options, .threads = 1};
  unit_ok(cleave_session_create(model, plan, feed->pointers, feed->count, &options, &session, e));
  for (uint32_t k = 0; k < feed->count; k++) {
    unit_ok(cleave_session_set_input(session, k, &feed->views[k], e));
  }
  unit_ok(cleave_session_run(session, e));
  unit_ok(cleave_session_run(session, e));
  return session;
}

static double element(const cleave_tensor_view_t *view, int64_t index) {
  return view->dtype == CLEAVE_DTYPE_F64 ? ((const double *)view->data)[index]
                                         : (double)((const float *)view->data)[index];
}

static void compare(const char *what, const cleave_tensor_view_t *found, const cleave_tensor_view_t *expected,
                    double tolerance) {
  ck_assert_int_eq(found->dtype, expected->dtype);
  ck_assert(found->dtype == CLEAVE_DTYPE_F32 || found->dtype == CLEAVE_DTYPE_F64);
  ck_assert_int_eq(found->rank, expected->rank);
  int64_t count = 1;
  for (int32_t d = 0; d < expected->rank; d++) {
    ck_assert_int_eq(found->dims[d], expected->dims[d]);
    count *= expected->dims[d];
  }
  double scale = 1.0;
  for (int64_t k = 0; k < count; k++) {
    scale = fmax(scale, fabs(element(expected, k)));
  }
  for (int64_t k = 0; k < count; k++) {
    double a = element(found, k);
    double b = element(expected, k);
    if (!(fabs(a - b) <= tolerance * scale)) {  // an assertion per element would be a file operation each
      ck_abort_msg("%s: element %lld is %.9g, expected %.9g", what, (long long)k, a, b);
    }
  }
}

static void compare_sessions(const char *what, const cleave_session_t *found,
                             const cleave_session_t *expected, uint32_t count, double tolerance) {
  for (uint32_t k = 0; k < count; k++) {
    cleave_tensor_view_t a;
    cleave_tensor_view_t b;
    char name[96];
    unit_ok(cleave_session_output(found, k, &a, e));
    unit_ok(cleave_session_output(expected, k, &b, e));
    (void)snprintf(name, sizeof name, "%s, output %u", what, (unsigned)k);
    compare(name, &a, &b, tolerance);
  }
}

/* The partitioned model as ONNX, read again. */
static cleave_model_t *export_and_import(const rule_case_t *c) {
  char path[512];
  cleave_model_t *model = NULL;
  (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/rule_case_%ld.onnx", (long)getpid());
  unit_ok(cleave_plan_save(c->plan, path, 0, e));
  unit_ok(cleave_model_load(NULL, path, NULL, &model, e));
  ck_assert_int_eq(remove(path), 0);
  return model;
}

static void compare_ports(const cleave_model_t *a, const cleave_model_t *b) {
  cleave_port_t x = {.size = sizeof x};
  cleave_port_t y = {.size = sizeof y};
  ck_assert_uint_eq(cleave_model_input_count(a), cleave_model_input_count(b));
  ck_assert_uint_eq(cleave_model_output_count(a), cleave_model_output_count(b));
  for (uint32_t k = 0; k < cleave_model_input_count(a); k++) {
    unit_ok(cleave_model_input(a, k, &x, e));
    unit_ok(cleave_model_input(b, k, &y, e));
    ck_assert_str_eq(x.name, y.name);
  }
  for (uint32_t k = 0; k < cleave_model_output_count(a); k++) {
    unit_ok(cleave_model_output(a, k, &x, e));
    unit_ok(cleave_model_output(b, k, &y, e));
    ck_assert_str_eq(x.name, y.name);
  }
}

void rule_case_check_values(const rule_case_t *c, double tolerance) {
  feed_t feed = {.count = 0};
  uint32_t outputs = cleave_model_output_count(c->model);
  make_feed(c->model, &feed);
  cleave_session_t *expected = run(c->model, NULL, &feed);
  cleave_session_t *found = run(c->model, c->plan, &feed);
  compare_sessions("partitioned", found, expected, outputs, tolerance);
  cleave_session_destroy(found);
  cleave_model_t *copy = export_and_import(c);
  compare_ports(c->model, copy);
  found = run(copy, NULL, &feed);
  compare_sessions("written and read", found, expected, outputs, 1e-5);
  cleave_session_destroy(found);
  cleave_model_release(copy);
  cleave_session_destroy(expected);
  for (uint32_t k = 0; k < feed.count; k++) {
    cleave_tensor_release(feed.tensors[k]);
  }
}
