"""Units and gates over a text: they equal the cell's own steps, and every cell of a model has them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from foveal.bundles import save_bundle
from foveal.data import Example
from foveal.errors import ShapeError, ValueRangeError
from foveal.inspection import activations
from foveal.models import ClassifierSpec, LanguageModelSpec, TextEncoderSpec
from foveal.tasks import ClassificationSpec, LanguageModelingSpec
from foveal.views import colored_text
from tests.cli.test_commands import foveal
from tests.tasks.tiny import opinions, upper_cased

TEXT = "abca"


def language_model() -> LanguageModelingSpec:
    model = LanguageModelSpec(embedding_size=5, hidden_size=7, num_layers=2)
    return LanguageModelingSpec(model=model, max_length=4)


def test_the_parts_of_an_lstm_obey_its_equations() -> None:
    torch.manual_seed(0)
    task = language_model().build_from(upper_cased(20))
    low, high = activations(task, Example(TEXT))
    assert (low.name, high.name) == ("decoder layer 1", "decoder layer 2")
    assert low.tokens == ("begin", *TEXT)
    assert list(low.parts) == ["hidden", "cell", "input", "forget", "output"]
    for each in (low, high):
        hidden, cell = each.parts["hidden"], each.parts["cell"]
        assert hidden.shape == (5, 7)
        assert np.allclose(hidden, each.parts["output"] * np.tanh(cell), atol=1e-6)
        before = np.concatenate([np.zeros((1, 7)), cell[:-1]])
        added = cell - each.parts["forget"] * before  # i * g, where g is between -1 and 1
        assert (np.abs(added) <= each.parts["input"] + 1e-6).all()


def test_states_are_those_of_the_whole_model() -> None:
    torch.manual_seed(1)
    task = language_model().build_from(upper_cased(20))
    task.model.eval()
    batch = task.collate([task.encode(Example(TEXT))])
    with torch.no_grad():
        state = task.model(batch.tokens).state
    high = activations(task, Example(TEXT))[1]
    assert np.allclose(high.parts["hidden"][-1], state.layers[-1].hidden[0].numpy(), atol=1e-5)


def test_a_backward_cell_is_shown_in_the_order_of_the_text() -> None:
    torch.manual_seed(2)
    encoder = TextEncoderSpec(embedding_size=4, hidden_size=3, cell="gru")
    task = ClassificationSpec(model=ClassifierSpec(encoder=encoder)).build_from(opinions(10))
    words = opinions(10)[0]
    forward, backward = activations(task, words)
    assert (forward.name, backward.name) == ("encoder forward", "encoder backward")
    assert list(backward.parts) == ["hidden", "reset", "update"]
    assert forward.tokens == backward.tokens == tuple(words.text.split())
    # Its first step is at the last token, from a state of zeros: h = (1 - z) n.
    last = np.abs(backward.parts["hidden"][-1])
    assert (last <= 1 - backward.parts["update"][-1] + 1e-6).all()
    assert backward.most_varied() == int(backward.parts["hidden"].std(0).argmax())
    with pytest.raises(
        ValueRangeError, match="has the parts hidden, reset, update with units 0 to 2"
    ):
        backward.unit("forget", 0)


def test_a_text_is_colored_by_value() -> None:
    drawn = colored_text(("begin", *"a<b"), (0.0, 0.5, -2.0, 1.0), title="decoder, cell, unit 3")
    assert drawn.count('class="token ink"') == 3
    assert drawn.count('class="token mark"') == 1
    assert "&lt;: -2.00" in drawn.replace("\u2068", "").replace("\u2069", "")
    long = colored_text("x" * 200, [0.1] * 200, title="two lines and more")
    assert len({line.split(' y="')[1].split('"')[0] for line in long.split("<rect")[2:202]}) > 2
    with pytest.raises(ShapeError, match="2 tokens and 1 values"):
        colored_text("ab", (0.1,), title="")
    with pytest.raises(ValueRangeError, match="must be finite"):
        colored_text("a", (float("nan"),), title="")


def test_explain_draws_units(tmp_path: Path) -> None:
    torch.manual_seed(3)
    save_bundle(language_model().build_from(upper_cased(20)), tmp_path / "lm")
    names = ("decoder layer 2:cell:3", "decoder layer 1:forget")
    done = foveal("explain", "lm", TEXT, "--out", "page.html", "--unit", *names, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Units and gates" in page
    assert "decoder layer 2, cell, unit 3" in page
    done = foveal("explain", "lm", TEXT, "--unit", "encoder:cell:1", folder=tmp_path)
    assert done.returncode != 0
    assert "expected a cell and a part of this model" in done.stderr
