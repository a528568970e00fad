"""/metrics through Prometheus's own parser, compared with INFO and with redis_exporter on the same server.

    metrics.py METRICS_URL REDIS_PORT EXPORTER_PORT
"""

import subprocess
import sys
import tempfile
import time
import urllib.request

import redis
from prometheus_client.parser import text_string_to_metric_families

URL, PORT, EXPORTER_PORT = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

# What the panels and the variables of Grafana dashboard 763 ask for, and the alerts that usually stand beside it.
DASHBOARD = """
redis_up redis_uptime_in_seconds redis_connected_clients redis_blocked_clients redis_memory_used_bytes
redis_memory_max_bytes redis_commands_processed_total redis_commands_total redis_commands_duration_seconds_total
redis_keyspace_hits_total redis_keyspace_misses_total redis_net_input_bytes_total redis_net_output_bytes_total
redis_db_keys redis_db_keys_expiring redis_expired_keys_total redis_evicted_keys_total redis_connected_slaves
redis_rejected_connections_total redis_instance_info redis_rdb_last_bgsave_status redis_master_repl_offset
""".split()

# Our own: the batches and what goes with them.
OWN = """
sheafdb_info sheafdb_workers sheafdb_events_per_poll sheafdb_commands_per_receive sheafdb_replies_per_send
sheafdb_worker_commands_total sheafdb_worker_polls_total sheafdb_worker_receives_total sheafdb_worker_sends_total
sheafdb_expire_lag_seconds sheafdb_expire_lag_max_seconds sheafdb_ingest_messages_total sheafdb_ingest_acks_total
""".split()

# The exporter's words about itself.
EXPORTERS_OWN = ("redis_exporter_", "redis_target_scrape_", "redis_last_key_groups_", "redis_latency_spike_")
# What each scrape, the clock or the exporter's own connection changes: there both must say about the same.
MOVING = ("redis_uptime", "redis_start_time", "redis_cpu_", "redis_mem_", "redis_memory_", "redis_allocator_",
          "redis_net_", "redis_commands_", "redis_connected_clients", "redis_connections_", "redis_total_",
          "redis_latency_percentiles", "redis_db_avg_ttl", "redis_errors", "redis_slowlog", "redis_last_slow")


def read(url):
    with urllib.request.urlopen(url, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4"), answer.headers
        return answer.read().decode()


def samples(text):
    found = {}
    for family in text_string_to_metric_families(text):
        assert family.type in ("counter", "gauge", "histogram", "summary"), family
        for s in family.samples:
            # The parser calls every counter _total; some of the exporter's are not.
            bare = s.name.removesuffix("_total")
            name = bare if family.type == "counter" and f"# TYPE {bare} counter" in text else s.name
            key = (name, tuple(sorted(s.labels.items())))
            assert key not in found, f"{key} twice"
            found[key] = s.value
    return found


def work(client):
    client.config_resetstat()
    for n in range(50):
        client.set(f"key:{n}", n, ex=1000 if n % 2 else None)
        client.get(f"key:{n}")
    client.get("nothing")
    client.set("gone", 1, px=1)
    for bad in ("LPUSH key:1 x", "NOSUCH", "GET"):
        try:
            client.execute_command(*bad.split())
        except redis.ResponseError:
            pass
    other = redis.Redis(port=PORT, db=3)
    other.set("a", 1)
    other.close()
    time.sleep(0.4)  # the key expires, the drivers' figures are published


def compare_with_info(ours, info, later):
    value = lambda name, **labels: ours[(name, tuple(sorted(labels.items())))]
    for name, field in (
        ("redis_keyspace_hits_total", "keyspace_hits"),
        ("redis_keyspace_misses_total", "keyspace_misses"),
        ("redis_expired_keys_total", "expired_keys"),
        ("redis_connected_clients", "connected_clients"),
        ("redis_config_maxclients", "maxclients"),
        ("redis_memory_max_bytes", "maxmemory"),
        ("redis_total_error_replies", "total_error_replies"),
        ("redis_connections_received_total", "total_connections_received"),
        ("redis_rdb_changes_since_last_save", "rdb_changes_since_last_save"),
        ("redis_process_id", "process_id"),
    ):
        assert value(name) == info[field], (name, value(name), info[field])
    assert value("redis_keyspace_hits_total") == 50 and value("redis_keyspace_misses_total") == 1
    assert value("redis_expired_keys_total") == 1
    assert abs(value("redis_commands_processed_total") - info["total_commands_processed"]) <= 2
    for cmd in ("get", "set", "lpush"):
        stat = info[f"cmdstat_{cmd}"]
        assert value("redis_commands_total", cmd=cmd) == stat["calls"], cmd
        assert value("redis_commands_failed_calls_total", cmd=cmd) == stat["failed_calls"], cmd
        assert value("redis_commands_rejected_calls_total", cmd=cmd) == stat["rejected_calls"], cmd
        assert abs(value("redis_commands_duration_seconds_total", cmd=cmd) * 1e6 - stat["usec"]) <= 1, cmd
        p99 = float(info[f"latency_percentiles_usec_{cmd}"]["p99"])
        assert abs(value("redis_latency_percentiles_usec", cmd=cmd, quantile="99") - p99) < 0.01, cmd
    assert value("redis_commands_failed_calls_total", cmd="lpush") == 1
    assert value("redis_commands_rejected_calls_total", cmd="get") == 1
    assert value("redis_errors_total", err="WRONGTYPE") == 1
    for db in (0, 3):
        assert value("redis_db_keys", db=f"db{db}") == info[f"db{db}"]["keys"]
        assert value("redis_db_keys_expiring", db=f"db{db}") == info[f"db{db}"]["expires"]
    assert value("redis_db_keys", db="db0") == 50 and value("redis_db_keys", db="db5") == 0
    for name, field in (("redis_memory_used_bytes", "used_memory"), ("redis_memory_used_rss_bytes", "used_memory_rss")):
        # The first scrape takes memory of its own.
        low, high = sorted((info[field], later[field]))
        assert 2**20 < low and low - 2**20 < value(name) < high + 2**20, (name, value(name), low, high)
    # The batches: as many as the workers did, and a histogram that adds up.
    # INFO came first: its own request is counted when its turn is over, which INFO itself may or may not see.
    received = value("redis_net_input_bytes_total")
    assert received > 0 and abs(received - info["total_net_input_bytes"]) <= 64, (received, info["total_net_input_bytes"])
    polls = sum(v for (name, _), v in ours.items() if name == "sheafdb_worker_polls_total")
    assert value("sheafdb_events_per_poll_count") == polls > 0
    assert value("sheafdb_commands_per_receive") > 0 and value("sheafdb_replies_per_send") > 0
    assert value("sheafdb_workers") == info["threads"]


def compare_with_exporter(client):
    address = f"127.0.0.1:{EXPORTER_PORT}"
    with tempfile.TemporaryFile("w+") as log:
        command = ["prometheus-redis-exporter", "-redis.addr", f"redis://127.0.0.1:{PORT}", "-web.listen-address", address,
                   "-include-system-metrics", "-debug"]
        exporter = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            text = None
            for _ in range(200):
                try:
                    text = read(f"http://{address}/metrics")
                    break
                except OSError:
                    time.sleep(0.05)
            theirs = samples(text)
            ours = samples(read(URL))
        finally:
            exporter.kill()
            exporter.wait()
        log.seek(0)
        said = log.read()
    wrong = [line for line in said.splitlines() if "level=error" in line or "level=warn" in line]
    try:
        client.latency_latest()
    except redis.ResponseError:  # a server without this command
        wrong = [line for line in wrong if "LATENCY LATEST" not in line]
    assert not wrong, wrong
    assert theirs[("redis_exporter_last_scrape_error", (("err", ""),))] == 0, said
    names = {name for name, _ in ours}
    relevant = {k: v for k, v in theirs.items() if k[0].startswith("redis_") and not k[0].startswith(EXPORTERS_OWN)}
    assert len({name for name, _ in relevant}) > 100, "the exporter read INFO"
    missing = sorted({name for name, _ in relevant} - names)
    assert not missing, f"the exporter tells more: {missing}"
    different = [(k, v, ours.get(k)) for k, v in relevant.items() if not k[0].startswith(MOVING) and ours.get(k) != v]
    assert not different, different
    for name in ("redis_memory_used_bytes", "redis_memory_used_rss_bytes", "redis_commands_processed_total"):
        a, b = theirs[(name, ())], ours[(name, ())]
        assert abs(a - b) <= 0.1 * max(a, b), (name, a, b)
    return len(relevant)


def main():
    client = redis.Redis(port=PORT, decode_responses=True)
    work(client)
    info = client.info("everything")
    text = read(URL)
    ours = samples(text)
    later = client.info("memory")
    families = {line.split(" ")[2] for line in text.splitlines() if line.startswith("# TYPE ")}
    missing = [name for name in DASHBOARD + OWN if name not in families]
    assert not missing, missing
    compare_with_info(ours, info, later)
    n = compare_with_exporter(client)
    print(f"{len(ours)} samples; the exporter's {n} are among them")


main()
