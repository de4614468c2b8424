NAME = "entailment"


def score(cases, seeds, runs, results): ...
