"""A dozen sentences with their dependency trees, written by hand."""

from pathlib import Path

# Word, part of speech, head and label of each word, separated by /.
SENTENCES = (
    "They/PRON/2/nsubj buy/VERB/0/root books/NOUN/2/obj ././2/punct",
    "She/PRON/2/nsubj reads/VERB/0/root old/ADJ/4/amod books/NOUN/2/obj ././2/punct",
    "The/DET/2/det cat/NOUN/3/nsubj sleeps/VERB/0/root ././3/punct",
    "The/DET/3/det old/ADJ/3/amod cat/NOUN/4/nsubj sees/VERB/0/root a/DET/6/det dog/NOUN/4/obj ././4/punct",
    "A/DET/2/det dog/NOUN/3/nsubj sleeps/VERB/0/root ././3/punct",
    "Dogs/NOUN/2/nsubj sleep/VERB/0/root ././2/punct",
    "They/PRON/2/nsubj read/VERB/0/root the/DET/4/det book/NOUN/2/obj ././2/punct",
    "She/PRON/2/nsubj buys/VERB/0/root a/DET/5/det old/ADJ/5/amod dog/NOUN/2/obj ././2/punct",
    "Cats/NOUN/2/nsubj see/VERB/0/root dogs/NOUN/2/obj ././2/punct",
    "The/DET/2/det dog/NOUN/3/nsubj sees/VERB/0/root them/PRON/3/obj ././3/punct",
    # Two arcs cross: the relative clause depends on the subject, across the verb.
    "A/DET/2/det book/NOUN/3/nsubj came/VERB/0/root that/PRON/5/nsubj helps/VERB/2/acl:relcl ././3/punct",
    "Sleep/VERB/0/root !/./1/punct",
)
# Other parts of CoNLL-U: comments, a token of two words, an empty node, other columns.
RICH = """\
# sent_id = 1
# text = They don't buy\u00a0books.
1	They	they	PRON	PRP	Case=Nom	2	nsubj	2:nsubj	_
2-3	don't	_	_	_	_	_	_	_	SpaceAfter=No
2	do	do	AUX	VBP	_	0	root	0:root	_
3	n't	not	PART	RB	_	2	advmod	2:advmod	_
3.1	buy	buy	VERB	VB	_	_	_	0:root	CopyOf=2
4	1 000	1000	NUM	CD	_	2	obj	2:obj	_

# sent_id = 2
1	Sleep	sleep	VERB	VB	_	0	root	0:root	_

"""


def conllu(sentence: str) -> str:
    """Return the lines of a sentence as CoNLL-U, with the empty line after it."""
    rows = [word.rsplit("/", 3) for word in sentence.split()]
    lines = [
        "\t".join([str(number), form, "_", tag, "_", "_", head, label, "_", "_"])
        for number, (form, tag, head, label) in enumerate(rows, start=1)
    ]
    return "\n".join([*lines, "", ""])


def write_treebank(path: Path, *, times: int = 1) -> Path:
    """Write the sentences to a file, repeated a number of times."""
    path.write_text("".join(map(conllu, SENTENCES)) * times, encoding="utf-8")
    return path
