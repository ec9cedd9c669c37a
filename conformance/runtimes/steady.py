"""An XR beside hostile functions, which is looked at all the while: it must stay ready, and be composed as it is changed."""

import threading
import time

EVERY = 0.1  # seconds
LOOKS_MIN = 10


class Steady:
    """Looks at an XR again and again. `manifest(size)` is the XR with a size in its spec, `sizes()` are those that its composed resources have."""

    def __init__(self, suite, plane, path, manifest, sizes):
        self.suite, self.plane, self.path, self.manifest, self.sizes = suite, plane, path, manifest, sizes
        self.looks, self.problems, self.is_over = 0, [], threading.Event()
        self.slowest = 0.0
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def __enter__(self):
        self.is_composed_with(1)
        self.plane.until_true(self.path, "Ready")
        self.thread.start()
        return self

    def watch(self):
        while not self.is_over.wait(EVERY):
            try:
                for kind in ("Ready", "Synced"):
                    condition = self.plane.condition(self.path, kind)
                    if condition["status"] != "True":
                        self.problems.append(condition)
                self.looks += 1
            except (OSError, ValueError) as error:
                self.problems.append(repr(error))

    def is_composed_with(self, size):
        """A change of it arrives in what it is composed of."""
        began = time.monotonic()
        self.plane.apply(self.manifest(size))
        self.suite.until(lambda: f"{self.path} is composed with size {size}: {self.sizes()}, {self.plane.condition(self.path, 'Synced')}",
                         lambda: self.sizes() == [str(size)])
        self.slowest = max(self.slowest, time.monotonic() - began)

    def __exit__(self, kind, *_):
        self.is_over.set()
        self.thread.join()
        if kind is None:
            assert self.looks > LOOKS_MIN and not self.problems, (self.looks, self.problems[:5])
            print(f"  the XR beside them was ready at {self.looks} looks; a change of it arrived within {self.slowest:.1f} s", flush=True)
