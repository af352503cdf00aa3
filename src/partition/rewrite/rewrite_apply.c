// SPDX-License-Identifier: Apache-2.0
// One application of a rewrite: asks `where`, builds the substitute and puts it into the graph. A match that
// the rule leaves as it is leaves no trace but the reason.
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "partition/rewrite/rewrite_state.h"

// ---- the substitute ----

static const char *label_of(const cleave_rewriter_t *rewriter, char *buffer, size_t size) {
  cleave_node_t last = rewriter->nodes.items[rewriter->nodes.count - 1];
  return cleave_node_label(rewriter->editor->graph, last, buffer, size);
}

/* What the match in hand is counted by: with its inputs in another order it is the same match. */
static uint64_t count_key(const cleave_rewriter_t *rewriter, const cleave_rule_run_t *run) {
  uint64_t nodes = cleave_match_hash_nodes(rewriter->nodes.items, (uint32_t)rewriter->nodes.count);
  return cleave_hash_combine(nodes, run->log_rule);
}

/* A match counts once, and each reason is recorded once. */
static cleave_status_t refuse(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run, const char *reason,
                              const char *fallback, cleave_error_t *error) {
  char label[128];
  cleave_edits_t *log = rewriter->editor->log;
  if (log == NULL) {
    return CLEAVE_OK;
  }
  reason = reason[0] == '\0' ? fallback : reason;
  uint64_t key = count_key(rewriter, run);
  uint64_t recorded = cleave_hash_bytes(key, reason, strlen(reason));
  bool is_recorded = cleave_key_set_has(&rewriter->counted, recorded);
  log->rules.items[run->log_rule].refused += !cleave_key_set_has(&rewriter->counted, key);
  CLEAVE_TRY(cleave_key_set_add(&rewriter->counted, key, error));
  CLEAVE_TRY(cleave_key_set_add(&rewriter->counted, recorded, error));
  return is_recorded ? CLEAVE_OK
                     : cleave_edits_refuse(log, run->log_rule, label_of(rewriter, label, sizeof label),
                                           reason, error);
}

/* If a replacement names no value of the match, it replaces the main output. */
static cleave_status_t resolve(cleave_rewriter_t *rewriter, cleave_substitute_t *substitute,
                               cleave_error_t *error) {
  const cleave_graph_t *graph = rewriter->editor->graph;
  size_t count = substitute->to.count;
  if (substitute->from.count != count) {
    return cleave_error_set(error, CLEAVE_ERROR_INTERNAL, "a substitute of %zu value%s for %zu", count,
                            CLEAVE_PLURAL(count), substitute->from.count);
  }
  for (size_t k = 0; k < count; k++) {
    cleave_value_t *from = &substitute->from.items[k];
    cleave_value_t to = substitute->to.items[k];
    if (!cleave_value_exists(*from)) {
      if (rewriter->outputs.count != 1) {
        return cleave_error_set(error, CLEAVE_ERROR_RULE,
                                "the match has %zu value%s that %s read outside: replace has to return a "
                                "table, label = value",
                                rewriter->outputs.count, CLEAVE_PLURAL(rewriter->outputs.count),
                                CLEAVE_BY_COUNT(rewriter->outputs.count, "is", "are"));
      }
      *from = rewriter->outputs.items[0];
    }
    if (from->index >= graph->values.count || to.index >= graph->values.count ||
        graph->values.items[to.index].is_removed ||
        !cleave_rewrite_is_inside(rewriter, cleave_value_producer(graph, *from))) {
      return cleave_error_set(error, CLEAVE_ERROR_RULE,
                              "replace returned a value for '%.100s', which no node of the match makes",
                              from->index < graph->values.count ? cleave_value_name(graph, *from) : "?");
    }
  }
  return CLEAVE_OK;
}

static bool changes_nothing(const cleave_substitute_t *substitute) {
  for (size_t k = 0; k < substitute->to.count; k++) {
    if (substitute->to.items[k].index != substitute->from.items[k].index) {
      return false;
    }
  }
  return true;
}

/* A new value and its producer get the names of the value and node that they replace, if those are removed.
 */
static cleave_status_t inherit_names(cleave_editor_t *editor, const cleave_substitute_t *substitute,
                                     cleave_error_t *error) {
  cleave_graph_t *graph = editor->graph;
  for (size_t k = 0; k < substitute->to.count; k++) {
    cleave_value_t from = substitute->from.items[k];
    cleave_value_t to = substitute->to.items[k];
    cleave_node_t node = cleave_value_producer(graph, to);
    if (!cleave_node_exists(node) || node.index < editor->first_node ||
        !graph->values.items[from.index].is_removed) {
      continue;
    }
    uint32_t old = substitute->producers.items[k].index;
    char name[128];
    (void)snprintf(name, sizeof name, "%s", cleave_value_name(graph, from));
    if (name[0] != '\0') {
      CLEAVE_TRY(cleave_editor_name_value(editor, to, name, error));
    }
    (void)snprintf(name, sizeof name, "%s", cleave_node_name(graph, (cleave_node_t){old}));
    if (name[0] != '\0') {
      CLEAVE_TRY(cleave_editor_name_node(editor, node, name, error));
    }
  }
  return CLEAVE_OK;
}

/* Undoes the first `count` replacements, the latest first. The readers that they moved are the last in the
 * lists of uses. */
static void move_back(cleave_editor_t *editor, const cleave_substitute_t *substitute, size_t count) {
  cleave_graph_t *graph = editor->graph;
  for (size_t k = count; k > 0; k--) {
    cleave_use_t use = cleave_value_first_use(graph, substitute->to.items[k - 1]);
    for (uint32_t before = substitute->uses_before.items[k - 1]; before > 0; before--) {
      use = cleave_use_next(graph, use);
    }
    while (cleave_use_exists(use)) {
      cleave_use_t next = cleave_use_next(graph, use);
      cleave_graph_set_use(graph, use, substitute->from.items[k - 1]);
      use = next;
    }
  }
}

/* Lets all readers read the substitute; if this fails, none of them does. */
static cleave_status_t move_readers(cleave_rewriter_t *rewriter, cleave_substitute_t *substitute,
                                    cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  size_t count = substitute->to.count;
  CLEAVE_TRY(cleave_array_reserve(&substitute->uses_before, count, error));
  for (size_t k = 0; k < count; k++) {
    cleave_value_t from = substitute->from.items[k];
    cleave_value_t to = substitute->to.items[k];
    cleave_array_push_reserved(&substitute->uses_before, cleave_graph_value(editor->graph, to)->use_count);
    CLEAVE_TRY_OR(cleave_editor_replace_uses(editor, from, to, error), move_back(editor, substitute, k));
  }
  return CLEAVE_OK;
}

static cleave_status_t remove_replaced(cleave_rewriter_t *rewriter, cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  for (size_t k = rewriter->nodes.count; k > 0; k--) {
    CLEAVE_TRY(cleave_editor_remove_unused(editor, rewriter->nodes.items[k - 1], error));
  }
  for (uint32_t node = cleave_graph_node_bound(editor->graph); node > editor->first_node; node--) {
    CLEAVE_TRY(cleave_editor_remove_unused(editor, (cleave_node_t){node - 1}, error));
  }
  return CLEAVE_OK;
}

// ---- mistakes ----

/* Is the failure a mistake of the rule at this match? Other failures (memory, time) end everything. */
static bool is_mistake(cleave_status_t status) {
  return status == CLEAVE_ERROR_RULE || status == CLEAVE_ERROR_SHAPE ||
         status == CLEAVE_ERROR_INVALID_ARGUMENT || status == CLEAVE_ERROR_UNSUPPORTED;
}

/* Shortens a message that begins with "file:12: rewrite 'x': " to begin with "line 12: ", or with
 * "other.lua:12: " if it is about a file that the rule's file includes. What it says of its node is left out:
 * a refusal has a place. */
static void shorten(const cleave_rule_run_t *run, const cleave_error_t *cause, cleave_reason_t *reason) {
  char rule[128];
  (void)snprintf(rule, sizeof rule, "%s '%s': ", cleave_rule_kind_name(run->rule->kind), run->rule->name);
  const char *rest = strstr(cause->message, rule);
  const char *text = rest != NULL ? rest + strlen(rule) : cause->message;
  const char *node = cause->line > 0 ? strstr(text, "; at ") : NULL;
  int length = (int)(node != NULL ? (size_t)(node - text) : strlen(text));
  if (cause->line > 0 && strcmp(cause->file, run->file) != 0) {
    (void)snprintf(reason->text, sizeof reason->text, "%.100s:%d: %.*s", cause->file, cause->line, length,
                   text);
  } else if (cause->line > 0) {
    (void)snprintf(reason->text, sizeof reason->text, "line %d: %.*s", cause->line, length, text);
  } else {
    (void)snprintf(reason->text, sizeof reason->text, "%.*s", length, text);
  }
}

/* A mistake is recorded as a refusal and leaves the graph unchanged, unless the caller wants to stop at the
 * first one. */
static cleave_status_t fail(cleave_rewriter_t *rewriter, const cleave_rule_run_t *run,
                            const cleave_editor_mark_t *mark, cleave_status_t status,
                            const cleave_error_t *cause, cleave_error_t *error) {
  const cleave_transform_options_t *options = rewriter->options;
  if (!is_mistake(status) || (options != NULL && options->stops_at_mistakes)) {
    cleave_error_t placed = CLEAVE_ERROR_INIT;
    if (cause->file[0] == '\0' && is_mistake(status)) {
      const cleave_graph_t *graph = rewriter->editor->graph;
      cleave_node_t first = rewriter->nodes.items[0];
      char label[128];
      (void)cleave_error_set(&placed, status, "%s; at %s '%s'", cause->message,
                             cleave_node_op(graph, first)->name,
                             cleave_node_label(graph, first, label, sizeof label));
      cause = &placed;
    }
    if (cause->file[0] == '\0') {
      return cleave_rewrite_fail(run, status, cause, error);
    }
    if (error != NULL && error->status == CLEAVE_OK) {
      *error = *cause;
    }
    return status;
  }
  cleave_reason_t reason;
  shorten(run, cause, &reason);
  cleave_editor_roll_back(rewriter->editor, *mark);
  CLEAVE_TRY(refuse(rewriter, run, reason.text, "it failed", error));
  char label[128];
  cleave_edits_t *log = rewriter->editor->log;
  return log == NULL ? CLEAVE_OK
                     : cleave_edits_note_mistake(log, run->log_rule, label_of(rewriter, label, sizeof label),
                                                 reason.text, error);
}

// ---- one application ----

/* Asks `where`, and whether the caller leaves this application out. The reason for a refusal is recorded. */
static cleave_status_t is_wanted(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
                                 const cleave_match_t *match, cleave_substitute_t *substitute, bool *out_yes,
                                 cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  const cleave_transform_options_t *options = rewriter->options;
  const cleave_rule_t *rule = run->rule;
  *out_yes = false;
  if (rewriter->outputs.count == 0) {
    return refuse(rewriter, run, "no node reads a result of the match", "", error);
  }
  bool yes = true;
  if (rule->where != NULL) {
    cleave_error_t cause = CLEAVE_ERROR_INIT;
    cleave_editor_mark_t mark = cleave_editor_mark(editor);
    cleave_status_t status =
        rule->where(rule->context, editor->graph, match, &yes, &substitute->reason, &cause);
    if (status != CLEAVE_OK) {
      return fail(rewriter, run, &mark, status, &cause, error);
    }
  }
  if (!yes) {
    return refuse(rewriter, run, substitute->reason.text, "'where' returned false", error);
  }
  if (options != NULL && options->allow != NULL &&
      !options->allow(options->allow_context, editor->graph, &run->description, match->nodes,
                      match->node_count)) {
    return refuse(rewriter, run, "left out", "left out", error);
  }
  *out_yes = true;
  return CLEAVE_OK;
}

static cleave_status_t build(cleave_rewriter_t *rewriter, const cleave_rule_t *rule,
                             const cleave_match_t *match, cleave_substitute_t *substitute,
                             cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  editor->first_node = cleave_graph_node_bound(editor->graph);
  editor->only_adds = true;
  cleave_status_t status = rule->replace(rule->context, editor, match, substitute, error);
  editor->only_adds = false;
  return status == CLEAVE_OK ? resolve(rewriter, substitute, error) : status;
}

static cleave_status_t apply(cleave_rewriter_t *rewriter, cleave_rule_run_t *run, const cleave_match_t *match,
                             cleave_substitute_t *substitute, bool *out_applied, cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  bool is_to_be = false;
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  editor->reads.count = 0;
  CLEAVE_TRY(is_wanted(rewriter, run, match, substitute, &is_to_be, error));
  if (!is_to_be) {
    return CLEAVE_OK;
  }
  cleave_editor_mark_t mark = cleave_editor_mark(editor);
  cleave_status_t status = build(rewriter, run->rule, match, substitute, &cause);
  if (status != CLEAVE_OK) {
    return fail(rewriter, run, &mark, status, &cause, error);
  }
  if (changes_nothing(substitute)) {
    cleave_editor_roll_back(editor, mark);
    return refuse(
        rewriter, run, substitute->reason.text,
        substitute->to.count == 0 ? "replace left it as it is" : "replace returned the matched values",
        error);
  }
  CLEAVE_TRY(cleave_rewrite_check_return(rewriter, run, error));
  for (size_t k = 0; k < substitute->from.count; k++) {
    cleave_node_t producer = cleave_value_producer(editor->graph, substitute->from.items[k]);
    CLEAVE_ARRAY_PUSH(&substitute->producers, producer, error);
  }
  status = move_readers(rewriter, substitute, &cause);
  if (status != CLEAVE_OK) {
    return fail(rewriter, run, &mark, status, &cause, error);
  }
  CLEAVE_TRY(cleave_rewrite_note_reads(rewriter, match, error));
  CLEAVE_TRY(cleave_editor_log_reads(editor, error));
  CLEAVE_TRY(remove_replaced(rewriter, error));
  CLEAVE_TRY(inherit_names(editor, substitute, error));
  *out_applied = true;
  return cleave_rewrite_check_growth(rewriter, run, substitute, error);
}

cleave_status_t cleave_rewrite_apply(cleave_rewriter_t *rewriter, cleave_rule_run_t *run,
                                     const cleave_match_t *match, bool *out_applied, cleave_error_t *error) {
  cleave_editor_t *editor = rewriter->editor;
  cleave_substitute_t substitute = {.reason = {""}};
  char label[128];
  *out_applied = false;
  cleave_status_t status = cleave_rewrite_hold(rewriter, match, error);
  if (status == CLEAVE_OK && editor->log != NULL) {
    status = cleave_edits_begin(editor->log, run->log_rule, label_of(rewriter, label, sizeof label), error);
  }
  if (status == CLEAVE_OK) {
    cleave_match_t ordered = *match;
    ordered.nodes = rewriter->nodes.items;
    ordered.node_labels = rewriter->labels.items;
    status = apply(rewriter, run, &ordered, &substitute, out_applied, error);
    if (editor->log != NULL) {
      cleave_edits_end(editor->log);
      editor->log->rules.items[run->log_rule].refused -=
          *out_applied && cleave_key_set_has(&rewriter->counted, count_key(rewriter, run));
    }
  }
  cleave_rewrite_release(rewriter, match);
  cleave_array_free(&substitute.from);
  cleave_array_free(&substitute.to);
  cleave_array_free(&substitute.producers);
  cleave_array_free(&substitute.uses_before);
  return status;
}
