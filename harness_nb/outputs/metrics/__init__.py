"""The metrics reader: lines such as ``epoch 3 loss 0.41 acc 0.87`` and progress bars as a table, a plot and a summary.

The firewall owns a ``MetricsReader`` and shows what ``derived`` draws of it. Pure; imports only ``outputs.bounds``.
"""

from harness_nb.outputs.metrics.anomalies import Anomaly
from harness_nb.outputs.metrics.progress import Progress
from harness_nb.outputs.metrics.reader import MetricsReader
from harness_nb.outputs.metrics.series import Column, Row, Series

__all__ = ["Anomaly", "Column", "MetricsReader", "Progress", "Row", "Series"]
