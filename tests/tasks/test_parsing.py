"""Dependency parsing: CoNLL-U in and out, learning, decoding, and scores worked out by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from foveal.attention import BiaffineLabeler
from foveal.bundles import load_bundle, save_bundle
from foveal.data import Example, SpellingSpec, fill_trees, treebank
from foveal.distributions import ProjectiveTree, SpanningTree
from foveal.errors import DataError, ValueRangeError
from foveal.inspection import explain
from foveal.inspection.explaining._explanation_page import explanation_page
from foveal.metrics import attachment_score
from foveal.models import ParserSizes, ParserSpec, Parses
from foveal.tasks import Parsing, ParsingSpec, PredictionSpec
from foveal.testing import check_model
from foveal.views._text import named
from tests.tasks.treebanks import RICH, SENTENCES, conllu, write_treebank

SMALL = ParserSpec(
    embedding_size=16, hidden_size=24, num_layers=2, arc_size=24, label_size=16, dropout=0.1
)

SPELLING = SpellingSpec(num_buckets=500)


def learned(examples: list[Example], model: ParserSpec = SMALL, *, steps: int = 80) -> Parsing:
    torch.manual_seed(0)
    task = ParsingSpec(
        min_count=1, model=model, word_dropout=0.0, spelling=SPELLING, num_characters=6
    ).build_from(examples)
    optimizer = torch.optim.Adam(task.model.parameters(), lr=5e-3)
    batch = task.collate([task.encode(example) for example in examples])
    for _ in range(steps):
        loss = task.loss(batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        optimizer.step()
    return task


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> list[Example]:
    return list(treebank(write_treebank(tmp_path_factory.mktemp("trees") / "tiny.conllu")))


@pytest.fixture(scope="module")
def task(examples: list[Example]) -> Parsing:
    return learned(examples)


def test_a_treebank_is_read_word_by_word(tmp_path: Path) -> None:
    path = tmp_path / "rich.conllu"
    path.write_text(RICH, encoding="utf-8")
    first, second = treebank(path)
    assert first.source == "They do n't 1\N{NO-BREAK SPACE}000"
    assert first.target == "2:nsubj 0:root 2:advmod 2:obj"
    assert first.features == "PRON|PRP AUX|VBP PART|RB NUM|CD"
    assert (second.source, second.target) == ("Sleep", "0:root")
    assert second.where is not None
    assert second.where.line == 10


def test_a_sentence_without_heads_has_no_target(tmp_path: Path) -> None:
    path = tmp_path / "raw.conllu"
    path.write_text("1\tSleep" + "\t_" * 8 + "\n\n", encoding="utf-8")
    (example,) = treebank(path)
    assert (example.source, example.target) == ("Sleep", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tA\tB\n", "3 columns, expected 10"),
        ("2\tA" + "\t_" * 8 + "\n", "expected word 1 of the sentence, got the number '2'"),
        ("1\t " + "\t_" * 8 + "\n", "the word is empty"),
    ],
)
def test_a_broken_treebank_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.conllu"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=f"broken.conllu, line 1: {message}"):
        list(treebank(path))


def test_conllu_comes_back_with_other_heads_and_labels_only() -> None:
    lines = RICH.split("\n")
    gold = ["2:nsubj 0:root 2:advmod 2:obj", "0:root"]
    assert "\n".join(fill_trees(lines, lambda texts: gold)) == RICH
    other = ["0:root 1:dep 1:dep 1:dep", "0:other"]
    changed = list(fill_trees(lines, lambda texts: other))
    for before, after in zip(lines, changed, strict=True):
        columns, filled = before.split("\t"), after.split("\t")
        if columns[0].isdecimal():
            assert columns[:6] + columns[8:] == filled[:6] + filled[8:]
        else:
            assert before == after
    arcs = [":".join(line.split("\t")[6:8]) for line in changed if line[:1].isdecimal()]
    assert arcs == ["0:root", "_:_", "1:dep", "1:dep", "_:_", "1:dep", "0:other"]


def test_a_task_fills_conllu_with_what_it_predicts(task: Parsing, examples: list[Example]) -> None:
    lines = "".join(map(conllu, SENTENCES)).split("\n")
    blank = [
        "\t".join([*c[:6], "_", "_", *c[8:]]) if len(c := x.split("\t")) > 1 else x for x in lines
    ]
    filled = list(task.fill(blank))
    found = [":".join(line.split("\t")[6:8]) for line in filled if line]
    expected = " ".join(prediction.output for prediction in task.predict(examples)).split()
    assert found == expected


def test_a_parser_learns_a_treebank(task: Parsing, examples: list[Example]) -> None:
    scores = {name: one.value for name, one in task.evaluate(examples).statistics.items()}
    assert scores == {"las": 100.0, "uas": 100.0, "exact_match": 100.0}


def test_a_projective_parser_learns_all_but_crossing_arcs(
    task: Parsing, examples: list[Example]
) -> None:
    crossing = examples[10]
    assert task.predict([crossing])[0].output == crossing.target
    projective = learned(examples, replace(SMALL, tree="projective"))
    found = projective.evaluate(examples)
    wrong = [
        example
        for example, prediction in zip(examples, found.predictions, strict=True)
        if prediction.output != example.target
    ]
    assert wrong == [crossing]


def test_the_loss_is_that_of_trees_labels_and_tags(examples: list[Example]) -> None:
    task = learned(examples, steps=0)
    batch = task.collate([task.encode(examples[2])])
    with task.answering():
        parses, loss = task.parses(batch), task.loss(batch)
        labels = parses.label_log_probs(batch.heads)
        chosen = sum(float(labels[0, word, batch.labels[0, word]]) for word in range(4))
        expected = float(parses.tree.log_prob(batch.heads)) + chosen
        assert float(parses.log_prob(batch.heads, batch.labels)) == pytest.approx(expected)
        assert parses.tags is not None
        tags = parses.tags.log_softmax(-1)[0].gather(-1, batch.tags[0].unsqueeze(-1))
        weighted = task.spec.tag_weight * float(tags.sum())
        assert float(loss.total) == pytest.approx(-expected - weighted, rel=1e-5)


@pytest.mark.parametrize("kind", [ProjectiveTree, SpanningTree])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([2, 1, 0, 3], "expected heads of a tree with a single root, got .* at index .1.,"),
        ([0, 0, 2, 3], "expected heads of a tree with a single root"),
        ([0, 1, 2, 5], r"in 0\.\.4, got 5"),
        ([0, 1, -1, 3], r"in 0\.\.4, got -1"),
    ],
)
def test_heads_that_are_no_tree_have_no_probability(
    kind: type[ProjectiveTree | SpanningTree], wrong: list[int], message: str
) -> None:
    heads = torch.tensor([[0, 1, 2, 3], wrong])
    with pytest.raises(ValueRangeError, match=message):
        parses_of(kind(torch.zeros(2, 5, 5))).log_prob(heads, torch.zeros_like(heads))


def test_a_projective_parser_scores_crossing_arcs_as_a_spanning_tree() -> None:
    torch.manual_seed(0)
    crossing, nested, short = [0, 4, 1, 1], [2, 0, 2, 3], [2, 0, 2, -1]
    heads = torch.tensor([nested, crossing, short])
    arcs, mask = torch.randn(3, 5, 5, requires_grad=True), heads >= 0
    tree = ProjectiveTree(arcs, mask=mask)
    assert tree.allows(heads).tolist() == [True, False, True]
    found = parses_of(tree).log_prob(heads, torch.zeros_like(heads))  # one label has probability 1
    all_trees = SpanningTree(arcs, mask=mask).log_prob(heads)
    expected = torch.stack([tree[0].log_prob(heads[0]), all_trees[1], tree[2].log_prob(heads[2])])
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(each.sum(), arcs)[0] for each in (found, expected)]
    torch.testing.assert_close(*gradients)


def parses_of(tree: ProjectiveTree | SpanningTree) -> Parses:
    """Return the parses of sentences of four words, with one label."""
    words = torch.randn(*tree.batch_shape, 4, 2)
    labeler = BiaffineLabeler(2, 2, num_labels=1)
    return Parses(tree, words, labeler.remember(words), labeler)


def test_minimum_risk_maximizes_the_expected_number_of_right_heads(examples: list[Example]) -> None:
    task = learned(examples, steps=5)  # uncertain, so the two decodings differ
    risk = Parsing(replace(task.spec, decoding="minimum_risk"), task.vocabularies, task.model)

    def expected_right(predictions: list[str]) -> list[float]:
        found = []
        for example, output in zip(examples, predictions, strict=True):
            with task.answering():
                batch = task.collate([task.encode_source(example)])
                marginals = task.parses(batch).tree.marginals()[0]
            heads = [int(arc.partition(":")[0]) for arc in output.split()]
            found.append(sum(float(marginals[head, d]) for d, head in enumerate(heads, start=1)))
        return found

    most_probable = expected_right([one.output for one in task.predict(examples)])
    least_risk = expected_right([one.output for one in risk.predict(examples)])
    assert all(b >= a - 1e-5 for a, b in zip(most_probable, least_risk, strict=True))
    assert sum(least_risk) > sum(most_probable) + 1e-4


def test_company_changes_nothing_in_an_answer(task: Parsing, examples: list[Example]) -> None:
    together = task.predict(examples)
    assert [task.predict([example])[0] for example in examples] == together


def test_several_trees_come_best_first(task: Parsing) -> None:
    settings = PredictionSpec(nbest=3, beam_size=3, trace=True)
    sleep, cat = task.predict(["Sleep", "The old cat sleeps ."], settings)
    assert len(sleep.nbest) == 1  # one word has one tree
    scores = [candidate.score for candidate in cat.nbest]
    assert len({candidate.output for candidate in cat.nbest}) == 3
    assert scores == sorted(scores, reverse=True)
    assert cat.trace is not None
    heads = [int(arc.partition(":")[0]) for arc in cat.output.split()]
    best = [row.index(True) + 1 if any(row) else 0 for row in cat.trace.best or ()]
    assert best == heads
    for row, head, probability in zip(
        cat.trace.weights, heads, cat.token_probabilities, strict=True
    ):
        held = row[head - 1] if head else 1 - sum(row)
        assert held == pytest.approx(probability, abs=1e-4)


def test_an_explanation_draws_the_arcs(task: Parsing, examples: list[Example]) -> None:
    explanation = explain(task, examples[3], beam_size=2, alternatives=3)
    assert explanation.output == examples[3].target
    assert [step.token for step in explanation.steps] == explanation.output.split()
    for step in explanation.steps:
        assert step.alternatives[0] == (step.token, pytest.approx(step.probability))
        assert sum(one.probability for one in step.alternatives) <= 1 + 1e-5
    page = explanation_page(explanation)
    assert f"{named('sees')} heads {named('dog')}" in page
    assert f"{named('sees')} heads the sentence" in page


def test_attachment_scores_are_those_computed_by_hand() -> None:
    gold = [["2:nsubj", "0:root", "2:obj", "2:punct"], ["0:root", "1:nsubj:pass"]]
    found = [["2:obj", "0:root", "4:obj", "2:punct"], ["0:root", "1:nsubj"]]
    # Heads: 3 of 4 and 2 of 2. Heads with labels: 2 of 4 and 1 of 2.
    assert attachment_score(gold, found, labeled=False).value == pytest.approx(100 * 5 / 6)
    assert attachment_score(gold, found, labeled=True).value == pytest.approx(100 * 3 / 6)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("2:nsubj 0:root", "3 words and 2 arcs"),
        ("2:nsubj 0:root 7:obj", "the head 7 is not a word of the sentence"),
        ("0:root 0:root 1:obj", "2 words are attached to the root, expected one"),
        ("2:nsubj 1:dep 0:root", "the heads have a cycle"),
        ("nsubj 0:root 2:obj", "an arc must be a head and a label such as 3:nsubj, got 'nsubj'"),
    ],
)
def test_a_target_that_is_no_tree_is_refused(task: Parsing, target: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        task.encode(Example("They buy books", target))


def test_a_bundle_of_a_parser_answers_as_before(
    task: Parsing, examples: list[Example], tmp_path: Path
) -> None:
    save_bundle(task, tmp_path / "bundle")
    assert load_bundle(tmp_path / "bundle").predict(examples) == task.predict(examples)


def test_data_without_parts_of_speech_trains_without_them() -> None:
    example = Example("They buy books", "2:nsubj 0:root 2:obj")
    task = learned([example], steps=2)
    assert task.model.tags is None
    assert len(task.predict([example])[0].output.split()) == 3


@pytest.mark.parametrize("tree", ["spanning", "projective"])
def test_a_parser_obeys_the_laws(tree: Literal["spanning", "projective"]) -> None:
    torch.manual_seed(0)
    sizes = ParserSizes(vocabulary=9, num_labels=3, num_tags=4)
    spec = ParserSpec(
        embedding_size=5, hidden_size=4, num_layers=2, arc_size=4, label_size=3, tree=tree
    )
    model = spec.build(sizes)
    torch.nn.init.normal_(model.labels.weight)

    def scores(parses: Any) -> torch.Tensor:
        rooted = torch.zeros(parses.words.shape[:2], dtype=torch.long)
        own = rooted + torch.arange(1, rooted.shape[1] + 1)
        labels = [parses.label_log_probs(heads) for heads in (rooted, own)]
        return torch.cat([*labels, parses.tree.marginals()[:, 0, 1:].unsqueeze(-1)], -1)

    check_model(model, torch.randint(9, (4, 5)), result=scores, aligned=0)
