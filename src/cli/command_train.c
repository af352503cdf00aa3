// SPDX-License-Identifier: Apache-2.0
// cleave train: trains the weights of a model on samples.
#include "base/status.h"
#include "cli/common/command.h"
#include "cli/common/output.h"
#include "cli/report/report_recompute.h"
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
static int run_command(int argc, char **argv) {
  cleave_train_run_t run = {.checkpoint_epochs = 1, .bucket_mb = 25.0};
  cleave_train_defaults(&run.options);
  run.options.rate = -1.0;
  const cleave_option_t options[] = {
      {"data", 0, CLEAVE_OPTION_TEXT, "DIR",
       "samples: a folder with NAME.npy for each input NAME, or a file.npz; labels.npy (cross_entropy) or "
       "targets.npy (mse) beside. The first dimension counts samples",
       &run.data},
      {"eval", 0, CLEAVE_OPTION_TEXT, "DIR", "samples to evaluate on after each epoch, in the same form",
       &run.held_out},
      {"hold-out", 0, CLEAVE_OPTION_NUMBER, "SHARE",
       "evaluate on this share of the samples of --data, the last of them, and do not train on it: 0.1",
       &run.hold_out},
      {"loss", 0, CLEAVE_OPTION_TEXT, "NAME",
       "cross_entropy (of labels), mse (mean of squared differences from targets), or an output of the model "
       "of one number",
       &run.options.loss},
      {"scores", 0, CLEAVE_OPTION_TEXT, "NAME", "what such a loss is of (default: the first output)",
       &run.options.scores},
      {"optimizer", 0, CLEAVE_OPTION_TEXT, "NAME", "sgd, momentum, adam or adamw (default: sgd)",
       &run.optimizer},
      {"rate", 0, CLEAVE_OPTION_NUMBER, "R", "learning rate", &run.options.rate},
      {"momentum", 0, CLEAVE_OPTION_NUMBER, "M", "of momentum (default: 0.9)", &run.options.momentum},
      {"nesterov", 0, CLEAVE_OPTION_FLAG, NULL, "momentum as Nesterov has it", &run.options.nesterov},
      {"beta1", 0, CLEAVE_OPTION_NUMBER, "B", "of adam and adamw (default: 0.9)", &run.options.beta1},
      {"beta2", 0, CLEAVE_OPTION_NUMBER, "B", "of adam and adamw (default: 0.999)", &run.options.beta2},
      {"epsilon", 0, CLEAVE_OPTION_NUMBER, "E", "of adam and adamw (default: 1e-8)", &run.options.epsilon},
      {"decay", 0, CLEAVE_OPTION_NUMBER, "D",
       "weight decay: added to gradients, or with adamw taken from the weights (default: 0)",
       &run.options.weight_decay},
      {"clip", 0, CLEAVE_OPTION_NUMBER, "NORM",
       "scale gradients so that their norm, over all together, is at most this (default: they stay)",
       &run.options.clip},
      {"schedule", 0, CLEAVE_OPTION_TEXT, "NAME", "of the rate: constant, step or cosine (default: constant)",
       &run.schedule},
      {"step-epochs", 0, CLEAVE_OPTION_INT, "N", "step: epochs between changes (default: 30)",
       &run.options.step_epochs},
      {"step-factor", 0, CLEAVE_OPTION_NUMBER, "F", "step: what the rate is multiplied by (default: 0.1)",
       &run.options.step_factor},
      {"final-rate", 0, CLEAVE_OPTION_NUMBER, "R", "cosine: the rate at the end (default: 0)",
       &run.options.final_rate},
      {"warmup", 0, CLEAVE_OPTION_INT, "N", "steps in which the rate rises to its value (default: 0)",
       &run.options.warmup},
      {"batch", 0, CLEAVE_OPTION_INT, "N",
       "samples of a step, of all processes together if mpirun started several (default: 32)",
       &run.options.batch},
      {"bucket", 0, CLEAVE_OPTION_NUMBER, "MB",
       "gradients that several processes sum in one transfer (default: 25)", &run.bucket_mb},
      {"epochs", 0, CLEAVE_OPTION_INT, "N", "times that all samples are seen (default: 1)",
       &run.options.epochs},
      {"seed", 0, CLEAVE_OPTION_INT, "N",
       "of the weights that a model script draws (0: the script's own), of the order of the samples, and of "
       "dropout (default: 0)",
       &run.seed},
      {"keep-order", 0, CLEAVE_OPTION_FLAG, NULL, "do not shuffle the samples", &run.options.keep_order},
      {"norms", 0, CLEAVE_OPTION_TEXT, "HOW",
       "BatchNormalization: batch normalizes by the minibatch, and running mean and variance follow it; "
       "frozen keeps these as they are (default: batch)",
       &run.norms},
      {"no-dropout", 0, CLEAVE_OPTION_FLAG, NULL, "Dropout drops nothing", &run.options.no_dropout},
      {"weights", 0, CLEAVE_OPTION_LIST, "NAMES",
       "constants to train, with * and ? as in a shell; may be given many times (default: all of "
       "floating-point numbers that the loss depends on)",
       &run.weights},
      {"rules", 0, CLEAVE_OPTION_LIST, "FILE",
       "rule file that partitions the step, forward, backward and update; its gradients take the place of "
       "those that come with cleave. May be given many times",
       &run.job_options.rules},
      {"backend", 0, CLEAVE_OPTION_TEXT, "NAME",
       "without rule files: one region over all that this backend supports", &run.job_options.backend},
      CLEAVE_JOB_SETTINGS(&run.job_options),
      {"precision", 0, CLEAVE_OPTION_TEXT, "NAME",
       "of regions by --rules whose files have this option (onednn): float32, bfloat16 or float16; weights "
       "and "
       "updates stay float32 (default: float32)",
       &run.precision},
      {"loss-scale", 0, CLEAVE_OPTION_NUMBER, "S",
       "float16: what the loss is multiplied by for backward in the first step (default: 65536)",
       &run.options.loss_scale},
      {"scale-steps", 0, CLEAVE_OPTION_INT, "N",
       "float16: good steps after which the scale doubles (default: 2000)", &run.options.scale_steps},
      {"recompute", 0, CLEAVE_OPTION_NUMBER, "SHARE", CLEAVE_RECOMPUTE_HELP, &run.options.recompute},
      {"threads", 0, CLEAVE_OPTION_INT, "N",
       "threads of a step (default: all processors, divided among the processes of a host)",
       &run.job_options.threads},
      {"output", 'o', CLEAVE_OPTION_TEXT, "OUT.onnx", "file for the trained model, in inference",
       &run.output},
      {"opset", 0, CLEAVE_OPTION_INT, "N", "opset of that file, 13 to 24 (default: the model's)", &run.opset},
      {"checkpoint", 0, CLEAVE_OPTION_TEXT, "FILE.npz",
       "file for all that later steps depend on, written after epochs", &run.checkpoint},
      {"checkpoint-epochs", 0, CLEAVE_OPTION_INT, "N", "epochs between checkpoints (default: 1)",
       &run.checkpoint_epochs},
      {"resume", 0, CLEAVE_OPTION_TEXT, "FILE.npz",
       "go on from a checkpoint of the same run: the losses are those of a run without a break", &run.resume},
      {"picture", 0, CLEAVE_OPTION_TEXT, "FILE.svg", "file for a picture of losses and gradient norms",
       &run.picture},
      {"save-plan", 0, CLEAVE_OPTION_TEXT, "FILE", "file for the plan of a step: .txt, .json, .dot or .onnx",
       &run.plan},
      {"profile", 0, CLEAVE_OPTION_TEXT, "FILE.json", "file for a trace of the last step", &run.profile},
      {"each-step", 0, CLEAVE_OPTION_FLAG, NULL, "with --json: a line for each step, too", &run.each_step},
      {"json", 0, CLEAVE_OPTION_FLAG, NULL, "print a line of JSON for each epoch", &run.json},
  };
  cleave_arguments_t arguments = {
      .command = "train",
      .operands = "MODEL",
      .about =
          "Trains a model: each step is one graph of forward, backward and the optimizer's update, which "
          "rules\n"
          "partition like any other. Weights that are not trained, and the structure, stay as they are.",
      CLEAVE_OPTIONS(options),
      .min_operands = 1,
      .makes_sessions = true};
  int status = CLEAVE_EXIT_OK;
  if (cleave_arguments_parse(&arguments, argc, argv, &status)) {
    run.job_options.model = arguments.found.items[0];
    status = cleave_train_run_check(&run);
    status = status == CLEAVE_EXIT_OK ? run_parsed(&run) : status;
  }
  cleave_arguments_free(&arguments);
  return status;
}

const cleave_command_t cleave_command_train = {
    .name = "train", .summary = "train the weights of a model on samples", .order = 24, .run = run_command};
