"""Export: a session notebook as it is, or clean, as a plain notebook that runs without harness_nb; also .py and HTML.

The command line and ``%agent export`` call ``export_session``; ``clean_notebook`` is the pure part. nbconvert is
imported in ``writing`` only, when it is needed.
"""

from harness_nb.export.choice import Unresolved
from harness_nb.export.clean import CleanExport, clean_notebook
from harness_nb.export.writing import Exported, export_session

__all__ = ["CleanExport", "Exported", "Unresolved", "clean_notebook", "export_session"]
