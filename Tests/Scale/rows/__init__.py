"""The rows of the table."""

# The order of the imports is the order of the table.
from rows import gateways, kills, brokers, rabbitmq, routers  # noqa: F401, I001
