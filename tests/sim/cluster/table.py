"""All rules of a cluster that must not be broken, each with a mutant that breaks it and with what finds that: storms of
the rules (seeds 1 to 40 of `World`), a schedule that was written for it, or the test of the code where the rule is.

A rule that is added gets a row; a row whose mutant nobody finds fails `test_mutants.py`."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import pytest

from tests.sim import test_cluster_control, test_power_loss_of_several_logs
from tests.sim.cluster import mutants, schedules
from tests.sim.cluster import mutants_elsewhere as elsewhere
from tests.unit.broker import test_verified
from tests.unit.broker.remote import test_appends
from tests.unit.cluster import test_changes, test_copying_companions, test_peers, test_session
from tests.unit.doors.kafka import test_strangers_fetch
from tests.unit.machines import test_delay_hosts, test_replication
from tests.unit.replica import test_replica, test_roles
from tests.unit.runtime import test_standby

Mutate = Callable[[pytest.MonkeyPatch], None]
SEEDS = None


class Row(NamedTuple):
    rule: str
    """What the mutant does."""
    mutate: Mutate
    found_by: Callable[[], None] | None = SEEDS
    """None: by storms of the rules."""
    first_seed: int = 1
    """The storm that is tried first, as it found the mutant before. If it does not any more, all others are tried."""


def knowing_snapshots() -> None:
    with pytest.MonkeyPatch.context() as patched:
        test_standby.test_a_standbys_snapshot_knows_no_more_than_the_watermark(patched)


TABLE = (
    Row("truncate to the watermark", mutants.truncate_to_the_watermark),
    Row("acknowledge before the sync", mutants.acknowledge_before_the_sync),
    Row("fetch with an offset that is not synced", mutants.unsynced_fetch_offset),
    Row("no floor of the ISR", mutants.no_floor),
    Row("a floor in proposals, but not in elections", mutants.floor_in_the_proposal_only),
    Row(
        "a pending ISR counts for the minimum",
        mutants.pending_isr_counts_for_the_minimum,
        schedules.a_member_that_is_not_confirmed,
    ),
    Row("act on an ISR before etcd has confirmed it", mutants.act_on_an_isr_before_it_is_confirmed),
    Row("the same epoch after a restart", mutants.same_epoch_after_a_restart),
    Row(
        "no incarnation where the ISR grows (KIP-903)",
        mutants.no_incarnation_in_isr_growth,
        schedules.a_disk_lost_between_fetch_and_growth,
    ),
    Row("no check of the last epoch", mutants.no_last_epoch_check),
    Row("the last epoch is what the leader said, not what is in the log", mutants.last_epoch_taken_from_the_leader),
    Row("a fetch of another epoch counts", mutants.a_fetch_of_another_epoch_counts, schedules.fetches_of_other_epochs),
    Row("a pending ISR is forgotten after an unchanged read", mutants.pending_isr_forgotten_after_an_unchanged_read),
    Row("the key of a session deleted, its lease left", mutants.key_deleted_and_lease_left),
    Row("the mark of a doubtful copy forgotten by a restart", mutants.doubtful_mark_forgotten_by_a_restart),
    Row("doubtful replicas stand for election", mutants.doubtful_replicas_stand),
    Row("what is known of producers survives a truncation", mutants.producer_state_survives_a_truncation),
    Row(
        "`up_to` survives a dropped schedule",
        elsewhere.up_to_survives_a_dropped_schedule,
        partial(test_delay_hosts.test_schedules_of_lost_places_never_fire_and_others_take_their_offsets, "replay"),
    ),
    Row(
        "a repeated batch below `up_to` is known",
        elsewhere.repeated_batch_below_up_to_is_known,
        partial(test_delay_hosts.test_what_the_ledger_lost_is_taken_when_it_comes_again_once, "replay"),
    ),
    Row(
        "a schedule fires above the host's watermark",
        elsewhere.fired_above_the_watermark,
        schedules.a_schedule_whose_place_is_not_committed,
    ),
    Row(
        "schedules not checked against the host",
        elsewhere.schedules_not_checked_against_the_host,
        partial(
            test_power_loss_of_several_logs.test_every_acknowledged_delayed_record_fires_once_whatever_each_log_kept,
            "something_new_first",
        ),
    ),
    Row(
        "a bound that another leader told is kept",
        elsewhere.bound_told_by_another_leader_kept,
        schedules.a_bound_of_another_leader,
    ),
    Row(
        "a marker during a verification",
        elsewhere.marker_during_verification,
        test_verified.test_a_marker_that_comes_meanwhile_makes_the_answer_void,
    ),
    Row(
        "verification skipped",
        elsewhere.verification_skipped,
        test_verified.test_a_batch_of_a_transaction_waits_until_the_coordinator_was_asked,
    ),
    Row(
        "markers without the coordinator's epoch",
        elsewhere.markers_without_coordinator_epoch,
        test_replica.test_a_marker_of_an_older_coordinator_or_producer_is_refused,
    ),
    Row(
        "a second maker of a topic sets back what leads",
        elsewhere.second_maker_sets_back_what_leads,
        test_changes.test_a_second_maker_does_not_set_back_what_leads_already,
    ),
    Row(
        "an effect before its cause is committed",
        elsewhere.effect_before_commit,
        test_appends.test_a_dead_letter_is_not_written_before_the_death_is_committed_nor_settled_before_it_is_written,
    ),
    Row(
        "waiters survive a demotion (KAFKA-20634)",
        mutants.waiters_survive_a_demotion,
        schedules.waiters_of_an_earlier_reign,
    ),
    Row(
        "a snapshot at the synced end, of producers",
        elsewhere.snapshot_at_the_synced_end,
        test_roles.test_producers_are_not_saved_above_the_watermark,
    ),
    Row("a snapshot above what a standby knows", elsewhere.standbys_snapshot_at_the_synced_end, knowing_snapshots),
    Row(
        "a snapshot survives a truncation",
        mutants.snapshot_survives_a_truncation,
        schedules.a_snapshot_behind_the_cut,
    ),
    Row(
        "a standby applies above the watermark",
        elsewhere.standby_applies_above_the_watermark,
        test_standby.test_a_standby_never_applies_above_the_high_watermark,
    ),
    Row(
        "a coordinator serves before the start of its reign is committed",
        elsewhere.serves_before_the_start_of_its_reign_is_committed,
        test_standby.test_a_coordinator_serves_nothing_before_the_start_of_its_reign_is_committed,
    ),
    Row(
        "companions are not needed for the ISR",
        elsewhere.companion_not_needed_for_the_isr,
        test_copying_companions.test_a_follower_without_the_companion_does_not_join,
    ),
    Row(
        "dropped tombstones are not checked",
        elsewhere.tombstone_gap_not_checked,
        test_replication.test_a_follower_that_missed_dropped_tombstones_begins_anew_once,
    ),
    Row(
        "gaps beyond what is known to be compacted",
        elsewhere.gaps_beyond_what_is_known_to_be_compacted,
        schedules.a_copy_of_a_compacted_log,
    ),
    Row("no freshness for reads", mutants.no_freshness_for_reads),
    Row(
        "no freshness for leases and heartbeats",
        elsewhere.no_freshness_for_leases,
        test_standby.test_what_no_committed_write_stands_for_is_not_answered_while_another_may_lead,
    ),
    Row(
        "the deadline of a session counts from the answer",
        elsewhere.deadline_of_a_session_counted_from_the_answer,
        lambda: test_session.test_the_deadline_counts_from_when_the_renewal_was_sent(test_session.World()),
    ),
    Row(
        "the same, among the rules",
        mutants.deadline_counted_from_the_answer,
        schedules.a_deposed_leader_with_slow_answers,
    ),
    Row(
        "a transaction whose answer was lost is repeated",
        mutants.indeterminate_transaction_repeated,
        schedules.a_growth_whose_answer_is_lost,
    ),
    Row("a watch skips a compaction", mutants.watch_skips_a_compaction, first_seed=40),
    Row(
        "absence deletes",
        elsewhere.absence_deletes,
        test_cluster_control.test_logs_that_nobody_has_said_may_go_are_put_aside,
    ),
    Row(
        "the id of a topic is not checked",
        elsewhere.topic_id_not_checked,
        test_cluster_control.test_a_log_of_an_earlier_topic_of_the_same_name_is_put_aside,
    ),
    Row(
        "a wiped disk under an old id",
        elsewhere.wiped_disk_under_an_old_id,
        test_cluster_control.test_a_node_with_a_strange_disk_or_a_wiped_etcd_does_not_start,
    ),
    Row(
        "a restored etcd is trusted",
        elsewhere.restored_etcd_is_trusted,
        test_cluster_control.test_an_etcd_that_was_restored_from_an_old_backup_stops_all_elections,
    ),
    Row(
        "a replica fetches without a proof",
        elsewhere.replica_fetch_without_proof,
        test_peers.test_a_stranger_is_asked_for_a_proof_and_answered_nothing_else,
    ),
    Row(
        "a replica fetches where clients do",
        elsewhere.replica_fetch_where_clients_do,
        partial(test_strangers_fetch.test_a_fetch_as_a_replica_is_refused_on_the_clients_door, 7),
    ),
    Row(
        "a leader hands over before the target is at the end",
        elsewhere.hand_over_before_the_target_is_at_the_end,
        schedules.a_target_that_is_not_at_the_end,
    ),
    Row(
        "a replica that is removed leaves before those that are added are in",
        mutants.removing_leaves_before_adding_are_in,
    ),
)
