"""The doctor: measures a model and a run, and diagnoses problems.

_forced, _recurrences -> _through_time, _looking, _padding -> _vital_signs     measurements
_history                                                                        the log
_from_signs, _from_curves, _from_outputs -> _findings                           diagnoses
_remedies                                                                       flags that help
_watch                                                                          alarms during a run
"""
