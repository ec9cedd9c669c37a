"""How long it takes until 1,000 Roles are ready, beside a plain client that sends the same SQL; and what happens when nothing changes.

The Roles are applied before the clock starts, while the provider has no ProviderConfig to work with: the time is from the creation of
that until the last Role is ready. The SQL is that which the server logged meanwhile, sent again for other names by psql over as many
connections as the provider has, each in a loop. `--count` is another number of Roles.
"""

import concurrent.futures
import os
import re
import subprocess
import time

import api
import suite

CONNECTIONS = 10  # of a ProviderConfig
GOAL = 1.5
AT_REST = 15  # seconds
GROUP = suite.GROUP


class Speed:
    def __init__(self, plane, server, options):
        self.plane, self.server, self.options = plane, server, options

    def send(self, number):
        role = suite.managed("Role", f"r{number}", {}, writeConnectionSecretToRef={"name": f"r{number}", "namespace": "default"}, providerConfigRef={"name": "speed"})
        role["metadata"]["annotations"] = {"crossplane.io/poll-interval": "1h"}
        # The first one may have to wait until its kind is served.
        self.plane.apply(role)

    def ready(self):
        return [found for found in self.plane.list(f"{GROUP}/roles") if found["metadata"]["name"].startswith("r") and suite.is_ready(found)]

    def provider(self):
        """Seconds until all are ready, by their own conditions: the time of the last one is in whole seconds, so polling measures it."""
        for number in range(self.options.count):
            self.send(number)
        suite.until("all wait for their ProviderConfig", lambda: all(suite.condition(found, "Synced").get("status") == "False" for found in self.plane.list(f"{GROUP}/roles")
                                                                    if found["metadata"]["name"].startswith("r")), within=300)
        begin = len(self.server.log())
        _, config, _ = suite.config(self.server)
        config["metadata"]["name"] = "speed"
        began = time.monotonic()
        self.plane.apply(config)
        while len(self.ready()) < self.options.count:
            assert time.monotonic() - began < 600, f"{len(self.ready())} are ready"
            time.sleep(0.2)
        return time.monotonic() - began, self.server.log()[begin:]

    def plain(self, log):
        """Seconds for the same statements, by the name of their role: each client takes role after role."""
        statements = {}
        for line in log.splitlines():
            found = re.search(r"LOG:  (?:statement|execute \S+): (.*)$", line)
            if found and "application_name" not in line:
                statements.setdefault(line.split("[", 1)[1].split("]", 1)[0], []).append(found[1])
        per_role = sum(len(of) for of in statements.values()) / self.options.count
        create = next(s for of in statements.values() for s in of if s.startswith("CREATE ROLE"))
        verifier = re.search(r"PASSWORD ('.*')", create)[1]
        selects = [s for of in statements.values() for s in of if s.startswith("SELECT rolsuper")]
        select = selects[0].replace("$1", "'{name}'")
        looks = len(selects) / self.options.count
        begin, commit = (sum(s.startswith(word) for of in statements.values() for s in of) / self.options.count for word in ("START", "COMMIT"))

        def client(first):
            script = []
            for number in range(first, self.options.count, CONNECTIONS):
                name = f"plain{number}"
                script += [select.replace("{name}", name)] * max(1, round(looks) - 1)
                script += ["START TRANSACTION"] * round(begin) + [f'CREATE ROLE "{name}" PASSWORD {verifier}'] + ["COMMIT"] * round(commit)
                script.append(select.replace("{name}", name))
            command = [self.server.bin / "psql", "-h", "127.0.0.1", "-p", str(self.server.port), "-U", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null"]
            subprocess.run(command, input=";\n".join(script) + ";\n", text=True, check=True, env={**os.environ, "PGPASSWORD": self.server.password})

        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
            list(pool.map(client, range(CONNECTIONS)))
        return time.monotonic() - began, per_role

    def at_rest(self):
        """Writes of the plane and statements of the provider while nothing changes."""
        version = lambda: self.plane.client.request("GET", f"{GROUP}/roles").body["metadata"]["resourceVersion"]
        statements = lambda: sum("LOG:  statement:" in line or "LOG:  execute" in line for line in self.server.log().splitlines())
        suite.until("nothing is left to do", lambda: self.plane.client.request("GET", "/readyz/idle").code in (200, 404), within=300)
        before, sent = version(), statements()
        time.sleep(AT_REST)
        return int(version()) - int(before), statements() - sent

    def run(self):
        took, log = self.provider()
        plain, per_role = self.plain(log)
        writes, statements = self.at_rest()
        print(f"      {self.options.count} Roles ready in {took:.2f} s ({self.options.count / took:.0f}/s); the same SQL by plain clients over {CONNECTIONS} connections: {plain:.2f} s "
              f"({per_role:.1f} statements for each); ratio {took / plain:.2f}, goal {GOAL}; at rest in {AT_REST} s: {writes} writes, {statements} statements", flush=True)
        assert writes == 0, f"{writes} writes at rest"
        assert statements == 0, f"{statements} statements at rest"


def run(plane, server, options):
    Speed(plane, server, options).run()
