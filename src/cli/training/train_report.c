// SPDX-License-Identifier: Apache-2.0
#include "cli/training/train_report.h"

#include <jansson.h>
#include <math.h>

#include "base/text.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/run/watch.h"
#include "runtime/model/model.h"
#include "runtime/session/session.h"
#include "system/file.h"

/* JSON has no infinities. */
static json_t *number(double value) {
  return isfinite(value) ? json_real(value) : json_string(isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
}

/* Sums over all parts of a step. */
typedef struct parts {
  unsigned count;
  size_t nodes;
  unsigned fusions;
  unsigned regions;
  double memory; /* beside weights and samples, in bytes */
} parts_t;

static parts_t add_up(const cleave_trainer_t *trainer) {
  parts_t sum = {.count = (unsigned)cleave_trainer_part_count(trainer)};
  for (unsigned k = 0; k < sum.count; k++) {
    const cleave_plan_t *plan = cleave_trainer_part_plan(trainer, k);
    sum.nodes += cleave_model_graph(cleave_trainer_part_model(trainer, k))->live_node_count;
    sum.fusions += (unsigned)plan->fusion_count;
    sum.regions += (unsigned)plan->region_count;
    cleave_session_memory_t memory = cleave_session_memory(cleave_trainer_part_session(trainer, k));
    sum.memory +=
        (double)(memory.values_bytes + memory.outputs_bytes + memory.dynamic_bytes + memory.workspace_bytes);
  }
  return sum;
}

static void flush(void) {
  (void)fflush(stdout);
}

/* "precision bfloat16: 1 region", or what is in its place, and why. */
static void print_precision(const cleave_train_run_t *run) {
  cleave_train_precision_report_t report = {.size = sizeof report};
  cleave_trainer_precision(run->trainer, &report);
  if (report.precision == CLEAVE_TRAIN_FLOAT32) {
    return;
  }
  const char *name = cleave_train_precision_name(report.precision);
  if (report.regions > 0) {
    cleave_print("precision %s: %u region%s\n", name, (unsigned)report.regions,
                 CLEAVE_PLURAL(report.regions));
  } else {
    cleave_print("precision %s: float32 in its place: %s\n", name, report.reason);
  }
}

/* Who made the gradients of regions. */
static void print_backward(const cleave_train_run_t *run) {
  cleave_train_backward_report_t report = {.size = sizeof report};
  cleave_trainer_backward(run->trainer, &report);
  if (report.by_backends + report.by_rules > 0) {
    cleave_print("gradients: %u region%s by their backends, %u by rules", (unsigned)report.by_backends,
                 CLEAVE_PLURAL(report.by_backends), (unsigned)report.by_rules);
  } else if (report.reason != NULL) {
    cleave_print("gradients by rules");
  }
  if (report.reason != NULL) {
    cleave_print(": %s", report.reason);
  }
  cleave_print(report.by_backends + report.by_rules > 0 || report.reason != NULL ? "\n" : "");
}

static void add_backward(const cleave_train_run_t *run, json_t *json) {
  cleave_train_backward_report_t report = {.size = sizeof report};
  cleave_trainer_backward(run->trainer, &report);
  (void)json_object_set_new(json, "gradients_by_backends", json_integer((json_int_t)report.by_backends));
  if (report.reason != NULL) {
    (void)json_object_set_new(json, "gradients_by_rules_because", json_string(report.reason));
  }
}

static void add_precision(const cleave_train_run_t *run, json_t *json) {
  cleave_train_precision_report_t report = {.size = sizeof report};
  cleave_trainer_precision(run->trainer, &report);
  if (report.precision == CLEAVE_TRAIN_FLOAT32) {
    return;
  }
  (void)json_object_set_new(json, "precision", json_string(cleave_train_precision_name(report.precision)));
  (void)json_object_set_new(json, "precision_regions", json_integer((json_int_t)report.regions));
  if (report.reason != NULL) {
    (void)json_object_set_new(json, "float32_because", json_string(report.reason));
  }
}

static void print_start(const cleave_train_run_t *run, const parts_t *parts) {
  char bytes[32];
  cleave_print("\na step: %zu node%s, %u fusion%s, %u region%s", parts->nodes, CLEAVE_PLURAL(parts->nodes),
               parts->fusions, CLEAVE_PLURAL(parts->fusions), parts->regions, CLEAVE_PLURAL(parts->regions));
  if (parts->count > 1) {
    cleave_print(", in %u part%s", parts->count, CLEAVE_PLURAL(parts->count));
  }
  cleave_print(", %s of memory; made in %.0f ms\n", cleave_output_bytes(parts->memory, bytes, sizeof bytes),
               run->make_ms);
  print_precision(run);
  print_backward(run);
  if (run->options.recompute > 0.0) {
    cleave_report_recompute(cleave_trainer_recompute(run->trainer));
  }
  cleave_print("\n  %5s  %8s  %10s  %10s  %10s  %10s  %8s  %8s\n", "epoch", "steps", "loss", "gradient",
               "rate", "held out", "accuracy", "ms/step");
  flush();
}

static void print_start_json(const cleave_train_run_t *run, const parts_t *parts, json_t *json) {
  (void)json_object_set_new(json, "memory", json_integer((json_int_t)parts->memory));
  add_precision(run, json);
  add_backward(run, json);
  if (run->options.recompute > 0.0) {
    (void)json_object_set_new(json, "recompute",
                              cleave_report_recompute_json(cleave_trainer_recompute(run->trainer)));
  }
  cleave_run_watch_line(json);
}

void cleave_train_report_start(const cleave_train_run_t *run) {
  if (run->is_silent) {
    return;
  }
  parts_t parts = add_up(run->trainer);
  long long per_epoch = (long long)cleave_trainer_steps_per_epoch(run->trainer);
  long long steps = (long long)cleave_trainer_step_count(run->trainer);
  long long done = (long long)cleave_trainer_steps_done(run->trainer);
  const cleave_samples_t *samples = run->part != NULL ? run->part : run->all;
  if (run->json) {
    print_start_json(run, &parts,
                     json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:i, s:f}", "event", "start",
                               "samples", (json_int_t)cleave_samples_count(samples), "held_out",
                               (json_int_t)(run->held == NULL ? 0 : cleave_samples_count(run->held)),
                               "steps_per_epoch", (json_int_t)per_epoch, "steps", (json_int_t)steps,
                               "steps_done", (json_int_t)done, "nodes", (json_int_t)parts.nodes, "fusions",
                               (int)parts.fusions, "regions", (int)parts.regions, "make_ms", run->make_ms));
    return;
  }
  cleave_print("%lld sample%s", (long long)cleave_samples_count(samples),
               CLEAVE_PLURAL(cleave_samples_count(samples)));
  if (run->held != NULL) {
    cleave_print(", %lld held out", (long long)cleave_samples_count(run->held));
  }
  cleave_print("; %lld step%s of %lld in an epoch, %lld in all", per_epoch, CLEAVE_PLURAL(per_epoch),
               (long long)run->options.batch, steps);
  if (done > 0) {
    cleave_print("; %lld are done", done);
  }
  if (run->communicator != NULL) {
    cleave_print("; %d process%s", (int)run->communicator->count,
                 CLEAVE_BY_COUNT(run->communicator->count, "", "es"));
  }
  print_start(run, &parts);
}

void cleave_train_report_step(const cleave_train_run_t *run, const cleave_train_step_t *step) {
  if (run->is_silent) {
    return;
  }
  if (run->json && run->each_step) {
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:o, s:o, s:f}", "event", "step", "step", (json_int_t)step->step, "epoch",
                  (json_int_t)step->epoch, "loss", number(step->loss), "gradient_norm",
                  number(step->gradient_norm), "rate", step->rate);
    if (json != NULL && run->options.precision == CLEAVE_TRAIN_FLOAT16) {
      (void)json_object_set_new(json, "loss_scale", json_real(step->loss_scale));
      (void)json_object_set_new(json, "skipped", json_boolean(step->is_skipped));
    }
    cleave_run_watch_line(json);
    flush();
  }
  cleave_output_progress("epoch %lld, step %lld of %lld: loss %.4g, gradient %.3g", (long long)step->epoch,
                         (long long)step->step, (long long)cleave_trainer_step_count(run->trainer),
                         step->loss, step->gradient_norm);
}

void cleave_train_report_epoch(const cleave_train_run_t *run, const cleave_train_epoch_t *epoch) {
  if (run->is_silent) {
    return;
  }
  const cleave_evaluation_t *evaluation = &epoch->evaluation;
  cleave_output_progress_end();
  if (run->json) {
    json_t *json =
        json_pack("{s:s, s:I, s:I, s:o, s:o, s:f, s:f}", "event", "epoch", "epoch", (json_int_t)epoch->epoch,
                  "step", (json_int_t)epoch->step, "loss", number(epoch->loss), "gradient_norm",
                  number(epoch->norm), "rate", epoch->rate, "step_ms", epoch->step_ms);
    if (json != NULL && epoch->has_evaluation) {
      (void)json_object_set_new(json, "held_out_loss", number(evaluation->loss));
    }
    if (json != NULL && epoch->has_evaluation && evaluation->has_accuracy) {
      (void)json_object_set_new(json, "accuracy", json_real(evaluation->accuracy));
    }
    cleave_run_watch_line(json);
    flush();
    return;
  }
  cleave_print("  %5lld  %8lld  %10.5g  %10.4g  %10.4g", (long long)epoch->epoch, (long long)epoch->step,
               epoch->loss, epoch->norm, epoch->rate);
  if (epoch->has_evaluation) {
    cleave_print("  %10.5g", evaluation->loss);
  } else {
    cleave_print("  %10s", "");
  }
  if (epoch->has_evaluation && evaluation->has_accuracy) {
    cleave_print("  %6.2f %%", 100.0 * evaluation->accuracy);
  } else {
    cleave_print("  %8s", "");
  }
  cleave_print("  %8.2f\n", epoch->step_ms);
  flush();
}

void cleave_train_report_communication(const cleave_train_run_t *run) {
  cleave_train_communication_t sums = {.size = sizeof sums};
  cleave_trainer_communication(run->trainer, &sums);
  if (run->is_silent || sums.steps == 0) {
    return;
  }
  double going = sums.going_ms / (double)sums.steps;
  double waited = sums.waited_ms / (double)sums.steps;
  double hidden = going > waited ? 1.0 - waited / going : 0.0;
  if (run->json) {
    cleave_run_watch_line(json_pack("{s:s, s:i, s:i, s:I, s:f, s:f, s:f}", "event", "communication",
                                    "processes", (int)run->communicator->count, "buckets", (int)sums.buckets,
                                    "bytes", (json_int_t)sums.bytes, "going_ms", going, "waited_ms", waited,
                                    "hidden", hidden));
    return;
  }
  char bytes[32];
  cleave_print(
      "sums over %d process%s: %s in %u bucket%s, under way for %.2f ms of a step, of which %.2f ms "
      "nothing was computed (%.0f %% hidden)\n",
      (int)run->communicator->count, CLEAVE_BY_COUNT(run->communicator->count, "", "es"),
      cleave_output_bytes((double)sums.bytes, bytes, sizeof bytes), (unsigned)sums.buckets,
      CLEAVE_PLURAL(sums.buckets), going, waited, 100.0 * hidden);
}

void cleave_train_report_scale(const cleave_train_run_t *run) {
  int64_t count = cleave_trainer_steps_done(run->trainer);
  int64_t skipped = 0;
  cleave_train_step_t step = {.size = sizeof step, .loss_scale = run->options.loss_scale};
  if (run->is_silent || run->options.precision != CLEAVE_TRAIN_FLOAT16) {
    return;
  }
  for (int64_t k = 0; k < count && cleave_trainer_history(run->trainer, k, &step, NULL) == CLEAVE_OK; k++) {
    skipped += step.is_skipped ? 1 : 0;
  }
  if (run->json) {
    cleave_run_watch_line(json_pack("{s:s, s:f, s:I}", "event", "scale", "loss_scale", step.loss_scale,
                                    "skipped", (json_int_t)skipped));
  } else {
    cleave_print("loss scale %g in the last step; %lld of %lld step%s skipped\n", step.loss_scale,
                 (long long)skipped, (long long)count, CLEAVE_PLURAL(count));
  }
}

void cleave_train_report_saved(const cleave_train_run_t *run, const char *what, const char *path) {
  if (run->is_silent) {
    return;
  }
  if (run->json) {
    cleave_run_watch_line(json_pack("{s:s, s:s, s:s}", "event", "saved", "what", what, "path", path));
  } else {
    cleave_print("%s: %s\n", what, path);
  }
}

/* ---- train picture ---- */

/* With more steps than places across, a place shows the mean of its steps. */
enum { WIDTH = 760, PANEL = 240, LEFT = 70, RIGHT = 20, TOP = 40, GAP = 50, PLACES = 600, TICKS = 5 };

typedef struct panel {
  const char *title;
  bool is_norm;
  double top; /* in the picture */
  double low; /* logarithms to base 10 */
  double high;
} panel_t;

static bool is_shown(double value) {
  return isfinite(value) && value > 0.0;
}

static double value_of(const cleave_train_run_t *run, const panel_t *panel, int64_t index) {
  cleave_train_step_t step = {.size = sizeof step};
  if (cleave_trainer_history(run->trainer, index, &step, NULL) != CLEAVE_OK) {
    return NAN;
  }
  return panel->is_norm ? step.gradient_norm : step.loss;
}

/* The mean of the steps of a place, or NaN. */
static double mean_at(const cleave_train_run_t *run, const panel_t *panel, int64_t place, int64_t places) {
  int64_t steps = cleave_trainer_steps_done(run->trainer);
  int64_t count = 0;
  double sum = 0.0;
  for (int64_t k = place * steps / places; k < (place + 1) * steps / places; k++) {
    double value = value_of(run, panel, k);
    if (is_shown(value)) {
      sum += value;
      count++;
    }
  }
  return count > 0 ? sum / (double)count : NAN;
}

static void widen(panel_t *panel, double value) {
  if (is_shown(value)) {
    double place = log10(value);
    panel->low = fmin(panel->low, place);
    panel->high = fmax(panel->high, place);
  }
}

static double across(double share) {
  return LEFT + share * (WIDTH - LEFT - RIGHT);
}

static double down(const panel_t *panel, double value) {
  return panel->top + PANEL * (panel->high - log10(value)) / (panel->high - panel->low);
}

static void draw_frame(const panel_t *panel, int64_t steps, cleave_text_t *svg) {
  cleave_text_format(svg, "<text x='%d' y='%.1f' font-weight='bold'>%s</text>\n", LEFT, panel->top - 10.0,
                     panel->title);
  cleave_text_format(svg, "<rect x='%d' y='%.1f' width='%d' height='%d' fill='none' stroke='#999'/>\n", LEFT,
                     panel->top, WIDTH - LEFT - RIGHT, PANEL);
  for (int k = 0; k < TICKS; k++) {
    double share = (double)k / (TICKS - 1);
    double value = pow(10.0, panel->low + share * (panel->high - panel->low));
    double y = down(panel, value);
    cleave_text_format(svg, "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n", LEFT, y,
                       WIDTH - RIGHT, y);
    cleave_text_format(svg, "<text x='%d' y='%.1f' text-anchor='end'>%.3g</text>\n", LEFT - 6, y + 4.0,
                       value);
    cleave_text_format(svg, "<text x='%.1f' y='%.1f' text-anchor='middle'>%lld</text>\n", across(share),
                       panel->top + PANEL + 16.0, (long long)llround(share * (double)steps));
  }
}

static void draw_steps(const cleave_train_run_t *run, const panel_t *panel, int64_t places,
                       cleave_text_t *svg) {
  bool is_open = false;
  for (int64_t k = 0; k <= places; k++) {
    double value = k < places ? mean_at(run, panel, k, places) : NAN;
    if (isnan(value)) {
      cleave_text_add(svg, is_open ? "'/>\n" : "");
      is_open = false;
      continue;
    }
    cleave_text_add(svg, is_open ? " " : "<polyline fill='none' stroke='#1f77b4' points='");
    cleave_text_format(svg, "%.1f,%.1f", across(((double)k + 0.5) / (double)places), down(panel, value));
    is_open = true;
  }
}

/* Losses of held-out samples, after the steps that they were measured behind. */
static void draw_held_out(const cleave_train_run_t *run, const panel_t *panel, int64_t steps,
                          cleave_text_t *svg) {
  for (size_t k = 0; k < run->epochs.count && !panel->is_norm; k++) {
    const cleave_train_epoch_t *epoch = &run->epochs.items[k];
    if (epoch->has_evaluation && is_shown(epoch->evaluation.loss)) {
      cleave_text_format(svg, "<circle cx='%.1f' cy='%.1f' r='3' fill='#d62728'/>\n",
                         across((double)epoch->step / (double)steps), down(panel, epoch->evaluation.loss));
    }
  }
}

static void draw_panel(const cleave_train_run_t *run, panel_t *panel, cleave_text_t *svg) {
  int64_t steps = cleave_trainer_steps_done(run->trainer);
  int64_t places = steps < PLACES ? steps : PLACES;
  panel->low = INFINITY;
  panel->high = -INFINITY;
  for (int64_t k = 0; k < places; k++) {
    widen(panel, mean_at(run, panel, k, places));
  }
  for (size_t k = 0; k < run->epochs.count && !panel->is_norm; k++) {
    widen(panel, run->epochs.items[k].has_evaluation ? run->epochs.items[k].evaluation.loss : NAN);
  }
  if (!(panel->high - panel->low > 1e-6)) {
    double middle = isfinite(panel->low) ? panel->low : 0.0;
    panel->low = middle - 0.5;
    panel->high = middle + 0.5;
  }
  draw_frame(panel, steps, svg);
  draw_steps(run, panel, places, svg);
  draw_held_out(run, panel, steps, svg);
}

cleave_status_t cleave_train_picture_write(const cleave_train_run_t *run, const char *path,
                                           cleave_error_t *error) {
  cleave_text_t svg = {0};
  panel_t loss = {.title = "loss of each step (line) and of held-out samples (dots)", .top = TOP};
  panel_t norm = {.title = "gradient norm", .is_norm = true, .top = TOP + PANEL + GAP};
  int height = TOP + 2 * PANEL + GAP + 40;
  cleave_text_format(&svg,
                     "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
                     "font-family='sans-serif' font-size='12'>\n<rect width='100%%' height='100%%' "
                     "fill='white'/>\n",
                     WIDTH, height);
  draw_panel(run, &loss, &svg);
  draw_panel(run, &norm, &svg);
  cleave_text_add(&svg, "</svg>\n");
  cleave_status_t status = cleave_text_check(&svg, error);
  CLEAVE_THEN(status, cleave_file_write(path, svg.data, svg.length, error));
  cleave_text_deinit(&svg);
  return status;
}
