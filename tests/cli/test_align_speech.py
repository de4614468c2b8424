"""`foveal align --ctc`: the time spans of tokens in recordings."""

import json
from pathlib import Path

import pytest

from foveal.bundles import save_bundle
from foveal.cli._main import main
from tests.tasks.tones import TONES, tones

pytestmark = pytest.mark.slow


def test_the_command_writes_the_spans_of_a_list(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = [example for example, _ in tones(tmp_path, 2)]
    task = TONES.build_from(examples)
    save_bundle(task, tmp_path / "model")
    texts = [example.target or "" for example in examples]
    (tmp_path / "damaged.wav").write_bytes(b"RIFF")
    (tmp_path / "list.tsv").write_text(f"0.wav\t{texts[0]}\ndamaged.wav\tlow\n1.wav\t{texts[1]}\n")
    main(["align", str(tmp_path / "model"), str(tmp_path / "list.tsv"), "--ctc"])
    said = capsys.readouterr()
    rows = [line.split("\t") for line in said.out.splitlines()]
    assert [row[1] for row in rows] == " ".join(texts).split()
    assert rows[0][0] == str(tmp_path / "0.wav")
    first, *_ = task.spans(examples[0])
    assert [float(cell) for cell in rows[0][2:]] == pytest.approx(first[1:], abs=1e-3)
    assert "damaged.wav" in said.err
    assert "2 recordings aligned by CTC, 1 skipped" in said.err
    main(
        ["align", str(tmp_path / "model"), str(tmp_path / "list.tsv"), "--ctc", "--format", "jsonl"]
    )
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [span["token"] for span in last["spans"]] == texts[1].split()
    for option in (["--gold", "gold.txt"], ["--format", "pharaoh"]):
        with pytest.raises(SystemExit):
            main(["align", str(tmp_path / "model"), str(tmp_path / "list.tsv"), "--ctc", *option])
