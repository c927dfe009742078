"""What images and packages are made of."""

import platform
import runpy
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "image.py"


@pytest.mark.parametrize(("machine", "wheels"), [("x86_64", "x86_64"), ("aarch64", "aarch64"), ("arm64", "aarch64")])
def test_an_image_is_for_the_machine_that_it_is_built_on(
    monkeypatch: pytest.MonkeyPatch, machine: str, wheels: str
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    platforms: list[str] = runpy.run_path(str(TOOL))["PLATFORMS"]
    assert f"manylinux_2_28_{wheels}" in platforms
    assert all(each.endswith(f"_{wheels}") for each in platforms)
