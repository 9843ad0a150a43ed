"""The edge towards people: magics, cells drawn live in the notebook, the terminal, approvals.

The only place for IPython and rich. Nothing is imported here, so that the command line can use ``ui.terminal`` without
IPython.
"""
