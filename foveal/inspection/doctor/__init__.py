"""The doctor: measurements of a model and a run, and what they mean.

_forced, _recurrences -> _through_time, _looking, _padding -> _vital_signs     measurements
_history                                                                        the log
_from_signs, _from_curves, _from_outputs -> _findings                           diagnoses
_remedies                                                                       flags that help
_watch                                                                          alarms during a run
"""

from ._finding import Finding as Finding
from ._findings import examine as examine, findings_section as findings_section
from ._vital_signs import vital_signs as vital_signs
from ._watch import Watch as Watch
