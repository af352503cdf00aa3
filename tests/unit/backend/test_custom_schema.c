// SPDX-License-Identifier: Apache-2.0
// Definitions of operators: schemas from texts, definitions that come and go, inference by their functions,
// and versions in model files.
#include <pthread.h>
#include <unistd.h>

#include "base/memory.h"
#include "formats/onnx/onnx.h"
#include "library_case.h"
#include "onnx_builder.h"
#include "ops/custom.h"
#include "runtime/model/model.h"
#include "unit.h"

static int owner; /* stands for a library */

static cleave_status_t add(const cleave_custom_operator_t *definition, cleave_error_t *error) {
  return cleave_custom_ops_add(NULL, &definition, 1, "test", &owner, error);
}

UNIT_TEST(a_schema_is_read_with_kinds_and_defaults) {
  cleave_custom_operator_t definition = library_case_same(
      "X W? Rest*", "Y Z?", "a:i=-7 b:f=0.5  c:s=linear d:is=1,2,3 e:fs f:ss=u,v g:t h:i! i:s=");
  definition.version = 3;
  unit_ok(add(&definition, e));
  const cleave_op_t *op = cleave_op_find("my.test", "Op");
  ck_assert_ptr_nonnull(op);
  ck_assert_ptr_eq(op, cleave_op_find_full("my.test.Op"));
  ck_assert(cleave_op_has_schema(op) && op->id == CLEAVE_OP_ID_CUSTOM && op->since_version == 3);
  ck_assert_uint_eq(op->input_count, 3);
  ck_assert_int_eq(op->inputs[1].kind, CLEAVE_OP_INPUT_OPTIONAL);
  ck_assert_int_eq(op->inputs[2].kind, CLEAVE_OP_INPUT_VARIADIC);
  ck_assert_str_eq(op->inputs[2].name, "Rest");
  ck_assert_int_eq(op->outputs[1].kind, CLEAVE_OP_INPUT_OPTIONAL);
  ck_assert_uint_eq(op->attribute_count, 9);
  ck_assert(cleave_op_find_attribute(op, "a")->value.i == -7);
  ck_assert(cleave_op_find_attribute(op, "b")->value.f == 0.5);
  ck_assert_str_eq(cleave_op_find_attribute(op, "c")->value.s, "linear");
  ck_assert_uint_eq(cleave_op_find_attribute(op, "d")->value.count, 3);
  ck_assert(cleave_op_find_attribute(op, "d")->value.ints[2] == 3);
  ck_assert(!cleave_op_find_attribute(op, "e")->has_default);
  ck_assert_str_eq(cleave_op_find_attribute(op, "f")->value.strings[1], "v");
  ck_assert_int_eq((int)cleave_op_find_attribute(op, "g")->value.kind, CLEAVE_ATTRIBUTE_TENSOR);
  ck_assert(cleave_op_find_attribute(op, "h")->required);
  ck_assert(cleave_op_find_attribute(op, "i")->has_default);
  ck_assert_str_eq(cleave_op_find_attribute(op, "i")->value.s, "");
}

UNIT_TEST(a_wrong_schema_refuses_the_library_and_quotes_the_word) {
  static const struct {
    const char *inputs;
    const char *outputs;
    const char *attributes;
    const char *part;
  } CASES[] = {
      {"X* W", "Y", "",
       "library 'test': operator 'my.test.Op': inputs: 'X*': expected '*' for the last one only"},
      {"X X", "Y", "", "inputs: 'X': expected a name that is not there yet"},
      {"1X", "Y", "", "inputs: '1X': expected a name of letters, digits and '_'"},
      {"?", "Y", "", "inputs: '?': expected a name"},
      {"X", "", "", "outputs: expected one at least"},
      {"X", "Y Y", "", "outputs: 'Y': expected a name that is not there yet"},
      {"X", "Y", "alpha",
       "attributes: 'alpha': expected name:kind with one of the kinds i, f, s, is, fs, ss and t"},
      {"X", "Y", "alpha:q", "attributes: 'alpha:q': expected name:kind"},
      {"X", "Y", ":i", "attributes: ':i': expected a name"},
      {"X", "Y", "a:i=1.5", "attributes: 'a:i=1.5': expected an integer as default"},
      {"X", "Y", "a:i=99999999999999999999", "expected an integer as default"},
      {"X", "Y", "a:f=x", "attributes: 'a:f=x': expected a number as default"},
      {"X", "Y", "a:f=1e99", "expected a number as default"},
      {"X", "Y", "a:is=1,,2", "expected an integer as default"},
      {"X", "Y", "a:t=1", "attributes: 'a:t=1': expected no default for a tensor"},
      {"X", "Y", "a:i!x", "expected nothing behind '!'"},
      {"X", "Y", "a:i a:f", "attributes: 'a:f': expected a name that no input or attribute has yet"},
      {"X", "Y", "X:i", "attributes: 'X:i': expected a name that no input or attribute has yet"},
  };
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    cleave_custom_operator_t definition =
        library_case_same(CASES[k].inputs, CASES[k].outputs, CASES[k].attributes);
    unit_fails_with(add(&definition, e), CLEAVE_ERROR_BACKEND, CASES[k].part);
    ck_assert_ptr_null(cleave_op_find("my.test", "Op"));
  }
  char many[400] = "";
  for (int k = 0; k < 65; k++) {
    (void)snprintf(many + strlen(many), sizeof many - strlen(many), "x%d ", k);
  }
  cleave_custom_operator_t definition = library_case_same(many, "Y", NULL);
  unit_fails_with(add(&definition, e), CLEAVE_ERROR_BACKEND, "expected at most 64 words");
}

UNIT_TEST(definitions_that_cannot_work_are_refused) {
  cleave_custom_operator_t d = library_case_same("X", "Y", "");
  d.domain = "ai.onnx";
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND,
                  "expected a domain of its own like 'my.company', found 'ai.onnx'");
  d.domain = "ai.onnx.ml";
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND, "expected a domain of its own");
  d.domain = "";
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND, "expected a domain of its own");
  d = library_case_same("X", "Y", "");
  d.name = "a.b";
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND, "expected a name of letters and digits, found 'a.b'");
  d = library_case_same("X", "Y", "");
  d.infer = NULL;
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND, "operator 'my.test.Op': function 'infer' is missing");
  d = library_case_same("X", "Y", "");
  d.size = 24;
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND, "operator 0: struct of 24 bytes, version 2.0 has");
  d = library_case_same("X", "Y", "");
  d.version = 0;
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND, "expected a version from 1, found 0");
  d = library_case_same("X", "Y", "");
  d.is_commutative = true;
  unit_fails_with(add(&d, e), CLEAVE_ERROR_BACKEND, "is commutative: expected two inputs that must be there");
  const cleave_custom_operator_t *const twice[2] = {&d, NULL};
  d.is_commutative = false;
  unit_fails_with(cleave_custom_ops_add(NULL, twice, 2, "test", &owner, e), CLEAVE_ERROR_BACKEND,
                  "operator 1: struct");
  ck_assert_ptr_null(cleave_op_find("my.test", "Op")); /* all or none */
}

UNIT_TEST(an_operator_of_two_libraries_is_an_error_that_names_both) {
  cleave_custom_operator_t definition = library_case_same("X", "Y", "");
  unit_ok(add(&definition, e));
  const cleave_custom_operator_t *other = &definition;
  unit_fails(cleave_custom_ops_add(NULL, &other, 1, "second", &other, e), CLEAVE_ERROR_BACKEND,
             "library 'second': operator 'my.test.Op' exists already, of library 'test'");
  ck_assert_ptr_nonnull(cleave_op_find("my.test", "Op"));
  cleave_custom_ops_remove(&owner);
  ck_assert_ptr_null(cleave_op_find("my.test", "Op"));
  unit_ok(cleave_custom_ops_add(NULL, &other, 1, "second", &other, e));
}

UNIT_TEST(an_operator_that_comes_again_is_the_same_entry) {
  cleave_custom_operator_t definition = library_case_same("X", "Y", "a:i=1");
  unit_ok(add(&definition, e));
  const cleave_op_t *op = cleave_op_find("my.test", "Op");
  for (int k = 0; k < 1000; k++) {
    cleave_custom_ops_remove(&owner);
    ck_assert_ptr_null(cleave_custom_op_definition(op, NULL, NULL));
    unit_ok(add(&definition, e));
    ck_assert_ptr_eq(cleave_op_find("my.test", "Op"), op);
    ck_assert_ptr_eq(cleave_custom_op_definition(op, NULL, NULL), &definition);
  }
  cleave_custom_ops_remove(&owner);
  cleave_custom_operator_t changed = library_case_same("X", "Y", "a:i=2");
  unit_ok(add(&changed, e));
  ck_assert_ptr_ne(cleave_op_find("my.test", "Op"), op);
  ck_assert_ptr_null(cleave_custom_op_definition(op, NULL, NULL));
}

static void *come_and_go(void *context) {
  const cleave_custom_operator_t *definition = context;
  for (int k = 0; k < 2000; k++) {
    unit_ok(add(definition, e));
    cleave_custom_ops_remove(&owner);
  }
  return NULL;
}

UNIT_TEST(operators_are_looked_up_on_one_thread_while_they_come_and_go_on_another) {
  cleave_custom_operator_t definition = library_case_same("X", "Y", "a:i=1");
  pthread_t thread;
  char hint[128];
  ck_assert_int_eq(pthread_create(&thread, NULL, come_and_go, &definition), 0);
  for (int k = 0; k < 2000; k++) {
    const cleave_op_t *op = cleave_op_find("my.test", "Op");
    ck_assert(op == NULL || (op->attribute_count == 1 && op->input_count == 1));
    (void)cleave_op_hint("my.test.Op", hint, sizeof hint);
    ck_assert_ptr_null(cleave_op_find("my.test", "Other"));
  }
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* ---- inference ---- */

static cleave_tensor_view_t answer; /* of the first output */
static int64_t answer_dims[CLEAVE_MAX_RANK];
static cleave_status_t answer_status;

/* Gives the answer that the test wants, having looked at what it was shown. */
static cleave_status_t infer_answer(void *self, const cleave_region_view_t *node,
                                    cleave_tensor_view_t *outputs, int64_t (*dims)[CLEAVE_MAX_RANK],
                                    cleave_message_t *message) {
  const cleave_node_view_t *asked = &node->nodes[0];
  ck_assert_ptr_eq(self, &answer);
  ck_assert_uint_eq(node->node_count, 1);
  ck_assert_uint_eq(node->input_count, 2); /* x, which is read twice, and the constant */
  ck_assert_str_eq(asked->op, "Op");
  ck_assert_str_eq(asked->domain, "my.test");
  ck_assert_uint_eq(asked->inputs[0], asked->inputs[1]);
  const cleave_tensor_view_t *w = &cleave_view_input(node, asked, 2)->tensor;
  ck_assert(w->data != NULL && w->dtype == CLEAVE_DTYPE_I64 && ((const int64_t *)w->data)[1] == 8);
  ck_assert(cleave_view_int(asked, "given", 0) == 5 && cleave_view_int(asked, "other", 0) == 9);
  outputs[0].dtype = answer.dtype;
  outputs[0].rank = answer.rank;
  memcpy(dims[0], answer_dims, sizeof answer_dims);
  (void)snprintf(message->text, sizeof message->text, "as the test wants");
  return answer_status;
}

#define ANSWER_MODEL                                \
  "local x = g.input('x', 'float32', { 'N', 4 })\n" \
  "g.output('y', g['my.test.Op'](x, x, g.constant({ 7, 8 }), { given = 5, name = 'n' }))\n"

static void answer_with(int dtype, int32_t rank, int64_t first, cleave_status_t status) {
  answer.dtype = (cleave_dtype_t)dtype;
  answer.rank = rank;
  answer_dims[0] = first;
  answer_dims[1] = 4;
  answer_status = status;
}

UNIT_TEST(hostile_answers_of_inference_are_errors_and_open_sizes_keep_their_names) {
  cleave_custom_operator_t definition = library_case_same("A B C", "Y", "given:i other:i=9");
  definition.infer = infer_answer;
  definition.self = &answer;
  unit_ok(add(&definition, e));
  static const struct {
    int dtype;
    int32_t rank;
    const char *part;
  } CASES[] = {{99, 2, "node 'n' (Op): the library gave output 'Y' the dtype 99, which does not exist"},
               {-1, 2, "the dtype -1, which does not exist"},
               {1, 9, "the library gave output 'Y' the rank 9, expected at most 8"},
               {1, -2, "the library gave output 'Y' the rank -2"}};
  for (size_t k = 0; k < sizeof CASES / sizeof CASES[0]; k++) {
    answer_with(CASES[k].dtype, CASES[k].rank, 2, CLEAVE_OK);
    library_case_model_fails(ANSWER_MODEL, CLEAVE_ERROR_SHAPE, CASES[k].part);
  }
  answer_with(1, 2, 2, (cleave_status_t)77);
  library_case_model_fails(ANSWER_MODEL, CLEAVE_ERROR_SHAPE, "node 'n' (Op): as the test wants");
  answer_with(0, -1, 0, CLEAVE_OK); /* nothing is known: fine */
  cleave_model_release(library_case_model(ANSWER_MODEL));
  answer_with(1, 2, INT64_MIN, CLEAVE_OK); /* a size that no input has is unknown */
  cleave_model_t *model = library_case_model(ANSWER_MODEL);
  const cleave_graph_t *graph = cleave_model_graph(model);
  const cleave_value_record_t *y = cleave_graph_value(graph, cleave_graph_output(graph, 0));
  ck_assert(y->rank == 2 && y->dims[0] == CLEAVE_DIM_UNKNOWN && y->dims[1] == 4);
  cleave_model_release(model);
  cleave_custom_ops_remove(&owner);
  definition = library_case_same("A B C", "Y", "given:i other:i=9"); /* copies the sizes of its input */
  unit_ok(add(&definition, e));
  model = library_case_model(ANSWER_MODEL);
  graph = cleave_model_graph(model);
  y = cleave_graph_value(graph, cleave_graph_output(graph, 0));
  ck_assert(cleave_dim_is_symbolic(y->dims[0]));
  ck_assert(y->dims[0] == cleave_graph_value(graph, graph->inputs.items[0])->dims[0]);
  cleave_model_release(model);
}

/* ---- model files ---- */

UNIT_TEST(model_files_keep_library_operators_and_their_version) {
  char path[256];
  (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/custom_%ld.onnx", (long)getpid());
  cleave_custom_operator_t definition = library_case_same("X", "Y", "a:i=1");
  definition.version = 4;
  cleave_graph_t *graph = NULL;
  cleave_session_t *session = NULL;
  unit_ok(add(&definition, e));
  cleave_model_t *model = library_case_model(
      "local x = g.input('x', 'float32', { 2, 3 })\ng.output('y', g['my.test.Op'](x, { a = 3, name = 'n' "
      "}))");
  unit_ok(cleave_onnx_write(path, cleave_model_graph(model), NULL, e));
  cleave_model_release(model);
  unit_ok(cleave_onnx_read(path, NULL, &graph, e));
  cleave_node_t node = cleave_value_producer(graph, cleave_graph_output(graph, 0));
  ck_assert_ptr_eq(cleave_node_op(graph, node), cleave_op_find("my.test", "Op"));
  ck_assert_int_eq(cleave_op_int(graph, node, "a", 0), 3);
  cleave_graph_destroy(graph);
  cleave_custom_ops_remove(&owner);
  unit_ok(cleave_model_load(NULL, path, NULL, &model, e)); /* without the library: unknown, and readable */
  unit_ok(add(&definition, e));
  unit_fails_with(cleave_session_create(model, NULL, NULL, 0, NULL, &session, e), CLEAVE_ERROR_UNSUPPORTED,
                  "its library was loaded after the model was read; read the model again");
  cleave_model_release(model);
  cleave_custom_ops_remove(&owner);
  definition.version = 5;
  unit_ok(add(&definition, e));
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_UNSUPPORTED,
                  "operator 'my.test.Op' of version 4 of 'my.test': library 'test' has version 5");
  ck_assert_int_eq(remove(path), 0);
}

/* y = my.test.Op(x) with an import of `version` of my.test. */
static cleave_status_t read_import(int64_t version, cleave_graph_t **out_graph, cleave_error_t *error) {
  onnx_builder_t b;
  onnx_begin(&b, 8, 17);
  onnx_opset(&b, "my.test", version);
  onnx_input(&b, "x", CLEAVE_DTYPE_F32, "2 3");
  onnx_output(&b, "y", CLEAVE_DTYPE_F32, "2 3");
  onnx_node(&b, "Op", "x", "y");
  onnx_domain(&b, "my.test");
  onnx_end_node(&b);
  return onnx_read(&b, out_graph, error);
}

UNIT_TEST(models_that_import_a_version_that_the_library_does_not_have_are_refused) {
  cleave_custom_operator_t definition = library_case_same("X", "Y", "");
  cleave_graph_t *graph = NULL;
  unit_ok(add(&definition, e)); /* of version 1 */
  unit_ok(read_import(1, &graph, e));
  cleave_graph_destroy(graph);
  unit_fails_with(read_import(2, &graph, e), CLEAVE_ERROR_UNSUPPORTED,
                  "operator 'my.test.Op' of version 2 of 'my.test': library 'test' has version 1");
  cleave_custom_ops_remove(&owner);
  definition.version = 2;
  definition.last_version = 4;
  unit_ok(add(&definition, e));
  for (int64_t version = 1; version <= 5; version++) {
    if (version >= 2 && version <= 4) {
      unit_ok(read_import(version, &graph, e));
      cleave_graph_destroy(graph);
      continue;
    }
    unit_fails_with(read_import(version, &graph, e), CLEAVE_ERROR_UNSUPPORTED,
                    "of 'my.test': library 'test' has versions 2 to 4");
  }
  cleave_custom_ops_remove(&owner);
  definition.last_version = 1;
  unit_fails(add(&definition, e), CLEAVE_ERROR_BACKEND,
             "library 'test': operator 'my.test.Op': expected a last version from 2, or 0, found 1");
}

/* A file that is read without the library, and written, imports what it did. */
UNIT_TEST(operators_that_nobody_knows_keep_the_version_that_was_imported) {
  char path[256];
  cleave_graph_t *graph = NULL;
  (void)snprintf(path, sizeof path, CLEAVE_BINARY_DIR "/unknown_%ld.onnx", (long)getpid());
  unit_ok(read_import(3, &graph, e));
  unit_ok(cleave_onnx_write(path, graph, NULL, e));
  cleave_graph_destroy(graph);
  cleave_custom_operator_t definition = library_case_same("X", "Y", "");
  unit_ok(add(&definition, e));
  unit_fails_with(cleave_onnx_read(path, NULL, &graph, e), CLEAVE_ERROR_UNSUPPORTED,
                  "operator 'my.test.Op' of version 3 of 'my.test': library 'test' has version 1");
  ck_assert_int_eq(remove(path), 0);
}

UNIT_TEST(memory_that_runs_out_is_an_error_and_adds_nothing) {
  cleave_custom_operator_t definition = library_case_same("X W? Rest*", "Y", "a:i=1 b:fs=1,2 c:ss=x,y");
  cleave_status_t status = CLEAVE_ERROR_OUT_OF_MEMORY;
  for (int64_t k = 0; status != CLEAVE_OK; k++) {
    (void)cleave_memory_fail_after(k);
    status = add(&definition, NULL);
    (void)cleave_memory_fail_after(-1);
    ck_assert(status == CLEAVE_OK || status == CLEAVE_ERROR_OUT_OF_MEMORY);
    ck_assert((cleave_op_find("my.test", "Op") != NULL) == (status == CLEAVE_OK));
  }
}

UNIT_SUITE("custom schema")
