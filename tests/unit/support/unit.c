// SPDX-License-Identifier: Apache-2.0
// The program of the unit tests: all the suites that are linked with it, each test in a process of its own.
//
//   unit_tests [FOLDER | SUITE | PART]...
//
// FOLDER is one of tests/unit, SUITE a file without its ending, PART what names of tests contain. Without
// folders and suites all suites run, without parts all of their tests. Tests that this machine cannot run are
// left out, each with its reason; if there are no others, the exit status is 77.
#include "unit.h"

#include <time.h>

enum { TIMEOUT_SECONDS = 120, EXIT_SKIPPED = 77 };

static unit_suite_t *suites;

void unit_suite_add(unit_suite_t *suite) {
  suite->next = suites;
  suites = suite;
}

void unit_is_linear(void (*work)(int size), int size) {
  double seconds[2];
  for (int k = 0; k < 2; k++) {
    clock_t start = clock();
    work(k == 0 ? size : 10 * size);
    seconds[k] = (double)(clock() - start) / CLOCKS_PER_SEC;
  }
  ck_assert_msg(seconds[1] < 30.0 * seconds[0] + 0.2, "size %d: %g s, size %d: %g s", size, seconds[0],
                10 * size, seconds[1]);
}

/* Is `name` that of the suite's file, or of the folder that it is in? */
static bool is_called(const unit_suite_t *suite, const char *name) {
  char path[4096];
  (void)snprintf(path, sizeof path, "%s", suite->file);
  *strrchr(path, '.') = '\0';
  char *file = strrchr(path, '/');
  *file = '\0';
  return strcmp(file + 1, name) == 0 || strcmp(strrchr(path, '/') + 1, name) == 0;
}

static bool is_a_suite(const char *name) {
  const unit_suite_t *suite = suites;
  while (suite != NULL && !is_called(suite, name)) {
    suite = suite->next;
  }
  return suite != NULL;
}

static bool is_wanted(const unit_suite_t *suite, char **arguments) {
  bool named = false;
  for (; *arguments != NULL; arguments++) {
    if (is_called(suite, *arguments)) {
      return true;
    }
    named |= is_a_suite(*arguments);
  }
  return !named;
}

static bool is_wanted_test(const char *test, char **arguments) {
  bool named = false;
  for (; *arguments != NULL; arguments++) {
    bool part = !is_a_suite(*arguments);
    if (part && strstr(test, *arguments) != NULL) {
      return true;
    }
    named |= part;
  }
  return !named;
}

/* Returns how many tests of the suite will run, and adds those that cannot to *skipped. */
static int add(SRunner *runner, const unit_suite_t *suite, char **arguments, int *skipped) {
  int count = 0;
  TCase *tests = tcase_create(suite->title);
  tcase_set_timeout(tests, TIMEOUT_SECONDS);
  for (int t = 0; t < *suite->count; t++) {
    const unit_test_t *test = &suite->tests[t];
    if (!is_wanted_test(test->test->name, arguments)) {
      continue;
    }
    const char *reason = test->hindrance == NULL ? NULL : test->hindrance();
    if (reason == NULL) {
      tcase_add_test(tests, test->test);
      count++;
    } else {
      printf("skipped: %s: %s\n", test->test->name, reason);
      (void)fflush(stdout); /* processes of tests would print it again */
      ++*skipped;
    }
  }
  Suite *checked = suite_create(suite->title);
  suite_add_tcase(checked, tests);
  srunner_add_suite(runner, checked);
  return count;
}

int main(int argc, char **argv) {
  (void)argc;
  int count = 0;
  int skipped = 0;
  SRunner *runner = srunner_create(NULL);
  for (const unit_suite_t *suite = suites; suite != NULL; suite = suite->next) {
    count += is_wanted(suite, argv + 1) ? add(runner, suite, argv + 1, &skipped) : 0;
  }
  if (count == 0) {
    srunner_free(runner);
    if (skipped > 0) {
      return EXIT_SKIPPED;
    }
    (void)fprintf(stderr, "%s: no test is called so\n", argv[0]);
    return EXIT_FAILURE;
  }
  srunner_run_all(runner, CK_NORMAL);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
