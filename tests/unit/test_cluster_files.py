from lastword.kafka.cluster_files import new_cluster_id


def test_a_cluster_id_never_looks_like_an_option() -> None:
    ids = {new_cluster_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert not any(cluster_id.startswith("-") for cluster_id in ids)
