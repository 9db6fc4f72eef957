"""The table of README.md from results.json: python -m experiments.speed.report"""

from pathlib import Path

from experiments import common
from experiments.speed import table

HERE = Path(__file__).parent


def main() -> None:
    found = common.read(HERE / "results.json")
    rows = table.ordered(common.rows_of(found, "speed"))
    common.insert(HERE / "README.md", "speed", table.markdown(rows))


if __name__ == "__main__":
    main()
