"""Looking into models: views of what was attended to, explanations of answers, reports of runs, the
doctor, and alignments.

    views         plain data to drawings (SVG strings that stand alone) and pages (HTML, offline)
    explaining    one answer: what was read, what else could have been said, what is needed of it
    doctor        what is wrong with a model or a run, in plain words, and which flag helps
    aligning      which word goes with which, and how right that is
"""

from ._report import report as report
from .aligning import (
    Aligned as Aligned,
    AlignmentScores as AlignmentScores,
    align as align,
    alignment_scores as alignment_scores,
    forced_traces as forced_traces,
    symmetrise as symmetrise,
)
from .doctor import (
    Finding as Finding,
    Watch as Watch,
    examine as examine,
    findings_section as findings_section,
    vital_signs as vital_signs,
)
from .explaining import (
    Explanation as Explanation,
    Faithfulness as Faithfulness,
    erased as erased,
    explain as explain,
    explanation_page as explanation_page,
    faithfulness as faithfulness,
)
from .views import (
    DARK as DARK,
    LIGHT as LIGHT,
    Hypothesis as Hypothesis,
    ParallelAxis as ParallelAxis,
    ParallelLine as ParallelLine,
    Section as Section,
    Series as Series,
    Table as Table,
    Theme as Theme,
    arcs as arcs,
    beam_tree as beam_tree,
    chain as chain,
    curves as curves,
    drawing as drawing,
    drawing_table as drawing_table,
    heads_table as heads_table,
    heatmap as heatmap,
    hypotheses_table as hypotheses_table,
    overlay as overlay,
    page as page,
    parallel as parallel,
    sentences as sentences,
    series_table as series_table,
    weights_table as weights_table,
)
