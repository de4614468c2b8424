"""Data sets: small samples that ship with the package, and the public data sets that recipes and examples read.

    sample("pronunciation")                 a folder of the package with train.tsv, dev.tsv and test.tsv
    data_folder()                           the folder of the public data sets: FOVEAL_DATA, or one in the cache
    data_file("scan/tasks_train.txt.gz")    one of their files, or an error with the command that gets it

The command `foveal data` lists them with source, license and checksums. This package needs Python only.
"""

from ._folder import data_file as data_file, data_folder as data_folder
from ._samples import sample as sample
