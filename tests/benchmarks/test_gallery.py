"""The counts and drawings of the gallery, and a very short run of two of its cases."""

from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch

from benchmarks.gallery import Exhibit, Shown
from benchmarks.gallery.__main__ import main
from benchmarks.gallery._facts import Coder, as_question
from benchmarks.gallery._formulas import SHOWN, operators
from benchmarks.gallery._pronunciation import Recorder
from benchmarks.gallery._shapes import COLORS, PAPER, captions, divided, draw, pixels
from examples.support import DATA
from foveal.data import BEGIN, END, Encoded, Example, collate_seq2seq
from foveal.decoding import beam_search
from foveal.models import DecoderSpec, Seq2Seq, Seq2SeqSpec, TextEncoderSpec

ICELANDIC = DATA / "g2p_sigmorphon2021/low/ice_train.tsv"


def _seq2seq() -> Seq2Seq:
    torch.manual_seed(0)
    encoder = TextEncoderSpec(embedding_size=4, hidden_size=8)
    decoder = DecoderSpec(embedding_size=4, hidden_size=8)
    spec = Seq2SeqSpec(encoder=encoder, decoder=decoder)
    model = spec.build(source_vocabulary=9, target_vocabulary=9).eval()
    for parameter in model.parameters():  # makes some outputs more probable than others
        torch.nn.init.normal_(parameter)
    return model


def test_a_recorded_search_is_the_search_and_its_beginnings_are_scored_by_the_model() -> None:
    model, source = _seq2seq(), torch.tensor([[4, 5, 6, 7]])
    recorder = Recorder(model.stepper())
    plain, found = (
        beam_search(
            stepper, model.start(source), begin=BEGIN, end=END, max_length=6, beam_size=4, nbest=4
        )
        for stepper in (model.stepper(), recorder)
    )
    torch.testing.assert_close(found.tokens, plain.tokens)
    torch.testing.assert_close(found.scores, plain.scores)
    kept = [tuple(ids) for ids in found.token_lists(END)[0]]
    dropped = list(recorder.dropped(kept, lambda ids: list(map(str, ids))))
    assert dropped
    for each in dropped:
        assert not each.finished
        ids = list(map(int, each.tokens))
        assert not any(tuple(ids) == output[: len(ids)] for output in kept)
        batch = collate_seq2seq([Encoded([4, 5, 6, 7], ids)])
        log_probs = model(source, None, batch.tokens).log_probs[0]
        expected = [log_probs[step, token].item() for step, token in enumerate(ids)]
        assert each.log_probs == pytest.approx(expected, abs=1e-4)
        assert each.score == pytest.approx(sum(expected), abs=1e-3)
    # Each step keeps at most `beam_size` prefixes.
    for length in range(1, 6):
        assert sum(len(prefix) == length for prefix in recorder.log_probs) <= 4


def test_numbers_belong_to_the_operator_of_their_parentheses() -> None:
    symbols = SHOWN.text.split()
    found = {symbols[number]: place for number, place in operators(symbols).items()}
    assert found == {"15": 3, "7": 3, "1": 3, "19": 9, "0": 9}
    assert symbols[3] == symbols[9] == "+"


def test_a_story_is_facts_a_question_and_what_supports_its_answer() -> None:
    example = Example("Ann has it.\nAnn ran home.\nWhere?", "home", alignment="0-0 1-0")
    question = as_question(example)
    assert question.facts == ("Ann has it.", "Ann ran home.")
    assert (question.question, question.answer, question.support) == ("Where?", "home", {0, 1})
    short = replace(question, facts=("Ann has it.",), support=frozenset({0}))
    batch = Coder.count([question]).collate([question, short])
    assert batch.facts_mask.any(-1).tolist() == [[True, True], [True, False]]
    assert batch.facts.shape == (2, 2, 3)
    assert batch.answers.tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(20))
def test_a_caption_is_true_of_its_image(seed: int) -> None:
    chance = Random(seed)
    caption = chance.choice([each for each in captions() if each[0] != each[3]])
    scene = draw(caption, chance)
    places = []
    for color in (caption[0], caption[3]):
        down, right = np.nonzero((scene.image == COLORS[color]).all(-1))
        assert len(down) > 20
        places.append((down.mean(), right.mean()))
    axis = 0 if caption[2] == "above" else 1
    assert places[0][axis] + 8 < places[1][axis]
    assert abs(places[0][1 - axis] - places[1][1 - axis]) < 8
    assert (scene.image[..., 0] == PAPER).mean() > 0.5
    assert pixels([scene]).abs().max() <= 1
    assert set(divided(seed)[0]).isdisjoint(divided(seed)[1])


@pytest.mark.parametrize("case", ["shapes", "softmax"])
def test_a_case_runs_to_its_end_and_leaves_a_file(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if case == "softmax" and not ICELANDIC.exists():
        pytest.skip(f"data not found at {ICELANDIC}")
    main(["--cases", case, "--updates", "2", "--out", str(tmp_path)])
    exhibit = Exhibit.load(tmp_path / f"{case}.json")
    assert f"{case}: wall-clock" in capsys.readouterr().out
    assert exhibit.score("wall-clock").value > 0
    again = Shown.from_data(exhibit.shown.to_data())
    assert again == exhibit.shown
    assert (again.image is None) == (case == "softmax")
    assert bool(again.series) == bool(again.hypotheses) == (case == "softmax")
