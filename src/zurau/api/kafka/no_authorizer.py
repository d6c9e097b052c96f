"""What every question about ACLs is answered with: as by a Kafka without an authorizer, anybody may do anything."""

from __future__ import annotations

from zurau.wire.kafka.error_codes import ErrorCode

CODE = ErrorCode.SECURITY_DISABLED
MESSAGE = "there is no authorizer here: ACLs are not kept, and every client may do everything"
