"""Data: read examples from files, encode them as ids, and collate them into batches. Independent of models.

    file -> source -> Example -> encode -> Encoded -> BatchStream -> batch of padded tensors

The task provides `encode` and `collate`; this package provides everything else.
"""

from ..extras import require as _require

_require("toolkit", "PIL", "regex", "sentencepiece", "zstandard", needed_by="foveal.data")


from ._batches import (
    Seq2SeqBatch as Seq2SeqBatch,
    collate_labelled as collate_labelled,
    collate_pictures as collate_pictures,
    collate_seq2seq as collate_seq2seq,
)
from ._curriculum import CurriculumSpec as CurriculumSpec
from ._example import Example as Example
from ._inputs import (
    AbstractInput as AbstractInput,
    Audio as Audio,
    Clip as Clip,
    Dialog as Dialog,
    Document as Document,
    Facts as Facts,
    Picture as Picture,
    PictureQuestion as PictureQuestion,
    TextPair as TextPair,
    Turn as Turn,
)
from ._lines import LineReader as LineReader
from ._source import InMemory as InMemory, Source as Source
from ._source_spec import AbstractSourceSpec as AbstractSourceSpec
from .audio._audio import read_audio as read_audio
from .audio._log_mel import invert_log_mel as invert_log_mel, log_mel as log_mel
from .audio._resampling import resample as resample
from .audio._spec import AudioSpec as AudioSpec
from .formats._annotations import (
    EasyVqa as EasyVqa,
    KarpathyCaptions as KarpathyCaptions,
    coco_captions as coco_captions,
    easy_vqa as easy_vqa,
    karpathy_captions as karpathy_captions,
)
from .formats._audio_lists import AudioList as AudioList, audio_list as audio_list
from .formats._babi import Babi as Babi, babi as babi
from .formats._conllu import conllu as conllu
from .formats._dialogs import dialogs as dialogs
from .formats._formats import (
    JsonLines as JsonLines,
    Parallel as Parallel,
    json_lines as json_lines,
    parallel as parallel,
)
from .formats._image_lists import (
    ImageList as ImageList,
    image_folders as image_folders,
    image_list as image_list,
)
from .formats._opening import SourceSpec as SourceSpec, open_source as open_source
from .formats._regex_lines import RegexLines as RegexLines, regex_lines as regex_lines
from .formats._tables import (
    CommaSeparated as CommaSeparated,
    TabSeparated as TabSeparated,
    csv as csv,
    tsv as tsv,
)
from .formats._treebank import (
    fill_trees as fill_trees,
    read_arc as read_arc,
    treebank as treebank,
)
from .images._frames import read_frames as read_frames
from .images._images import ImageSpec as ImageSpec, read_image as read_image
from .streams._batch_stream import BatchStream as BatchStream
from .streams._packed import Encoded as Encoded
from .tokenizers._base import AbstractTokenizerSpec as AbstractTokenizerSpec
from .tokenizers._sentencepiece import SentencePieceSpec as SentencePieceSpec
from .tokenizers._spelling import SpellingSpec as SpellingSpec
from .tokenizers._tokenizers import (
    CharacterSpec as CharacterSpec,
    FeaturesSpec as FeaturesSpec,
    LatexSpec as LatexSpec,
    TokenizerSpec as TokenizerSpec,
    WhitespaceSpec as WhitespaceSpec,
)
from .vocabularies._tally import Symbols as Symbols, Tally as Tally
from .vocabularies._vocabularies import (
    Vocabularies as Vocabularies,
    located as located,
    required_target as required_target,
)
from .vocabularies._vocabulary import BEGIN as BEGIN, END as END, Vocabulary as Vocabulary
