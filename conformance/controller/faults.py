"""Between the controllers and the server: a proxy for TCP that can be away, cut connections, or let them hang."""

import contextlib
import socket
import threading
import time

import servers
import sharing
from running import expect, wait

RIGHT_WITHIN = 30  # seconds after a fault
NAMES = [f"thing-{n}" for n in range(12)]


class Proxy:
    """Forwards connections to a port, unless told otherwise."""

    def __init__(self, target):
        self.target, self.open, self.mode = target, [], "forward"
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            with contextlib.suppress(OSError):
                client, _ = self.listener.accept()
                if self.mode == "away":
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self.target))
                pair = {"dead": False, "sockets": (client, server)}
                self.open.append(pair)
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self.pump, args=(pair, source, sink), daemon=True).start()

    def pump(self, pair, source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                while self.mode == "hang" and not pair["dead"]:
                    time.sleep(0.02)
                if self.mode == "slow":
                    time.sleep(0.3)
                sink.sendall(data)
        self.close(pair)

    def close(self, pair):
        pair["dead"] = True
        for end in pair["sockets"]:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        with contextlib.suppress(ValueError):
            self.open.remove(pair)

    def cut(self):
        for pair in list(self.open):
            self.close(pair)


def during(proxy, mode, seconds):
    """One fault. Connections that hung are cut in the end, as a network does that was away."""
    proxy.mode = "forward" if mode == "cut" else mode
    if mode == "away":
        proxy.cut()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if mode == "cut":
            proxy.cut()
        time.sleep(0.4)
    proxy.mode = "forward"
    if mode == "hang":
        proxy.cut()


def faults(cluster, options):
    proxy = Proxy(cluster.server.port)
    kubeconfig = cluster.server.folder / "kubeconfig-proxy"
    servers.write_kubeconfig(kubeconfig, proxy.port, cluster.server.authority, "a")
    controller = cluster.start("a", kubeconfig=kubeconfig)
    sharing.install(cluster)
    cluster.apply(*(sharing.thing(name, "start") for name in NAMES))
    wait("all are composed", lambda: all(sharing.composed(cluster, name, "start") for name in NAMES))
    took = {}
    for mode, seconds in (("cut", 8), ("away", 20), ("hang", 20), ("slow", 8), ("away", 45)):
        text = f"{mode}-{seconds}"
        changer = threading.Timer(seconds / 2, lambda text=text: cluster.apply(*(sharing.thing(name, text) for name in NAMES)))
        changer.start()
        during(proxy, mode, seconds)
        changer.join()
        began = time.monotonic()
        wait(f"right after {text}", lambda: all(sharing.composed(cluster, name, text) for name in NAMES), within=RIGHT_WITHIN)
        took[text] = round(time.monotonic() - began, 1)
    expect(controller.stop() == 0, "a stop by SIGTERM ends with 0")
    return f"right again after {took} s"
