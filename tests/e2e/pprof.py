"""Reads pprof profiles with nothing but the standard library, independently of wick.

    from pprof import Profile
    profile = Profile.read("profile.pb.gz")
    for sample in profile.samples:                  # frames leaf first
        print(sample.frames[0].name, sample.labels, sample.values)

Anything that the format forbids (dangling or repeated ids, string indices out of range, a wrong
number of values, invalid UTF-8, an unknown field) raises ValueError: a test that reads a file has
checked it. `python3 pprof.py FILE` prints a profile in a canonical text form.
"""

import gzip
import sys
from dataclasses import dataclass, field


class Wire:
    """Fields of one message: (number, value), where a value is an int or bytes."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def varint(self):
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise ValueError(f"bad varint at byte {self.at}")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if not byte & 0x80:
                return value & (2**64 - 1)
            shift += 7

    def __iter__(self):
        while self.at < len(self.data):
            key = self.varint()
            if key & 7 == 0:
                yield key >> 3, self.varint()
            elif key & 7 == 2:
                size = self.varint()
                if size > len(self.data) - self.at:
                    raise ValueError(f"field {key >> 3} ends beyond its message")
                self.at += size
                yield key >> 3, self.data[self.at - size : self.at]
            else:
                raise ValueError(f"wire type {key & 7} is not used by pprof")


def signed(value):
    return value - 2**64 if value >= 2**63 else value


def numbers(value):
    """A repeated number: packed, or one at a time."""
    if isinstance(value, int):
        return [value]
    wire, out = Wire(value), []
    while wire.at < len(value):
        out.append(wire.varint())
    return out


def fields(data, one=(), many=()):
    """A message as a dict: numbers of `one` default to 0, those of `many` to an empty list."""
    out = {n: 0 for n in one} | {n: [] for n in many}
    for number, value in Wire(data):
        if number in many:
            out[number].append(value)
        elif number in one:
            out[number] = value
        else:
            raise ValueError(f"unknown field {number}")
    return out


@dataclass(frozen=True)
class Mapping:
    start: int
    limit: int
    offset: int
    file: str
    build_id: str
    has_functions: bool
    has_filenames: bool
    has_line_numbers: bool
    has_inline_frames: bool


@dataclass(frozen=True)
class Function:
    name: str
    system_name: str
    file: str
    start_line: int


@dataclass(frozen=True)
class Line:
    function: Function
    line: int
    column: int


@dataclass(frozen=True)
class Location:
    address: int
    mapping: Mapping | None
    lines: tuple  # of Line, innermost first
    folded: bool


@dataclass(frozen=True)
class Frame:
    """One call: a line of a location, or a location without lines."""

    name: str  # "" if it has none
    system_name: str
    file: str
    line: int
    inlined: bool
    location: Location

    @property
    def address(self):
        return self.location.address

    @property
    def mapping(self):
        return self.location.mapping


@dataclass
class Sample:
    locations: list  # leaf first
    labels: dict  # key -> text or number; the last one if there are several
    all_labels: list  # (key, text or number, unit)
    values: list

    @property
    def frames(self):
        """Leaf first, inlined calls included."""
        out = []
        for loc in self.locations:
            if not loc.lines:
                out.append(Frame("", "", "", 0, False, loc))
            for i, line in enumerate(loc.lines):
                fn = line.function
                inlined = i < len(loc.lines) - 1
                out.append(Frame(fn.name, fn.system_name, fn.file, line.line, inlined, loc))
        return out

    @property
    def names(self):
        """Names of the frames, root first."""
        return [frame.name for frame in reversed(self.frames)]


@dataclass
class Profile:
    sample_types: list = field(default_factory=list)  # (type, unit)
    samples: list = field(default_factory=list)
    mappings: list = field(default_factory=list)
    functions: list = field(default_factory=list)
    locations: list = field(default_factory=list)
    strings: list = field(default_factory=list)
    comments: list = field(default_factory=list)
    drop_frames: str = ""
    keep_frames: str = ""
    doc_url: str = ""
    time_nanos: int = 0
    duration_nanos: int = 0
    period_type: tuple = ("", "")
    period: int = 0
    default_sample_type: str = ""
    sequential: bool = True  # all ids are 1, 2, 3, ...

    @classmethod
    def read(cls, path):
        with open(path, "rb") as f:
            return cls.decode(f.read())

    @classmethod
    def decode(cls, data):
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
        profile = cls()
        profile._decode(data)
        return profile

    def index(self, sample_type=None):
        """Index of a sample type; without a name, of the default one."""
        names = [name for name, _ in self.sample_types]
        if sample_type is None and self.default_sample_type not in names:
            return len(names) - 1
        return names.index(sample_type or self.default_sample_type)

    def total(self, sample_type=None):
        i = self.index(sample_type)
        return sum(sample.values[i] for sample in self.samples)

    # ---- decoding ----

    def _decode(self, data):
        top = fields(data, one=(7, 8, 9, 10, 11, 12, 14, 15), many=(1, 2, 3, 4, 5, 6, 13))
        self.strings = [s.decode("utf-8") for s in top[6]]
        if not self.strings or self.strings[0]:
            raise ValueError("string_table[0] is not empty")
        self.sample_types = [self._value_type(v) for v in top[1]]
        if top[11]:
            self.period_type = self._value_type(top[11])
        self.drop_frames = self._string(top[7])
        self.keep_frames = self._string(top[8])
        self.time_nanos = signed(top[9])
        self.duration_nanos = signed(top[10])
        self.period = signed(top[12])
        self.comments = [self._string(n) for v in top[13] for n in numbers(v)]
        self.default_sample_type = self._string(top[14])
        self.doc_url = self._string(top[15])

        mappings = self._by_id(top[3], self._mapping)
        functions = self._by_id(top[5], self._function)
        locations = self._by_id(top[4], lambda d: self._location(d, mappings, functions))
        self.mappings = list(mappings.values())
        self.functions = list(functions.values())
        self.locations = list(locations.values())
        self.samples = [self._sample(d, locations) for d in top[2]]

    def _string(self, index):
        if index >= len(self.strings):
            raise ValueError(f"string {index} does not exist")
        return self.strings[index]

    def _value_type(self, data):
        f = fields(data, one=(1, 2))
        return self._string(f[1]), self._string(f[2])

    def _by_id(self, messages, decode):
        out = {}
        for data in messages:
            ident, value = decode(data)
            if not ident or ident in out:
                raise ValueError(f"id {ident} is zero or not unique")
            self.sequential = self.sequential and ident == len(out) + 1
            out[ident] = value
        return out

    def _mapping(self, data):
        f = fields(data, one=range(1, 11))
        has = [bool(f[n]) for n in (7, 8, 9, 10)]
        return f[1], Mapping(f[2], f[3], f[4], self._string(f[5]), self._string(f[6]), *has)

    def _function(self, data):
        f = fields(data, one=range(1, 6))
        names = [self._string(f[n]) for n in (2, 3, 4)]
        return f[1], Function(*names, signed(f[5]))

    def _location(self, data, mappings, functions):
        f = fields(data, one=(1, 2, 3, 5), many=(4,))
        lines = []
        for line in f[4]:
            g = fields(line, one=(1, 2, 3))
            if g[1] not in functions:
                raise ValueError(f"location {f[1]}: function {g[1]} does not exist")
            lines.append(Line(functions[g[1]], signed(g[2]), signed(g[3])))
        if f[2] and f[2] not in mappings:
            raise ValueError(f"location {f[1]}: mapping {f[2]} does not exist")
        return f[1], Location(f[3], mappings.get(f[2]), tuple(lines), bool(f[5]))

    def _sample(self, data, locations):
        f = fields(data, many=(1, 2, 3))
        ids = [n for v in f[1] for n in numbers(v)]
        values = [signed(n) for v in f[2] for n in numbers(v)]
        if len(values) != len(self.sample_types):
            raise ValueError(f"{len(values)} values for {len(self.sample_types)} sample types")
        for n in ids:
            if n not in locations:
                raise ValueError(f"location {n} does not exist")
        labels = []
        for label in f[3]:
            g = fields(label, one=(1, 2, 3, 4))
            value = self._string(g[2]) if g[2] else signed(g[3])
            labels.append((self._string(g[1]), value, self._string(g[4])))
        return Sample([locations[n] for n in ids], {k: v for k, v, _ in labels}, labels, values)


# ---- the canonical text form ----


def escape(text):
    out = []
    for byte in text.encode("utf-8"):
        plain = 0x20 <= byte < 0x7F and byte != 0x5C
        out.append(chr(byte) if plain else f"\\x{byte:02x}")
    return "".join(out)


def mapping_text(m):
    flags = (m.has_functions, m.has_filenames, m.has_line_numbers, m.has_inline_frames)
    has = sum(bit << i for i, bit in enumerate(flags))
    return f"{m.start:x}-{m.limit:x}@{m.offset:x} {escape(m.file)} {escape(m.build_id)} {has}"


def sample_text(sample):
    out = " ".join(["sample"] + [str(v) for v in sample.values])
    for key, value, unit in sample.all_labels:
        text = f"{value} {escape(unit)}" if isinstance(value, int) else escape(value)
        out += f"\n\t{escape(key)}={text}"
    for loc in sample.locations:
        out += f"\n\t{loc.address:x}{' folded' if loc.folded else ''} "
        out += mapping_text(loc.mapping) if loc.mapping else ""
        for line in loc.lines:
            fn = line.function
            names = "|".join(escape(s) for s in (fn.name, fn.system_name, fn.file))
            out += f"\n\t\t{names}|{fn.start_line}|{line.line}|{line.column}"
    return out


def profile_text(p):
    out = [f"type {escape(t)}/{escape(u)}" for t, u in p.sample_types]
    period = "/".join(escape(s) for s in p.period_type)
    out.append(f"time {p.time_nanos} duration {p.duration_nanos} period {p.period} {period}")
    out.append(f"default {escape(p.default_sample_type)}")
    out.append("main " + (mapping_text(p.mappings[0]) if p.mappings else ""))
    out += [f"comment {escape(c)}" for c in p.comments]
    out += [sample_text(s) for s in p.samples]
    return "\n".join(out) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: pprof.py FILE")
    sys.stdout.write(profile_text(Profile.read(sys.argv[1])))
