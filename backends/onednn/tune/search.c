// SPDX-License-Identifier: Apache-2.0
// Candidates, their times, the path through them, and the last comparison.
#include "onednn/tune/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "onednn/tune/path.h"
#include "onednn/tune/trial.h"
#include "onednn/weights/tuning.h"

enum { MAX_CANDIDATES = 1 + (ONEDNN_FORM_LAYOUTS - 1) * (1 + ONEDNN_FORM_SKIPS), ROUNDS = 9 };

// A gain counts if the time is less than this share of the old one; the rest is noise.
static const double least_gain = 0.98;
static const double budget_ms = 250;

typedef struct candidate {
  onednn_form_t form;  // that every convolution is asked to have
  onednn_survey_t survey;
  double *times;  // per kernel
  uint64_t labels;
} candidate_t;

// Layouts of one value in all candidates, numbered, and what copying from one to another takes.
typedef struct value_layouts {
  uint32_t count;
  uint32_t numbers[MAX_CANDIDATES];
  const onednn_layout_t *layouts[MAX_CANDIDATES];
  double *times;  // count x count; negative: not measured
} value_layouts_t;

typedef struct known_reorder {
  const onednn_layout_t *from;
  const onednn_layout_t *to;
  double time;
} known_reorder_t;

typedef struct search {
  onednn_ground_t ground;
  kernel_arena_t arena;
  candidate_t candidates[MAX_CANDIDATES];
  uint32_t candidate_count;
  value_layouts_t *values;  // per value that moves and has more than one layout
  uint32_t *crossing;       // values in front of each kernel: all of one kernel, then those of the next
  uint32_t *crossing_starts;
  known_reorder_t *reorders;
  uint32_t reorder_count;
  uint32_t reorder_capacity;
  onednn_tuning_t *tuning;  // being tried
} search_t;

static cleave_status_t out_of_memory(const search_t *search) {
  return kernel_fail(search->ground.message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while tuning");
}

static void report(const search_t *search, const char *what, int done, int all) {
  const cleave_host_t *host = search->ground.base->host;
  char line[256];
  (void)snprintf(line, sizeof(line), "tuning region '%.100s' for %d thread%s: %s %d of %d",
                 search->ground.region->name, (int)search->ground.threads,
                 KERNEL_PLURAL(search->ground.threads), what, done, all);
  if (host->log != NULL) {
    host->log(host, 2, line);
  }
}

// ---- candidates ----

// FNV-1a over the labels of all steps: implementations and layouts.
static uint64_t digest_labels(const onednn_program_t *program) {
  const cleave_step_time_t *steps = NULL;
  uint32_t count = onednn_program_profile(program, &steps);
  uint64_t digest = UINT64_C(0xcbf29ce484222325);
  for (uint32_t k = 0; k < count; k++) {
    for (const char *c = steps[k].label; *c != '\0'; c++) {
      digest = (digest ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    digest = (digest ^ 0xffU) * UINT64_C(0x100000001b3);
  }
  return digest;
}

static bool is_known(const search_t *search, uint64_t labels) {
  for (uint32_t k = 0; k < search->candidate_count; k++) {
    if (search->candidates[k].labels == labels) {
      return true;
    }
  }
  return false;
}

static void wish(onednn_tuning_t *tuning, onednn_form_t form) {
  for (uint32_t k = 0; k < tuning->kernel_count; k++) {
    tuning->forms[k] = form;
  }
}

// Compiles and measures; what is another candidate by another name is left out.
static cleave_status_t try_form(search_t *search, onednn_form_t form) {
  candidate_t *candidate = &search->candidates[search->candidate_count];
  onednn_program_t *program = NULL;
  *candidate = (candidate_t){.form = form, .survey = {.arena = &search->arena}};
  if (search->tuning != NULL) {
    wish(search->tuning, form);
  }
  ONEDNN_TRY(onednn_trial_create(&search->ground, search->tuning, &candidate->survey, &program));
  candidate->labels = digest_labels(program);
  cleave_status_t status = CLEAVE_OK;
  if (!is_known(search, candidate->labels)) {
    candidate->times =
        kernel_arena_allocate(&search->arena, (size_t)candidate->survey.kernel_count + 1, sizeof(double));
    status = candidate->times == NULL ? out_of_memory(search)
                                      : onednn_trial_measure(&search->ground, program, &candidate->survey,
                                                             budget_ms, candidate->times);
    search->candidate_count += status == CLEAVE_OK ? 1 : 0;
  }
  onednn_program_destroy(program);
  return status;
}

static cleave_status_t try_all(search_t *search) {
  int done = 0;
  report(search, "form", done, MAX_CANDIDATES);
  ONEDNN_TRY(try_form(search, (onednn_form_t){.layout = ONEDNN_FORM_DEFAULT}));
  uint32_t kernels = search->candidates[0].survey.kernel_count;
  search->tuning = calloc(1, onednn_tuning_bytes(kernels));
  if (search->tuning == NULL) {
    return out_of_memory(search);
  }
  search->tuning->kernel_count = kernels;
  for (int layout = ONEDNN_FORM_DEFAULT + 1; layout < ONEDNN_FORM_LAYOUTS; layout++) {
    for (int skipped = 0; skipped <= ONEDNN_FORM_SKIPS; skipped++) {
      report(search, "form", ++done, MAX_CANDIDATES);
      ONEDNN_TRY(try_form(search, (onednn_form_t){.layout = (uint8_t)layout, .skipped = (uint8_t)skipped}));
    }
  }
  return CLEAVE_OK;
}

// ---- conversions between candidates ----

static cleave_status_t number_layouts(search_t *search, uint32_t value) {
  value_layouts_t *of = &search->values[value];
  for (uint32_t c = 0; c < search->candidate_count; c++) {
    const onednn_survey_t *survey = &search->candidates[c].survey;
    const onednn_layout_t *layout = survey->moves[value] ? &survey->layouts[value] : NULL;
    uint32_t number = 0;
    // A value that has no place in some candidate moves with its neighbours.
    while (number < of->count && layout != NULL && !onednn_layout_equal(of->layouts[number], layout)) {
      number++;
    }
    of->numbers[c] = number;
    if (number == of->count && layout != NULL) {
      of->layouts[of->count++] = layout;
    }
  }
  of->times = kernel_arena_allocate(&search->arena, (size_t)of->count * of->count + 1, sizeof(double));
  for (uint32_t k = 0; of->times != NULL && k < of->count * of->count; k++) {
    of->times[k] = -1;
  }
  return of->times != NULL ? CLEAVE_OK : out_of_memory(search);
}

// Is the value there in front of the kernel, made before and read by it or later?
static bool crosses(const onednn_survey_t *survey, uint32_t value, uint32_t kernel) {
  return survey->moves[value] && survey->made_by[value] < kernel &&
         survey->last_use[value] != CLEAVE_INDEX_NONE && survey->last_use[value] >= kernel;
}

// The lists of values with several layouts that are there in front of each kernel.
static cleave_status_t list_crossing(search_t *search) {
  const onednn_survey_t *survey = &search->candidates[0].survey;
  size_t total = 0;
  search->values = kernel_arena_allocate(&search->arena, survey->value_count, sizeof(value_layouts_t));
  search->crossing_starts =
      kernel_arena_allocate(&search->arena, (size_t)survey->kernel_count + 1, sizeof(uint32_t));
  if (search->values == NULL || search->crossing_starts == NULL) {
    return out_of_memory(search);
  }
  for (uint32_t v = 0; v < survey->value_count; v++) {
    ONEDNN_TRY(number_layouts(search, v));
    for (uint32_t k = survey->made_by[v] + 1;
         search->values[v].count > 1 && k < survey->kernel_count && crosses(survey, v, k); k++) {
      search->crossing_starts[k + 1]++;
      total++;
    }
  }
  for (uint32_t k = 0; k < survey->kernel_count; k++) {
    search->crossing_starts[k + 1] += search->crossing_starts[k];
  }
  search->crossing = kernel_arena_allocate(&search->arena, total, sizeof(uint32_t));
  uint32_t *next = kernel_arena_allocate(&search->arena, (size_t)survey->kernel_count + 1, sizeof(uint32_t));
  if (search->crossing == NULL || next == NULL) {
    return out_of_memory(search);
  }
  for (uint32_t v = 0; v < survey->value_count; v++) {
    for (uint32_t k = survey->made_by[v] + 1;
         search->values[v].count > 1 && k < survey->kernel_count && crosses(survey, v, k); k++) {
      search->crossing[search->crossing_starts[k] + next[k]++] = v;
    }
  }
  return CLEAVE_OK;
}

// Many values have the same shape: each pair of layouts is measured once.
static double reorder_time(search_t *search, const onednn_layout_t *from, const onednn_layout_t *to) {
  for (uint32_t k = 0; k < search->reorder_count; k++) {
    const known_reorder_t *known = &search->reorders[k];
    if (onednn_md_equal(known->from, from) && onednn_md_equal(known->to, to)) {
      return known->time;
    }
  }
  double time = onednn_trial_reorder(&search->ground, from, to);
  if (search->reorder_count == search->reorder_capacity) {
    uint32_t wanted = search->reorder_capacity * 2 + 64;
    known_reorder_t *larger = realloc(search->reorders, wanted * sizeof(*larger));
    if (larger == NULL) {
      return time;
    }
    search->reorders = larger;
    search->reorder_capacity = wanted;
  }
  search->reorders[search->reorder_count++] = (known_reorder_t){.from = from, .to = to, .time = time};
  return time;
}

static double switch_time(void *context, uint32_t kernel, uint32_t from, uint32_t to) {
  search_t *search = context;
  double sum = 0;
  for (uint32_t k = search->crossing_starts[kernel]; k < search->crossing_starts[kernel + 1]; k++) {
    value_layouts_t *of = &search->values[search->crossing[k]];
    uint32_t a = of->numbers[from];
    uint32_t b = of->numbers[to];
    if (a == b || a >= of->count || b >= of->count) {
      continue;
    }
    double *time = &of->times[a * of->count + b];
    if (*time < 0) {
      *time = reorder_time(search, of->layouts[a], of->layouts[b]);
    }
    sum += *time;
  }
  return sum;
}

// ---- the choice ----

static cleave_status_t choose_layouts(search_t *search) {
  uint32_t kernels = search->tuning->kernel_count;
  uint32_t candidates = search->candidate_count;
  double *times = kernel_arena_allocate(&search->arena, (size_t)kernels * candidates, sizeof(double));
  uint32_t *chosen = kernel_arena_allocate(&search->arena, kernels, sizeof(uint32_t));
  if (times == NULL || chosen == NULL) {
    return out_of_memory(search);
  }
  for (uint32_t k = 0; k < kernels; k++) {
    for (uint32_t c = 0; c < candidates; c++) {
      // Between equals, the default form.
      times[(size_t)k * candidates + c] = search->candidates[c].times[k] * (c > 0 ? 1 / least_gain : 1);
    }
  }
  const onednn_path_t path = {
      .kernels = kernels, .forms = candidates, .times = times, .switches = switch_time, .context = search};
  if (!onednn_path_find(&path, chosen)) {
    return out_of_memory(search);
  }
  for (uint32_t k = 0; k < kernels; k++) {
    const candidate_t *candidate = &search->candidates[chosen[k]];
    bool has_form = candidate->survey.formed[k];
    search->tuning->forms[k] = has_form ? candidate->form : (onednn_form_t){.layout = ONEDNN_FORM_DEFAULT};
  }
  return CLEAVE_OK;
}

// Times of all kernels with the forms of `tuning`.
static cleave_status_t measure_forms(search_t *search, const onednn_tuning_t *tuning, double **out_times) {
  onednn_survey_t survey = {.arena = &search->arena};
  onednn_program_t *program = NULL;
  ONEDNN_TRY(onednn_trial_create(&search->ground, tuning, &survey, &program));
  *out_times = kernel_arena_allocate(&search->arena, (size_t)survey.kernel_count + 1, sizeof(double));
  cleave_status_t status =
      *out_times == NULL ? out_of_memory(search)
                         : onednn_trial_measure(&search->ground, program, &survey, budget_ms, *out_times);
  onednn_program_destroy(program);
  return status;
}

// Short kernels are done by one thread before two have met.
static cleave_status_t choose_threads(search_t *search, onednn_tuning_t *tuning) {
  const double clear_gain = 0.9;
  double *shared = NULL;
  double *alone = NULL;
  ONEDNN_TRY(measure_forms(search, tuning, &shared));
  for (uint32_t k = 0; k < tuning->kernel_count; k++) {
    tuning->forms[k].serial = 1;
  }
  ONEDNN_TRY(measure_forms(search, tuning, &alone));
  for (uint32_t k = 0; k < tuning->kernel_count; k++) {
    tuning->forms[k].serial = alone[k] < clear_gain * shared[k] ? 1 : 0;
  }
  return CLEAVE_OK;
}

static int by_size(const void *left, const void *right) {
  double a = *(const double *)left;
  double b = *(const double *)right;
  return a < b ? -1 : a > b ? 1 : 0;
}

// Runs all programs in turn; the median of each.
static cleave_status_t compare(search_t *search, onednn_program_t *const *programs, int count,
                               double *medians) {
  enum { MOST = 3 };
  double times[MOST][ROUNDS];
  double ms = 0;
  for (int p = 0; p < count; p++) {
    ONEDNN_TRY(onednn_trial_run(&search->ground, programs[p], &ms));
  }
  int repeats = ms > 40 ? 1 : (int)(40 / (ms + 0.1)) + 1;
  for (int r = 0; r < ROUNDS; r++) {
    report(search, "comparison", r + 1, ROUNDS);
    for (int p = 0; p < count; p++) {
      double sum = 0;
      ONEDNN_TRY(onednn_trial_run(&search->ground, programs[p], &ms));
      for (int k = 0; k < repeats; k++) {
        ONEDNN_TRY(onednn_trial_run(&search->ground, programs[p], &ms));
        sum += ms;
      }
      times[p][r] = sum / repeats;
    }
  }
  for (int p = 0; p < count; p++) {
    qsort(times[p], ROUNDS, sizeof(double), by_size);
    medians[p] = times[p][ROUNDS / 2];
  }
  return CLEAVE_OK;
}

static void count_changes(onednn_tuning_t *tuning) {
  tuning->changed = 0;
  tuning->serial = 0;
  for (uint32_t k = 0; k < tuning->kernel_count; k++) {
    tuning->changed += tuning->forms[k].layout != ONEDNN_FORM_DEFAULT ? 1 : 0;
    tuning->serial += tuning->forms[k].serial != 0 ? 1 : 0;
  }
}

// The default forms, the layouts of the path, and these with threads as chosen: the fastest stays.
static cleave_status_t settle(search_t *search, const onednn_tuning_t *threaded) {
  onednn_tuning_t *layouts = search->tuning;
  const onednn_tuning_t *tunings[3] = {NULL, layouts, threaded};
  onednn_program_t *programs[3] = {NULL, NULL, NULL};
  double medians[3] = {0, 0, 0};
  int count = threaded != NULL ? 3 : 2;
  cleave_status_t status = CLEAVE_OK;
  for (int p = 0; p < count && status == CLEAVE_OK; p++) {
    status = onednn_trial_create(&search->ground, tunings[p], NULL, &programs[p]);
  }
  if (status == CLEAVE_OK) {
    status = compare(search, programs, count, medians);
  }
  for (int p = 0; p < count; p++) {
    onednn_program_destroy(programs[p]);
  }
  ONEDNN_TRY(status);
  int best = medians[1] < least_gain * medians[0] ? 1 : 0;
  best = count == 3 && medians[2] < least_gain * medians[best] ? 2 : best;
  layouts->before_ms = medians[0];
  layouts->after_ms = medians[best];
  if (best == 0) {
    wish(layouts, (onednn_form_t){.layout = ONEDNN_FORM_DEFAULT});
  } else if (best == 2) {
    memcpy(layouts->forms, threaded->forms, threaded->kernel_count * sizeof(onednn_form_t));
  }
  count_changes(layouts);
  return CLEAVE_OK;
}

static cleave_status_t find(search_t *search) {
  size_t bytes = 0;
  onednn_tuning_t *threaded = NULL;
  ONEDNN_TRY(try_all(search));
  ONEDNN_TRY(list_crossing(search));
  ONEDNN_TRY(choose_layouts(search));
  if (search->ground.threads > 1) {
    bytes = onednn_tuning_bytes(search->tuning->kernel_count);
    threaded = kernel_arena_allocate(&search->arena, 1, bytes);
    if (threaded == NULL) {
      return out_of_memory(search);
    }
    memcpy(threaded, search->tuning, bytes);
    ONEDNN_TRY(choose_threads(search, threaded));
  }
  return settle(search, threaded);
}

cleave_status_t onednn_search(const onednn_base_t *base, const cleave_region_view_t *region, int32_t threads,
                              onednn_tuning_t **out, cleave_message_t *message) {
  search_t *search = calloc(1, sizeof(*search));
  *out = NULL;
  if (search == NULL) {
    return kernel_fail(message, CLEAVE_ERROR_OUT_OF_MEMORY, "out of memory while tuning");
  }
  cleave_status_t status = onednn_ground_init(&search->ground, base, region, threads, message);
  if (status == CLEAVE_OK) {
    status = find(search);
  }
  onednn_ground_deinit(&search->ground);
  kernel_arena_free(&search->arena);
  free(search->reorders);
  if (status == CLEAVE_OK) {
    *out = search->tuning;
  } else {
    free(search->tuning);
  }
  free(search);
  return status;
}
