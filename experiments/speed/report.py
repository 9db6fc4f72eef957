"""The tables of README.md from results.json, profiles.json and quality.json: python -m experiments.speed.report"""

from pathlib import Path

from experiments import common
from experiments.speed import profiles, quality, table

HERE = Path(__file__).parent


def main() -> None:
    found = common.read(HERE / "results.json")
    rows = table.ordered(common.rows_of(found, "speed"))
    common.insert(HERE / "README.md", "speed", table.markdown(rows))
    found = common.read(HERE / "profiles.json")
    common.insert(HERE / "README.md", "profiles", profiles.markdown(common.rows_of(found, profiles.PART)))
    common.insert(HERE / "README.md", "quality", quality.markdown(common.read(quality.OUTPUT)))


if __name__ == "__main__":
    main()
