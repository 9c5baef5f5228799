"""What is kept of what was measured: bounded, and None where a number is not known."""

from __future__ import annotations

from lastword.core.shapes.cluster import ClusterSample
from lastword.kafka.topics.topic_description import total
from lastword.serve.cluster.samples import Growth, Samples
from lastword.serve.http.answers import public_message


def test_an_hour_of_samples_is_kept_and_no_more() -> None:
    samples = Samples(ClusterSample)
    for number in range(400):
        samples.add(ClusterSample(number * 10_000, number, None))
    kept = samples.oldest_first()
    assert (len(kept), kept[0], kept[-1].at) == (360, ClusterSample(400_000, 40, None), 3_990_000)


def test_a_rate_is_taken_over_the_last_ten_seconds() -> None:
    growth = Growth()
    rates = []
    for second, number in ((0, 100), (2, 120), *((later, 120) for later in range(4, 40, 2))):
        growth.seen(second, number)
        rates.append(growth.per_s)
    assert (rates[:2], rates[-1]) == ([None, 10.0], 0.0)


def test_a_rate_of_two_looks_far_apart_is_one_too() -> None:
    growth = Growth()
    for second, number in ((0.0, 0), (10.0, 50), (20.0, 150)):
        growth.seen(second, number)
    assert growth.per_s == 10.0


def test_a_number_that_is_not_known_any_more_has_no_rate() -> None:
    growth = Growth()
    rates = []
    for second, number in ((0, 0), (2, 1000), (4, None), (6, 1000), (8, 1000)):
        growth.seen(second, number)
        rates.append(growth.per_s)
    assert rates == [None, 500.0, None, None, 0.0]


def test_a_sum_of_which_a_part_is_not_known_is_not_known() -> None:
    assert (total([1, 2]), total([1, None]), total([])) == (3, None, 0)


def test_what_names_an_address_or_a_folder_is_not_public_message() -> None:
    servers = "kafka-1.inside:9092,kafka-2"
    for message in ("no Kafka answers at 10.0.0.1:9092", "journal entry /home/ann/x", "kafka-2 is away"):
        assert public_message(message, servers, "it failed") == "it failed"
    right = "broker 1 does not give the sizes: it needs the right DESCRIBE on the cluster"
    assert public_message(right, servers, "it failed") == right
