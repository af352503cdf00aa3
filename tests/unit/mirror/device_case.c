// SPDX-License-Identifier: Apache-2.0
// Models over the device library. Tests only: any failure fails the test.
#include "device_case.h"

#include "backend/registry/registry.h"
#include "base/text.h"
#include "plan_case.h"
#include "random_case.h"
#include "unit.h"

#define HEAD "local x = g.input('x', 'float32', { 8 })\n"
#define LIBRARY CLEAVE_BINARY_DIR "/tests/accelerators/libdevice.so"

void device_case_load(const char *has) {
  ck_assert_int_eq(setenv("CLEAVE_TEST_DEVICE", has, 1), 0);
  unit_ok(cleave_registry_load(NULL, LIBRARY, NULL, e));
  unit_ok(cleave_registry_load(NULL, LIBRARY, "other", e));
}

void device_case_set(const char *key, long value) {
  char text[32];
  (void)snprintf(text, sizeof text, "%ld", value);
  cleave_key_value_t setting = {.key = key, .value = text};
  unit_ok(cleave_backend_configure(NULL, "device", &setting, 1, NULL, NULL, e));
}

long device_case_ask(const char *key) {
  cleave_key_value_t setting = {.key = key};
  cleave_key_value_t *answers = NULL;
  uint32_t count = 0;
  long value = -1;
  unit_ok(cleave_backend_configure(NULL, "device", &setting, 1, &answers, &count, e));
  for (uint32_t k = 0; k < count; k++) {
    value = strcmp(answers[k].key, key) == 0 ? strtol(answers[k].value, NULL, 10) : value;
  }
  cleave_answers_free(answers);
  return value;
}

static const char *rules_of(const char *backend, const char *region, const char *attributes) {
  char *text = plan_case_keep(malloc(1024));
  (void)snprintf(text, 1024,
                 "local function device(name) return tonumber(name:match('^%c(%%d)')) end\n"
                 "return ruleset { name = '%s', backend = '%s', region '%s' {\n"
                 "  supported = function(node) return device(node.name) or false end,\n"
                 "  review = function(sub)\n"
                 "    return true, { device = device(sub.nodes[1].name) %s %s }\n"
                 "  end } }",
                 backend[0], backend, backend, region, attributes == NULL ? "" : ",",
                 attributes == NULL ? "" : attributes);
  return text;
}

const char *device_case_rules(const char *attributes) {
  return rules_of("device", "part", attributes);
}

device_case_t device_case_create(const char *model, const char *rules) {
  rule_case_request_t request = {.model = model, .rules = {rules}};
  if (rules == NULL) {
    request.rules[0] = device_case_rules(NULL);
    request.rules[1] = rules_of("other", "piece", NULL);
  }
  device_case_t c = {.rule = rule_case_create(&request)};
  for (int k = 0; k < DEVICE_CASE_SIZE; k++) {
    c.x[k] = (float)(k % 2 == 0 ? k : -k);
  }
  return c;
}

static void set_input(device_case_t *c, cleave_session_t *session) {
  static const int64_t DIMS[1] = {DEVICE_CASE_SIZE};
  c->view = (cleave_tensor_view_t){
      .size = sizeof c->view, .dtype = CLEAVE_DTYPE_F32, .rank = 1, .dims = DIMS, .data = c->x};
  unit_ok(cleave_session_set_input(session, 0, &c->view, e));
}

void device_case_compile(device_case_t *c, const cleave_session_options_t *options) {
  unit_ok(cleave_session_create(c->rule.model, c->rule.plan, NULL, 0, options, &c->session, e));
  set_input(c, c->session);
}

const char *device_case_compile_failure(device_case_t *c, const cleave_session_options_t *options) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_status_t status =
      cleave_session_create(c->rule.model, c->rule.plan, NULL, 0, options, &c->session, &error);
  ck_assert_int_ne(status, CLEAVE_OK);
  ck_assert_int_eq(error.status, status);
  ck_assert_ptr_null(c->session);
  return plan_case_keep(strdup(error.message));
}

void device_case_deinit(device_case_t *c) {
  cleave_session_destroy(c->session);
  rule_case_deinit(&c->rule);
  c->session = NULL;
}

void device_case_run(device_case_t *c, float base) {
  for (int k = 0; k < DEVICE_CASE_SIZE; k++) {
    float x = base + (float)k;
    c->x[k] = k % 2 == 0 ? x : -x;
  }
  unit_ok(cleave_session_run(c->session, e));
}

float device_case_value(const device_case_t *c, uint32_t output, uint32_t index) {
  cleave_tensor_view_t view = {0};
  unit_ok(cleave_session_output(c->session, output, &view, e));
  ck_assert_int_eq(view.dtype, CLEAVE_DTYPE_F32);
  ck_assert_int_gt(cleave_view_element_count(&view), index);
  ck_assert_uint_eq(view.memory, CLEAVE_MEMORY_HOST);
  return ((const float *)view.data)[index];
}

void device_case_check(const device_case_t *c) {
  cleave_session_t *reference = NULL;
  unit_ok(cleave_session_create(c->rule.model, NULL, NULL, 0, NULL, &reference, e));
  unit_ok(cleave_session_set_input(reference, 0, &c->view, e));
  unit_ok(cleave_session_run(reference, e));
  for (uint32_t k = 0; k < cleave_model_output_count(c->rule.model); k++) {
    cleave_tensor_view_t expected;
    cleave_tensor_view_t found;
    unit_ok(cleave_session_output(reference, k, &expected, e));
    unit_ok(cleave_session_output(c->session, k, &found, e));
    ck_assert_int_eq(found.dtype, expected.dtype);
    ck_assert_int_eq(cleave_view_element_count(&found), cleave_view_element_count(&expected));
    size_t count = (size_t)cleave_view_element_count(&found);
    for (size_t i = 0; i < count && found.dtype == CLEAVE_DTYPE_F32; i++) {
      ck_assert_float_eq(((const float *)found.data)[i], ((const float *)expected.data)[i]); /* 0 is -0 */
    }
    if (found.dtype != CLEAVE_DTYPE_F32) {
      ck_assert_mem_eq(found.data, expected.data, count * cleave_dtype_size(found.dtype));
    }
  }
  cleave_session_destroy(reference);
}

const char *device_case_steps(const device_case_t *c) {
  cleave_text_t text = {0};
  for (uint32_t k = 0; k < cleave_session_step_count(c->session); k++) {
    cleave_session_step_t step = cleave_session_step(c->session, k);
    bool is_copy = step.is_copy;
    cleave_text_format(&text, "%s%s%s%s", k == 0 ? "" : "|", is_copy ? step.op : step.name,
                       is_copy ? " " : " on ", is_copy ? step.name : step.target);
  }
  const char *copy = plan_case_keep(strdup(cleave_text_get(&text)));
  cleave_text_deinit(&text);
  return copy;
}

// ---- random graphs ----

/* Nodes on the host, on two devices and on one of another backend by turns, which read any of the last few
 * values; Reshape there and back; some values are outputs. Values stay small: products are halved. */
static const char *random_model(uint32_t node_count) {
  cleave_text_t text = {0};
  cleave_text_format(&text, HEAD
                     "local v = { [0] = x }\n"
                     "local flat = g.constant({ 8 }, 'int64')\n"
                     "local square = g.constant({ 2, 4 }, 'int64')\n"
                     "local halves = g.constant({ 0.5, 1, 0.25, 0.5, 1, 1, 0.5, 1 }, 'float32')\n");
  for (uint32_t k = 1; k <= node_count; k++) {
    char a[32];
    char b[32];
    uint32_t reach = k < 6 ? k : 6;
    (void)snprintf(a, sizeof a, "v[%u]", k - 1 - random_below(reach));
    (void)snprintf(b, sizeof b, "v[%u]", k - 1 - random_below(reach));
    if (random_below(6) == 0) {
      cleave_text_format(&text, "v[%u] = g.Reshape(g.Abs(g.Reshape(%s, square), { name = '%sr%u' }), flat)\n",
                         k, a, random_below(2) == 0 ? "c" : "e", k);
      continue;
    }
    uint32_t op = random_below(4);
    static const char *const WHERE[] = {"d0_", "d1_", "o1_", "c"};
    cleave_text_format(&text, "v[%u] = g.", k);
    if (op < 2) {
      cleave_text_format(&text, "%s(%s", op == 0 ? "Relu" : "Neg", a);
    } else {
      cleave_text_format(&text, "%s(%s, %s", op == 2 ? "Add" : "Mul", a, op == 2 ? b : "halves");
    }
    cleave_text_format(&text, ", { name = '%s%u' })\n", WHERE[random_below(4)], k);
    if (random_below(5) == 0) {
      cleave_text_format(&text, "g.output('o%u', v[%u])\n", k, k);
    }
  }
  cleave_text_format(&text, "g.output('y', v[%u])", node_count);
  const char *copy = plan_case_keep(strdup(cleave_text_get(&text)));
  cleave_text_deinit(&text);
  return copy;
}

void device_case_run_random(const char *has, const cleave_session_options_t *options, uint32_t graphs,
                            long latency_us) {
  random_state = UINT64_C(0x9E3779B97F4A7C15);
  device_case_load(has);
  device_case_set("latency_us", latency_us);
  for (uint32_t k = 0; k < graphs; k++) {
    device_case_t c = device_case_create(random_model(5 + random_below(30)), NULL);
    device_case_compile(&c, options);
    for (int run = 0; run < 3; run++) {
      device_case_run(&c, (float)run - 1.0f);
      device_case_check(&c);
    }
    device_case_deinit(&c);
    ck_assert_int_eq(device_case_ask("live"), 0);
  }
}
