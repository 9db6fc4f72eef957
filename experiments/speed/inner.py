"""The inner problem's rows of the speed table: LIBSVM, LIBLINEAR, the hypergradient, the import.

python experiments/speed/inner.py [any option of experiments.speed.run]
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from experiments.speed import run

if __name__ == "__main__":
    run.part(("kernel-*", "linear-*", "gradient-*", "import"))
