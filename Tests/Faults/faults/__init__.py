"""The rows of the table."""

# The order of the imports is the order of the table.
from faults import broker, poison, network, machine, process  # noqa: F401
