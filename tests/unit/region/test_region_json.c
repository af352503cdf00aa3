// SPDX-License-Identifier: Apache-2.0
// Regions as JSON: every member there and back, bit by bit; every kind of damage with its message; what text
// cannot do to the reader however it is broken.
#include "backend/region/region_file.h"

#include <math.h>

#include "backend/region/view.h"
#include "backend/registry/registry.h"
#include "plan_case.h"
#include "unit.h"
#include "view_builder.h"

static const float nans[4] = {-0.0F, -INFINITY, 3.4028235e38F, 1.4e-45F};
static const char *const odd_name = "a \"b\"\\ \x01\n\xc3\xa4 \xff";

/* Two nodes, a fusion over both, constants of several kinds, attributes of all. */
static view_builder_t *sample(void) {
  static const float weights[4] = {1, -0.0F, 0.1F, 2};
  static const int64_t shape[2] = {-1, INT64_MIN};
  static const int64_t ints[3] = {INT64_MIN, 0, INT64_MAX};
  static const uint8_t tensor[2] = {7, 255};
  static const int64_t two[1] = {2};
  view_builder_t *b = plan_case_keep(view_builder_create());
  uint32_t x = view_builder_value(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){-2, 4});
  uint32_t w = view_builder_constant(b, CLEAVE_DTYPE_F32, 1, (int64_t[]){4}, weights);
  uint32_t s = view_builder_constant(b, CLEAVE_DTYPE_I64, 1, (int64_t[]){2}, shape);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){-2, -3});
  uint32_t z = view_builder_value(b, CLEAVE_DTYPE_UNKNOWN, -1, NULL);
  uint32_t add = view_builder_node(b, "Add", 3, (uint32_t[]){x, w, CLEAVE_INDEX_NONE}, 1, (uint32_t[]){y});
  uint32_t own = view_builder_node(b, "Odd", 2, (uint32_t[]){y, s}, 2, (uint32_t[]){CLEAVE_INDEX_NONE, z});
  view_builder_domain(b, own, "my.company");
  view_builder_int(b, own, "i", INT64_MIN);
  view_builder_float(b, own, "f", -0.0);
  view_builder_float(b, own, "f2", 0.1);
  view_builder_float(b, own, "f3", 4.9406564584124654e-324);
  view_builder_float(b, own, "f4", (double)NAN);
  view_builder_string(b, own, "s", odd_name);
  view_builder_ints(b, own, "is", 3, ints);
  view_builder_floats(b, own, "fs", 4, nans);
  view_builder_tensor(b, own, "t", CLEAVE_DTYPE_U8, 1, two, tensor);
  view_builder_fusion(b, "fuse", 2, (uint32_t[]){add, own}, (const char *const[]){"first", ""});
  view_builder_output(b, z);
  return b;
}

/* The view of the sample, with the members that the builder does not know. */
static const cleave_region_view_t *sample_region(view_builder_t *b) {
  static cleave_region_view_t region;
  static cleave_value_view_t values[8];
  static const double flops[2] = {1e300, 0.5};
  static const char *const texts[2] = {"one", "\xfe"};
  static const cleave_attribute_view_t own[2] = {
      {.size = sizeof own[0], .name = "a", .kind = CLEAVE_ATTRIBUTE_STRING, .count = 3, .s = "x\0y"},
      {.size = sizeof own[0], .name = "b", .kind = CLEAVE_ATTRIBUTE_STRINGS, .count = 2, .strings = texts}};
  static const cleave_attribute_view_t of_fusion[1] = {
      {.size = sizeof own[0], .name = "k", .kind = CLEAVE_ATTRIBUTE_INT, .i = -1}};
  static const cleave_attribute_list_t lists[1] = {{.count = 1, .items = of_fusion}};
  region = *view_builder_region(b);
  memcpy(values, region.values, region.value_count * sizeof *values);
  for (uint32_t k = 0; k < region.value_count; k++) {
    values[k].tensor.is_weight = values[k].tensor.data != NULL;
    values[k].tensor.version = values[k].tensor.data != NULL ? k + 1 : 0;
  }
  values[0].name = odd_name;
  values[0].tensor.layout = "NC";
  region.size = sizeof region;
  region.values = values;
  region.name = "r_0";
  region.rule = "rule \"1\"";
  region.attribute_count = 2;
  region.attributes = own;
  region.fusion_attributes = lists;
  region.flops = flops;
  return &region;
}

static const char *text_of(const cleave_region_view_t *region, const cleave_region_json_options_t *options) {
  cleave_text_t text = {0};
  unit_ok(cleave_region_json_print(region, options, &text, e));
  return plan_case_keep(text.data);
}

static cleave_region_file_t *read_text(const char *text) {
  cleave_region_file_t *file = NULL;
  unit_ok(cleave_region_json_read("r.json", text, strlen(text), NULL, &file, e));
  return file;
}

static void same_tensor(const cleave_tensor_view_t *a, const cleave_tensor_view_t *b) {
  ck_assert_int_eq(a->dtype, b->dtype);
  ck_assert_int_eq(a->rank, b->rank);
  ck_assert_int_eq(a->data == NULL, b->data == NULL);
  ck_assert_int_eq(a->is_weight, b->is_weight);
  ck_assert_int_eq(a->storage, b->storage);
  for (int32_t d = 0; d < a->rank; d++) {
    ck_assert_int_eq(a->dims[d], b->dims[d]);
  }
  if (a->data != NULL && a->storage == CLEAVE_STORAGE_DENSE) {
    ck_assert_mem_eq(a->data, b->data, (size_t)cleave_view_element_count(a) * cleave_dtype_size(a->dtype));
  }
}

static void same_attributes(const cleave_attribute_view_t *a, const cleave_attribute_view_t *b,
                            uint32_t count) {
  for (uint32_t k = 0; k < count; k++) {
    ck_assert_str_eq(a[k].name, b[k].name);
    ck_assert_int_eq(a[k].kind, b[k].kind);
    ck_assert_uint_eq(a[k].count, b[k].count);
    switch (a[k].kind) {
      case CLEAVE_ATTRIBUTE_INT: ck_assert_int_eq(a[k].i, b[k].i); break;
      case CLEAVE_ATTRIBUTE_FLOAT: ck_assert_mem_eq(&a[k].f, &b[k].f, sizeof a->f); break;
      case CLEAVE_ATTRIBUTE_STRING: ck_assert_mem_eq(a[k].s, b[k].s, a[k].count + 1); break;
      case CLEAVE_ATTRIBUTE_INTS: ck_assert_mem_eq(a[k].ints, b[k].ints, a[k].count * 8); break;
      case CLEAVE_ATTRIBUTE_FLOATS: ck_assert_mem_eq(a[k].floats, b[k].floats, a[k].count * 4); break;
      case CLEAVE_ATTRIBUTE_STRINGS:
        for (uint32_t t = 0; t < a[k].count; t++) {
          ck_assert_str_eq(a[k].strings[t], b[k].strings[t]);
        }
        break;
      case CLEAVE_ATTRIBUTE_TENSOR: same_tensor(a[k].tensor, b[k].tensor); break;
    }
  }
}

static void same_region(const cleave_region_view_t *a, const cleave_region_view_t *b) {
  ck_assert_str_eq(a->name, b->name);
  ck_assert_str_eq(a->rule, b->rule);
  ck_assert_uint_eq(a->value_count, b->value_count);
  ck_assert_uint_eq(a->node_count, b->node_count);
  ck_assert_uint_eq(a->fusion_count, b->fusion_count);
  ck_assert_uint_eq(a->input_count, b->input_count);
  ck_assert_uint_eq(a->output_count, b->output_count);
  ck_assert_mem_eq(a->inputs, b->inputs, a->input_count * 4);
  ck_assert_mem_eq(a->outputs, b->outputs, a->output_count * 4);
  for (uint32_t k = 0; k < a->value_count; k++) {
    ck_assert_str_eq(a->values[k].name, b->values[k].name);
    ck_assert_uint_eq(a->values[k].producer, b->values[k].producer);
    ck_assert_int_eq(a->values[k].is_output, b->values[k].is_output);
    same_tensor(&a->values[k].tensor, &b->values[k].tensor);
  }
  for (uint32_t k = 0; k < a->node_count; k++) {
    const cleave_node_view_t *n = &a->nodes[k];
    const cleave_node_view_t *m = &b->nodes[k];
    ck_assert_str_eq(n->op, m->op);
    ck_assert_str_eq(n->domain, m->domain);
    ck_assert_str_eq(n->name, m->name);
    ck_assert_int_eq(n->opset_version, m->opset_version);
    ck_assert_uint_eq(n->fusion, m->fusion);
    ck_assert_uint_eq(n->input_count, m->input_count);
    ck_assert_uint_eq(n->output_count, m->output_count);
    ck_assert_uint_eq(n->attribute_count, m->attribute_count);
    ck_assert_mem_eq(n->inputs, m->inputs, n->input_count * 4);
    ck_assert_mem_eq(n->outputs, m->outputs, n->output_count * 4);
    same_attributes(n->attributes, m->attributes, n->attribute_count);
    ck_assert_mem_eq(&a->flops[k], &b->flops[k], sizeof(double));
  }
  for (uint32_t k = 0; k < a->fusion_count; k++) {
    ck_assert_str_eq(a->fusions[k].rule, b->fusions[k].rule);
    ck_assert_uint_eq(a->fusions[k].node_count, b->fusions[k].node_count);
    ck_assert_mem_eq(a->fusions[k].nodes, b->fusions[k].nodes, a->fusions[k].node_count * 4);
    for (uint32_t n = 0; n < a->fusions[k].node_count; n++) {
      ck_assert_str_eq(a->fusions[k].labels[n], b->fusions[k].labels[n]);
    }
    ck_assert_uint_eq(a->fusion_attributes[k].count, b->fusion_attributes[k].count);
    same_attributes(a->fusion_attributes[k].items, b->fusion_attributes[k].items,
                    a->fusion_attributes[k].count);
  }
  ck_assert_uint_eq(a->attribute_count, b->attribute_count);
  same_attributes(a->attributes, b->attributes, a->attribute_count);
}

UNIT_TEST(every_member_of_a_region_comes_back_bit_by_bit) {
  view_builder_t *b = sample();
  const cleave_region_view_t *region = sample_region(b);
  const char *text = text_of(region, NULL);
  cleave_region_file_t *file = read_text(text);
  const cleave_region_view_t *back = &file->view;
  same_region(region, back);
  ck_assert_uint_eq(back->hash, cleave_region_hash(region));
  ck_assert_str_eq(back->values[0].tensor.layout, "NC");
  ck_assert_ptr_null(file->backend);
  ck_assert_str_eq(text_of(back, NULL), text);
  ck_assert_ptr_nonnull(strstr(text, "-9223372036854775808"));
  ck_assert_ptr_nonnull(strstr(text, "{\"hex\":\"6120226222"));
  ck_assert_ptr_nonnull(strstr(text, "\"value\":-0.0"));
  ck_assert_ptr_nonnull(strstr(text, "\"shape\":[\"s0\",\"s1\"]"));
  cleave_region_file_destroy(file);
  view_builder_destroy(b);
}

UNIT_TEST(versions_and_the_backend_are_written_when_asked_for) {
  view_builder_t *b = sample();
  const char *text =
      text_of(sample_region(b), &(cleave_region_json_options_t){.backend = "npu", .versions = true});
  cleave_region_file_t *file = read_text(text);
  ck_assert_uint_eq(file->view.values[1].tensor.version, 2);
  ck_assert_str_eq(file->backend, "npu");
  cleave_region_file_destroy(file);
  view_builder_destroy(b);
}

UNIT_TEST(every_float_and_nan_comes_back_with_its_bits) {
  static const uint32_t halves[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7fc00001, 0x80000000,
                                    0x00000001, 0x7f7fffff, 0x3dcccccd, 0x7f800000, 0xff800000};
  enum { COUNT = sizeof halves / sizeof halves[0] };
  float floats[COUNT];
  memcpy(floats, halves, sizeof halves);
  view_builder_t *b = sample();
  view_builder_floats(b, 0, "floats", COUNT, floats);
  uint64_t bits = UINT64_C(0xfff0000000000001);
  double number;
  memcpy(&number, &bits, sizeof bits);
  view_builder_float(b, 0, "double", number);
  cleave_region_file_t *file = read_text(text_of(sample_region(b), NULL));
  const cleave_node_view_t *node = &file->view.nodes[0];
  ck_assert_mem_eq(cleave_view_attribute(node, "floats")->floats, halves, sizeof halves);
  ck_assert_mem_eq(&cleave_view_attribute(node, "double")->f, &bits, sizeof bits);
  cleave_region_file_destroy(file);
  view_builder_destroy(b);
}

UNIT_TEST(large_constants_are_base64_or_left_out_and_the_hash_is_the_same) {
  static float large[512];
  large[511] = -0.25F;
  view_builder_t *b = sample();
  uint32_t c = view_builder_constant(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 256}, large);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 256});
  view_builder_node(b, "Relu", 1, (uint32_t[]){c}, 1, (uint32_t[]){y});
  view_builder_output(b, y);
  cleave_region_view_t region = *sample_region(b);
  static const double flops[3];
  region.flops = flops;
  const char *whole = text_of(&region, NULL);
  const char *types =
      text_of(&region, &(cleave_region_json_options_t){.constants = CLEAVE_REGION_CONSTANTS_TYPES});
  ck_assert_ptr_nonnull(strstr(types, "\"shape\":[2,256],\"data\":null"));
  cleave_region_file_t *file = read_text(whole);
  same_region(&region, &file->view);
  cleave_region_file_t *left_out = read_text(types);
  const cleave_value_view_t *value = &left_out->view.values[c];
  ck_assert_ptr_null(value->tensor.data);
  ck_assert(value->tensor.is_weight);
  ck_assert_uint_eq(left_out->view.hash, file->view.hash);
  ck_assert_str_eq(text_of(&left_out->view, NULL), types);
  cleave_region_file_destroy(file);
  cleave_region_file_destroy(left_out);
  view_builder_destroy(b);
}

/* ---- damage ---- */

static const char *changed(const char *text, const char *from, const char *to) {
  const char *at = strstr(text, from);
  ck_assert_msg(at != NULL, "'%s' is not in %s", from, text);
  cleave_text_t result = {0};
  cleave_text_append(&result, text, (size_t)(at - text));
  cleave_text_add(&result, to);
  cleave_text_add(&result, at + strlen(from));
  return plan_case_keep(result.data);
}

static const char *plain; /* text of the sample */

static void refused(const char *from, const char *to, const char *message) {
  const char *text = changed(plain, from, to);
  cleave_region_file_t *file = NULL;
  unit_fails_with(cleave_region_json_read("r.json", text, strlen(text), NULL, &file, e), CLEAVE_ERROR_FORMAT,
                  message);
  ck_assert_ptr_null(file);
}

UNIT_TEST(every_kind_of_damage_is_refused_with_its_place) {
  plain = text_of(sample_region(sample()), NULL);
  refused("\"format\"", "\"formt\"", "r.json: member 'format' is missing");
  refused("cleave-region", "cleave-plan", "found 'cleave-plan' (a plan goes with its model)");
  refused("\"version\": 1", "\"version\": -1", "r.json: version: expected 0 to 4294967295, found -1");
  refused("\"version\": 1", "\"version\": 2", "this program reads regions of version 1, found 2");
  refused("\"hash\": \"", "\"hash\": \"x", "r.json: hash: expected 16 digits");
  refused("\"inputs\": [0]", "\"inputs\": [0], \"inputz\": []",
          "member 'inputz' is unknown (did you mean 'inputs'?)");
  refused("\"inputs\": [0]", "\"inputs\": [0,0]", "r.json: inputs[1]: value 0 is listed twice");
  refused("\"inputs\": [0]", "\"inputs\": [5]", "r.json: inputs[0]: there is no 5: the list has 5");
  refused("\"inputs\": [0]", "\"inputs\": [-1]", "there is no -1");
  refused("\"inputs\": [0]", "\"inputs\": [null]", "expected a whole number, found null");
  refused("\"inputs\": [0]", "\"inputs\": [1e0]", "expected a whole number, found a number");
  refused("\"inputs\": [0]", "\"inputs\": []",
          "nodes[0].inputs[0]: value 0 is neither an input of the region, nor");
  refused("\"inputs\": [0]", "\"inputs\": [0,4]",
          "nodes[1].outputs[1]: value 4 is already made by an earlier node");
  refused("\"outputs\": [4]", "\"outputs\": [0]", "outputs[0]: value 0 is not made by a node");
  refused("\"outputs\": [4]", "\"outputs\": [4,4]", "outputs[1]: value 4 is there twice");
  refused("\"dtype\":\"float32\"", "\"dtype\":\"float33\"", "values[0]: dtype 'float33' is unknown");
  refused("\"s0\",4", "\"s0\",-4", "r.json: values[0]: shape: expected sizes, names, and null");
  refused("\"s0\",4", "\"s0\",4.0", "shape: expected sizes, names, and null");
  refused("\"s0\",4", "1,2,3,4,5,6,7,8,9", "shape: expected at most 8 dimensions, found 9");
  refused("\"shape\":[4],\"data\":[", "\"shape\":[9223372036854775807,9223372036854775807],\"data\":[",
          "values[1]: ");
  refused("\"shape\":[4],\"data\":[", "\"shape\":[4611686018427387904],\"data\":[", "values[1]: ");
  refused("\"shape\":[4],\"data\":[", "\"shape\":[100000000],\"data\":[",
          "values[1]: data: expected a list of 100000000");
  refused("\"shape\":[4],\"data\":[1.0,", "\"shape\":[4],\"data\":[1e40,", "data: float32 cannot hold 1e+40");
  refused("\"shape\":[4],\"data\":[1.0,", "\"shape\":[4],\"data\":[1e999,", "r.json:");
  refused("[7,255]", "[7,256]", "nodes[1].attributes[8]: data: uint8 cannot hold 256");
  refused("[7,255]", "[7,-1]", "data: uint8 cannot hold -1");
  refused("[7,255]", "\"Bw=\"", "data: expected base64 of 2 bytes");
  refused("-9223372036854775808]", "-9223372036854775809]", "too big negative integer");
  refused("\"op\":\"Add\"", "\"op\":\"\\u0000\"", "r.json:");
  refused("\"op\":\"Add\"", "\"op\":\"\\ud800\"", "r.json:");
  refused("\"op\":\"Add\"", "\"op\":\"\xff\"", "r.json:");
  refused("\"op\":\"Add\"", "\"op\":{\"hex\":\"00\"}",
          "nodes[0].op: expected a name of at most 65536 bytes, none of them zero");
  refused("\"op\":\"Add\"", "\"op\":{\"hex\":\"0g\"}", "expected digits 0 to 9 and a to f");
  refused("\"op\":\"Add\"", "\"op\":1", "expected a string, or {\"hex\": \"...\"}");
  refused("\"fusion\":0", "\"fusion\":1", "nodes[0].fusion: contradicts the list of fusions");
  refused("\"fusion\":0", "\"fusion\":0,\"fusion\":0", "duplicate object key");
  refused("\"nodes\":[0,1],\"labels\"", "\"nodes\":[1,0],\"labels\"",
          "fusions[0].nodes[1]: expected ascending nodes");
  refused("\"nodes\":[0,1],\"labels\"", "\"nodes\":[0],\"labels\"",
          "expected nodes, and a label for each: found 1 and 2");
  refused("\"rule\":\"fuse\"", "\"rule\":\"\"", "fusions[0]: rule: expected a name");
  refused("\"name\":\"f2\"", "\"name\":\"f\"", "nodes[1]: attributes: a name occurs twice");
  refused("{\"name\":\"a\",", "{\"name\":\"z\",",
          "r.json: attributes: expected in order of their names, each once");
  refused("\"nan\"", "\"nan:0000000000000000\"", "is not a NaN");
  refused("\"nan\"", "\"nan:7ff800000000000\"", "expected a number, found a string");
  refused("\"kind\":\"ints\"", "\"kind\":\"int64s\"", "kind 'int64s' is none of");
  refused("\"data\":[1.0", "\"file\":\"w.npy\",\"data\":[1.0",
          "a value has 'data', 'file' or 'sparse', one of them");
  refused("\"data\":[1.0,-0.0,0.10000000149011612,2.0]", "\"file\":\"w.npy\"",
          "values[1]: the constant is in file 'w.npy', which is not read here");
}

UNIT_TEST(a_region_that_was_changed_does_not_have_its_hash) {
  plain = text_of(sample_region(sample()), NULL);
  refused("\"value\":0.1", "\"value\":0.2", "r.json: hash: the text says ");
  refused("\"op\":\"Add\"", "\"op\":\"Sub\"", ": it was changed, or written by another version");
  refused("\"labels\":[\"first\"", "\"labels\":[\"second\"", "r.json: hash: ");
  const char *named = changed(plain, "r_0", "r_1"); /* names are for people */
  cleave_region_file_destroy(read_text(named));
}

UNIT_TEST(deep_empty_and_trailing_text_is_refused) {
  static char deep[400000];
  cleave_region_file_t *file = NULL;
  memset(deep, '[', sizeof deep);
  unit_fails_with(cleave_region_json_read("r", deep, sizeof deep, NULL, &file, e), CLEAVE_ERROR_FORMAT,
                  "r:1: not JSON: maximum parsing depth reached");
  unit_fails_with(cleave_region_json_read("r", "", 0, NULL, &file, e), CLEAVE_ERROR_FORMAT,
                  "r:1: not JSON: ");
  unit_fails_with(cleave_region_json_read("r", "[]", 2, NULL, &file, e), CLEAVE_ERROR_FORMAT,
                  "r: expected an object, found a list");
  const char *text = text_of(sample_region(sample()), NULL);
  const char *longer = changed(text, "}\n", "}\n");
  cleave_text_t trailing = {0};
  cleave_text_format(&trailing, "%s{}", longer);
  (void)plan_case_keep(trailing.data);
  unit_fails_with(cleave_region_json_read("r", trailing.data, trailing.length, NULL, &file, e),
                  CLEAVE_ERROR_FORMAT, "end of file expected");
}

/* Every prefix, and every byte turned into others: refused, or a region; nothing else. */
UNIT_TEST(broken_text_never_does_harm) {
  const char *text = text_of(sample_region(sample()), NULL);
  size_t length = strlen(text);
  static const char bytes[] = {'\0', '"', '-', '9', 'e', '[', '}', ',', '\xff', '\\'};
  for (size_t k = 0; k < length; k++) {
    cleave_region_file_t *file = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    if (k + 1 < length) {
      ck_assert_int_ne(cleave_region_json_read("r", text, k, NULL, &file, &error), CLEAVE_OK);
      ck_assert_ptr_null(strchr(error.message, '\n'));
    }
    for (size_t c = k % 3; c < sizeof bytes; c += 3) {
      char *copy = cleave_copy_text(text, length);
      copy[k] = bytes[c];
      cleave_status_t status = cleave_region_json_read("r", copy, length, NULL, &file, NULL);
      ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_FORMAT);
      cleave_region_file_destroy(file);
      cleave_free(copy);
    }
  }
}

/* ---- sparse constants ---- */

static const char *sparse_text(void) {
  static const float elements[3] = {1, 2, 3};
  static const int64_t indices[3] = {0, 3, 1};
  static const int64_t offsets[3] = {0, 2, 3};
  static const cleave_sparse_view_t sparse = {
      .size = sizeof sparse, .stored = 3, .indices = indices, .offsets = offsets};
  view_builder_t *b = sample();
  uint32_t c = view_builder_constant(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 4}, elements);
  uint32_t y = view_builder_value(b, CLEAVE_DTYPE_F32, 2, (int64_t[]){2, 4});
  view_builder_node(b, "Relu", 1, (uint32_t[]){c}, 1, (uint32_t[]){y});
  view_builder_output(b, y);
  cleave_region_view_t region = *sample_region(b);
  static const double flops[3];
  region.flops = flops;
  cleave_value_view_t *value = (cleave_value_view_t *)(uintptr_t)&region.values[c];
  value->tensor.storage = CLEAVE_STORAGE_CSR;
  value->tensor.sparse = &sparse;
  return text_of(&region, NULL);
}

UNIT_TEST(a_sparse_constant_comes_back) {
  const char *text = sparse_text();
  cleave_region_file_t *file = read_text(text);
  const cleave_tensor_view_t *tensor = &file->view.values[5].tensor;
  ck_assert_int_eq(tensor->storage, CLEAVE_STORAGE_CSR);
  ck_assert_int_eq(tensor->sparse->stored, 3);
  ck_assert_int_eq(tensor->sparse->indices[1], 3);
  ck_assert_int_eq(tensor->sparse->offsets[2], 3);
  ck_assert_float_eq(((const float *)tensor->data)[2], 3);
  ck_assert_str_eq(text_of(&file->view, NULL), text);
  cleave_region_file_destroy(file);
  plain = text;
  refused("\"data\":[0,3,1]", "\"data\":[3,0,1]", "values[5].sparse: expected elements, and their places");
  refused("\"data\":[0,3,1]", "\"data\":[0,4,1]", "ascending and in range");
  refused("\"data\":[0,3,1]", "\"data\":[-1,3,1]", "ascending and in range");
  refused("\"data\":[0,2,3]", "\"data\":[0,2,4]", "ascending and in range");
  refused("\"data\":[0,2,3]", "\"data\":[0,9223372036854775807,3]", "ascending and in range");
  refused("\"data\":[0,2,3]", "\"data\":[0,-2,3]", "ascending and in range");
  refused("\"storage\":\"csr\"", "\"storage\":\"row_sparse\"", "values[5].sparse");
  refused("\"storage\":\"csr\"", "\"storage\":\"coo\"", "storage 'coo' is none of dense, csr, row_sparse");
  refused("\"storage\":\"csr\",", "", "'sparse' goes with 'storage'");
}

/* ---- libraries ---- */

UNIT_TEST(libraries_get_text_and_views) {
  view_builder_t *b = sample();
  const cleave_region_view_t *region = sample_region(b);
  cleave_message_t message = {.text = ""};
  char *text = NULL;
  size_t length = 0;
  ck_assert_int_eq(cleave_host_region_to_json(region, true, &text, &length, &message), CLEAVE_OK);
  ck_assert_uint_eq(length, strlen(text));
  const cleave_region_view_t *back = NULL;
  ck_assert_int_eq(cleave_host_region_from_json(text, length, &back, &message), CLEAVE_OK);
  same_region(region, back);
  ck_assert_uint_eq(back->values[1].tensor.version, 2);
  cleave_host_free_region(back);
  ck_assert_int_eq(cleave_host_region_from_json(text, length - 3, &back, &message), CLEAVE_ERROR_FORMAT);
  ck_assert_ptr_null(back);
  ck_assert_ptr_nonnull(strstr(message.text, "region:"));
  cleave_host_free_json(text);
  cleave_host_free_json(NULL);
  cleave_host_free_region(NULL);
  cleave_region_view_t old = *region; /* of a library that knows 1.0 */
  old.size = CLEAVE_REGION_VIEW_SIZE_REQUIRED;
  old.attribute_count = 77;
  ck_assert_int_eq(cleave_host_region_to_json(&old, false, &text, &length, &message), CLEAVE_OK);
  ck_assert_ptr_null(strstr(text, "flops"));
  cleave_host_free_json(text);
  view_builder_destroy(b);
}

UNIT_TEST(memory_of_a_device_is_not_written) {
  view_builder_t *b = sample();
  const cleave_region_view_t *region = sample_region(b);
  ((cleave_value_view_t *)(uintptr_t)&region->values[1])->tensor.memory = 1;
  cleave_text_t text = {0};
  unit_fails_with(cleave_region_json_print(region, NULL, &text, e), CLEAVE_ERROR_UNSUPPORTED,
                  "region 'r_0': constant '");
  cleave_text_deinit(&text);
  view_builder_destroy(b);
}

UNIT_TEST(reading_survives_failing_allocations) {
  const char *text = sparse_text();
  cleave_region_file_t *file = NULL;
  (void)cleave_memory_fail_after(-1);
  unit_ok(cleave_region_json_read("r", text, strlen(text), NULL, &file, e));
  cleave_region_file_destroy(file);
  int64_t total = cleave_memory_fail_after(-1);
  ck_assert_int_gt(total, 5);
  for (int64_t k = 0; k < total; k++) {
    cleave_error_t error = CLEAVE_ERROR_INIT;
    (void)cleave_memory_fail_after(k);
    cleave_status_t status = cleave_region_json_read("r", text, strlen(text), NULL, &file, &error);
    (void)cleave_memory_fail_after(-1);
    ck_assert_int_eq(status, CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert_ptr_null(file);
  }
}

UNIT_SUITE("region_json")
