"""The rows of the table."""

# The order of the imports is the order of the table.
from faults import broker  # noqa: F401
