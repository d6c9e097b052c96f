"""Makes brokers that find this on their path a release with other levels of `zurau.version`: LOWEST-HIGHEST."""

from __future__ import annotations

import os

from zurau.machines.controller.features import SUPPORTED, ZURAU_VERSION, Levels

lowest, _, highest = os.environ["OTHER_RELEASE"].partition("-")
SUPPORTED[ZURAU_VERSION] = Levels(int(lowest), int(highest), SUPPORTED[ZURAU_VERSION].unrecorded)
