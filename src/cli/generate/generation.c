// SPDX-License-Identifier: Apache-2.0
// The prompt runs in one session, made for its length, and every later token in another. Both have the same
// plan and share packed weights. Buffers of tokens are made once; states stay in their sessions.
#include "cli/generate/generation.h"

#include <stdlib.h>
#include <string.h>

#include "backend/registry/context.h"
#include "cleave/half.h"
#include "cli/common/common.h"
#include "runtime/model/model.h"
#include "system/clock.h"

/* Of models that Optimum merges out of one for the prompt and one with past tokens: true takes the second
 * one, which does for a prompt, too, with a past of length 0. */
static const char BRANCH_INPUT[] = "use_cache_branch";

static const cleave_value_record_t *input_of(const cleave_graph_t *graph, uint32_t input) {
  return cleave_graph_value(graph, graph->inputs.items[input]);
}

static bool is_integer(cleave_dtype_t dtype) {
  return dtype == CLEAVE_DTYPE_I64 || dtype == CLEAVE_DTYPE_I32;
}

/* ---- the prompt ---- */

/* Numbers with commas between them. */
static cleave_status_t read_numbers(const char *text, cleave_tensor_t **out_tokens, cleave_error_t *error) {
  CLEAVE_ARRAY(int64_t) numbers = {0};
  cleave_status_t status = CLEAVE_OK;
  for (const char *at = text; status == CLEAVE_OK;) {
    char *end = NULL;
    long long number = strtoll(at, &end, 10);
    if (end == at || (*end != ',' && *end != '\0') || number < 0) {
      CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                          "option '--prompt': expected numbers of tokens with commas between "
                                          "them, or a file, found '%s'",
                                          text));
    }
    CLEAVE_TRY_CLEANUP(cleave_array_reserve(&numbers, 1, error));
    cleave_array_push_reserved(&numbers, (int64_t)number);
    if (*end == '\0') {
      break;
    }
    at = end + 1;
  }
  status = cleave_tensor_create_ints(1, numbers.items, (int64_t)numbers.count, out_tokens, error);
cleanup:
  cleave_array_free(&numbers);
  return status;
}

static cleave_status_t read_file(const char *path, cleave_tensor_t **out_tokens, cleave_error_t *error) {
  cleave_tensor_t *found = NULL;
  CLEAVE_TRY(cleave_tensor_load(path, &found, error));
  int64_t dims[1] = {found->count};
  cleave_status_t status = CLEAVE_OK;
  if (!is_integer(found->dtype) || found->count < 1) {
    CLEAVE_TRY_CLEANUP(cleave_error_set(error, CLEAVE_ERROR_INVALID_ARGUMENT,
                                        "%s: expected one or more tokens of int64 or int32, found %lld of %s",
                                        path, (long long)found->count, cleave_dtype_name(found->dtype)));
  }
  CLEAVE_TRY_CLEANUP(cleave_tensor_create(CLEAVE_DTYPE_I64, 1, dims, out_tokens, error));
  for (int64_t k = 0; k < found->count; k++) {
    ((int64_t *)(*out_tokens)->data)[k] = cleave_tensor_get_int(found, k);
  }
cleanup:
  cleave_tensor_release(found);
  return status;
}

static cleave_status_t read_prompt(cleave_generation_t *generation, cleave_error_t *error) {
  const char *text = generation->prompt;
  bool is_list = text[strspn(text, "0123456789,")] == '\0';
  CLEAVE_TRY(is_list ? read_numbers(text, &generation->prompt_tokens, error)
                     : read_file(text, &generation->prompt_tokens, error));
  int64_t count = generation->prompt_tokens->count;
  if (generation->steps > INT32_MAX || count > INT32_MAX || generation->capacity > INT32_MAX) {
    return cleave_error_set(error, CLEAVE_ERROR_LIMIT, "more than %d tokens", INT32_MAX);
  }
  /* The last token is drawn, and not read any more. */
  int64_t needed = count + generation->steps - 1;
  if (generation->capacity == 0) {
    generation->capacity = needed;
  }
  return generation->capacity >= needed
             ? CLEAVE_OK
             : cleave_error_set(
                   error, CLEAVE_ERROR_INVALID_ARGUMENT,
                   "option '--capacity': a prompt of %lld token%s and %lld more need %lld, found %lld",
                   (long long)count, CLEAVE_PLURAL(count), (long long)generation->steps, (long long)needed,
                   (long long)generation->capacity);
}

/* ---- what the model's inputs and outputs are ---- */

static cleave_status_t find_scores(cleave_generation_t *generation, const cleave_graph_t *graph,
                                   cleave_error_t *error) {
  for (uint32_t k = 0; k < graph->outputs.count; k++) {
    if (!cleave_states_have_output(&generation->pairs, k)) {
      generation->scores_output = k;
      return CLEAVE_OK;
    }
  }
  return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                          "%s: expected an output of scores, found states only",
                          generation->job_options.model);
}

/* The model with a batch of one; all else stays open, for rules that shall not depend on it. */
static cleave_status_t bind_batch(cleave_generation_t *generation, cleave_error_t *error) {
  static const int64_t dims[2] = {1, -1};
  const cleave_graph_t *graph = cleave_model_graph(generation->job.model);
  uint32_t count = (uint32_t)graph->inputs.count;
  const cleave_tensor_view_t **pointers = cleave_allocate_zeroed(count, sizeof *pointers);
  if (pointers == NULL) {
    return cleave_error_out_of_memory(error);
  }
  const cleave_tensor_view_t tokens = {.size = sizeof tokens,
                                       .dtype = input_of(graph, generation->inputs.tokens)->dtype,
                                       .rank = 2,
                                       .dims = dims};
  cleave_model_t *bound = NULL;
  pointers[generation->inputs.tokens] = &tokens;
  cleave_status_t status = cleave_model_bind_partly(generation->job.model, pointers, count, &bound, error);
  cleave_free((void *)pointers);
  if (status == CLEAVE_OK) {
    cleave_model_release(generation->job.model);
    generation->job.model = bound;
  }
  return status;
}

/* Is its size open, for a number of tokens? */
static bool grows(const cleave_graph_t *graph, const cleave_state_pair_t *pair) {
  const cleave_value_record_t *input = input_of(graph, pair->input);
  bool is_open = input->rank < 0;
  for (int32_t d = 0; d < input->rank; d++) {
    is_open = is_open || input->dims[d] < 0;
  }
  return is_open;
}

/* Why no rule changed the whole model: the reason of the first pass that left it as it was, or NULL. */
static const char *reason_of_pass(const cleave_edits_t *edits) {
  for (size_t k = 0; edits != NULL && k < edits->refusals.count; k++) {
    const cleave_edit_refusal_t *refusal = &edits->refusals.items[k];
    if (strcmp(edits->rules.items[refusal->rule].kind, "pass") == 0) {
      return refusal->reason;
    }
  }
  return NULL;
}

/* Why a session does not have states of a fixed size, if one of them grows; otherwise what failed. */
static cleave_status_t explain(const cleave_generation_t *generation, cleave_status_t failed,
                               const cleave_error_t *cause, cleave_error_t *error) {
  const cleave_graph_t *graph = generation->job.plan->graph;
  size_t k = 0;
  while (k < generation->pairs.list.count && !grows(graph, &generation->pairs.list.items[k])) {
    k++;
  }
  if (failed != CLEAVE_ERROR_SHAPE || k == generation->pairs.list.count ||
      generation->inputs.length != CLEAVE_INDEX_NONE) {
    return cleave_error_set(error, failed, "%s", cause->message);
  }
  const char *reason = reason_of_pass(generation->job.plan->edits);
  return cleave_error_set(
      error, CLEAVE_ERROR_UNSUPPORTED,
      "%s: state '%s' has another size in each run, and rules made no cache of a fixed capacity of it%s%s",
      generation->job_options.model,
      cleave_value_name(graph, graph->inputs.items[generation->pairs.list.items[k].input]),
      reason != NULL ? ": " : "", reason != NULL ? reason : "");
}

/* What an encoder gives is not there: caches of it would be empty, and tokens be made of nothing. */
static cleave_status_t refuse_encoder(const cleave_generation_t *generation, cleave_error_t *error) {
  const cleave_graph_t *graph = cleave_model_graph(generation->loaded);
  for (uint32_t k = 0; k < graph->inputs.count; k++) {
    const char *name = cleave_value_name(graph, graph->inputs.items[k]);
    if (strncmp(name, "encoder_", strlen("encoder_")) == 0 || strstr(name, ".encoder.") != NULL) {
      return cleave_error_set(error, CLEAVE_ERROR_UNSUPPORTED,
                              "%s: expected a decoder alone, found input '%s', which is of an encoder",
                              generation->job_options.model, name);
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t load_model(cleave_generation_t *generation, cleave_error_t *error) {
  cleave_common_fix_usually(BRANCH_INPUT, "true");
  CLEAVE_TRY(cleave_job_load(&generation->job, &generation->job_options, error));
  generation->loaded = cleave_model_retain(generation->job.model);
  const cleave_graph_t *graph = cleave_model_graph(generation->loaded);
  for (size_t k = 0; k < graph->fixed_input_count; k++) {
    cleave_log(cleave_context_log(graph->context), CLEAVE_LOG_INFORMATION, "%s: fixed input %s",
               generation->job_options.model, cleave_strings_text(&graph->strings, graph->fixed_inputs[k]));
  }
  return refuse_encoder(generation, error);
}

static cleave_status_t load(cleave_generation_t *generation, cleave_error_t *error) {
  cleave_job_t *job = &generation->job;
  CLEAVE_TRY(load_model(generation, error));
  CLEAVE_TRY(cleave_states_find(cleave_model_graph(job->model), &generation->states, !generation->has_states,
                                &generation->pairs, error));
  CLEAVE_TRY(cleave_generation_inputs_find(cleave_model_graph(job->model), &generation->pairs,
                                           generation->mask, generation->positions,
                                           generation->job_options.model, &generation->inputs, error));
  CLEAVE_TRY(find_scores(generation, cleave_model_graph(job->model), error));
  if (generation->inputs.batch < 0) {
    CLEAVE_TRY(bind_batch(generation, error));
  }
  CLEAVE_TRY(cleave_job_partition(job, error));
  generation->inputs.length = cleave_plan_find_input(job->plan, CLEAVE_GENERATION_LENGTH);
  return CLEAVE_OK;
}

/* ---- sessions ---- */

/* A session for `length` tokens at a time, with its states. */
static cleave_status_t make_session(const cleave_generation_t *generation, int64_t length,
                                    cleave_session_t **out_session, cleave_error_t *error) {
  const cleave_graph_t *graph = generation->job.plan->graph;
  uint32_t count = (uint32_t)graph->inputs.count;
  cleave_tensor_view_t *views = cleave_allocate_zeroed(count, sizeof *views);
  const cleave_tensor_view_t **pointers = cleave_allocate_zeroed(count, sizeof *pointers);
  int64_t(*dims)[CLEAVE_MAX_RANK] = cleave_allocate_zeroed(count, sizeof *dims);
  cleave_status_t status = CLEAVE_OK;
  if (views == NULL || pointers == NULL || dims == NULL) {
    CLEAVE_TRY_CLEANUP(cleave_error_out_of_memory(error));
  }
  for (uint32_t k = 0; k < count; k++) {
    const cleave_value_record_t *input = input_of(graph, k);
    for (int32_t d = 0; d < input->rank; d++) {
      dims[k][d] =
          cleave_generation_inputs_dim(&generation->inputs, graph, k, d, length, generation->capacity);
    }
    views[k] = (cleave_tensor_view_t){
        .size = sizeof *views, .dtype = input->dtype, .rank = input->rank, .dims = dims[k]};
    pointers[k] = &views[k];
  }
  cleave_session_options_t options = cleave_common_session();
  options.threads = (int32_t)generation->job_options.threads;
  options.profile = generation->profile_path != NULL;
  options.programs = generation->job.programs;
  cleave_error_t cause = CLEAVE_ERROR_INIT;
  status = cleave_session_create(generation->job.model, generation->job.plan, pointers, count, &options,
                                 out_session, &cause);
  if (status == CLEAVE_OK) {
    status = cleave_states_feed(&generation->pairs, *out_session, &cause);
  }
  status = status == CLEAVE_OK ? CLEAVE_OK : explain(generation, status, &cause, error);
cleanup:
  cleave_free(views);
  cleave_free((void *)pointers);
  cleave_free(dims);
  return status;
}

/* States of one session become those of another. */
static cleave_status_t move_states(const cleave_generation_t *generation, const cleave_session_t *from,
                                   cleave_session_t *to, cleave_error_t *error) {
  for (size_t k = 0; k < generation->pairs.list.count; k++) {
    cleave_tensor_view_t view;
    CLEAVE_TRY(cleave_session_output(from, generation->pairs.list.items[k].output, &view, error));
    CLEAVE_TRY(cleave_session_set_input(to, generation->pairs.list.items[k].input, &view, error));
  }
  return CLEAVE_OK;
}

/* ---- tokens ---- */

/* The last `count` elements of a view as float32: where they are, or in memory of the generation. */
static cleave_status_t read_scores(cleave_generation_t *generation, const cleave_tensor_view_t *view,
                                   int64_t count, const float **out_scores, cleave_error_t *error) {
  int64_t first = cleave_view_element_count(view) - count;
  if (view->dtype == CLEAVE_DTYPE_F32) {
    *out_scores = (const float *)view->data + first;
    return CLEAVE_OK;
  }
  if (generation->row == NULL) {
    CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F32, 1, &count, &generation->row, error));
  }
  const uint16_t *halves = (const uint16_t *)view->data + first;
  float *row = generation->row->data;
  for (int64_t k = 0; k < count; k++) {
    row[k] =
        view->dtype == CLEAVE_DTYPE_F16 ? cleave_half_to_float(halves[k]) : cleave_bfloat_to_float(halves[k]);
  }
  *out_scores = row;
  return CLEAVE_OK;
}

/* The next token from the scores of the last one; kept if they are asked for. */
static cleave_status_t draw(cleave_generation_t *generation, const cleave_session_t *session,
                            cleave_error_t *error) {
  cleave_tensor_view_t view;
  const float *scores = NULL;
  CLEAVE_TRY(cleave_session_output(session, generation->scores_output, &view, error));
  int64_t count = view.rank > 0 ? view.dims[view.rank - 1] : 0;
  bool is_float =
      view.dtype == CLEAVE_DTYPE_F32 || view.dtype == CLEAVE_DTYPE_F16 || view.dtype == CLEAVE_DTYPE_BF16;
  if (!is_float || count < 1 || cleave_view_element_count(&view) < count) {
    return cleave_error_set(
        error, CLEAVE_ERROR_UNSUPPORTED,
        "%s: output %u is %s of rank %d, expected float32, float16 or bfloat16 scores of the next token",
        generation->job_options.model, (unsigned)generation->scores_output, cleave_dtype_name(view.dtype),
        (int)view.rank);
  }
  CLEAVE_TRY(read_scores(generation, &view, count, &scores, error));
  if (generation->scores_path != NULL && generation->scores == NULL) {
    const int64_t dims[2] = {generation->steps, count};
    CLEAVE_TRY(cleave_tensor_create(CLEAVE_DTYPE_F32, 2, dims, &generation->scores, error));
  }
  if (generation->scores != NULL) {
    memcpy((float *)generation->scores->data + generation->token_count * count, scores,
           (size_t)count * sizeof *scores);
  }
  generation->tokens[generation->token_count++] = cleave_sampler_draw(&generation->sampler, scores, count);
  return CLEAVE_OK;
}

static bool is_done(const cleave_generation_t *generation) {
  return generation->token_count == generation->steps ||
         generation->tokens[generation->token_count - 1] == generation->stop;
}

static cleave_status_t run_step(cleave_generation_t *generation, cleave_session_t *session, double *out_ms,
                                cleave_error_t *error) {
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY(cleave_session_run(session, error));
  CLEAVE_TRY(draw(generation, session, error));
  *out_ms = cleave_clock_ms(start, cleave_clock_now());
  return CLEAVE_OK;
}

/* Tokens after the first; the session's states are those behind the prompt. */
static cleave_status_t run_steps(cleave_generation_t *generation, cleave_session_t *session,
                                 cleave_generation_feed_t *feed, cleave_error_t *error) {
  int64_t past = generation->prompt_tokens->count;
  for (; !is_done(generation); past++) {
    cleave_generation_feed_set(feed, &generation->tokens[generation->token_count - 1], past);
    CLEAVE_TRY(run_step(generation, session, &generation->times[generation->token_count - 1], error));
    if (generation->profile_path != NULL) {
      CLEAVE_TRY(cleave_profile_add(&generation->profile, session, generation->job.plan, error));
    }
  }
  return CLEAVE_OK;
}

static cleave_status_t generate(cleave_generation_t *generation, cleave_error_t *error) {
  cleave_session_t *whole = NULL;
  cleave_session_t *single = NULL;
  cleave_generation_feed_t prompt = {0};
  cleave_generation_feed_t steps = {0};
  cleave_status_t status = CLEAVE_OK;
  int64_t length = generation->prompt_tokens->count;
  int64_t capacity = generation->capacity;
  uint64_t start = cleave_clock_now();
  CLEAVE_TRY_CLEANUP(make_session(generation, length, &whole, error));
  CLEAVE_TRY_CLEANUP(make_session(generation, 1, &single, error));
  CLEAVE_TRY_CLEANUP(
      cleave_generation_feed_init(&prompt, &generation->inputs, whole, length, capacity, error));
  CLEAVE_TRY_CLEANUP(cleave_generation_feed_init(&steps, &generation->inputs, single, 1, capacity, error));
  generation->compile_ms = cleave_clock_ms(start, cleave_clock_now());
  cleave_generation_feed_set(&prompt, generation->prompt_tokens->data, 0);
  CLEAVE_TRY_CLEANUP(run_step(generation, whole, &generation->first_ms, error));
  CLEAVE_TRY_CLEANUP(move_states(generation, whole, single, error));
  cleave_session_destroy(whole);
  whole = NULL;
  CLEAVE_TRY_CLEANUP(run_steps(generation, single, &steps, error));
  generation->program_count = cleave_session_program_count(single);
  if (generation->profile_path != NULL) {
    cleave_profile_finish(&generation->profile);
    CLEAVE_TRY_CLEANUP(
        cleave_profile_write_trace(generation->profile_path, single, generation->job.plan, error));
  }
cleanup:
  cleave_session_destroy(whole);
  cleave_session_destroy(single);
  cleave_generation_feed_deinit(&prompt);
  cleave_generation_feed_deinit(&steps);
  return status;
}

static cleave_status_t save_scores(const cleave_generation_t *generation, cleave_error_t *error) {
  if (generation->scores == NULL) {
    return CLEAVE_OK;
  }
  const int64_t dims[2] = {generation->token_count, generation->scores->dims[1]};
  const cleave_tensor_view_t view = {.size = sizeof view,
                                     .dtype = CLEAVE_DTYPE_F32,
                                     .rank = 2,
                                     .dims = dims,
                                     .data = generation->scores->data};
  cleave_tensor_t *drawn = NULL;
  CLEAVE_TRY(
      cleave_tensor_create_borrowed(&view, (size_t)(dims[0] * dims[1]) * sizeof(float), NULL, &drawn, error));
  cleave_status_t status = cleave_tensor_save(generation->scores_path, drawn, "scores", error);
  cleave_tensor_release(drawn);
  return status;
}

cleave_status_t cleave_generation_run(cleave_generation_t *generation, cleave_error_t *error) {
  if (generation->scores_path != NULL) {
    CLEAVE_TRY(cleave_tensor_path_check(generation->scores_path, error));
  }
  CLEAVE_TRY(read_prompt(generation, error));
  generation->tokens = cleave_allocate_zeroed((size_t)generation->steps, sizeof *generation->tokens);
  generation->times = cleave_allocate_zeroed((size_t)generation->steps, sizeof *generation->times);
  if (generation->tokens == NULL || generation->times == NULL) {
    return cleave_error_out_of_memory(error);
  }
  CLEAVE_TRY(load(generation, error));
  CLEAVE_TRY(cleave_program_cache_create(&generation->job.programs, error));
  CLEAVE_TRY(generate(generation, error));
  return save_scores(generation, error);
}

void cleave_generation_deinit(cleave_generation_t *generation) {
  cleave_job_deinit(&generation->job);
  cleave_model_release(generation->loaded);
  cleave_states_deinit(&generation->pairs);
  cleave_tensor_release(generation->prompt_tokens);
  cleave_tensor_release(generation->scores);
  cleave_tensor_release(generation->row);
  cleave_profile_deinit(&generation->profile);
  cleave_free(generation->tokens);
  cleave_free(generation->times);
}
