"""What the comparison itself must know of an ELF file, by readelf."""

import bisect
import os
import re
import subprocess


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], capture_output=True, text=True,
                          check=False, errors="replace").stdout


class Elf:
    def __init__(self, path):
        self.path = path
        self.sections = self._sections()
        self._symbols = {}
        self._labels = {}

    def _sections(self):
        found = {}
        for line in readelf("-S", self.path).splitlines():
            m = re.match(r"\s*\[\s*\d+\] (\S+)\s+(\S+)\s+([0-9a-f]+) ([0-9a-f]+) ([0-9a-f]+) \S+ (.{4})",
                         line)
            if m:
                found[m[1]] = (int(m[3], 16), int(m[5], 16), m[6])
        return found

    def code(self):
        """(start, size) of what is worth asking for: sections of functions."""
        return [(a, n) for name, (a, n, flags) in self.sections.items()
                if "X" in flags and n and name.startswith((".text", ".init", ".fini"))]

    def debug_path(self):
        """Of the separate debug file; None."""
        m = re.search(r"Build ID: ([0-9a-f]{4,})", readelf("-n", self.path))
        paths = [self.path + ".debug"]     # beside it: builds.py
        if m:
            paths.append(f"/usr/lib/debug/.build-id/{m[1][:2]}/{m[1][2:]}.debug")
        return next((p for p in paths if os.path.exists(p)), None)

    def symbols(self, debug):
        """Function symbols, (start, size, name, is local), sorted; of the file or of its debug file."""
        if debug not in self._symbols:
            path = self.debug_path() if debug else self.path
            rows = set()
            for line in readelf("-s", path).splitlines() if path else []:
                f = line.split()
                if len(f) >= 8 and f[3] in ("FUNC", "IFUNC", "NOTYPE") and f[6] not in ("UND", "ABS"):
                    rows.add((int(f[1], 16), int(f[2], 0), f[7].split("@")[0], f[4] == "LOCAL"))
            self._symbols[debug] = sorted(rows)
        return self._symbols[debug]

    def labels(self, kind):
        """Names of symbols that are no functions: "NOTYPE", "FILE"."""
        if kind not in self._labels:
            rows = (line.split() for line in readelf("-s", self.path).splitlines())
            self._labels[kind] = {f[7] for f in rows if len(f) >= 8 and f[3] == kind}
        return self._labels[kind]

    def covering(self, address, debug_only=False):
        """Symbols whose bytes hold an address."""
        found = []
        for debug in (True,) if debug_only else (False, True):
            rows = self.symbols(debug)
            i = bisect.bisect_right(rows, (address, 1 << 63, "", True))
            while i > 0 and rows[i - 1][0] > address - (1 << 22):
                i -= 1
                start, size, name, local = rows[i]
                if start <= address < start + size:
                    found.append((start, size, name, local))
                elif not size and all(f[:2] == (start, 0) for f in found):
                    found.append((start, 0, name, local))   # reaches to the next one
        return found

    def is_go(self):
        return ".gopclntab" in self.sections
