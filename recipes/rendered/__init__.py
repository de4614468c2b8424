"""Generated pictures without license restrictions: formulas, scenes and clips.

    python -m recipes.rendered formulas data/formulas --count 60000 --seed 1
    python -m recipes.rendered scenes data/scenes --count 20000
    python -m recipes.rendered clips data/clips --count 4000

Each command writes a folder: `images.zip`, one list for each part (`train.tsv`, `dev.tsv`, `test.tsv` and
more), which `image_list("data/formulas/train.tsv", "data/formulas/images.zip")` reads, and `manifest.json`
with the settings, the counts and a digest of the images. The same seed gives the same pixels.
"""

from .formulas import render as render
