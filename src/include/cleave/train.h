// SPDX-License-Identifier: Apache-2.0
/*
 * Training: a model, samples, a loss and an optimizer; step by step, with checkpoints.
 *
 * A step is one graph: forward, backward (cleave_model_gradient) and the optimizer's update, all of canonical
 * operators, so that rules partition and fuse it like any other model. Weights stay where they are: a step
 * reads them from one buffer and writes them to another, and the next step does the same the other way round.
 *
 * What a run computes depends on the model, the samples, the options and the number of threads alone: the
 * same run gives the same losses, and a run that goes on from a checkpoint gives those that it would have
 * given without the break, to the bit.
 *
 * Several processes (cleave/distributed.h) train one model together: each takes its share of every minibatch,
 * gradients are summed over all while backward still goes on, and each makes the same update. Losses, norms
 * and weights are those of one process up to rounding, as sums over the samples are made in another order,
 * and the same in all processes, to the bit. BatchNormalization in training is the exception: it normalizes
 * by the statistics of the process's own share, and the running ones become the mean over the processes.
 *
 * Errors, ownership and threads are as cleave/cleave.h says: one trainer from one thread at a time.
 */
#ifndef CLEAVE_TRAIN_H
#define CLEAVE_TRAIN_H

#include "cleave/cleave.h"
#include "cleave/distributed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- samples -------------------------------------------------------------------------------------- */

/* Named arrays whose first dimension counts samples. Mapped from their files, never changed, and shared by
 * trainers; must outlive them. */
typedef struct cleave_samples cleave_samples_t;

/* The files NAME.npy of a folder, or the arrays of a file.npz (numpy.savez; not compressed). At least one
 * array; all have rank 1 or more and the same number of samples, at least 1.
 * CLEAVE_ERROR_IO, _FORMAT, _UNSUPPORTED: a file is not readable. CLEAVE_ERROR_SHAPE: the arrays do not
 * belong together. */
CLEAVE_MUST_USE cleave_status_t cleave_samples_open(const char *path, cleave_samples_t **out_samples,
                                                    cleave_error_t *error);
/* NULL is a no-op. */
void cleave_samples_destroy(cleave_samples_t *samples);
int64_t cleave_samples_count(const cleave_samples_t *samples);
/* A part of the samples, `first` to `first + count - 1`, which shares the mapped files: for evaluation on
 * what is not trained on. */
CLEAVE_MUST_USE cleave_status_t cleave_samples_slice(const cleave_samples_t *samples, int64_t first,
                                                     int64_t count, cleave_samples_t **out_samples,
                                                     cleave_error_t *error);

/* ---- options -------------------------------------------------------------------------------------- */

/* How an update changes a weight w by its gradient d, which is the one of the loss, cut by `clip`, plus
 * weight_decay times w (ADAMW: not). PyTorch has optimizers of these names. */
typedef enum cleave_optimizer {
  CLEAVE_OPTIMIZER_SGD,      /* w -= rate d */
  CLEAVE_OPTIMIZER_MOMENTUM, /* v = momentum v + d; w -= rate v; with `nesterov`: w -= rate (d + momentum v)
                              */
  CLEAVE_OPTIMIZER_ADAM,     /* m = beta1 m + (1 - beta1) d, v = beta2 v + (1 - beta2) d d; in step t from 1:
                              * w -= rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) */
  CLEAVE_OPTIMIZER_ADAMW     /* the same, after w -= rate weight_decay w */
} cleave_optimizer_t;

/* The rate of step t, from 0, out of `steps` in all, of which the first `warmup` rise in equal steps to
 * `rate`. */
typedef enum cleave_schedule {
  CLEAVE_SCHEDULE_CONSTANT, /* rate */
  CLEAVE_SCHEDULE_STEP,     /* rate step_factor^(epoch / step_epochs), rounded down */
  CLEAVE_SCHEDULE_COSINE    /* from rate to final_rate by half a cosine, over what follows the warmup */
} cleave_schedule_t;

/* The numbers in which regions multiply. Weights, their state and the update are those of the model, float32
 * mostly, whatever this is, and so are gradients before they are cut. */
typedef enum cleave_train_precision {
  CLEAVE_TRAIN_FLOAT32,
  CLEAVE_TRAIN_BFLOAT16, /* has the range of float32 */
  /* Small gradients would become zero: the loss is multiplied by a scale before backward, and gradients are
   * divided by it after. A step whose gradients are not finite leaves everything as it was (weights, their
   * state, running statistics) and halves the scale; it doubles after `scale_steps` good ones in a row.
   * Models that convert to float16 themselves need this, too. */
  CLEAVE_TRAIN_FLOAT16
} cleave_train_precision_t;

typedef struct cleave_train_options {
  size_t size; /* sizeof(cleave_train_options_t) */
  /* "cross_entropy": the mean of the softmax cross entropy of `scores`, [N, C] or [N, C, ...], against the
   * array "labels" of integers, [N] or [N, ...] (or scores [N, ..., C], if only that fits), as ONNX's
   * SoftmaxCrossEntropyLoss (opset 13); labels of -100 do not count. If `scores` is what a Softmax over the
   * classes makes, its input is taken. "mse": the mean of the squared differences of `scores` and the array
   * "targets", of the same shape. Otherwise: an output, or any other value of the model, of one number. */
  const char *loss;
  const char *scores; /* the value that a built-in loss is of, by name; NULL: output 0 */
  cleave_optimizer_t optimizer;
  double rate;
  double momentum; /* 0.9 */
  bool nesterov;
  double beta1;        /* 0.9 */
  double beta2;        /* 0.999 */
  double epsilon;      /* 1e-8 */
  double weight_decay; /* of all weights */
  double
      clip; /* gradients are scaled so that their norm, over all together, is at most this; 0: they are not */
  cleave_schedule_t schedule;
  int64_t step_epochs; /* 30 */
  double step_factor;  /* 0.1 */
  double final_rate;
  int64_t warmup;  /* steps */
  int64_t batch;   /* samples of a step; 32 */
  int64_t epochs;  /* 1 */
  uint64_t seed;   /* of the order of the samples, and of dropout */
  bool keep_order; /* samples are not shuffled */
  /* BatchNormalization: false: normalizes by the statistics of the batch, and its running mean and variance
   * follow them by its attribute `momentum` (ONNX, opset 15; the variance is that of the population); true:
   * it stays as in inference, and only its scale and bias are trained. */
  bool freeze_norms;
  bool no_dropout; /* Dropout passes everything on; false: it drops, by numbers of `seed` */
  /* Names of the weights to train; '*' and '?' stand for others as in a shell. None: all constants of
   * floating-point numbers with a name and one or more dimensions that the loss depends on. */
  const char *const *weights;
  size_t weight_count;
  /* How the step is partitioned, and gradients in the place of cleave's own; NULL: every node on its own. */
  const cleave_partition_request_t *rules;
  const cleave_session_options_t *session; /* may be NULL */
  /* The processes that train together; NULL: this one alone. It must outlive the trainer. `batch` is what all
   * of them take in a step, a multiple of their number. They have the same model, samples and options. */
  const cleave_communicator_t *communicator;
  /* Most bytes of gradients that are summed in one transfer; 26214400. Nor is a transfer larger than all that
   * follow it, down to 1 MiB, since no backward is left that would hide the last one. */
  int64_t bucket_bytes;
  double recompute; /* as in cleave_gradient_options_t; 0: forward is kept */
  /* Rule files get it as their option `precision`, as --set precision=bfloat16 does: regions that ask for it
   * compute in it, forward and backward, if their backend can (cleave_trainer_precision). */
  cleave_train_precision_t precision;
  double loss_scale;   /* FLOAT16: of the first step, a power of two; 65536 */
  int64_t scale_steps; /* FLOAT16: 2000 */
} cleave_train_options_t;

/* The defaults that are named above, the rest zero: a loss and a rate are still to be set. `size` is set
 * before. */
void cleave_train_defaults(cleave_train_options_t *out_options);

/* ---- training ------------------------------------------------------------------------------------- */

/* With a communicator, all processes call the functions that make a trainer, do a step, evaluate and resume,
 * in the same order. If making or resuming fails in one of them, it fails in all, with the error of the
 * first. If a step or an evaluation fails in one, the others may wait for it: end them all (`abort` of the
 * communicator). */
typedef struct cleave_trainer cleave_trainer_t;

/* Builds and compiles a step for `options->batch` samples. Each input of the model takes the array of its
 * name; if there is one input without an array, and one array without an input, these belong together.
 * Arrays have the shape of the input, with the number of samples in the place of the first dimension.
 * Numbers of other types are converted to those of the input where integers become integers or floats, and
 * floats floats. A minibatch that would not be full is left out. The trainer retains the model and copies the
 * options; `samples` must outlive it.
 *
 * CLEAVE_ERROR_INVALID_ARGUMENT: an option is out of range, the loss is none of the model's, an array is
 * missing, a label is no class. CLEAVE_ERROR_SHAPE: an array does not fit. CLEAVE_ERROR_UNSUPPORTED: an
 * operator has no gradient. And those of partitioning and compiling. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_create(cleave_model_t *model, const cleave_samples_t *samples,
                                                      const cleave_train_options_t *options,
                                                      cleave_trainer_t **out_trainer, cleave_error_t *error);
/* NULL is a no-op. */
void cleave_trainer_destroy(cleave_trainer_t *trainer);

typedef struct cleave_train_step {
  size_t size;          /* sizeof(cleave_train_step_t) */
  int64_t step;         /* from 1 */
  int64_t epoch;        /* from 1 */
  double loss;          /* of this minibatch, before the update */
  double gradient_norm; /* before clipping: the square root of the sum of all squares */
  double rate;
  bool ends_epoch;
  double loss_scale; /* that the loss was multiplied by for backward; 1 but with CLEAVE_TRAIN_FLOAT16 */
  bool is_skipped;   /* FLOAT16: the gradient norm is not finite, and nothing was updated */
} cleave_train_step_t;

int64_t cleave_trainer_steps_per_epoch(const cleave_trainer_t *trainer);
int64_t cleave_trainer_step_count(const cleave_trainer_t *trainer); /* in all epochs */
int64_t cleave_trainer_steps_done(const cleave_trainer_t *trainer);
/* A step that was done, from 0. CLEAVE_ERROR_INVALID_ARGUMENT beyond the last. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_history(const cleave_trainer_t *trainer, int64_t index,
                                                       cleave_train_step_t *out_step, cleave_error_t *error);

/* One step. CLEAVE_ERROR_INVALID_ARGUMENT after the last. A loss that is not finite is no error here. With
 * CLEAVE_TRAIN_FLOAT16 the step counts for the rate also if it is skipped, but not for the optimizer. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_step(cleave_trainer_t *trainer, cleave_train_step_t *out_step,
                                                    cleave_error_t *error);

typedef struct cleave_evaluation {
  size_t size;     /* sizeof(cleave_evaluation_t) */
  int64_t samples; /* that counted */
  double loss;     /* mean over them */
  bool has_accuracy;
  double accuracy; /* of "cross_entropy": the share of labels whose class has the largest score */
} cleave_evaluation_t;

/* The model as it is now, in inference, on samples that have the arrays of the training samples. With a loss
 * that is a value of the model, samples that do not fill a minibatch are left out. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_evaluate(cleave_trainer_t *trainer,
                                                        const cleave_samples_t *samples,
                                                        cleave_evaluation_t *out_evaluation,
                                                        cleave_error_t *error);

/* The model of the trainer with the weights, running means and variances of now. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_model(const cleave_trainer_t *trainer,
                                                     cleave_model_t **out_model, cleave_error_t *error);
/* Writes the trained model as an .onnx file for inference: BatchNormalization and Dropout have training_mode
 * 0. `opset` is as for cleave_plan_save. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_export(const cleave_trainer_t *trainer, const char *path,
                                                      int32_t opset, cleave_error_t *error);

/* All that later steps depend on, as an .npz file, which is replaced as a whole: the weights by their names
 * ("weight/NAME", "norm/NAME", "state0/NAME", ...), the history, and what identifies the run. One process of
 * several is enough: all have the same. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_save(const cleave_trainer_t *trainer, const char *path,
                                                    cleave_error_t *error);
/* Goes on from such a file. More epochs than before are allowed; the optimizer and its numbers, the schedule,
 * batch, seed, number of samples, and the weights must be those of the file: CLEAVE_ERROR_INVALID_ARGUMENT
 * names what differs. CLEAVE_ERROR_FORMAT: the file is broken. The trainer is then as it was. Of several
 * processes, the first reads the file; how many they are may differ from before, by which losses differ in
 * their rounding. */
CLEAVE_MUST_USE cleave_status_t cleave_trainer_resume(cleave_trainer_t *trainer, const char *path,
                                                      cleave_error_t *error);

/* A step in parts that run one after the other, as models and their plans, for looking at; borrowed. There is
 * one part; with a communicator there are two for each bucket: forward and backward up to its gradients
 * (behind which their sums begin), and the updates by them. Parts without nodes do not count. NULL beyond the
 * last. */
uint32_t cleave_trainer_part_count(const cleave_trainer_t *trainer);
cleave_model_t *cleave_trainer_part_model(const cleave_trainer_t *trainer, uint32_t part);
const cleave_plan_t *cleave_trainer_part_plan(const cleave_trainer_t *trainer, uint32_t part);
cleave_session_t *cleave_trainer_part_session(const cleave_trainer_t *trainer, uint32_t part);

/* Communication of the steps of this process with others; zeros without a communicator. */
typedef struct cleave_train_communication {
  size_t size; /* sizeof(cleave_train_communication_t) */
  uint32_t buckets;
  size_t bytes;     /* summed in a step */
  int64_t steps;    /* that were done with them */
  double going_ms;  /* in which a sum was under way, over all steps; waiting for slower processes included */
  double waited_ms; /* of that: in which nothing was computed. The rest was hidden behind computing. */
} cleave_train_communication_t;

void cleave_trainer_communication(const cleave_trainer_t *trainer,
                                  cleave_train_communication_t *out_communication);

/* The effect of `precision`. */
typedef struct cleave_train_precision_report {
  size_t size;                        /* sizeof(cleave_train_precision_report_t) */
  cleave_train_precision_t precision; /* that was asked for */
  uint32_t regions;                   /* of a step, in all parts, that compute in it */
  const char *reason; /* why there are none, in one line: a step computes in float32 then. Otherwise NULL */
} cleave_train_precision_report_t;

/* `reason` is borrowed from the trainer. */
void cleave_trainer_precision(const cleave_trainer_t *trainer, cleave_train_precision_report_t *out_report);
/* "float32", "bfloat16", "float16". */
const char *cleave_train_precision_name(cleave_train_precision_t precision);

/* Who made the gradients of the forward graph's regions: their backends, if they have some of their own
 * (`backward` in cleave/backend.h), or else the gradient rules of their nodes. */
typedef struct cleave_train_backward_report {
  size_t size;          /* sizeof(cleave_train_backward_report_t) */
  uint32_t by_backends; /* regions */
  uint32_t by_rules;    /* regions whose backends refused */
  const char *reason;   /* of the first backend that has no gradients, or refused; NULL: there was none */
} cleave_train_backward_report_t;

/* `reason` is borrowed from the trainer. */
void cleave_trainer_backward(const cleave_trainer_t *trainer, cleave_train_backward_report_t *out_report);

/* The effect of `recompute`; all zero but `size`, which is the library's, if it is 0. Borrowed. */
const cleave_recompute_report_t *cleave_trainer_recompute(const cleave_trainer_t *trainer);

#ifdef __cplusplus
}
#endif

#endif /* CLEAVE_TRAIN_H */
