"""`transom controller` on a real kube-apiserver and etcd: `conformance/run controller [-- --only PART]`.

| part | what is shown |
|---|---|
| `platform` | the README's example: definitions, Compositions, claims, nested composite resources, built-in functions, deletion; requests counted |
| `rest` | nothing is written at rest, after a restart, and when only times pass |
| `budget` | how many requests a new composite resource with four parts costs |
| `usages` | a used object cannot be deleted while its usage exists |
| `certificates` | the certificates of webhooks renew themselves while they are used |
| `rights` | with the rights of `transom install` and no more; a missing right is named; roles of definitions; `--dry-run`, `uninstall` |
| `image` | `deploy/image` makes the same image twice, and crane reads it |
| `transfer` | `transom export` of an embedded plane, `transom import` on the cluster, and back: equal specs, nothing is made again |
| `faults` | the server is away, connections are cut and hang: everything is right within 30 seconds after |
| `leader` | one of two processes works; a clean stop hands over at once; a paused one is replaced and writes nothing when it goes on |
| `shards` | three processes share composite resources; paused and killed at random, no resource is written by two, none is forgotten |
| `owners` | what the real Crossplane made is taken over without a write, changed, and given back without a write |
"""

import argparse
import pathlib
import sys
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path[:0] = [str(HERE), str(HERE.parent)]

import faults  # noqa: E402
import installing  # noqa: E402
import owners  # noqa: E402
import platforms  # noqa: E402
import running  # noqa: E402
import sharing  # noqa: E402

PARTS = {
    "platform": platforms.platform,
    "rest": platforms.rest,
    "budget": sharing.budget,
    "usages": platforms.usages,
    "certificates": platforms.certificates,
    "rights": installing.rights,
    "image": installing.image,
    "transfer": installing.transfer,
    "faults": faults.faults,
    "leader": sharing.leader,
    "shards": sharing.shards,
    "owners": owners.owners,
}

# Parts that a plain run leaves out.
LONG = ("certificates", "faults")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", default="transom", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", choices=[*PARTS])
    parser.add_argument("--all", action="store_true", help=f"also {' and '.join(LONG)}, which take minutes")
    parser.add_argument("--seconds", type=int, default=20, help="how long processes are paused and killed in `shards`")
    parser.add_argument("--count", type=int, default=48, help="how many composite resources and claims change owners in `owners`")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    passed = failed = 0
    for name, part in PARTS.items():
        if (name not in options.only) if options.only else (name in LONG and not options.all):
            continue
        began = time.monotonic()
        try:
            with running.cluster() as cluster:
                notes = part(cluster, options)
            passed += 1
            print(f"  {name}: {notes or 'ok'} ({time.monotonic() - began:.0f} s)", flush=True)
        except Exception:
            failed += 1
            print(f"  {name}: FAILED\n{traceback.format_exc()}", flush=True)
    print(f"controller: {passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
