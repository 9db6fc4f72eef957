"""Every Python block of the README runs, from top to bottom, in one fresh interpreter with JAX's own defaults."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_blocks_run(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 4
    code = "\n".join(blocks).replace("/tmp/", f"{tmp_path}/")
    code += """
assert value < first, "thirty steps reach a lower validation loss"
assert jnp.exp(theta["kernel"]["gamma"])[2] < hp_start[2], "the noise column leaves"
np.testing.assert_allclose(again.decision(X[:5]), outputs, atol=1e-4)
""".replace("hp_start[2]", "solution.hp['kernel']['gamma'][2]")
    (tmp_path / "readme.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(tmp_path / "readme.py")]
    environment = {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_every_file_and_make_target_it_names_exists():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make (\w+)  ", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for path in re.findall(r"`((?:hyperjax|experiments)/[\w./]+)`", text):
        assert (ROOT / path).exists(), path
