"""The types that an AdminClient takes and answers with: the only file that knows where confluent-kafka keeps them.

confluent-kafka defines these types in private modules (`confluent_kafka.admin._config`, ...) and names them again in
`confluent_kafka.admin`, as its documentation does, but without an `__all__`. So mypy does not see them as exported:
hence the `type: ignore`. If a release of confluent-kafka moves one of them, importing lastword.kafka fails here and
nowhere else.
"""

from __future__ import annotations

from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOpType,
    ClusterMetadata,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    TopicMetadata,
    UserScramCredentialUpsertion,
)

__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "AlterConfigOpType",
    "ClusterMetadata",
    "ConfigEntry",
    "ConfigResource",
    "ConfigSource",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "ResourcePatternType",
    "ResourceType",
    "ScramCredentialInfo",
    "ScramMechanism",
    "TopicMetadata",
    "UserScramCredentialUpsertion",
]
