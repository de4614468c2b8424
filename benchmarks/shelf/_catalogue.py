"""The models of the shelf: their recipes, and the texts of their cards that a person writes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

from foveal.datasets._catalog import DataSet, catalog
from foveal.shelf._adding import EXAMPLE
from foveal.training import Run
from recipes import shelf


def _drawn(name: str, about: str) -> DataSet:
    """Describe images that a recipe draws."""
    return DataSet(
        name=name,
        about=about,
        source=f"recipes/rendered/{name}.py in the repository of Foveal",
        revision=None,
        license="Apache-2.0",
        citation="none: the recipe draws the images",
        files=(),
        by_hand="The recipe draws the images.",
    )


# Data sets that `foveal data` cannot get.
_OTHERS = {
    "scenes": _drawn("scenes", "drawn scenes of colored shapes, with captions"),
    "formulas": _drawn("formulas", "drawn formulas of up to 40 LaTeX tokens"),
    "audio_digits/audiomnist": DataSet(
        name="audio_digits/audiomnist",
        about="spoken digits of 60 speakers (AudioMNIST), resampled to 8 kHz",
        source="https://github.com/soerenab/AudioMNIST",
        revision=None,
        license="MIT, copyright 2018 soerenab",
        citation="Becker et al. 2018, Interpreting and Explaining Deep Neural Networks for Classification of Audio Signals",
        files=(),
        by_hand="`recipes/spoken_digits.py` describes the data.",
    ),
}


class Described(NamedTuple):
    """A model: its recipe, its license, and its use and limits in words."""

    run: Callable[[], Run]
    recipe: str  # the function in recipes/shelf.py
    about: str
    languages: tuple[str, ...]
    license: str  # of the weights, as an SPDX identifier
    data: tuple[str, ...]  # data sets, by their names in `foveal data`
    left_out: str
    example: str  # an input for the command of the card
    use: str
    limits: str
    lexicon: tuple[str, str] | None = None  # a file of a data set that answers before the model
    additions: tuple[str, ...] = ()  # lines of the lexicon that the file lacks


_SHARED_TASK = "The test file of SIGMORPHON 2021 task 1 is not in the training data; the validation file only selected the weights."
_BY_HASH = (
    "A hash of the word selects 2.5 % of the words for the test and 0.8 % for validation; inflected forms of a test word can be "
    "in the training data. A word with several pronunciations counts with its first one."
)
_WIKTIONARY = (
    "The pronunciations come from Wiktionary by WikiPron: broad transcriptions by volunteers, of dictionary forms. Names, "
    "abbreviations and loanwords are rare in them. The model reads {letters} of the language and knows no context, "
    "so it gives a homograph one pronunciation."
)
_TREEBANK = (
    "The training text is from the web of 2003 to 2012: blogs, newsgroups, email, reviews and answers. Punctuation "
    "must be separated from words, as in the treebank."
)
_SPEECH = "Pronunciations for speech synthesis and recognition, dictionaries and language teaching."
_NAMES = "Spellings of names for search, record linkage and maps, as suggestions that a person or a list confirms."
_LANGUAGES = {
    "ady": "Adyghe",
    "bg": "Bulgarian",
    "cy": "Welsh (south-western)",
    "de": "German",
    "el": "Greek",
    "fr": "French",
    "hi": "Hindi",
    "hu": "Hungarian",
    "hy": "Armenian (eastern)",
    "is": "Icelandic",
    "it": "Italian",
    "ja": "Japanese (hiragana)",
    "ka": "Georgian",
    "km": "Khmer",
    "ko": "Korean",
    "lv": "Latvian",
    "mt": "Maltese",
    "nl": "Dutch",
    "ro": "Romanian",
    "sh": "Serbo-Croatian (Latin script)",
    "sl": "Slovenian",
    "vi": "Vietnamese (Hanoi)",
}
_EXAMPLES = {
    "ady": "бзыу",
    "bg": "език",
    "cy": "iaith",
    "de": "Sprache",
    "el": "γλώσσα",
    "fr": "bonjour",
    "hi": "भाषा",
    "hu": "nyelv",
    "hy": "լեզու",
    "is": "tungumál",
    "it": "lingua",
    "ja": "ことば",
    "ka": "ენა",
    "km": "ភាសា",
    "ko": "언어",
    "lv": "valoda",
    "mt": "lingwa",
    "nl": "taal",
    "ro": "limbă",
    "sh": "jezik",
    "sl": "jezik",
    "vi": "ngôn",
}
_SCRIPTS = {
    "ar": "Arabic script",
    "he": "Hebrew script",
    "ja": "katakana",
    "ko": "Hangul",
    "ru": "Cyrillic script (Russian)",
    "zh": "Chinese characters",
}


def data_set_of(name: str) -> DataSet:
    """Return a data set that a model was trained on, by its name."""
    return _OTHERS[name] if name in _OTHERS else catalog()[name]


def _pronunciation(language: str) -> Described:
    recipe = shelf.medium if language in shelf.MEDIUM else shelf.low
    return Described(
        run=partial(recipe, language),
        recipe=f"g2p_{language}",
        about=f"{_LANGUAGES[language]} words to phones (IPA)",
        languages=(language,),
        license="CC-BY-SA-3.0",
        data=("g2p_sigmorphon2021",),
        left_out=_SHARED_TASK,
        example=_EXAMPLES[language],
        use=_SPEECH,
        limits=_WIKTIONARY.format(letters="lowercase letters"),
    )


def _wikipron(language: str, letters: str) -> Described:
    """Describe a language that the shared task lacks."""
    return _pronunciation(language)._replace(
        run=partial(shelf.more, language),
        license="CC-BY-SA-4.0",
        data=("g2p_wikipron_sel",),
        left_out=_BY_HASH,
        limits=_WIKTIONARY.format(letters=letters),
    )


def _names(script: str) -> Described:
    return Described(
        run=partial(shelf.names, script),
        recipe=f"names_{script}",
        about=f"names of people in Latin letters to {_SCRIPTS[script]}",
        languages=("en", script),
        license="CC0-1.0",
        data=("translit_coling2018",),
        left_out="The test file, a fifth of the names, is not in the training data.",
        example="marsalis",
        use=_NAMES,
        limits="The names come from Wikidata and from many languages, one word at a time, in lowercase. A name has several "
        "correct spellings, and only the spelling in the file counts as right, so the error rate is an upper bound.",
    )


_ENGLISH = Described(
    run=shelf.english,
    recipe="g2p_en",
    about="American English words to phones with stress (ARPAbet): CMUdict, and a model for other words",
    languages=("en",),
    license="BSD-2-Clause",
    data=("g2p_cmudict",),
    left_out="A hash of the word selects 2.5 % of the words of CMUdict for the test and 0.8 % for validation. The 4,168 "
    "English test words of SIGMORPHON 2021 are in none of the three parts. The lexicon contains all words of CMUdict, "
    "also the test words: the scores describe the model, for words that the lexicon lacks. Inflected forms of a test word "
    "can be in the training data.",
    example="Reykjavik",
    use=f"{_SPEECH} Commands look a word up in the lexicon first, and the confidence is then 1.",
    limits="CMUdict describes General American, as single words in lowercase. It contains many names and some errors. The "
    "lexicon lists all pronunciations of a homograph (`--nbest`) and cannot choose between them. Four frequent words that "
    "CMUdict lacks are added: ny, nyc, sf, thats. The model was trained on the first pronunciation of each word.",
    lexicon=("g2p_cmudict", "cmudict.dict.gz"),
    # CMUdict lacks four of the 1,000 most frequent words: see _frequent.py.
    additions=(
        "ny EH2 N W AY1",
        "nyc EH2 N W AY2 S IY1",
        "sf EH2 S EH1 F",
        "thats DH AE1 T S",
    ),
)
_ARABIC = Described(
    run=shelf.arabic_names,
    recipe="names_from_ar",
    about="Arabic names to Latin letters",
    languages=("ar", "en"),
    license="Apache-2.0",
    data=("translit_ar2en",),
    left_out="The official test file is not in the training data.",
    example="محمود",
    use=_NAMES,
    limits="Arabic omits short vowels, so a name has several correct spellings in Latin letters, and only the spelling in "
    "the file counts as right.",
)
_TAGGER = Described(
    run=shelf.tagger,
    recipe="tagger_en",
    about="universal parts of speech of English words",
    languages=("en",),
    license="CC-BY-SA-4.0",
    data=("ud_english_ewt",),
    left_out="The official test file is not in the training data.",
    example="'They saw her duck .'",
    use="Parts of speech for English text whose words are separated by spaces.",
    limits=_TREEBANK,
)
_PARSER = Described(
    run=shelf.parser,
    recipe="parser_en",
    about="dependency trees of English sentences (Universal Dependencies)",
    languages=("en",),
    license="CC-BY-SA-4.0",
    data=("ud_english_ewt",),
    left_out="The official test file is not in the training data.",
    example="'They saw her duck .'",
    use="Heads and labels for English text whose words are separated by spaces; `--format conllu` writes them as CoNLL-U.",
    limits=f"{_TREEBANK} The model has about a third of the usual width and no pretrained "
    "vectors: `recipes/parsing.py` trains a more accurate one. It has no export.",
)
_SCENES = Described(
    run=shelf.scenes,
    recipe="scenes_en",
    about="captions of drawn scenes: colored shapes, their number and relative positions",
    languages=("en",),
    license="Apache-2.0",
    data=("scenes",),
    left_out="The test scenes contain combinations of size, color and shape that the training scenes lack.",
    example=EXAMPLE,
    use="Teaching: a captioner whose attention can be drawn over the image.",
    limits="It describes only what `recipes/rendered/scenes.py` draws, in images of 80 by 80 pixels.",
)
_FORMULAS = Described(
    run=shelf.formulas,
    recipe="formulas_latex",
    about="images of drawn formulas to LaTeX",
    languages=("zxx",),
    license="Apache-2.0",
    data=("formulas",),
    left_out="The test formulas are not in the training data.",
    example=EXAMPLE,
    use="Teaching, and a start for models of real formulas (`--start-from`).",
    limits="It reads only what `recipes/rendered/formulas.py` draws: short formulas in one font. Photographs, handwriting and "
    "other fonts fail. It has no export, because its search keeps braces balanced.",
)
_COMMANDS = Described(
    run=shelf.commands,
    recipe="commands_en",
    about="English commands to actions: a toy translator",
    languages=("en",),
    license="BSD-3-Clause",
    data=("scan",),
    left_out="The test file of the simple split is not in the training data.",
    example="'jump around left twice'",
    use="Teaching: a translator whose attention and search are small enough to look at.",
    limits="It knows the 13 words of SCAN. Its test commands combine known parts in ways that are similar to the training "
    "commands; models of this kind fail on longer ones.",
)
_DIGITS = Described(
    run=shelf.digits,
    recipe="digits_en",
    about="recordings of one to nine English digits to words",
    languages=("en",),
    license="MIT",
    data=("audio_digits/audiomnist",),
    left_out="Six of the 60 speakers of AudioMNIST are only in the test set, and six others only in the validation set.",
    example="digits.flac",
    use="Teaching, and tests of speech pipelines.",
    limits="The training recordings join single digits of 48 speakers, read in a quiet room, with pauses and noise. Other "
    "microphones and continuous speech give more errors. The model knows no other words. It needs the extra audio, and has "
    "no export.",
)

MODELS: Mapping[str, Described] = {
    "g2p-en": _ENGLISH,
    **{f"g2p-{language}": _pronunciation(language) for language in sorted(_LANGUAGES)},
    "g2p-de": _wikipron("de", "letters"),  # nouns have a capital letter
    "g2p-hi": _wikipron("hi", "lowercase letters"),
    "names-from-ar": _ARABIC,
    **{f"names-{script}": _names(script) for script in _SCRIPTS},
    "tagger-en": _TAGGER,
    "parser-en": _PARSER,
    "scenes-en": _SCENES,
    "formulas-latex": _FORMULAS,
    "digits-en": _DIGITS,
    "commands-en": _COMMANDS,
}
