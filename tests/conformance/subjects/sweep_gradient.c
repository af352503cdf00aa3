// SPDX-License-Identifier: Apache-2.0
// The gradients of a case in float64 against finite differences: of all its inputs, and of its constants. Or
// in the same graph, for backends to partition and fuse: forward, and backward from ones for every output of
// numbers. After all subjects, every operator of the list has been compared, carries no gradient for a stated
// reason, or is refused on the way to the loss.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "runtime/model/model_gradient.h"
#include "script/rules/rules.h"
#include "sweep_case.h"
#include "tools/rule_tests/rule_check.h"

/* Constants are scaled like those of the other forms: as long as a uniform distribution of their deviation.
 */
static const double CONSTANT = 0.87;

/* Inputs that no gradient passes although the result depends on them, since they are not parameters. */
static const struct {
  const char *op;
  const char *input;
} given[] = {
    {"BatchNormalization", "input_mean"},
    {"BatchNormalization", "input_var"},
    {"RoiAlign", "rois"},
};

/* Operators on the way to a loss that are an error. */
static const struct {
  const char *op;
  const char *reason;
} refused[] = {
    {"DeformConv", "no backend here computes it"},
    {"MaxRoiPool", "no backend here computes it"},
    {"Gradient", "it is resolved before gradients are built"},
    {"Adagrad", "an update of an optimizer"},
    {"Adam", "an update of an optimizer"},
    {"Momentum", "an update of an optimizer"},
};

static bool is_given(const cleave_graph_t *graph, cleave_value_t input) {
  for (cleave_use_t use = cleave_value_first_use(graph, input); cleave_use_exists(use);
       use = cleave_use_next(graph, use)) {
    cleave_node_t node = cleave_use_node(graph, use);
    for (size_t k = 0; cleave_node_exists(node) && k < sizeof given / sizeof given[0]; k++) {
      const cleave_op_t *op = cleave_node_op(graph, node);
      uint32_t port =
          strcmp(op->name, given[k].op) == 0 ? cleave_op_input_index(op, given[k].input) : CLEAVE_INDEX_NONE;
      if (port < cleave_node_input_count(graph, node) &&
          cleave_node_input(graph, node, port).index == input.index) {
        return true;
      }
    }
  }
  return false;
}

/* Where numbers are drawn from: as the text says; then, for functions whose domain that leaves, from others.
 */
static const struct {
  double low;
  double high;
} domains[] = {{0.0, 0.0}, {0.25, 0.95}, {1.1, 1.9}};
enum { DOMAIN_COUNT = sizeof domains / sizeof domains[0] };

static void describe_inputs(const sweep_graph_t *graph, size_t domain, cleave_test_input_t *inputs) {
  for (size_t k = 0; k < graph->input_count; k++) {
    const sweep_input_t *input = &graph->inputs[k];
    int64_t elements = 1;
    for (int32_t d = 1; d < input->rank; d++) {
      elements *= input->dims[d];
    }
    double high = input->content == '^' && elements > 0 ? 1.7 / sqrt((double)elements) : CONSTANT;
    inputs[k] = (cleave_test_input_t){.name = input->name,
                                      .has_range = input->is_constant,
                                      .low = -high,
                                      .high = high,
                                      .is_given = is_given(graph->graph, graph->graph->inputs.items[k])};
    bool is_unit = input->content == '&';
    if (domain > 0 || is_unit || input->content == '+') {
      inputs[k].has_range = true;
      inputs[k].low = domain > 0 ? domains[domain].low : is_unit ? 0.05 : 0.25;
      inputs[k].high = domain > 0 ? domains[domain].high : is_unit ? 0.95 : 2.0;
    }
  }
}

static cleave_status_t note_seen(sweep_t *sweep, uint64_t hash) {
  CLEAVE_ARRAY_PUSH(&sweep->seen, hash, NULL);
  return CLEAVE_OK;
}

/* "Conv{pads=[1,1,1,1]}" of "h = Conv{pads=[1,1,1,1]}(x[1,3,8,8], $w[4,3,3,3])", and so on. */
bool sweep_gradient_is_new(sweep_t *sweep) {
  bool is_new = false;
  for (const char *next = sweep->text; *next != '\0';) {
    size_t length = strspn(next, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
    char after = next[length];
    if (length > 0 && (after == '{' || after == '(')) {
      size_t whole = after == '{' ? strcspn(next, "}") : length;
      uint64_t hash = cleave_hash_bytes(CLEAVE_HASH_SEED, next, whole);
      bool found = false;
      for (size_t k = 0; k < sweep->seen.count && !found; k++) {
        found = sweep->seen.items[k] == hash;
      }
      is_new = is_new || !found;
      if (!found && note_seen(sweep, hash) != CLEAVE_OK) {
        return true;
      }
      length = whole;
    }
    next += length > 0 ? length : 1;
  }
  return is_new;
}

static bool has_double(const cleave_graph_t *graph, const cleave_value_t *values, size_t count) {
  for (size_t k = 0; k < count; k++) {
    if (cleave_graph_value(graph, values[k])->dtype == CLEAVE_DTYPE_F64) {
      return true;
    }
  }
  return false;
}

static void note_operators(sweep_t *sweep, const cleave_graph_t *graph) {
  for (uint32_t n = 0; n < cleave_graph_node_bound(graph); n++) {
    sweep->is_compared[cleave_node_op(graph, (cleave_node_t){n})->id] = true;
  }
}

/* No number can be compared: nothing flows to floating-point numbers, or these are infinite in all domains.
 */
static bool is_without_numbers(const char *report) {
  return strstr(report, "nan (finite") != NULL || strstr(report, "inf (finite") != NULL ||
         strstr(report, "expected an output of the graph that is float64") != NULL;
}

static cleave_status_t compare_case(const sweep_graph_t *graph, cleave_text_t *report,
                                    cleave_error_t *error) {
  cleave_test_input_t inputs[SWEEP_MAX_INPUTS];
  cleave_rule_test_t test = {.name = "sweep",
                             .file = "sweep",
                             .inputs = inputs,
                             .input_count = (uint32_t)graph->input_count,
                             .gradient = 1};
  for (size_t domain = 0; domain < DOMAIN_COUNT; domain++) {
    cleave_text_deinit(report);
    *report = (cleave_text_t){0};
    describe_inputs(graph, domain, inputs);
    CLEAVE_TRY(cleave_rule_gradient(NULL, &test, graph->graph, 1, report, error));
    if (strstr(cleave_text_get(report), " (finite") == NULL || !is_without_numbers(cleave_text_get(report))) {
      break;
    }
  }
  return CLEAVE_OK;
}

void sweep_gradient_run(sweep_t *sweep) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_text_t report = {0};
  sweep_graph_t graph = {0};
  cleave_status_t status = sweep_graph_read(sweep->text, SWEEP_DOUBLE, &graph, &error);
  sweep->tally.cases++;
  if (status == CLEAVE_OK && !has_double(graph.graph, graph.graph->inputs.items, graph.graph->inputs.count)) {
    sweep->tally.refused++;
  } else {
    status = status == CLEAVE_OK ? compare_case(&graph, &report, &error) : status;
    const char *found = status == CLEAVE_OK ? cleave_text_get(&report) : error.message;
    if (is_without_numbers(found)) {
      sweep->tally.refused++;
    } else if (found[0] != '\0') {
      sweep->tally.failed++;
      printf("FAILED %s, gradients: %s\n  --gradients --case '%s'\n", sweep->subject, found, sweep->text);
    } else {
      note_operators(sweep, graph.graph);
    }
  }
  cleave_text_deinit(&report);
  sweep_graph_deinit(&graph);
}

/* ---- forward and backward in one graph ---- */

static cleave_status_t add_op(cleave_graph_t *graph, const char *op, const cleave_value_t *inputs,
                              size_t count, cleave_value_t *out_value, cleave_error_t *error) {
  cleave_node_t node = CLEAVE_NODE_NONE;
  CLEAVE_TRY(cleave_graph_add_node(graph, cleave_op_find("", op), NULL, inputs, count, 1, &node, error));
  *out_value = cleave_node_output(graph, node, 0);
  return cleave_op_check(graph, node, CLEAVE_ERROR_FORMAT, error);
}

/* The output to differentiate, or the sum of the sums of several; NONE if none is of floating-point numbers.
 */
static cleave_status_t add_loss(cleave_graph_t *graph, cleave_value_t *out_loss, cleave_error_t *error) {
  cleave_value_t pair[2] = {CLEAVE_VALUE_NONE, CLEAVE_VALUE_NONE};
  *out_loss = CLEAVE_VALUE_NONE;
  for (size_t k = 0; k < graph->outputs.count; k++) {
    cleave_value_t value = cleave_graph_output(graph, k);
    if (!cleave_dtype_is_float((cleave_dtype_t)cleave_graph_value(graph, value)->dtype)) {
      continue;
    }
    if (graph->outputs.count == 1) {
      *out_loss = value;
      return CLEAVE_OK;
    }
    CLEAVE_TRY(add_op(graph, "ReduceSum", &value, 1, &pair[1], error));
    if (cleave_value_exists(pair[0])) {
      CLEAVE_TRY(add_op(graph, "Add", pair, 2, &pair[0], error));
    } else {
      pair[0] = pair[1];
    }
  }
  *out_loss = pair[0];
  return cleave_graph_infer(graph, &(cleave_infer_options_t){0}, NULL, error);
}

cleave_status_t sweep_backward_add(sweep_graph_t *graph, bool adds, bool *out_passes, cleave_error_t *error) {
  cleave_value_t inputs[SWEEP_MAX_INPUTS];
  cleave_value_t gradients[SWEEP_MAX_INPUTS];
  size_t places[SWEEP_MAX_INPUTS];
  size_t count = 0;
  cleave_value_t loss;
  *out_passes = false;
  graph->added_from = adds ? graph->graph->outputs.count : 0;
  CLEAVE_TRY(add_loss(graph->graph, &loss, error));
  for (size_t k = 0; k < graph->input_count; k++) {
    cleave_value_t input = graph->graph->inputs.items[k];
    if (cleave_dtype_is_float((cleave_dtype_t)cleave_graph_value(graph->graph, input)->dtype)) {
      inputs[count] = input;
      places[count++] = k;
    }
  }
  if (!cleave_value_exists(loss) || count == 0) {
    return CLEAVE_OK;
  }
  CLEAVE_TRY(cleave_graph_add_gradients(graph->graph, loss, inputs, count, gradients, error));
  for (size_t k = 0; k < count; k++) {
    char name[48];
    if (!cleave_value_exists(gradients[k])) {
      continue;
    }
    *out_passes = true;
    (void)snprintf(name, sizeof name, "grad(%.31s)", graph->inputs[places[k]].name);
    CLEAVE_TRY(cleave_graph_add_output(graph->graph, name, gradients[k], error));
  }
  return cleave_graph_infer(graph->graph, &(cleave_infer_options_t){.fold = true}, NULL, error);
}

/* ---- the list of operators ---- */

static const char *refusal_of(const cleave_op_t *op) {
  for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++) {
    if (strcmp(op->name, refused[k].op) == 0) {
      return refused[k].reason;
    }
  }
  return NULL;
}

static const cleave_gradient_rule_t *find_rule(const cleave_ruleset_t *rulesets, uint32_t count,
                                               const cleave_op_t *op) {
  for (uint32_t s = 0; s < count; s++) {
    for (uint32_t k = 0; k < rulesets[s].gradient_count; k++) {
      if (rulesets[s].gradients[k].op == op) {
        return &rulesets[s].gradients[k];
      }
    }
  }
  return NULL;
}

uint32_t sweep_gradient_operators(const sweep_t *sweep) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  cleave_rules_t *rules = NULL;
  uint32_t counts[4] = {0}; /* compared, without, refused, not covered */
  if (cleave_rules_load_embedded(NULL, "lua/cleave/gradients/all.lua", &rules, &error) != CLEAVE_OK) {
    printf("%s\n", error.message);
    return 1;
  }
  uint32_t count = 0;
  const cleave_ruleset_t *rulesets = cleave_rules_rulesets(rules, &count);
  for (int id = 0; id < CLEAVE_OP_COUNT; id++) {
    const cleave_op_t *op = cleave_op_get((cleave_op_id_t)id);
    const cleave_gradient_rule_t *rule = find_rule(rulesets, count, op);
    bool has_reason = rule != NULL && rule->apply == NULL && rule->doc[0] != '\0';
    if (rule != NULL && rule->apply != NULL && sweep->is_compared[id]) {
      counts[0]++;
    } else if (has_reason) {
      counts[1]++;
    } else if (rule == NULL && refusal_of(op) != NULL) {
      counts[2]++;
    } else {
      counts[3]++;
      printf("FAILED operator %s: %s\n", op->name,
             rule == NULL          ? "it has no gradient, and no reason why"
             : rule->apply == NULL ? "it carries no gradient, and 'doc' does not say why"
                                   : "no case compares its gradient");
    }
  }
  cleave_rules_destroy(rules);
  printf("operators: %u compared, %u carry no gradient, %u refused, %u not covered\n", counts[0], counts[1],
         counts[2], counts[3]);
  return counts[3];
}
