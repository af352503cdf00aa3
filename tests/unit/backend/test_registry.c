// SPDX-License-Identifier: Apache-2.0
// Backends by name, and what a backend struct must be like.
#include "backend/registry/registry.h"
#include "unit.h"

UNIT_TEST(finds_cpu_and_starts_it_once) {
  const cleave_backend_handle_t *first = NULL;
  const cleave_backend_handle_t *second = NULL;
  unit_ok(cleave_registry_find(NULL, "cpu", &first, e));
  unit_ok(cleave_registry_find(NULL, "cpu", &second, e));
  ck_assert_ptr_eq(first, second);
  ck_assert_str_eq(first->backend->name, "cpu");
  ck_assert_ptr_nonnull(first->state);
}

UNIT_TEST(every_listed_backend_starts_or_says_why_not) {
  ck_assert_uint_ge(cleave_registry_count(NULL), 1);
  for (uint32_t k = 0; k < cleave_registry_count(NULL); k++) {
    const cleave_backend_handle_t *handle = NULL;
    cleave_error_t error = CLEAVE_ERROR_INIT;
    cleave_status_t status = cleave_registry_find(NULL, cleave_registry_name(NULL, k), &handle, &error);
    ck_assert(status == CLEAVE_OK ? handle != NULL : error.message[0] != '\0');
  }
  ck_assert_str_eq(cleave_registry_name(NULL, cleave_registry_count(NULL)), "");
}

UNIT_TEST(an_unknown_backend_is_refused_with_the_list_and_a_hint) {
  const cleave_backend_handle_t *handle = NULL;
  unit_fails_with(cleave_registry_find(NULL, "cpo", &handle, e), CLEAVE_ERROR_UNSUPPORTED,
                  "backend 'cpo' is unknown (did you mean 'cpu'?); there are: cpu");
  ck_assert_ptr_null(handle);
  unit_fails_with(cleave_registry_find(NULL, "", &handle, e), CLEAVE_ERROR_UNSUPPORTED,
                  "backend '' is unknown");
}

UNIT_TEST(a_backend_struct_that_does_not_fit_is_refused) {
  const cleave_backend_handle_t *cpu = NULL;
  unit_ok(cleave_registry_find(NULL, "cpu", &cpu, e));
  cleave_backend_t backend = *cpu->backend;
  unit_ok(cleave_registry_check(&backend, "cpu", e));
  unit_fails(cleave_registry_check(&backend, "gpu", e), CLEAVE_ERROR_BACKEND,
             "backend 'gpu': calls itself 'cpu'");
  backend.abi_minor = CLEAVE_BACKEND_ABI_MINOR + 7;
  unit_ok(cleave_registry_check(&backend, "cpu", e));
  backend.abi_major = CLEAVE_BACKEND_ABI_MAJOR + 1;
  unit_fails(cleave_registry_check(&backend, "cpu", e), CLEAVE_ERROR_BACKEND,
             "backend 'cpu': made for interface version 3, this is version 2");
  backend = *cpu->backend;
  backend.size = 4;
  unit_fails(cleave_registry_check(&backend, "cpu", e), CLEAVE_ERROR_BACKEND,
             "backend 'cpu': struct of 4 bytes, too small");
  backend = *cpu->backend;
  backend.run = NULL;
  unit_fails(cleave_registry_check(&backend, "cpu", e), CLEAVE_ERROR_BACKEND,
             "backend 'cpu': function 'run' is missing");
  backend = *cpu->backend;
  backend.profile = NULL; /* may be missing */
  unit_ok(cleave_registry_check(&backend, "cpu", e));
}

UNIT_TEST(a_refusal_with_a_number_that_is_no_status_is_the_backends_failure) {
  cleave_message_t message = {.text = "out of luck"};
  unit_fails(cleave_registry_fail(e, (cleave_status_t)77, "here", &message), CLEAVE_ERROR_BACKEND,
             "here: out of luck");
  message.text[0] = '\0';
  unit_fails(cleave_registry_fail(e, CLEAVE_ERROR_SHAPE, "here", &message), CLEAVE_ERROR_SHAPE,
             "here: no reason given");
}

UNIT_SUITE("registry")
