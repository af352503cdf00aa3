// SPDX-License-Identifier: Apache-2.0
// cleave train: trains the weights of a model on samples.
#include "base/status.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/report/report.h"
#include "cli/run/processes.h"
#include "cli/training/train_run.h"

static int run_parsed(cleave_train_run_t *run) {
  cleave_error_t error = CLEAVE_ERROR_INIT;
  int status = CLEAVE_EXIT_OK;
  if (cleave_train_run(run, &error) != CLEAVE_OK) {
    status = cleave_processes_fail(run->communicator, !run->is_prepared, &error);
  }
  cleave_output_progress_end();
  cleave_train_run_deinit(run);
  return status;
}

/* Long: one table of options. */
static int run_command(cleave_arguments_t *arguments) {
  cleave_train_run_t run = {.checkpoint_epochs = 1, .bucket_mb = 25.0};
  run.options.size = sizeof run.options;
  cleave_train_defaults(&run.options);
  run.options.rate = -1.0;
  const cleave_option_t options[] = {
      CLEAVE_TEXT(&run.data, "data", "DIR",
                  "samples: a folder with NAME.npy for each input NAME, or a file.npz; labels.npy "
                  "(cross_entropy) or targets.npy (mse) beside. The first dimension counts samples"),
      CLEAVE_TEXT(&run.held_out, "eval", "DIR", "samples to evaluate on after each epoch, in the same form"),
      CLEAVE_NUMBER(
          &run.hold_out, "hold-out", "SHARE",
          "evaluate on this share of the samples of --data, the last of them, and do not train on it: 0.1"),
      CLEAVE_TEXT(&run.options.loss, "loss", "NAME",
                  "cross_entropy (of labels), mse (mean of squared differences from targets), or an output "
                  "of the model of one number"),
      CLEAVE_TEXT(&run.options.scores, "scores", "NAME",
                  "what such a loss is of (default: the first output)"),
      CLEAVE_TEXT(&run.optimizer, "optimizer", "NAME", "sgd, momentum, adam or adamw (default: sgd)"),
      CLEAVE_NUMBER(&run.options.rate, "rate", "R", "learning rate"),
      CLEAVE_NUMBER(&run.options.momentum, "momentum", "M", "of momentum (default: 0.9)"),
      CLEAVE_FLAG(&run.options.nesterov, "nesterov", "momentum as Nesterov has it"),
      CLEAVE_NUMBER(&run.options.beta1, "beta1", "B", "of adam and adamw (default: 0.9)"),
      CLEAVE_NUMBER(&run.options.beta2, "beta2", "B", "of adam and adamw (default: 0.999)"),
      CLEAVE_NUMBER(&run.options.epsilon, "epsilon", "E", "of adam and adamw (default: 1e-8)"),
      CLEAVE_NUMBER(&run.options.weight_decay, "decay", "D",
                    "weight decay: added to gradients, or with adamw taken from the weights (default: 0)"),
      CLEAVE_NUMBER(
          &run.options.clip, "clip", "NORM",
          "scale gradients so that their norm, over all together, is at most this (default: they stay)"),
      CLEAVE_TEXT(&run.schedule, "schedule", "NAME",
                  "of the rate: constant, step or cosine (default: constant)"),
      CLEAVE_INT(&run.options.step_epochs, "step-epochs", "N", "step: epochs between changes (default: 30)"),
      CLEAVE_NUMBER(&run.options.step_factor, "step-factor", "F",
                    "step: what the rate is multiplied by (default: 0.1)"),
      CLEAVE_NUMBER(&run.options.final_rate, "final-rate", "R", "cosine: the rate at the end (default: 0)"),
      CLEAVE_INT(&run.options.warmup, "warmup", "N",
                 "steps in which the rate rises to its value (default: 0)"),
      CLEAVE_INT(&run.options.batch, "batch", "N",
                 "samples of a step, of all processes together if mpirun started several (default: 32)"),
      CLEAVE_NUMBER(&run.bucket_mb, "bucket", "MB",
                    "most that is summed in one transfer, if several processes train (default: 25)"),
      CLEAVE_INT(&run.options.epochs, "epochs", "N", "times that all samples are seen (default: 1)"),
      CLEAVE_INT(&run.seed, "seed", "N",
                 "of the weights that a model script draws (0: the script's own), of the order of the "
                 "samples, and of dropout (default: 0)"),
      CLEAVE_FLAG(&run.options.keep_order, "keep-order", "do not shuffle the samples"),
      CLEAVE_TEXT(&run.norms, "norms", "HOW",
                  "BatchNormalization: batch normalizes by the minibatch, and running mean and variance "
                  "follow it; frozen keeps these as they are (default: batch)"),
      CLEAVE_FLAG(&run.options.no_dropout, "no-dropout", "Dropout drops nothing"),
      CLEAVE_LIST(&run.weights, "weights", "NAMES",
                  "constants to train, with * and ? as in a shell; may be given many times (default: all of "
                  "floating-point numbers that the loss depends on)"),
      CLEAVE_LIST(&run.job_options.rules, "rules", "FILE",
                  "rule file that partitions the step, forward, backward and update; its gradients take the "
                  "place of those that come with cleave. May be given many times"),
      CLEAVE_TEXT(&run.job_options.backend, "backend", "NAME",
                  "without rule files: one region over all that this backend supports"),
      CLEAVE_JOB_SETTINGS(&run.job_options),
      CLEAVE_TEXT(&run.precision, "precision", "NAME",
                  "of regions by --rules whose files have this option (onednn): float32, bfloat16 or "
                  "float16; weights and updates stay float32 (default: float32)"),
      CLEAVE_NUMBER(
          &run.options.loss_scale, "loss-scale", "S",
          "float16: what the loss is multiplied by for backward in the first step (default: 65536)"),
      CLEAVE_INT(&run.options.scale_steps, "scale-steps", "N",
                 "float16: good steps after which the scale doubles (default: 2000)"),
      CLEAVE_NUMBER(&run.options.recompute, "recompute", "SHARE", CLEAVE_RECOMPUTE_HELP),
      CLEAVE_INT(&run.job_options.threads, "threads", "N",
                 "threads of a step (default: all processors, divided among the processes of a host)"),
      {"output", 'o', CLEAVE_OPTION_TEXT, "OUT.onnx", "file for the trained model, in inference",
       &run.output},
      CLEAVE_INT(&run.opset, "opset", "N", "opset of that file, 13 to 24 (default: the model's)"),
      CLEAVE_TEXT(&run.checkpoint, "checkpoint", "FILE.npz",
                  "file for all that later steps depend on, written after epochs"),
      CLEAVE_INT(&run.checkpoint_epochs, "checkpoint-epochs", "N", "epochs between checkpoints (default: 1)"),
      CLEAVE_TEXT(&run.resume, "resume", "FILE.npz",
                  "go on from a checkpoint of the same run: the losses are those of a run without a break"),
      CLEAVE_TEXT(&run.picture, "picture", "FILE.svg", "file for a picture of losses and gradient norms"),
      CLEAVE_TEXT(&run.plan, "save-plan", "FILE", "file for the plan of a step: .txt, .json, .dot or .onnx"),
      CLEAVE_TEXT(&run.profile, "profile", "FILE.json", "file for a trace of the last step"),
      CLEAVE_FLAG(&run.each_step, "each-step", "with --json: a line for each step, too"),
      CLEAVE_FLAG(&run.json, "json", "print a line of JSON for each epoch"),
  };
  int status = CLEAVE_EXIT_OK;
  if (cleave_arguments_parse(arguments, CLEAVE_OPTIONS(options), &status)) {
    run.job_options.model = arguments->found.items[0];
    status = cleave_train_run_check(&run);
    status = status == CLEAVE_EXIT_OK ? run_parsed(&run) : status;
  }
  return status;
}

CLEAVE_COMMAND_DEFINE(
    train, 24, "MODEL", run_command, "train the weights of a model on samples",
    "Trains a model: each step is one graph of forward, backward and the optimizer's update, which rules\n"
    "partition like any other. Weights that are not trained, and the structure, stay as they are.",
    .min_operands = 1, .makes_sessions = true)
