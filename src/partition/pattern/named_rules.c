// SPDX-License-Identifier: Apache-2.0
// The rules of libraries, in a list under a lock; a search returns a copy.
#include "partition/pattern/named_rules.h"

#include <pthread.h>
#include <string.h>

#include "base/text.h"

static CLEAVE_ARRAY(cleave_named_rule_t) rules;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

cleave_status_t cleave_named_rules_add(const cleave_named_rule_t *named, cleave_error_t *error) {
  (void)pthread_mutex_lock(&lock);
  cleave_status_t status = cleave_array_reserve(&rules, 1, error);
  if (status == CLEAVE_OK) {
    cleave_array_push_reserved(&rules, *named);
  }
  (void)pthread_mutex_unlock(&lock);
  return status;
}

void cleave_named_rules_remove(const void *owner) {
  (void)pthread_mutex_lock(&lock);
  size_t kept = 0;
  for (size_t k = 0; k < rules.count; k++) {
    if (rules.items[k].owner != owner) {
      rules.items[kept++] = rules.items[k];
    }
  }
  rules.count = kept;
  (void)pthread_mutex_unlock(&lock);
}

bool cleave_named_rule_at(uint32_t index, cleave_named_rule_t *out_named) {
  (void)pthread_mutex_lock(&lock);
  bool found = index < rules.count;
  if (found) {
    *out_named = rules.items[index];
  }
  (void)pthread_mutex_unlock(&lock);
  return found;
}

static bool is_named(const cleave_named_rule_t *rule, const char *name) {
  const char *slash = strchr(name, '/');
  if (slash == NULL) {
    return strcmp(rule->name, name) == 0;
  }
  size_t length = (size_t)(slash - name);
  return strlen(rule->library) == length && strncmp(rule->library, name, length) == 0 &&
         strcmp(rule->name, slash + 1) == 0;
}

static const char *kind_word(cleave_rule_kind_t kind) {
  return kind == CLEAVE_RULE_PASS ? "pass" : "partitioner";
}

static cleave_status_t fail_unknown(cleave_context_t *context, cleave_rule_kind_t kind, const char *name,
                                    cleave_error_t *error) {
  cleave_nearest_t nearest = {0};
  for (size_t k = 0; k < rules.count; k++) {
    if (rules.items[k].context == context && rules.items[k].kind == kind) {
      cleave_nearest_offer(&nearest, name, rules.items[k].name);
    }
  }
  return cleave_error_set(error, CLEAVE_ERROR_RULE, "no loaded library has a %s '%.128s'%s", kind_word(kind),
                          name, cleave_nearest_hint(&nearest));
}

static cleave_status_t find(cleave_context_t *context, cleave_rule_kind_t kind, const char *name,
                            cleave_named_rule_t *out_named, cleave_error_t *error) {
  const cleave_named_rule_t *found = NULL;
  for (size_t k = 0; k < rules.count; k++) {
    const cleave_named_rule_t *rule = &rules.items[k];
    if (rule->context != context || rule->kind != kind || !is_named(rule, name)) {
      continue;
    }
    if (found != NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_RULE,
                              "%s '%s' is of library '%s' and of library '%s': write '%s/%s' or '%s/%s'",
                              kind_word(kind), name, found->library, rule->library, found->library, name,
                              rule->library, name);
    }
    found = rule;
  }
  if (found == NULL) {
    return fail_unknown(context, kind, name, error);
  }
  *out_named = *found;
  return CLEAVE_OK;
}

cleave_status_t cleave_named_rule_find(cleave_context_t *context, cleave_rule_kind_t kind, const char *name,
                                       cleave_named_rule_t *out_named, cleave_error_t *error) {
  (void)pthread_mutex_lock(&lock);
  cleave_status_t status = find(context, kind, name, out_named, error);
  (void)pthread_mutex_unlock(&lock);
  return status;
}
