"""The workflows of GitHub: valid, without known weaknesses, and in step with the scripts that they call.

They cannot run here. zizmor checks them against the schema of workflows and for unsafe steps.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".github/workflows"
WORKFLOWS = sorted(FOLDER.glob("*.yml"))
NAMES = [path.stem for path in WORKFLOWS]


def jobs(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def test_the_workflows_are_complete() -> None:
    assert NAMES == ["checks", "docs", "release", "wheels"]


def test_zizmor_finds_nothing() -> None:
    zizmor = shutil.which("zizmor")
    if zizmor is None:
        pytest.skip("zizmor is not installed: it is in the group dev")
    # Notes below medium suggest syntax that not every GitHub server has.
    options = ("--offline", "--strict-collection", "--no-progress", "--min-severity", "medium")
    done = subprocess.run(
        [zizmor, *options, str(ROOT / ".github")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_jobs_have_limits_and_few_permissions(path: Path) -> None:
    assert yaml.safe_load(path.read_text(encoding="utf-8"))["permissions"] == {}
    for name, job in jobs(path).items():
        assert "permissions" in job, name
        assert "uses" in job or "timeout-minutes" in job, name
        needed = job.get("needs", [])
        assert set([needed] if isinstance(needed, str) else needed) <= set(jobs(path)), name


@pytest.mark.parametrize("path", WORKFLOWS, ids=NAMES)
def test_the_files_that_workflows_name_exist(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    pattern = r"(?<![\w/*])(?:scripts/\w+\.py|\.ci/\w+|tests/[\w/]+\.py|requirements[\w-]*\.txt|\.github/workflows/\w+\.yml)"
    named = set(re.findall(pattern, text))
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert named


def test_only_the_publishing_jobs_get_a_token() -> None:
    """A build runs code of dependencies, so it must not be able to publish."""
    publishing = {
        (path.stem, name)
        for path in WORKFLOWS
        for name, job in jobs(path).items()
        if "id-token" in job["permissions"]
    }
    assert publishing == {
        ("docs", "publish"),
        ("release", "attest"),
        ("release", "pypi"),
        ("release", "npm"),
    }
    for _, job in ((name, jobs(FOLDER / "release.yml")[name]) for name in ("pypi", "npm")):
        assert job["environment"]
        assert not any("checkout" in step.get("uses", "") for step in job["steps"])


def test_forms_have_unique_fields() -> None:
    for path in (ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"):
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        ids = [field["id"] for field in form["body"] if "id" in field]
        assert form["name"]
        assert len(ids) == len(set(ids)) > 0
