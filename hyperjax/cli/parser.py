"""The options of every command.  An option that was not given is absent, so that the defaults stay the library's."""

import argparse
from pathlib import Path
from typing import Any

from .failures import EXIT_CODES

__all__ = ["build"]

TUNE = """\
Find the hyperparameters of a support vector machine by gradient steps on its cross-validation score.

DATA is a file (svmlight/LIBSVM, CSV or npz) or the name of a data set (see hyperjax.datasets).
"""
TUNE_NOTES = """\
scaling: the columns are centred and scaled by the training rows alone; rows of --test, --test-fraction and of the
outer folds of --nested are never looked at. The folds of the cross-validation share one scaling, that of all
training rows: a held-out row has a part in the means and scales (never in a label or a model), as one row in n.
The scaling is kept in the model and applied by predict, score and export.

names: losses, kernels and criteria go by their class in hyperjax.losses, .kernels, .criteria, in small letters:
hinge, squared_hinge, logistic, smooth_hinge, weighted_hinge, epsilon_insensitive, squared; linear, rbf, ard,
polynomial, laplacian, exp_chi2; smooth_error, log_loss, f_measure, squared_error. An unknown name lists them all.
Fields of a class follow a colon: --criterion f_measure:threshold=tuned, --kernel rbf:gamma=0.1 (a start value).

examples:
  hyperjax tune breast_cancer --kernel ard --stages isotropic,full --test-fraction 0.25
  hyperjax tune train.csv --target price --kernel rbf,linear --out model/ --plots
  hyperjax tune a9a.svm --test a9a.t --criterion f_measure --bounds kernel.gamma=1e-4:1 --seed 1

"""


def build() -> argparse.ArgumentParser:
    """The parser of `hyperjax`; `options.run(options)` is the command."""
    parser = argparse.ArgumentParser(
        prog="hyperjax",
        description="Support vector machines whose hyperparameters are found by exact gradients.",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _tune(_command(commands, "tune", "find hyperparameters and train the final model", TUNE, TUNE_NOTES + EXIT_CODES))
    _predict(_command(commands, "predict", "predictions of a model, one a line"))
    _score(_command(commands, "score", "errors of a model on labelled data"))
    _export(_command(commands, "export", "write a model in another program's format"))
    _info(_command(commands, "info", "what a model file holds"))
    return parser


class _Version(argparse.Action):
    """--version, read from the package only when asked for."""

    def __init__(self, option_strings: Any, dest: str, **_: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, help="print the version and leave")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from .process import version

        print(f"hyperjax {version()}")
        parser.exit()


def _command(commands: Any, name: str, summary: str, description: str | None = None, notes: str = EXIT_CODES) -> Any:
    parser = commands.add_parser(
        name,
        help=summary,
        description=description or summary.capitalize() + ".",
        epilog=notes,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        argument_default=argparse.SUPPRESS,
    )
    parser.set_defaults(run=_Later(name))
    return parser


class _Later:
    """The command `name`, imported when it runs."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, options: argparse.Namespace) -> int | None:
        if self.name == "tune":
            from .tune import run

            return run(options)
        from . import use

        return getattr(use, self.name)(options)


def _tune(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", metavar="DATA", help="a file, or the name of a data set")
    _data_options(parser)
    _model_options(parser.add_argument_group("the model"))
    _validation_options(parser.add_argument_group("the validation"))
    _search_options(parser.add_argument_group("the search"))
    _output_options(parser.add_argument_group("the output"))


def _data_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("the data").add_argument
    add("--target", metavar="COLUMN", help="the column to predict (CSV; default: the file's last)")
    add("--task", choices=["auto", "classification", "regression"], default="auto", help="default: by the target")
    add("--positive", metavar="LABEL", help="the class +1; the others are -1 (default: the larger of two)")
    add("--groups", metavar="COLUMN", help="rows with one value there stay in one fold; no feature of the model")
    add("--scale", choices=["standard", "minmax", "maxabs", "none"], default="standard", help="default: standard")
    test = parser.add_argument_group("test rows, looked at once, at the end").add_mutually_exclusive_group()
    test.add_argument("--test", metavar="FILE", type=Path, help="labelled rows in the format of DATA")
    test.add_argument("--test-fraction", metavar="SHARE", type=_share, help="this share of the rows, drawn by --seed")


def _model_options(group: Any) -> None:
    add = group.add_argument
    add("--loss", metavar="NAME", help="default: the method's; of tune hinge, or epsilon_insensitive for regression")
    add("--kernel", metavar="NAME[,NAME..]", help="several: their weighted sum; default: rbf")
    add("--bias", choices=["yes", "no", "regularised"], help="default: yes, free of charge")
    add("--hold", metavar="PATH", action="append", help="a hyperparameter that keeps its start value (repeatable)")
    add("--bounds", metavar="PATH=LOW:HIGH", action="append", type=_bounds, help="as kernel.gamma=1e-3:10 (repeatable)")
    add("--float64", action="store_true", default=False, help="compute in 64-bit floats")


def _validation_options(group: Any) -> None:
    add = group.add_argument
    add("--folds", metavar="K", type=_whole(2), default=5, help="default: 5")
    add("--repeats", metavar="R", type=_whole(1), default=1, help="so many different divisions; default: 1")
    add("--criterion", metavar="NAME", help="default: the method's; of tune smooth_error or squared_error")
    add("--nested", metavar="K", type=_whole(2), help="also an honest estimate: K outer folds, each tuned anew")


def _search_options(group: Any) -> None:
    add = group.add_argument
    add("--method", metavar="NAME", default="tune", help="tune, or one of hyperjax.methods; default: tune")
    add("--optimizer", choices=["bfgs", "lbfgs", "adam"], help="default: bfgs")
    add("--stages", metavar="NAME[,NAME]", type=_names, help="as isotropic,full: one common width first")
    add("--prior", metavar="STRENGTH", type=_prior, help="auto, none or a number; default: auto")
    add("--starts", metavar="N", type=_whole(1), help="searches from so many points, the best end counts; default: 1")
    add("--max-steps", metavar="N", type=_whole(1), help="default: 50")
    add("--max-seconds", metavar="S", type=float)
    add("--tol", metavar="T", type=float, help="stop at relative changes below it; default: 1e-3")
    add("--seed", metavar="N", type=int, default=0, help="of folds, test rows and starts; default: 0")
    add("--checkpoint", metavar="FILE", type=Path, help="written after each step; the same command goes on from it")


def _output_options(group: Any) -> None:
    add = group.add_argument
    add("--out", metavar="DIR", type=Path, help="write model.npz and report.json there")
    add("--plots", action="store_true", default=False, help="pictures into --out (needs matplotlib)")
    add("--probabilities", action="store_true", default=False, help="fit a sigmoid to the held-out outputs")
    add("--no-peers", action="store_true", default=False, help="no comparison with scikit-learn's defaults")
    add("--quiet", action="store_true", default=False, help="no progress, no table")


def _predict(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _model_and_data(parser)
    add("--out", metavar="FILE", type=Path, help="default: standard output")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--probabilities", action="store_true", default=False, help="of the positive class")
    kind.add_argument("--decision", action="store_true", default=False, help="the outputs themselves")


def _score(parser: argparse.ArgumentParser) -> None:
    _model_and_data(parser)
    parser.add_argument("--json", action="store_true", default=False, help="print JSON")


def _export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="a model.npz of `hyperjax tune`")
    add("--to", choices=["libsvm"], default="libsvm", help="libsvm: svm-predict's text format; default")
    add("--out", metavar="FILE", type=Path, required=True)


def _info(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", type=Path, help="a model.npz of `hyperjax tune`")
    add("--json", action="store_true", default=False, help="print JSON")


def _model_and_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", type=Path, help="a model.npz of `hyperjax tune`")
    parser.add_argument("data", metavar="DATA", help="a file, or the name of a data set")
    parser.add_argument("--target", metavar="COLUMN", help="the column of labels, if it is not the trained one")


def _whole(least: int) -> Any:
    def convert(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"{value} is less than {least}")
        return value

    convert.__name__ = "whole number"
    return convert


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 < value < 1.0:
        raise argparse.ArgumentTypeError(f"{text} does not lie between 0 and 1")
    return value


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _prior(text: str) -> Any:
    try:
        return {"auto": "auto", "none": None}[text] if text in ("auto", "none") else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not auto, none or a number") from None


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    path, _, interval = text.partition("=")
    low, colon, high = interval.partition(":")
    try:
        ends = float(low), float(high)
    except ValueError:
        colon = ""
        ends = (0.0, 0.0)
    if not (path and colon and ends[0] < ends[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form kernel.gamma=1e-3:10")
    return path.strip(), ends
