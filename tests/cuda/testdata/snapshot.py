"""Checks a snapshot in PyTorch's format: snapshot.py PICKLE REPORT [EVENT...]. The report is of the
same moment; the events are the ones that the traces must have."""

import json
import pickle
import sys


def load(path):
    with open(path, "rb") as file:
        return pickle.load(file)


def device_sums(snapshot, device):
    sums = dict.fromkeys(("reserved", "live", "free", "pending", "foreign"), 0)
    for s in snapshot["segments"]:
        if s["device"] != device:
            continue
        by_state = {"active_allocated": 0, "active_pending_free": 0, "inactive": 0}
        at = s["address"]
        for b in s["blocks"]:
            assert b["address"] == at and b["size"] >= b["requested_size"]
            assert b["frames"] == []
            by_state[b["state"]] += b["size"]
            at += b["size"]
        used, pending = by_state["active_allocated"], by_state["active_pending_free"]
        assert at == s["address"] + s["total_size"]
        assert s["allocated_size"] == used and s["active_size"] == used + pending
        assert s["requested_size"] <= used and s["segment_type"] in ("small", "large")
        assert isinstance(s["is_expandable"], bool) and len(s["segment_pool_id"]) == 2
        sums["reserved"] += s["total_size"]
        sums["live"] += used
        sums["pending"] += pending
        sums["free"] += by_state["inactive"]
    return sums


def replay(trace, snapshot, device):
    """Every free has an allocation before it, or a block from before the trace; at the end the
    blocks are those of the segments."""
    live = set()
    for e in trace:
        assert e["frames"] == [] and e["time_us"] > 1e15 and e["size"] >= 0
        if e["action"] == "alloc":
            assert e["addr"] not in live
            live.add(e["addr"])
        elif e["action"] == "free_completed":
            live.discard(e["addr"])
        elif e["action"] == "oom":
            assert e["device_free"] >= 0
    now = {b["address"] for s in snapshot["segments"] if s["device"] == device
           for b in s["blocks"] if b["state"] != "inactive"}
    assert live <= now, (live, now)


def main():
    snapshot = load(sys.argv[1])
    with open(sys.argv[2], encoding="utf-8") as file:
        report = json.load(file)
    assert snapshot["allocator_settings"] == {}
    for d in report["devices"]:
        sums = device_sums(snapshot, d["ordinal"])
        want = {
            "reserved": d["bytes_reserved"] + d["bytes_foreign"],
            "live": d["bytes_live"] + d["bytes_foreign"],
            "pending": d["bytes_pending"] + d["bytes_held"] + d["bytes_lost"],
            "free": d["bytes_cached_local"] + d["bytes_cached_global"] + d["bytes_private"],
        }
        for key, value in want.items():
            assert sums[key] == value, (key, sums[key], value)
        trace = snapshot["device_traces"][d["ordinal"]]
        replay(trace, snapshot, d["ordinal"])
        actions = {e["action"] for e in trace}
        assert actions >= set(sys.argv[3:]), actions
    print("ok")


main()
