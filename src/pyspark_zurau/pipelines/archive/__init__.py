"""Any topics into a lake, as they are, and back."""
