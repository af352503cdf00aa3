// SPDX-License-Identifier: Apache-2.0
// The key of a plan is made before any rule file is loaded: from the request, the code of cleave, which the
// shipped rule files are a part of, and the graph with its names and constants. What is not known by then,
// the backends that the rules name, is written down beside the plan and compared when it is read.
#define _GNU_SOURCE  // environ
#include "runtime/plans/kept_plan.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif
#include <inttypes.h>
#include <lua.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "backend/library/library.h"
#include "backend/program/blob_key.h"
#include "backend/program/blob_store.h"
#include "backend/registry/context.h"
#include "backend/registry/registry.h"
#include "cleave/cleave.h"
#include "graph/compare/structural_hash.h"
#include "partition/plan/plan_read.h"
#include "runtime/model/model.h"
#include "runtime/plans/plan_load.h"
#include "script/state/embedded.h"

/* ---- the graph ---- */

static void add_word(cleave_digest_state_t *state, uint64_t word) {
  cleave_digest_add(state, &word, sizeof word);
}

static void add_text(cleave_digest_state_t *state, const char *text) {
  size_t length = strlen(text);
  add_word(state, length);
  cleave_digest_add(state, text, length);
}

static bool add_tensor(cleave_digest_state_t *state, const cleave_tensor_t *tensor) {
  const cleave_tensor_view_t view = cleave_tensor_view(tensor);
  return cleave_blob_key_add_constant(state, &view);
}

static bool add_node(cleave_digest_state_t *state, const cleave_graph_t *graph, cleave_node_t node) {
  const cleave_node_record_t *record = cleave_graph_node(graph, node);
  bool is_complete = true;
  add_word(state, cleave_node_hash(graph, node, 0));
  add_word(state, (uint64_t)record->op->since_version);
  add_text(state, cleave_node_name(graph, node));
  add_word(state, (uint64_t)record->first_output << 32 | record->output_count);
  add_word(state, (uint64_t)record->is_kept << 32 | record->input_count);
  for (uint32_t k = 0; k < record->input_count; k++) {
    add_word(state, cleave_node_input(graph, node, k).index);
  }
  for (uint32_t k = 0; k < record->attribute_count; k++) {
    const cleave_attribute_t *attribute = &record->attributes[k];
    is_complete =
        is_complete && (attribute->kind != CLEAVE_ATTRIBUTE_TENSOR || add_tensor(state, attribute->held));
  }
  return is_complete;
}

static bool add_value(cleave_digest_state_t *state, const cleave_graph_t *graph, cleave_value_t value) {
  const cleave_value_record_t *record = cleave_graph_value(graph, value);
  add_text(state, cleave_value_name(graph, value));
  add_word(state, record->dtype);
  add_word(state, (uint64_t)(int64_t)record->rank);
  if (record->rank > 0) {
    cleave_digest_add(state, record->dims, (size_t)record->rank * sizeof *record->dims);
  }
  add_word(state, (uint64_t)record->is_input << 32 | record->is_removed);
  if (record->has_range) {
    cleave_digest_add(state, &record->low, sizeof record->low);
    cleave_digest_add(state, &record->high, sizeof record->high);
  }
  add_word(state, record->has_range);
  add_word(state, record->tensor != NULL);
  return record->tensor == NULL || add_tensor(state, record->tensor);
}

/* All that rules can see of a graph, in the order in which they see it. False if constants cannot be looked
 * at. */
static bool digest_graph(const cleave_graph_t *graph, cleave_digest_t *out_digest) {
  cleave_digest_state_t state;
  bool is_complete = true;
  cleave_digest_start(&state);
  add_text(&state, cleave_strings_text(&graph->strings, graph->name));
  add_word(&state, (uint64_t)(uint32_t)graph->opset_version << 32 | graph->is_sized);
  for (uint32_t k = 0; k < cleave_graph_node_bound(graph); k++) {
    add_word(&state, k);
    if (cleave_node_is_live(graph, (cleave_node_t){k})) {
      is_complete = is_complete && add_node(&state, graph, (cleave_node_t){k});
    }
  }
  for (uint32_t k = 0; k < cleave_graph_value_bound(graph); k++) {
    is_complete = is_complete && add_value(&state, graph, (cleave_value_t){k});
  }
  for (size_t k = 0; k < graph->outputs.count; k++) {
    add_word(&state, cleave_graph_output(graph, k).index);
    add_text(&state, cleave_graph_output_name(graph, k));
  }
  *out_digest = cleave_digest_end(&state);
  return is_complete;
}

/* ---- the key ---- */

static bool can_be_kept(const cleave_partition_request_t *request,
                        const cleave_rule_list_options_t *options) {
  bool are_shipped = request->source_count > 0 && (options == NULL || options->listener == NULL);
  for (size_t k = 0; k < request->source_count; k++) {
    are_shipped =
        are_shipped && request->sources[k].text == NULL && cleave_rules_are_shipped(request->sources[k].path);
  }
  return are_shipped;
}

static void add_request(cleave_text_t *key, const cleave_partition_request_t *request,
                        const cleave_rule_list_options_t *options) {
  for (size_t k = 0; k < request->source_count; k++) {
    cleave_blob_key_add_line(key, "rules", request->sources[k].path);
  }
  for (size_t k = 0; k < request->setting_count; k++) {
    bool is_known = options != NULL && options->known != NULL && options->known[k];
    cleave_blob_key_add_line(key, is_known ? "known setting" : "setting", request->settings[k].name);
    cleave_blob_key_add_line(key, "value", request->settings[k].value);
  }
  if (request->backend != NULL) {
    cleave_blob_key_add_line(key, "in their place", request->backend);
  }
}

/* Adds what backends find out about the processor, and what the environment tells them about it: on another
 * one they may take more, or less. */
static void add_processor(cleave_text_t *key) {
#if defined(__x86_64__) && defined(__GNUC__)
  unsigned first[4] = {0};   /* registers a to d; b has the number of this processor */
  unsigned seventh[4] = {0}; /* AVX2 and what came after it */
  unsigned more[4] = {0};
  unsigned enabled = 0; /* registers that the system saves */
  (void)__get_cpuid(1, &first[0], &first[1], &first[2], &first[3]);
  (void)__get_cpuid_count(7, 0, &seventh[0], &seventh[1], &seventh[2], &seventh[3]);
  (void)__get_cpuid_count(7, 1, &more[0], &more[1], &more[2], &more[3]);
  if ((first[2] & bit_OSXSAVE) != 0) {
    unsigned high;
    __asm__("xgetbv" : "=a"(enabled), "=d"(high) : "c"(0));
  }
  cleave_text_format(key, "processor %x %x, %x %x %x, %x %x, %x\n", first[2], first[3], seventh[1],
                     seventh[2], seventh[3], more[0], more[3], enabled);
#else
  cleave_text_format(key, "processor %lx %lx\n", getauxval(AT_HWCAP), getauxval(AT_HWCAP2));
#endif
  static const char *const PREFIXES[] = {"CLEAVE_", "DNNL_", "ONEDNN_"};
  for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
    for (size_t k = 0; k < sizeof PREFIXES / sizeof PREFIXES[0]; k++) {
      if (strncmp(*variable, PREFIXES[k], strlen(PREFIXES[k])) == 0 &&
          strncmp(*variable, "CLEAVE_CACHE=", 13) != 0) {
        cleave_blob_key_add_line(key, "variable", *variable);
      }
    }
  }
}

/* False: the plan cannot be known by anything. */
static bool build_key(const cleave_graph_t *graph, const cleave_partition_request_t *request,
                      const cleave_rule_list_options_t *options, cleave_text_t *key) {
  uint64_t hash = 0;
  cleave_digest_t digest;
  if (!digest_graph(graph, &digest) || cleave_graph_hash(graph, &hash, NULL) != CLEAVE_OK) {
    return false;
  }
  cleave_text_add(key, CLEAVE_BLOB_KEY_PLAN);
  cleave_blob_key_add_line(key, "version", cleave_version());
  cleave_blob_key_add_digest(key, "code", cleave_library_digest((void (*)(void))cleave_graph_partition_kept));
  cleave_blob_key_add_line(key, "lua", lua_ident);
  add_request(key, request, options);
  add_processor(key);
  uint32_t count = cleave_registry_count(graph->context);
  for (uint32_t k = 0; k < count; k++) {
    cleave_blob_key_add_line(key, "there is", cleave_registry_name(graph->context, k));
  }
  cleave_text_format(key, "region %016" PRIx64 ", %zu node%s\n", hash, graph->live_node_count,
                     CLEAVE_PLURAL(graph->live_node_count));
  cleave_blob_key_add_digest(key, "graph", digest);
  return !key->failed;
}

/* ---- what lies beside the plan ---- */

/* The backends that the rules name, and `cpu`, which runs what is left, as they are now. */
static void describe_backends(const cleave_graph_t *graph, const cleave_plan_rule_t *rules, uint32_t count,
                              cleave_text_t *text) {
  const char *last = "";
  for (uint32_t k = 0; k <= count; k++) {
    const char *name = k < count ? rules[k].backend : "cpu";
    const cleave_backend_handle_t *handle = NULL;
    cleave_error_t missing = CLEAVE_ERROR_INIT;
    if (strcmp(name, last) == 0) {
      continue;
    }
    last = name;
    if (cleave_registry_find(graph->context, name, &handle, &missing) != CLEAVE_OK) {
      cleave_blob_key_add_line(text, "missing", name);
    } else {
      (void)cleave_blob_key_add_backend(text, handle, 0);
    }
  }
}

static cleave_status_t write_content(const void *program,
                                     cleave_status_t (*write)(void *context, const void *data, size_t bytes),
                                     void *context, cleave_message_t *message) {
  const cleave_text_t *content = program;
  (void)message;
  return write(context, content->data, content->length);
}

/* The plan of a graph: the backends as they are, up to and with a NUL, and the plan as JSON. */
static void keep(cleave_blob_store_t *store, const char *key, const cleave_plan_t *plan) {
  cleave_text_t content = {0};
  cleave_text_t json = {0};
  describe_backends(plan->source, plan->rules, plan->rule_count, &content);
  if (cleave_plan_print_json(plan, &json, NULL) == CLEAVE_OK && !json.failed) {
    cleave_text_append(&content, "", 1);
    cleave_text_append(&content, cleave_text_get(&json), json.length);
  }
  if (!content.failed && json.length > 0) {
    cleave_blob_store_write(store, key, write_content, &content);
  }
  cleave_text_deinit(&json);
  cleave_text_deinit(&content);
}

static cleave_status_t take_up(const cleave_blob_t *blob, const cleave_graph_t *graph,
                               cleave_plan_t **out_plan, cleave_error_t *error) {
  const char *start = blob->data;
  const char *end = memchr(start, '\0', blob->bytes);
  cleave_plan_document_t *document = NULL;
  cleave_text_t backends = {0};
  if (end == NULL) {
    return cleave_error_set(error, CLEAVE_ERROR_FORMAT, "it has no plan");
  }
  size_t length = (size_t)(end - start);
  CLEAVE_TRY(cleave_plan_document_read("the kept plan", end + 1, blob->bytes - length - 1, &document, error));
  describe_backends(graph, document->rules, document->rule_count, &backends);
  bool is_same = backends.length == length && memcmp(cleave_text_get(&backends), start, length) == 0;
  cleave_status_t status =
      is_same ? cleave_plan_load_document(document, graph, false, out_plan, error)
              : cleave_error_set(error, CLEAVE_ERROR_MISMATCH, "a backend is another one now");
  cleave_text_deinit(&backends);
  cleave_plan_document_destroy(document);
  return status;
}

/* NULL if there is none that can be used. */
static cleave_plan_t *find(cleave_blob_store_t *store, const char *key, const cleave_graph_t *graph) {
  cleave_plan_t *plan = NULL;
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_blob_t blob;
  if (cleave_blob_store_read(store, key, 1, &blob)) {
    if (take_up(&blob, graph, &plan, &error) != CLEAVE_OK) {
      cleave_blob_store_refuse(store, key, error.message);
    }
    cleave_blob_deinit(&blob);
  }
  return plan;
}

cleave_status_t cleave_graph_partition_kept(const cleave_graph_t *graph,
                                            const cleave_partition_request_t *request,
                                            const cleave_rule_list_options_t *options,
                                            cleave_plan_keeping_t *keeping, cleave_plan_t **out_plan,
                                            double *out_script_ms, cleave_error_t *error) {
  cleave_blob_store_t *store = NULL;
  cleave_text_t key = {0};
  cleave_status_t status = CLEAVE_OK;
  *out_plan = NULL;
  *out_script_ms = 0.0;
  keeping->was_kept = false;
  bool is_usable = keeping->folder != NULL && can_be_kept(request, options) &&
                   build_key(graph, request, options, &key) &&
                   cleave_blob_store_open(keeping->folder, keeping->limit, cleave_context_log(graph->context),
                                          &store, NULL) == CLEAVE_OK;
  if (is_usable) {
    *out_plan = find(store, cleave_text_get(&key), graph);
    keeping->was_kept = *out_plan != NULL;
  }
  if (*out_plan == NULL) {
    status = cleave_graph_partition(graph, request, options, out_plan, out_script_ms, error);
    if (status == CLEAVE_OK && is_usable) {
      keep(store, cleave_text_get(&key), *out_plan);
    }
  }
  cleave_blob_store_close(store);
  cleave_text_deinit(&key);
  return status;
}
