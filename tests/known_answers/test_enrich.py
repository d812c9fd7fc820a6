"""The enrichment of the examples: a service that turns requests away, and one that does not know everybody."""

import subprocess
import sys
from pathlib import Path

import headrace as hr
from examples import enrich_async as example
from headrace.connectors import generator, memory
from headrace.testing import run_local

ROOT = Path(__file__).parents[2]


def test_every_order_has_its_customer_or_is_a_dead_letter() -> None:
    done, failed = memory.MemorySink(), memory.MemorySink()
    env = hr.Environment("enrich", epochs=hr.Epochs(rows=150))
    with example.service() as port:
        source = generator.Function(example.ORDERS, example.make, rows=400)
        enriched = example.enrich(env.from_source(source, uid="orders"), port)
        enriched.sink_to(done, uid="enriched")
        enriched.errors.sink_to(failed, uid="strangers")
        run_local(env, crashes=[(1, "staged")])
    customers = [n * 7919 % example.CUSTOMERS for n in range(400)]
    known = [n for n, customer in enumerate(customers) if customer >= example.STRANGERS]
    assert [row["order"] for row in done.to_pylist()] == known
    assert all(row["name"] == f"customer {customers[row['order']]}" for row in done.to_pylist())
    assert [row["offset"] for row in failed.to_pylist()] == sorted(set(range(400)) - set(known))
    assert {row["cause"].rpartition(".")[2].split(":")[0] for row in failed.to_pylist()} == {
        "UnknownCustomer"
    }


def test_the_program_prints_what_came_of_it() -> None:
    command = [sys.executable, "examples/enrich_async.py", "--local", "--orders", "200"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].startswith("order    1    1.99  customer 119")
    assert lines[-1].startswith("195 orders enriched, 5 of unknown customers, 220 requests")
