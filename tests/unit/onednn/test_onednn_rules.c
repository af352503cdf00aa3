// SPDX-License-Identifier: Apache-2.0
// What MXNet's oneDNN tests (test_conv_subgraph.py, test_fc_subgraph.py, float parts) ask of fusions, through
// rules/onednn.lua: which operators end up in one kernel, and that nothing is fused where a second reader
// looks in; in every case, negative ones too, the values are those of the unfused graph.
#include "library_case.h"
#include "rule_case.h"
#include "unit.h"

#define ONEDNN CLEAVE_SOURCE_DIR "/rules/onednn.lua"
#define TOLERANCE 1e-5 /* of the largest element: oneDNN approximates exp and tanh */
#define CANONICAL CLEAVE_SOURCE_DIR "/rules/canonical.lua"

/* Layers in the spellings of the exporters. */
static const char PRELUDE[] =
    "local x = g.input('x', 'float32', { N, C, H, W })\n"
    "local function conv(x, out, k, bias)\n"
    "  local w = g.weight { out, x.shape[2], k, k }\n"
    "  if bias then return g.Conv(x, w, g.normal { out }) end\n"
    "  return g.Conv(x, w)\n"
    "end\n"
    "local function dense(x, out, bias, flatten)\n"
    "  if flatten then\n"
    "    local flat = g.Flatten(x)\n"
    "    local w = g.weight { out, flat.shape[2] }\n"
    "    if bias then return g.Gemm(flat, w, g.normal { out }, { transB = 1 }) end\n"
    "    return g.Gemm(flat, w, { transB = 1 })\n"
    "  end\n"
    "  local y = g.MatMul(x, g.weight { x.shape[#x.shape], out, fan_in = x.shape[#x.shape] })\n"
    "  return bias and g.Add(y, g.normal { out }) or y\n"
    "end\n"
    "local bn = g.batch_norm\n"
    "local act = {\n"
    "  relu = g.Relu, sigmoid = g.Sigmoid, mish = g.Mish, tanh = g.Tanh, softrelu = g.Softplus,\n"
    "  log_sigmoid = function(x) return g.Neg(g.Softplus(g.Neg(x))) end,\n"
    "  relu6 = function(x) return g.Clip(x, g.constant(0.0), g.constant(6.0)) end,\n"
    "  leakyrelu = function(x) return g.LeakyRelu(x, { alpha = 0.25 }) end,\n"
    "  gelu = g.Gelu, gelu_tanh = function(x) return g.Gelu(x, { approximate = 'tanh' }) end,\n"
    "  elu = g.Elu, square = function(x) return g.Mul(x, x) end, abs = g.Abs, exp = g.Exp,\n"
    "  square_root = function(x) return g.Sqrt(g.Abs(x)) end,\n"
    "  bounded_relu = function(x) return g.Clip(x, g.constant(0.0), g.constant(1.0)) end,\n"
    "}\n"
    "local function pool(x, k) return g.AveragePool(x, { kernel_shape = { k, k } }) end\n"
    "local function both(p, q)\n"
    "  return g.Softmax(g.Concat(dense(p, 10, true, true), dense(q, 10, true, true), { axis = 1 }),\n"
    "    { axis = 1 })\n"
    "end\n";

static const int64_t SHAPES[3][4] = {{64, 4, 10, 10}, {4, 3, 24, 24}, {1, 16, 32, 32}};

static rule_case_t create_by(const char *body, const int64_t *shape, const char *first) {
  char text[8192];
  (void)snprintf(text, sizeof text, "local N, C, H, W = %lld, %lld, %lld, %lld\n%s%s", (long long)shape[0],
                 (long long)shape[1], (long long)shape[2], (long long)shape[3], PRELUDE, body);
  rule_case_request_t request = {.model = text, .rules = {first != NULL ? first : ONEDNN}};
  request.rules[1] = first != NULL ? ONEDNN : NULL;
  return rule_case_create(&request);
}

static rule_case_t create(const char *body, const int64_t *shape) {
  return create_by(body, shape, NULL);
}

/* The fusions of the body for a shape, and equal values. */
static void check_shape(const char *body, const char *fusions, const int64_t *shape) {
  rule_case_t c = create(body, shape);
  ck_assert_msg(strcmp(rule_case_fusions(&c), fusions) == 0, "%s\nfound    %s\nexpected %s", body,
                rule_case_fusions(&c), fusions);
  rule_case_check_values(&c, TOLERANCE);
  rule_case_deinit(&c);
}

static void check(const char *body, const char *fusions) {
  for (uint32_t k = 0; k < 3; k++) {
    check_shape(body, fusions, SHAPES[k]);
  }
}

/* The operators of an activation, as it ends up in a fusion. */
static const struct {
  const char *name;
  const char *ops;
} ACTIVATIONS[10] = {{"relu", "Relu"},     {"sigmoid", "Sigmoid"},     {"log_sigmoid", "Neg Softplus Neg"},
                     {"mish", "Mish"},     {"tanh", "Tanh"},           {"softrelu", "Softplus"},
                     {"relu6", "Clip"},    {"leakyrelu", "LeakyRelu"}, {"gelu", "Gelu"},
                     {"gelu_tanh", "Gelu"}};

/* Body and fusions with %s in place of the activation's name and operators; the shapes in turns. */
static void check_activations(const char *body, const char *fusions) {
  for (uint32_t k = 0; k < 10; k++) {
    char text[1024];
    char expected[256];
    (void)snprintf(text, sizeof text, body, ACTIVATIONS[k].name);
    (void)snprintf(expected, sizeof expected, fusions, ACTIVATIONS[k].ops);
    check_shape(text, expected, SHAPES[k % 3]);
  }
}

/* ---- convolutions ---- */

UNIT_TEST(convolutions_in_float64_run_on_cpu) {
  static const char MODEL[] =
      "local x = g.input('x', 'float64', { 3, 3, 3, 3 })\n"
      "local y = g.Conv(x, g.weight { 3, 3, 1, 1, dtype = 'float64' })\n"
      "g.output('y', g.Add(y, g.normal { 3, 1, 1, dtype = 'float64' }))";
  rule_case_request_t request = {.model = MODEL, .rules = {ONEDNN}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->fusion_count, 0);
  ck_assert_uint_eq(c.plan->region_count, 0);
  cleave_port_t port = {.size = sizeof port};
  unit_ok(cleave_model_output(c.model, 0, &port, e));
  ck_assert_int_eq(port.tensor.dtype, CLEAVE_DTYPE_F64);
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(a_single_convolution_is_a_region_without_fusion) {
  check("g.output('y', conv(x, 64, 3, true))", "");
  check("g.output('y', conv(x, 64, 3, false))", "");
  rule_case_t c = create("g.output('y', conv(x, 64, 3, false))", SHAPES[0]);
  ck_assert_uint_eq(c.plan->region_count, 1);
  ck_assert_str_eq(c.plan->regions[0].backend, "onednn");
  rule_case_deinit(&c);
}

UNIT_TEST(convolutions_with_a_transpose_or_reshape_between_stay_apart) {
  check("g.output('y', conv(g.Transpose(conv(x, 64, 3, true), { perm = { 0, 1, 3, 2 } }), 32, 5, true))", "");
  check(
      "local y = conv(x, 64, 3, false)\n"
      "g.output('y', conv(g.Reshape(y, { -1, 16, 2 * (H - 2), 2 * (W - 2) }), 32, 5, false))",
      "");
}

UNIT_TEST(a_sum_joins_the_convolution_on_either_side) {
  check("g.output('y', g.Add(conv(x, 64, 3, true), pool(conv(x, 64, 3, true), 1)))",
        "product(product=Conv Add)");
  check("g.output('y', g.Add(pool(conv(x, 64, 3, false), 1), conv(x, 64, 3, false)))",
        "product(product=Conv Add)");
  check("g.output('y', g.Add(x, conv(x, C, 1, true)))", "product(product=Conv Add)");
  check("g.output('y', conv(g.Add(x, conv(x, C, 1, false)), 64, 3, false))", "product(product=Conv Add)");
}

UNIT_TEST(an_activation_and_a_sum_join_two_convolutions) {
  check_activations("g.output('y', g.Add(act.%s(conv(x, 64, 3, true)), conv(x, 64, 3, true)))",
                    "product(product=Conv %s Add)");
}

UNIT_TEST(batch_norm_and_activation_join_the_convolution) {
  check_activations("g.output('y', act.%s(bn(conv(x, 64, 3, false))))",
                    "product(product=Conv BatchNormalization %s)");
  check_activations("g.output('y', act.%s(bn(conv(x, 64, 3, true))))",
                    "product(product=Conv BatchNormalization %s)");
}

UNIT_TEST(batch_norm_sum_and_activation_join_the_convolution) {
  check_activations("g.output('y', act.%s(g.Add(bn(conv(x, 64, 3, true)), conv(x, 64, 3, true))))",
                    "product(product=Conv BatchNormalization Add %s)");
}

UNIT_TEST(concatenations_run_as_they_are) {
  static const struct {
    int count;
    int axis;
  } CASES[4] = {{2, -1}, {2, 1}, {4, 2}, {4, 3}};
  for (uint32_t k = 0; k < 4; k++) {
    char text[256];
    (void)snprintf(text, sizeof text,
                   "local list = {}\nfor k = 1, %d do list[k] = g.Identity(x) end\n"
                   "list[#list + 1] = { axis = %d }\ng.output('y', g.Concat(table.unpack(list)))",
                   CASES[k].count, CASES[k].axis);
    check(text, "");
  }
  check("g.output('y', g.Concat(x, g.Relu(conv(x, 4, 1, false)), { axis = 1 }))",
        "product(product=Conv Relu)");
}

UNIT_TEST(an_activation_joins_the_convolution) {
  check_activations("g.output('y', act.%s(conv(x, 64, 3, true)))", "product(product=Conv %s)");
  check_activations("g.output('y', act.%s(conv(x, 64, 3, false)))", "product(product=Conv %s)");
}

UNIT_TEST(a_batch_norm_joins_the_convolution) {
  check("g.output('y', bn(conv(x, 64, 3, true)))", "product(product=Conv BatchNormalization)");
  check("g.output('y', bn(conv(x, 64, 3, false)))", "product(product=Conv BatchNormalization)");
}

UNIT_TEST(a_sum_with_the_input_of_the_convolution_joins_in_both_orders) {
  check("g.output('y', g.Add(bn(conv(x, C, 1, false)), x))", "product(product=Conv BatchNormalization Add)");
  check("g.output('y', g.Add(x, bn(conv(x, C, 1, false))))", "product(product=Conv BatchNormalization Add)");
}

UNIT_TEST(a_block_of_mobilenet_is_two_kernels) {
  static const char FUSIONS[] =
      "product(product=Conv BatchNormalization) product(product=Conv BatchNormalization Add)";
  check(
      "local o = bn(conv(x, 64, 1, false))\n"
      "g.output('y', g.Add(bn(conv(o, 64, 1, false)), o))",
      FUSIONS);
  check(
      "local o = bn(conv(x, 64, 1, false))\n"
      "g.output('y', g.Add(o, bn(conv(o, 64, 1, false))))",
      FUSIONS);
}

UNIT_TEST(a_second_reader_of_the_convolution_keeps_it_alone) {
  check("local c = conv(x, 64, 3, false)\ng.output('y', both(bn(c), pool(c, 4)))", "");
  check("local c = conv(x, 64, 3, false)\ng.output('y', both(g.Relu(c), pool(c, 4)))", "");
  check(
      "local c = conv(x, 64, 3, false)\n"
      "g.output('y', both(g.Add(c, g.normal { 1, 64, H - 2, W - 2 }), pool(c, 4)))",
      "");
  check("local c = conv(x, 64, 3, false)\ng.output('y', both(g.Relu(bn(c)), pool(c, 4)))",
        "chain(BatchNormalization Relu)");
}

UNIT_TEST(a_second_reader_of_the_batch_norm_ends_the_fusion_there) {
  check("local b = bn(conv(x, 64, 3, false))\ng.output('y', both(g.Relu(b), pool(b, 4)))",
        "product(product=Conv BatchNormalization)");
}

UNIT_TEST(a_second_reader_anywhere_on_the_chain_ends_the_fusion_there) {
  static const char BODY[] =
      "local c = conv(x, 64, 3, false)\n"
      "local b = bn(c)\n"
      "local s = g.Add(b, g.normal { 1, 64, H - 2, W - 2 })\n"
      "g.output('y', both(g.Relu(s), pool(%s, 4)))";
  static const char *const READERS[3][2] = {{"c", "chain(BatchNormalization Add Relu)"},
                                            {"b", "product(product=Conv BatchNormalization) chain(Add Relu)"},
                                            {"s", "product(product=Conv BatchNormalization Add)"}};
  for (uint32_t k = 0; k < 3; k++) {
    char text[512];
    (void)snprintf(text, sizeof text, BODY, READERS[k][0]);
    check(text, READERS[k][1]);
  }
}

UNIT_TEST(a_batch_norm_with_an_activation_is_one_kernel) {
  for (int axis = 1; axis < 4; axis++) {
    char text[256];
    (void)snprintf(text, sizeof text,
                   "local perm = { { 0, 1, 2, 3 }, { 0, 2, 1, 3 }, { 0, 3, 2, 1 } }\n"
                   "local y = g.Transpose(x, { perm = perm[%d] })\n"
                   "g.output('y', g.Relu(bn(y)))",
                   axis);
    check(text, "chain(BatchNormalization Relu)");
  }
}

UNIT_TEST(an_output_of_the_model_is_not_swallowed) {
  check("local c = conv(x, 4, 3, true)\ng.output('c', c)\ng.output('r', g.Relu(c))", "");
  check("local c = conv(x, 4, 3, true)\ng.output('r', g.Relu(c))\ng.output('c', c)", "");
}

UNIT_TEST(a_convolution_added_to_itself_reads_it_twice) {
  check("local c = conv(x, 4, 1, true)\ng.output('y', g.Add(c, c))", "");
}

/* ---- fully connected layers ---- */

UNIT_TEST(dense_layers_in_float64_run_on_cpu) {
  rule_case_request_t request = {.model =
                                     "local x = g.input('x', 'float64', { 3, 3, 3, 3 })\n"
                                     "g.output('y', g.Gemm(g.Flatten(x), g.weight { 3, 27, dtype = "
                                     "'float64' }, { transB = 1 }))",
                                 .rules = {ONEDNN}};
  rule_case_t c = rule_case_create(&request);
  ck_assert_uint_eq(c.plan->fusion_count, 0);
  ck_assert_str_eq(rule_case_regions(&c), "");
  rule_case_check_values(&c, 0.0);
  rule_case_deinit(&c);
}

UNIT_TEST(single_dense_layers) {
  check("g.output('y', dense(x, 64, true, true))", "");
  check("g.output('y', dense(x, 64, false, true))", "");
  check("g.output('y', dense(x, 64, true, false))", "product(product=MatMul Add)");
  check("g.output('y', dense(x, 64, false, false))", "");
  check("g.output('y', g.Reshape(dense(x, 64, true, true), { 1, -1 }))", "");
  check("g.output('y', g.Transpose(dense(x, 64, true, true)))", "");
}

UNIT_TEST(dense_layers_take_an_activation) {
  static const struct {
    const char *name;
    const char *ops;
  } ALGORITHMS[12] = {{"relu", "Relu"},
                      {"sigmoid", "Sigmoid"},
                      {"log_sigmoid", "Neg Softplus Neg"},
                      {"mish", "Mish"},
                      {"tanh", "Tanh"},
                      {"softrelu", "Softplus"},
                      {"gelu", "Gelu"},
                      {"elu", "Elu"},
                      {"leakyrelu", "LeakyRelu"},
                      {"square_root", "Abs Sqrt"},
                      {"abs", "Abs"},
                      {"bounded_relu", "Clip"}};
  for (uint32_t k = 0; k < 12; k++) {
    char text[256];
    char expected[128];
    (void)snprintf(text, sizeof text, "g.output('y', act.%s(dense(x, 64, true, true)))", ALGORITHMS[k].name);
    (void)snprintf(expected, sizeof expected, "product(product=Gemm %s)", ALGORITHMS[k].ops);
    check_shape(text, expected, SHAPES[k % 3]);
    (void)snprintf(text, sizeof text, "g.output('y', act.%s(dense(x, 64, true, false)))", ALGORITHMS[k].name);
    (void)snprintf(expected, sizeof expected, "product(product=MatMul Add %s)", ALGORITHMS[k].ops);
    check_shape(text, expected, SHAPES[k % 3]);
  }
}

UNIT_TEST(two_readers_of_a_dense_layer_keep_it_alone) {
  check("local f = dense(x, 64, true, true)\ng.output('y', both(g.Relu(f), g.Sigmoid(f)))", "");
  check("local f = dense(x, 64, true, true)\ng.output('y', both(g.Sigmoid(f), g.Relu(f)))", "");
}

UNIT_TEST(a_dense_layer_that_two_layers_read_is_one_kernel) {
  check(
      "local a = dense(x, 64, true, true)\n"
      "g.output('y', g.Add(dense(a, 64, true, true), g.Softmax(a)))",
      "product(product=Gemm Add)");
}

UNIT_TEST(identities_do_not_keep_an_activation_from_its_layer) {
  static const struct {
    const char *body;
    const char *fusions;
  } CASES[3] = {{"local function layer(x) return g.Relu(g.Identity(dense(x, 64, false, true))) end\n"
                 "g.output('y', layer(layer(x)))",
                 "product(product=Gemm Relu) product(product=Gemm Relu)"},
                {"local function layer(x) return g.Relu((g.Dropout(dense(x, 64, false, true)))) end\n"
                 "g.output('y', layer(layer(x)))",
                 "product(product=Gemm Relu) product(product=Gemm Relu)"},
                {"local y = dense(x, 64, false, true)\n"
                 "for k = 1, 3 do y = g.Dropout(y) end\n"
                 "g.output('y', g.Relu(y))",
                 "product(product=Gemm Relu)"}};
  for (uint32_t k = 0; k < 3; k++) {
    rule_case_t c = create_by(CASES[k].body, SHAPES[0], CANONICAL);
    ck_assert_str_eq(rule_case_fusions(&c), CASES[k].fusions);
    rule_case_check_values(&c, TOLERANCE);
    rule_case_deinit(&c);
  }
}

UNIT_TEST(a_sum_joins_a_dense_layer_in_both_orders) {
  static const char *const ORDERS[2] = {"f, y", "y, f"};
  for (uint32_t k = 0; k < 2; k++) {
    char text[256];
    (void)snprintf(text, sizeof text,
                   "local f = dense(x, 10, true, true)\n"
                   "local y = g.input('y', 'float32', { N, 10 })\n"
                   "g.output('z', g.Add(%s))",
                   ORDERS[k]);
    check(text, "product(product=Gemm Add)");
    (void)snprintf(text, sizeof text,
                   "local f = g.Gelu(dense(x, 10, true, true))\n"
                   "local y = g.input('y', 'float32', { N, 10 })\n"
                   "g.output('z', g.Add(%s))",
                   ORDERS[k]);
    check(text, "product(product=Gemm Gelu Add)");
  }
  check(
      "local v = g.Flatten(pool(x, 10))\n"
      "local f = dense(v, v.shape[2], true, true)\n"
      "g.output('z', g.Add(f, v))",
      "product(product=Gemm Add)");
}

UNIT_TEST(a_second_reader_of_the_dense_layer_keeps_the_sum_out) {
  static const char *const ENDS[4] = {
      "g.Add(g.Add(f, y), g.Mul(f, g.constant(200.0)))", "g.Add(g.Add(y, f), g.Mul(f, g.constant(200.0)))",
      "g.Add(g.Mul(f, g.constant(200.0)), g.Add(f, y))", "g.Add(g.Mul(f, g.constant(200.0)), g.Add(y, f))"};
  for (uint32_t k = 0; k < 4; k++) {
    char text[512];
    (void)snprintf(text, sizeof text,
                   "local f = dense(x, 10, true, true)\n"
                   "local y = g.input('y', 'float32', { N, 10 })\n"
                   "g.output('z', %s)",
                   ENDS[k]);
    rule_case_t c = create(text, SHAPES[0]);
    for (uint32_t n = 0; n < c.plan->fusion_count; n++) {
      ck_assert_str_ne(cleave_node_op(c.plan->graph, c.plan->fusions[n].nodes[0])->name, "Gemm");
    }
    rule_case_check_values(&c, TOLERANCE);
    rule_case_deinit(&c);
  }
}

/* ---- powers ---- */

UNIT_TEST(a_power_and_its_factor_are_a_chain_or_a_generated_kernel_if_that_saves_bytes) {
  check("g.output('y', g.Mul(g.Pow(x, g.constant(2.0)), g.constant(3.0)))", "chain(Pow Mul)");
  check(
      "local m = g.Mul(g.Pow(x, g.constant(2.0)), g.constant(3.0))\n"
      "g.output('y', g.Relu(m))\ng.output('z', g.Softmax(m))",
      "pointwise(Pow Mul Relu)");
  check(
      "local p = g.Pow(x, g.constant(2.0))\n"
      "g.output('y', g.Mul(p, g.constant(3.0)))\ng.output('z', g.Softmax(p))",
      "");
}

/* ---- work ---- */

static void compile_products(int size) {
  static const float data[8 * 16] = {0};
  char text[256];
  (void)snprintf(text, sizeof text,
                 "local y = g.input('x', 'float32', { 8, 16 })\n"
                 "for k = 1, %d do y = g.Relu(g.MatMul(y, g.weight { 16, 16 })) end\n"
                 "g.output('y', y)",
                 size);
  cleave_model_t *model = library_case_model(text);
  cleave_plan_t *plan = NULL;
  unit_ok(library_case_partition(model, ONEDNN, NULL, NULL, &plan, e));
  cleave_session_destroy(library_case_session(model, plan, 2, (const int64_t[]){8, 16}, data, NULL));
  cleave_plan_destroy(plan);
  cleave_model_release(model);
}

UNIT_TEST(work_grows_linearly_with_the_constants_of_a_region) {
  unit_is_linear(compile_products, 1200);
}

UNIT_SUITE("onednn rules")
