#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Generates with `cleave generate` and compares with PyTorch's model, which computes each token from the whole sequence:

    check_generate.py PROGRAM FOLDER [STEPS]

FOLDER gets the exported model gpt_cached (tests/models/export.py), if it is not there. The prompt has 16 tokens; tokens are
drawn with temperature 100, so that they vary. Scores of every token may differ by 2e-3 of the largest, with weights of 8
bits by 5e-3, of 4 bits by 6e-2.
Decoders as ONNX Runtime's model builder writes them (decoder.py), and decoders that are merged with one for the prompt
(merged.py), have to give its tokens, if it is there (ORT_DIR: the folder with its node_modules).
Ends with `N passed, M failed`; says `skipped: ...` and ends with 77 without PyTorch."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

try:
    import onnx
    import torch
except ImportError:
    print("skipped: PyTorch or ONNX is not installed")
    sys.exit(77)
import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import decoder  # noqa: E402  (from this folder)
import export  # noqa: E402
import merged  # noqa: E402

TOLERANCE = 2e-3
NARROW = {"weights of 8 bits": 5e-3, "weights of 4 bits": 6e-2}
# What is merged with gpt_masked; the last two are made for one token at a time.
MERGED = ["gpt_counted", "gpt_step", "gpt_chosen"]
PROMPT = [11, 402, 7, 7, 1999, 3, 56, 7999, 0, 12, 845, 4000, 23, 5, 6021, 77]


def generate(program, model, steps, scores, more):
    command = [program, "generate", model, "--prompt", ",".join(map(str, PROMPT)), "--steps", str(steps), "--json",
               "--temperature", "100", "--seed", "7", "--scores", scores] + more
    for name in ("canonical", "generation", "onednn"):
        if "--rules" not in more:
            command += ["--rules", os.path.join(HERE, "../../rules", name + ".lua")]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def greedy(program, model, *more):
    """40 tokens with the largest scores, by cleave."""
    command = [program, "generate", model, "--prompt", "11,402,7,7,199", "--steps", "40", "--json", *more]
    for name in ("canonical", "generation", "onednn"):
        command += ["--rules", os.path.join(HERE, "../../rules", name + ".lua")]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)["tokens"]


def check_decoders(program, work):
    """Checks that failed, and all; no checks without ONNX Runtime."""
    runtime = os.environ.setdefault("ORT_DIR", os.path.join(HERE, "../../build"))
    if shutil.which("node") is None or not os.path.isdir(os.path.join(runtime, "node_modules/onnxruntime-node")):
        print("decoders: not compared, onnxruntime-node is not installed")
        return 0, 0
    failed = total = 0
    built = f"{decoder.KEY_HEADS}x{decoder.SIZE}"
    models = {f"decoder of {bits} bits": (decoder.Decoder(bits).model(), built) for bits in (32, 4)}
    models["merged decoder"] = merged.merge(*2 * [models["decoder of 32 bits"][0]]), built
    for part in MERGED:
        models[f"merged, {part}"] = onnx.load(f"{work}/{part}_merged_op17/model.onnx"), "6x64"
    for name, (content, sizes) in models.items():
        model = f"{work}/decoder.onnx"
        onnx.save(content, model)
        found = subprocess.run(["node", os.path.join(HERE, "../onnxruntime/generate.mjs"), model, "1", "40", "11,402,7,7,199",
                                sizes], stdout=subprocess.PIPE, check=True).stdout
        expected = json.loads(found)["tokens"]
        for more in ([], ["--capacity", "220", "--threads", "1"]):
            tokens = greedy(program, model, *more)
            total += 1
            failed += tokens != expected or len(set(tokens)) < (10 if sizes == built else 1)
            print(f"{name} {' '.join(more)}: {'equal' if tokens == expected else 'differs'}")
    return failed, total


def merge(work, part):
    """A model for tokens behind a past, in one file with gpt_masked for the prompt."""
    folder = f"{work}/{part}_merged_op17"
    for name in (part, "gpt_masked"):
        export.export(work, name, 17)
    os.makedirs(folder)
    parts = [onnx.load(f"{work}/{name}_op17/model.onnx") for name in (part, "gpt_masked")]
    onnx.save(merged.merge(*parts), f"{folder}/model.onnx")


def main():
    program, folder = sys.argv[1:3]
    steps = int(sys.argv[3]) if sys.argv[3:] else 128
    torch.manual_seed(0)
    reference = export.randomise(export.CachedGpt())
    failed = 0
    runs = {"one thread": ["--threads", "1"], "two threads": ["--threads", "2"],
            "a larger capacity": ["--capacity", "256"],
            "weights of 8 bits": ["--set", "weights=int8"], "weights of 4 bits": ["--set", "weights=int4"],
            "weights of 16 bits": ["--set", "weights=float16"],
            "without oneDNN": ["--rules", os.path.join(HERE, "../../rules/canonical.lua"),
                               "--rules", os.path.join(HERE, "../../rules/generation.lua")]}
    runs["a mask and positions"] = runs["what is seen is counted"] = ["--capacity", "200"]
    models = {"a mask and positions": "gpt_masked", "what is seen is counted": "gpt_counted"}
    with tempfile.TemporaryDirectory() as work:
        for part in MERGED:
            merge(work, part)
            models[f"merged, {part}"], runs[f"merged, {part}"] = f"{part}_merged", []
        for name, more in runs.items():
            model, place = (models[name], work) if name in models else ("gpt_cached", folder)
            export.export(place, model, 17)
            model = f"{place}/{model}_op17/model.onnx"
            report = generate(program, model, steps, f"{work}/scores.npy", more)
            found = numpy.load(f"{work}/scores.npy")
            tokens = torch.tensor([PROMPT + report["tokens"]])
            with torch.no_grad():
                expected = export.Gpt.forward(reference, tokens)[0, len(PROMPT) - 1:-1].numpy()
            largest = float(abs(found - expected).max() / abs(expected).max()) if found.shape == expected.shape else None
            wrong = largest is None or not largest <= NARROW.get(name, TOLERANCE) or len(set(report["tokens"])) < steps // 4
            failed += wrong
            print(f"{name}: {'differs' if wrong else 'equal'}, {found.shape} of {expected.shape}, largest difference {largest}")
        wrong, total = check_decoders(program, work)
    print(f"{len(runs) + total - failed - wrong} passed, {failed + wrong} failed")
    failed += wrong
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
