"""Samples of texts that this project generates: inflection, trees, pairs, reviews, and questions about scenes.

Each function takes a random generator and returns lines. The texts are easy on purpose: they show the format of a task,
and a small model learns them in a minute.
"""

import json
import re
from collections.abc import Sequence
from random import Random

_NUMBERS = ("a", "two", "three")
_PERSONS = {"man": "person", "woman": "person", "boy": "child", "girl": "child"}
_ANIMALS = ("dog", "cat", "horse", "bird")
_ACTIONS = {"sleeps": "rests", "runs": "moves", "sings": "makes a sound", "jumps": "moves"}
_COLORS = ("red", "black", "brown", "white")
_PLACES = ("in a park", "on a beach", "in a street", "near a river")
_NEUTRAL = (
    "The hotel is near the station.",
    "We stayed for three nights.",
    "Breakfast is served until ten.",
    "Our room was on the second floor.",
    "The building has a small garden.",
    "We arrived by train in the evening.",
    "The bus stops in front of the door.",
)
_SUBJECTS = ("The room", "The food", "The staff", "The view", "The bed")
_GOOD = ("wonderful", "excellent", "friendly", "lovely", "perfect")
_BAD = ("terrible", "dirty", "awful", "noisy", "broken")


def inflections(chance: Random, size: int) -> list[str]:
    """Lemmas of an invented language, inflected with vowel harmony: lemma, form, features."""
    lemmas: set[str] = set()
    while len(lemmas) < size:
        vowels = chance.choice(("ei", "aou"))
        syllables = (chance.choice("bdgklmnprstvz") + chance.choice(vowels) for _ in "ab")
        lemmas.add("".join(syllables) + chance.choice("klmnprstz"))
    lines: list[str] = []
    for lemma in sorted(lemmas):
        features = chance.choice(("N;PL", "N;GEN", "N;DAT", "N;PL;GEN", "N;PL;DAT"))
        lines.append(f"{lemma}\t{inflected(lemma, features)}\t{features}\n")
    chance.shuffle(lines)
    return lines


def inflected(lemma: str, features: str) -> str:
    """The form of a noun: endings agree with its last vowel, and p, t, k soften before a vowel.

    Examples:
        >>> inflected("deket", "N;PL;GEN"), inflected("balap", "N;GEN")
        ('deketlerin', 'balabun')
    """
    is_front = re.findall("[aeiou]", lemma)[-1] in "ei"
    if "PL" in features:
        lemma += "ler" if is_front else "lar"
    ending = ("in" if is_front else "un") if "GEN" in features else ""
    ending = ("e" if is_front else "a") if "DAT" in features else ending
    if ending and lemma[-1] in "ptk":
        lemma = lemma[:-1] + {"p": "b", "t": "d", "k": "g"}[lemma[-1]]
    return lemma + ending


Word = tuple[str, str, int, str]  # form, part of speech, head (from 1; 0: root) and label

_NOUNS = ("watch", "fish", "light", "child", "student", "garden", "river", "book", "teacher")
_TOOLS = ("telescope", "camera", "stick", "spoon")
_VERBS = ("watch", "fish", "light", "find", "paint", "carry", "follow")
_ADJECTIVES = ("light", "small", "old", "green", "quiet")


def trees(chance: Random, size: int) -> list[str]:
    """Sentences with parts of speech and dependency trees, in CoNLL-U."""
    return [_conllu(_sentence(chance)) for _ in range(size)]


def _conllu(words: Sequence[Word]) -> str:
    rows = (
        f"{number}\t{form}\t{form}\t{tag}\t_\t_\t{head}\t{label}\t_\t_\n"
        for number, (form, tag, head, label) in enumerate(words, start=1)
    )
    return "".join(rows) + "\n"


def _sentence(chance: Random) -> list[Word]:
    """A subject, a verb, an object, and mostly a phrase with "with" that belongs to the verb if it names a tool."""
    subject = _noun_phrase(chance, _NOUNS)
    verb = len(subject) + 1
    words = [*_attached(subject, 0, verb, "nsubj"), (chance.choice(_VERBS), "VERB", 0, "root")]
    if chance.random() < 0.3:
        words.append(("often", "ADV", verb, "advmod"))
    thing = _noun_phrase(chance, _NOUNS)
    noun = len(words) + len(thing)
    words += _attached(thing, len(words), verb, "obj")
    if chance.random() < 0.7:
        is_tool = chance.random() < 0.5
        phrase = [("with", "ADP", -1, "case"), *_noun_phrase(chance, _TOOLS if is_tool else _NOUNS)]
        label = "obl" if is_tool else "nmod"
        words += _attached(phrase, len(words), verb if is_tool else noun, label)
    return [*words, (".", "PUNCT", verb, "punct")]


def _noun_phrase(chance: Random, nouns: Sequence[str]) -> list[Word]:
    """A determiner, up to two adjectives and a noun, which is the head of all of them (-1)."""
    words: list[Word] = [(chance.choice(("the", "a", "every")), "DET", -1, "det")]
    words += [
        (word, "ADJ", -1, "amod")
        for word in chance.sample(_ADJECTIVES, chance.choice((0, 0, 1, 2)))
    ]
    return [*words, (chance.choice(nouns), "NOUN", -2, "")]


def _attached(phrase: Sequence[Word], before: int, head: int, label: str) -> list[Word]:
    """Number the heads of a phrase that follows `before` words; its last word depends on `head`."""
    noun = before + len(phrase)
    return [
        (form, tag, head, label) if own == -2 else (form, tag, noun, own_label)
        for form, tag, own, own_label in phrase
    ]


def pairs(chance: Random, size: int) -> list[str]:
    """Two sentences, and whether the second follows from the first: entailment, contradiction or neutral."""
    found: dict[str, None] = {}
    while len(found) < size:
        who = chance.choice((*_PERSONS, *_ANIMALS))
        more = f"a {_PERSONS[who]}" if who in _PERSONS else "an animal"
        action, color, place = (
            chance.choice(list(_ACTIONS)),
            chance.choice(_COLORS),
            chance.choice(_PLACES),
        )
        looks = f"in a {color} coat" if who in _PERSONS else f"with a {color} collar"
        first = f"a {who} {looks} {action} {place}"
        entailed = (
            f"a {who} {action}",
            f"{more} {action} {place}",
            f"a {who} {_ACTIONS[action]} {place}",
        )
        others = [other for other in _ACTIONS if other != action]
        elsewhere = [other for other in _PLACES if other != place]
        contradicted = (
            f"nobody {action} {place}",
            f"a {who} {looks} {chance.choice(others)} {place}",
            f"a {who} {action} {chance.choice(elsewhere)}",
        )
        neutral = (f"a happy {who} {action} {place}", f"a {who} {action} {place} every day")
        label, choices = chance.choice(
            (("entailment", entailed), ("contradiction", contradicted), ("neutral", neutral))
        )
        found[f"{first}\t{chance.choice(choices)}\t{label}\n"] = None
    return list(found)


def reviews(chance: Random, size: int) -> list[str]:
    """Reviews of hotels as JSON lines, a sentence on each line of the text; one sentence has the opinion."""
    found: dict[str, None] = {}
    while len(found) < size:
        label = chance.choice(("good", "bad"))
        is_negated = chance.random() < 0.3
        words = _GOOD if (label == "good") != is_negated else _BAD
        negation = "not " if is_negated else ""
        opinion = f"{chance.choice(_SUBJECTS)} was {negation}{chance.choice(words)}."
        sentences = [*chance.sample(_NEUTRAL, chance.randint(2, 5)), opinion]
        chance.shuffle(sentences)
        found[json.dumps({"text": "\n".join(sentences), "label": label}) + "\n"] = None
    return list(found)


def questions(captions: Sequence[str], chance: Random) -> list[str]:
    """Questions about scenes from the list of images and captions: image, question, answer."""
    lines: list[str] = []
    for line in captions:
        image, caption = line.rstrip("\n").split("\t")
        things = re.findall(r"\b(a|two|three) (small|large) (\w+) (\w+)\b", caption)
        shapes = {_plural(shape): (number, size, color) for number, size, color, shape in things}
        if len(shapes) < len(things):
            continue  # two groups of one shape: a question about the shape would have two answers
        for plural, (number, size, color) in shapes.items():
            lines += [
                f"{image}\twhat color are the {plural} ?\t{color}\n",
                f"{image}\thow many {plural} are there ?\t{_NUMBERS.index(number) + 1}\n",
                f"{image}\thow large are the {plural} ?\t{size}\n",
            ]
    chance.shuffle(lines)
    return lines


def _plural(shape: str) -> str:
    """Return the plural of a shape in the singular or plural: circles, crosses."""
    return {"cross": "crosses", "crosses": "crosses"}.get(shape, f"{shape.removesuffix('s')}s")
