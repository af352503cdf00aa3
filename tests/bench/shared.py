# SPDX-License-Identifier: Apache-2.0
"""What the scripts of this folder share: the program, exported models, ONNX Runtime, and how a script ends."""
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXPORT = ["/usr/bin/python3", os.path.join(ROOT, "tests/models/export.py")]
ORT = os.environ.get("ORT_DIR", os.path.join(ROOT, "build"))  # the folder that has node_modules


def add_models(parser):
    parser.add_argument("--models", dest="folder", default=os.environ.get("CLEAVE_MODELS", os.path.join(ROOT, "build/models")),
                        help="folder of exported models (build/models, or CLEAVE_MODELS)")


def add_program(parser):
    parser.add_argument("--program", default=os.environ.get("CLEAVE_PROGRAM", os.path.join(ROOT, "build/release/cleave")),
                        help="the program to measure (build/release/cleave, or CLEAVE_PROGRAM)")


def prepare(*programs):
    """Ends the script if a program is missing, and installs ONNX Runtime if it is not there."""
    os.environ.pop("OMP_WAIT_POLICY", None)  # threads that sleep between loops take up to four times as long
    for program in programs:
        if not os.access(program, os.X_OK):
            sys.exit(f"{os.path.basename(sys.argv[0])}: {program} is not there; build the release preset first")
    if not os.path.isdir(os.path.join(ORT, "node_modules/onnxruntime-node")):
        subprocess.run(["npm", "install", "--no-save", "--no-package-lock", "--ignore-scripts", "--silent", "--prefix", ORT,
                        "onnxruntime-node"], stdout=subprocess.DEVNULL, check=True)


def export(folder, models):
    """Makes the models, as NAME@OPSET, that the folder lacks."""
    subprocess.run([*EXPORT, folder, *models], stdout=subprocess.DEVNULL, check=True)


def ort(script, *arguments):
    """The command that runs a script of tests/onnxruntime."""
    return ["node", os.path.join(ROOT, "tests/onnxruntime", script), *map(str, arguments)]


def output_of(command):
    """What a command prints, or None if it fails; its errors are shown."""
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    return result.stdout if result.returncode == 0 else None


def needed_output_of(command):
    """What a command prints; if it fails, the script ends."""
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def end_with(main):
    """Runs a script; a command that fails, or Ctrl-C, ends it without a trace of calls."""
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as failure:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {' '.join(failure.cmd)} failed")
    except KeyboardInterrupt:
        sys.exit(130)
