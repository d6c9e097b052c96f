"""ApiVersions (key 18), versions 0 to 4: which APIs, in which versions, does this broker serve?

A client asks this first, so everyone must be able to answer: an unknown version is answered in version 0's form, and
the response header never has tagged fields.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from zurau.wire.kafka.schema import Message, Request, Struct, boolean, i16, i32, i64, since, string, tagged


class ApiVersionsRequest(Request["ApiVersionsResponse"]):
    api_key: ClassVar = 18
    flexible_since: ClassVar = 3

    client_software_name: Annotated[string, since(3)] = ""
    client_software_version: Annotated[string, since(3)] = ""


class ApiVersion(Struct):
    api_key: i16
    min_version: i16
    max_version: i16


class SupportedFeatureKey(Struct):
    name: string
    min_version: i16
    max_version: i16


class FinalizedFeatureKey(Struct):
    name: string
    max_version_level: i16
    min_version_level: i16


class ApiVersionsResponse(Message):
    api_key: ClassVar = 18
    flexible_since: ClassVar = 3

    error_code: i16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[i32, since(1)] = 0
    supported_features: Annotated[list[SupportedFeatureKey], tagged(0, since=3)] = []
    finalized_features_epoch: Annotated[i64, tagged(1, since=3)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], tagged(2, since=3)] = []
    zk_migration_ready: Annotated[boolean, tagged(3, since=3)] = False
