// SPDX-License-Identifier: Apache-2.0
// What a library brings in rules is checked when it is loaded, so that whoever uses it later finds every
// function that it needs.
#include "backend/registry/registry_entry.h"

#include <string.h>

enum { RULE_LIMIT = 1024, NAME_LIMIT = 63 };

/* A name that a rule may have, too. */
static bool is_name(const char *name) {
  static const char LETTERS[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  size_t length = name == NULL ? 0 : strlen(name);
  return length > 0 && length <= NAME_LIMIT && strspn(name, LETTERS) == length && name[0] != '.' &&
         name[0] != '-';
}

/* ---- taking up ---- */

static cleave_status_t fail(const char *library, const char *what, const char *name, const char *problem,
                            cleave_error_t *error) {
  return cleave_error_set(error, CLEAVE_ERROR_BACKEND, "library '%s': %s '%.64s': %s", library, what,
                          name == NULL ? "" : name, problem);
}

static const char *wrong_with_partitioner(const cleave_custom_partitioner_t *p) {
  bool selects = p->create_selector != NULL;
  return p->supported == NULL && !selects ? "function 'supported' or 'create_selector' is missing"
         : p->supported != NULL && selects
             ? "has both 'supported' and 'create_selector', expected one of them"
         : p->begin != NULL && p->end == NULL     ? "function 'end' is missing"
         : selects && p->select == NULL           ? "function 'select' is missing"
         : selects && p->destroy_selector == NULL ? "function 'destroy_selector' is missing"
                                                  : NULL;
}

static cleave_status_t check_name(const cleave_backend_handle_t *library, const char *what, const char *name,
                                  cleave_error_t *error) {
  cleave_named_rule_t other;
  if (!is_name(name)) {
    return fail(library->backend->name, what, name, "is not a name (letters, digits, '_', '-' and '.')",
                error);
  }
  for (uint32_t k = 0; cleave_named_rule_at(k, &other); k++) {
    if (other.owner == library && strcmp(other.name, name) == 0) {
      return fail(library->backend->name, what, name, "the library has a rule of this name already", error);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t take_pass(const cleave_backend_handle_t *library, const cleave_custom_pass_t *pass,
                                 cleave_error_t *error) {
  const char *name = library->backend->name;
  if (pass == NULL || pass->size < sizeof *pass) {
    return fail(name, "pass", "", "the struct is too small for version 2.0", error);
  }
  CLEAVE_TRY(check_name(library, "pass", pass->name, error));
  if (pass->run == NULL) {
    return fail(name, "pass", pass->name, "function 'run' is missing", error);
  }
  cleave_named_rule_t named = {.context = library->context,
                               .kind = CLEAVE_RULE_PASS,
                               .name = pass->name,
                               .library = name,
                               .backend = name,
                               .owner = library,
                               .definition = pass,
                               .bind = cleave_library_pass_bind};
  return cleave_named_rules_add(&named, error);
}

static cleave_status_t take_partitioner(const cleave_backend_handle_t *library,
                                        const cleave_custom_partitioner_t *partitioner,
                                        cleave_error_t *error) {
  const char *name = library->backend->name;
  if (partitioner == NULL || partitioner->size < sizeof *partitioner) {
    return fail(name, "partitioner", "", "the struct is too small for version 2.0", error);
  }
  CLEAVE_TRY(check_name(library, "partitioner", partitioner->name, error));
  const char *wrong = wrong_with_partitioner(partitioner);
  if (wrong == NULL && partitioner->backend != NULL && !is_name(partitioner->backend)) {
    wrong = "its backend has an invalid name";
  }
  if (wrong != NULL) {
    return fail(name, "partitioner", partitioner->name, wrong, error);
  }
  cleave_named_rule_t named = {.context = library->context,
                               .kind = CLEAVE_RULE_REGION,
                               .name = partitioner->name,
                               .library = name,
                               .backend = partitioner->backend != NULL ? partitioner->backend : name,
                               .owner = library,
                               .definition = partitioner,
                               .bind = cleave_library_partitioner_bind};
  return cleave_named_rules_add(&named, error);
}

static cleave_status_t take(const cleave_backend_handle_t *library, cleave_error_t *error) {
  const cleave_backend_extensions_t *brought = library->backend->extensions;
  bool has_lists = (brought->pass_count == 0 || brought->passes != NULL) &&
                   (brought->partitioner_count == 0 || brought->partitioners != NULL);
  if (!has_lists || brought->pass_count > RULE_LIMIT || brought->partitioner_count > RULE_LIMIT) {
    return cleave_error_set(
        error, CLEAVE_ERROR_BACKEND,
        "library '%s': %u pass%s and %u partitioner%s: expected lists of at most %d", library->backend->name,
        (unsigned)brought->pass_count, CLEAVE_BY_COUNT(brought->pass_count, "", "es"),
        (unsigned)brought->partitioner_count, CLEAVE_PLURAL(brought->partitioner_count), RULE_LIMIT);
  }
  for (uint32_t k = 0; k < brought->pass_count; k++) {
    CLEAVE_TRY(take_pass(library, brought->passes[k], error));
  }
  for (uint32_t k = 0; k < brought->partitioner_count; k++) {
    CLEAVE_TRY(take_partitioner(library, brought->partitioners[k], error));
  }
  return CLEAVE_OK;
}

cleave_status_t cleave_library_rules_take(const cleave_backend_handle_t *library, cleave_error_t *error) {
  cleave_status_t status = take(library, error);
  if (status != CLEAVE_OK) {
    cleave_named_rules_remove(library);
  }
  return status;
}

void cleave_library_rules_leave(const cleave_backend_handle_t *library) {
  cleave_named_rules_remove(library);
}
