"""The river from a query to a ranked answer."""
