"""Data: files to examples, examples to numbers, numbers to batches. It knows no model.

    file -> source -> Example -> encode -> Encoded -> BatchStream -> batch of padded tensors

`encode` and `collate` are given by the task; everything else is here.
"""

from ._annotations import (
    CocoCaptions as CocoCaptions,
    EasyVqa as EasyVqa,
    Karpathy as Karpathy,
    coco_captions as coco_captions,
    easy_vqa as easy_vqa,
    karpathy as karpathy,
)
from ._babi import Babi as Babi, babi as babi
from ._batch_stream import BatchStream as BatchStream
from ._batches import (
    LabelledBatch as LabelledBatch,
    PairBatch as PairBatch,
    PictureBatch as PictureBatch,
    QuestionBatch as QuestionBatch,
    SequenceBatch as SequenceBatch,
    TaggedBatch as TaggedBatch,
    TextBatch as TextBatch,
    collate_documents as collate_documents,
    collate_labelled as collate_labelled,
    collate_matched as collate_matched,
    collate_pairs as collate_pairs,
    collate_pictures as collate_pictures,
    collate_questions as collate_questions,
    collate_tagged as collate_tagged,
    move as move,
)
from ._bytes import (
    CHUNK as CHUNK,
    DamagedError as DamagedError,
    Readable as Readable,
    read_handle as read_handle,
)
from ._checks import Finding as Finding, Findings as Findings, check_data as check_data
from ._conllu import ConllU as ConllU, conllu as conllu
from ._example import (
    Example as Example,
    Where as Where,
    evenly_spaced as evenly_spaced,
    read_alignment as read_alignment,
    read_pair as read_pair,
)
from ._formats import (
    JsonLines as JsonLines,
    Parallel as Parallel,
    PlainLines as PlainLines,
    TabSeparated as TabSeparated,
    json_lines as json_lines,
    lines as lines,
    parallel as parallel,
    tsv as tsv,
)
from ._frames import read_frames as read_frames
from ._image_lists import (
    ImageFolders as ImageFolders,
    ImageList as ImageList,
    image_folders as image_folders,
    image_list as image_list,
)
from ._images import ImageSpec as ImageSpec, read_image as read_image
from ._inferring import (
    InferredTask as InferredTask,
    InferredTokeniser as InferredTokeniser,
    infer_task as infer_task,
    infer_tokeniser as infer_tokeniser,
)
from ._lines import MAX_LINE as MAX_LINE, LineReader as LineReader, Place as Place
from ._links import (
    Gold as Gold,
    GoldFile as GoldFile,
    Link as Link,
    read_barred as read_barred,
    read_gold as read_gold,
)
from ._opening import (
    ImageSourceSpec as ImageSourceSpec,
    Opened as Opened,
    SourceSpec as SourceSpec,
    open_source as open_source,
)
from ._packed import (
    Encoded as Encoded,
    Packed as Packed,
    Packer as Packer,
    Ragged as Ragged,
)
from ._patterned import Patterned as Patterned, patterned as patterned
from ._pictures import (
    Pictures as Pictures,
    collate_frames as collate_frames,
    collate_images as collate_images,
)
from ._pools import LeftOut as LeftOut
from ._prepared import (
    CORPUS as CORPUS,
    PART_SIZE as PART_SIZE,
    PreparedCorpus as PreparedCorpus,
    part_bytes as part_bytes,
)
from ._sentencepiece import SentencePieceSpec as SentencePieceSpec
from ._source import (
    Cursor as Cursor,
    InMemory as InMemory,
    Position as Position,
    Shard as Shard,
    Source as Source,
)
from ._spelling import SpellingSpec as SpellingSpec, word_shape as word_shape
from ._stream import AbstractStream as AbstractStream
from ._text_stream import TextStream as TextStream
from ._tokenisers import (
    CharacterSpec as CharacterSpec,
    FeaturesSpec as FeaturesSpec,
    LatexSpec as LatexSpec,
    TokeniserSpec as TokeniserSpec,
    WhitespaceSpec as WhitespaceSpec,
)
from ._vocabulary import (
    BEGIN as BEGIN,
    END as END,
    PADDING as PADDING,
    UNKNOWN as UNKNOWN,
    Labels as Labels,
    Vocabulary as Vocabulary,
    bounded_counts as bounded_counts,
)
from ._words import Words as Words, split_words as split_words, words_of as words_of
