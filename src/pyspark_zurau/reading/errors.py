"""What stops a query on purpose. Wrong options are `zurau.errors.SettingsError`."""

from __future__ import annotations

from zurau.errors import ZurauError


class DataLost(ZurauError):
    """Records that the query should have read are gone."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}. Some data may have been missed: it was deleted, or grew too old, before the query came to it."
            " To go on without it, set the option failOnDataLoss to false"
        )


class SourceChanged(ZurauError):
    """What an AvailableNow run set out to read is not what is there any more."""
