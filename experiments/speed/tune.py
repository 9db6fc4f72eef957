"""The search's rows of the speed table: grid, TPE, halving, fresh processes, many hyperparameters.

python experiments/speed/tune.py [any option of experiments.speed.run]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.speed import run

if __name__ == "__main__":
    run.part(("search-*", "fresh-*", "growth-hyperparameters"))
