// SPDX-License-Identifier: Apache-2.0
// Regions whose products read bfloat16: which steps they become, what stays float32, how far results may be
// off, and what happens on processors without the instructions.
#include "kernels/amx/amx.h"
#include "kernels/instructions.h"
#include "onednn_case.h"

#include <stdlib.h>

#include "rule_case.h"

#define ONEDNN CLEAVE_SOURCE_DIR "/rules/onednn.lua"

static const char *lacks_bfloat16(void) {
  return kernel_instructions(KERNEL_AVX512) == KERNEL_AVX512 && __builtin_cpu_supports("avx512bf16")
             ? NULL
             : "this processor has no AVX512_BF16";
}

/* Compiles the text with attributes of the region; the labels of its steps, each on a line of its own. */
static cleave_status_t compile(const char *text, const cleave_attribute_view_t *attributes, uint32_t count,
                               char *labels, size_t size) {
  op_backend_t onednn = onednn_create();
  fusion_region_t *region = fusion_region_create(text, true);
  cleave_region_view_t view = *fusion_region_view(region);
  cleave_compile_options_t options = {.size = sizeof(options), .threads = 1, .profile = true};
  cleave_message_t message = {.text = ""};
  void *program = NULL;
  view.attributes = attributes;
  view.attribute_count = count;
  cleave_status_t status = onednn.backend->compile(onednn.state, &view, &options, &program, &message);
  size_t used = 0;
  labels[0] = '\0';
  if (status == CLEAVE_OK) {
    const cleave_step_time_t *steps = NULL;
    uint32_t step_count = onednn.backend->profile(program, &steps);
    for (uint32_t k = 0; k < step_count && used < size; k++) {
      used += (size_t)snprintf(labels + used, size - used, "%s\n", steps[k].label);
    }
    onednn.backend->unload(program);
  } else {
    (void)snprintf(labels, size, "%s", message.text);
  }
  fusion_region_destroy(region);
  op_backend_destroy(&onednn);
  return status;
}

static cleave_attribute_view_t precision(const char *name) {
  return (cleave_attribute_view_t){.size = sizeof(cleave_attribute_view_t),
                                   .name = "precision",
                                   .kind = CLEAVE_ATTRIBUTE_STRING,
                                   .s = name,
                                   .count = (uint32_t)strlen(name)};
}

#define BLOCK                                                                                              \
  "x [1,32,12,12] = input\nw1 [32,32,3,3] = random\nw2 [32,32,1,1] = random\nw3 [64,32,1,1] = random\n{\n" \
  "a [1,32,12,12] = Conv(x, w1) kernel_shape=[3,3] pads=[1,1,1,1]\nra [1,32,12,12] = Relu(a)\n}\n{\n"      \
  "b [1,32,12,12] = Conv(ra, w2) kernel_shape=[1,1]\nsb [1,32,12,12] = Add(b, ra)\n"                       \
  "rb [1,32,12,12] = Relu(sb)\n}\n"                                                                        \
  "p [1,32,6,6] = MaxPool(rb) kernel_shape=[2,2] strides=[2,2]\n"                                          \
  "y [1,64,6,6] = Conv(p, w3) kernel_shape=[1,1]\n"

UNIT_TEST_UNLESS(values_between_products_stay_in_the_low_type, lacks_bfloat16) {
  char labels[2048];
  const cleave_attribute_view_t low = precision("bfloat16");
  ck_assert_int_eq(compile(BLOCK, &low, 1, labels, sizeof(labels)), CLEAVE_OK);
  ck_assert_msg(onednn_occurrences(labels, "conv") >= 3 && onednn_occurrences(labels, "_bf16") >= 3, "%s",
                labels);
  // The input becomes bfloat16 in channels last, the output row-major: nothing else is moved.
  ck_assert_msg(onednn_occurrences(labels, "reorder") <= 2, "%s", labels);
}

UNIT_TEST(without_the_attribute_all_is_float32) {
  char labels[2048];
  const cleave_attribute_view_t own = precision("float32");
  ck_assert_int_eq(compile(BLOCK, NULL, 0, labels, sizeof(labels)), CLEAVE_OK);
  ck_assert_msg(onednn_occurrences(labels, "_bf16") == 0, "%s", labels);
  ck_assert_int_eq(compile(BLOCK, &own, 1, labels, sizeof(labels)), CLEAVE_OK);
  ck_assert_msg(onednn_occurrences(labels, "_bf16") == 0, "%s", labels);
}

UNIT_TEST(what_is_kept_stays_float32) {
  char labels[2048];
  const char *const texts[] = {"MaxPool", "Conv"};
  const cleave_attribute_view_t attributes[] = {precision("bfloat16"),
                                                {.size = sizeof(cleave_attribute_view_t),
                                                 .name = "float32",
                                                 .kind = CLEAVE_ATTRIBUTE_STRINGS,
                                                 .strings = texts,
                                                 .count = 2}};
  ck_assert_int_eq(compile(BLOCK, attributes, 2, labels, sizeof(labels)), CLEAVE_OK);
  ck_assert_msg(onednn_occurrences(labels, "_bf16") == 0, "%s", labels);
}

UNIT_TEST(an_unknown_precision_is_refused) {
  char text[2048];
  const cleave_attribute_view_t odd = precision("int5");
  ck_assert_int_eq(compile(BLOCK, &odd, 1, text, sizeof(text)), CLEAVE_ERROR_UNSUPPORTED);
  ck_assert_str_eq(text, "precision: expected float32, bfloat16, float16 or int8, found 'int5'");
}

/* Partitions and runs the model with a precision: outputs within `tolerance` of float32. */
static void check(const char *model, const char *setting, const char *keep, double tolerance) {
  rule_case_request_t request = {.model = model, .rules = {ONEDNN}, .settings = {setting, keep}};
  rule_case_t c = rule_case_create(&request);
  rule_case_check_values(&c, tolerance);
  rule_case_deinit(&c);
}

/* Products by AMX: with the sums, bounds and functions that they take, by oneDNN with others, with few rows
 * or a short depth. */
UNIT_TEST_UNLESS(products_with_constant_weights_are_by_amx, lacks_bfloat16) {
  static const struct {
    const char *rows;
    const char *depth;
    const char *post;
    bool is_taken;
  } cases[] = {{"20", "512", "", true},
               {"20", "512", "z [20,96] = Relu(y)\n", true},
               {"20", "512", "z [20,96] = Gelu(y)\n", true},
               {"20", "512", "z [20,96] = Gelu(y) approximate=\"tanh\"\n", true},
               {"20", "512", "z [20,96] = Add(y, r)\n", true},
               {"20", "512", "s [20,96] = Add(y, r)\nz [20,96] = Clip(s, low, high)\n", true},
               {"20", "512", "z [20,96] = Mul(y, r)\n", false},
               {"20", "512", "s [20,96] = Relu(y)\nz [20,96] = Add(s, r)\n", false},
               {"20", "256", "z [20,96] = Relu(y)\n", false},
               {"20", "528", "z [20,96] = Relu(y)\n", false},
               {"15", "512", "z [15,96] = Relu(y)\n", false}};
  const cleave_attribute_view_t low = precision("bfloat16");
  for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
    char text[1024];
    char labels[2048];
    const char *rows = cases[k].rows;
    (void)snprintf(text, sizeof(text),
                   "x [%s,%s] = input\nr [20,96] = input\nw [%s,96] = random\nb [96] = random\nlow [] = -1\n"
                   "high [] = 1.5\n{\np [%s,96] = MatMul(x, w)\ny [%s,96] = Add(p, b)\n%s}",
                   rows, cases[k].depth, cases[k].depth, rows, rows, cases[k].post);
    ck_assert_int_eq(compile(text, &low, 1, labels, sizeof(labels)), CLEAVE_OK);
    uint32_t expected = cases[k].is_taken && kernel_amx_runs_here() ? 1 : 0;
    ck_assert_msg(onednn_occurrences(labels, "matmul amx") == expected, "%s\n%s", text, labels);
  }
}

#define NETWORK                                                                                     \
  "local x = g.input('x', 'float32', { 2, 3, 32, 32 })\n"                                           \
  "local y = g.Relu(g.Conv(x, g.weight { 24, 3, 3, 3 }, nil, { strides = { 2, 2 }, pads = { 1, 1, " \
  "1, 1 } }))\n"                                                                                    \
  "local d = g.Clip(g.Conv(y, g.weight { 24, 1, 3, 3 }, nil, { group = 24, pads = { 1, 1, 1, 1 } "  \
  "}), 0, 6)\n"                                                                                     \
  "local z = g.Conv(d, g.weight { 24, 24, 1, 1 }) + y\n"                                            \
  "local u = g.Concat(g.MaxPool(z, { kernel_shape = { 2, 2 }, strides = { 2, 2 } }),\n"             \
  "  g.AveragePool(z, { kernel_shape = { 2, 2 }, strides = { 2, 2 } }), { axis = 1 })\n"            \
  "local v = g.Swish(g.Conv(u, g.weight { 40, 48, 1, 1 }))\n"                                       \
  "local f = g.Flatten(g.GlobalAveragePool(v))\n"                                                   \
  "g.output('y', g.Gemm(f, g.weight { 10, 40 }, nil, { transB = 1 }))\n"                            \
  "g.output('z', z)\n"

#define ATTENTION                                                                                    \
  "local x = g.input('x', 'float32', { 2, 20, 32 })\n"                                               \
  "local function heads(x)\n"                                                                        \
  "  local y = g.MatMul(x, g.weight { 32, 32 }) + g.normal { 32 }\n"                                 \
  "  return g.Transpose(g.Reshape(y, g.constant { 2, 20, 4, 8 }), { perm = { 0, 2, 1, 3 } })\n"      \
  "end\n"                                                                                            \
  "local q, k, v = heads(x), heads(x), heads(x)\n"                                                   \
  "local p = g.Softmax(g.MatMul(q, g.Transpose(k, { perm = { 0, 1, 3, 2 } })) * 0.35)\n"             \
  "local o = g.Reshape(g.Transpose(g.MatMul(p, v), { perm = { 0, 2, 1, 3 } }), g.constant { 2, 20, " \
  "32 })\n"                                                                                          \
  "local h = g.LayerNormalization(x + g.MatMul(o, g.weight { 32, 32 }), g.normal { 32 }, g.normal "  \
  "{ 32 })\n"                                                                                        \
  "g.output('y', h + g.MatMul(g.Gelu(g.MatMul(h, g.weight { 32, 64 })), g.weight { 64, 32 }))\n"

#define DEEP                                                                  \
  "local x = g.input('x', 'float32', { 2, 20, 512 })\n"                       \
  "local u = g.Gelu(g.MatMul(x, g.weight { 512, 544 }) + g.normal { 544 })\n" \
  "local h = g.MatMul(u, g.weight { 544, 512 }) + g.normal { 512 } + x\n"     \
  "local n = g.LayerNormalization(h, g.normal { 512 }, g.normal { 512 })\n"   \
  "g.output('y', g.Relu(g.MatMul(n, g.weight { 512, 100 })))\n"

UNIT_TEST_UNLESS(networks_are_off_by_little, lacks_bfloat16) {
  check(DEEP, "precision=bfloat16", NULL, 0.03);
  check(NETWORK, "precision=bfloat16", NULL, 0.02);
  check(ATTENTION, "precision=bfloat16", NULL, 0.03);
  check(ATTENTION, "precision=bfloat16", "keep=Softmax,MatMul", 1e-4);
}

UNIT_TEST(a_processor_without_the_instructions_computes_in_float32_and_says_so) {
  static const struct {
    const char *setting;
    const char *reason;
  } cases[] = {{"precision=bfloat16", "onednn: precision bfloat16: this processor has no AVX512_BF16"},
               {"precision=float16", "onednn: precision float16: "}};
  ck_assert_int_eq(setenv("DNNL_MAX_CPU_ISA", "AVX2", 1), 0); /* of this test's process only */
  for (size_t k = 0; k < 2; k++) {
    rule_case_request_t request = {.model = NETWORK, .rules = {ONEDNN}, .settings = {cases[k].setting}};
    rule_case_t c = rule_case_create(&request);
    bool said = false;
    for (uint32_t n = 0; n < c.plan->note_count; n++) {
      said = said || strstr(c.plan->notes[n].reason, cases[k].reason) != NULL;
    }
    ck_assert_msg(said, "no note says '%s'", cases[k].reason);
    ck_assert_int_eq(c.plan->region_count, 1);
    ck_assert_str_eq(c.plan->rules[c.plan->regions[0].rule].name, "everything");
    rule_case_check_values(&c, 1e-5);
    rule_case_deinit(&c);
  }
}

UNIT_TEST_UNLESS(fusions_of_other_rules_may_stay_float32, lacks_bfloat16) {
  rule_case_request_t request = {
      .model =
          "local x = g.input('x', 'float32', { 8, 64 })\n"
          "g.output('y', g.Relu(g.MatMul(x, g.weight { 64, 64 })))\n",
      .rules = {"return ruleset { name = 'kept', backend = 'onednn',\n"
                "  fuse 'kept' { pattern = op 'MatMul' >> op 'Relu',\n"
                "    attributes = { precision = 'float32' } },\n"
                "  region 'low' { review = function() return true, { precision = 'bfloat16' } end } }\n"}};
  rule_case_t c = rule_case_create(&request);
  rule_case_check_values(&c, 1e-5);
  rule_case_deinit(&c);
}

UNIT_SUITE("onednn_precision")
