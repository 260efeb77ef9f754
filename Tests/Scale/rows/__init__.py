"""The rows of the table."""

# The order of the imports is the order of the table.
from rows import gateways, kills, brokers, rabbitmq  # noqa: F401, I001
