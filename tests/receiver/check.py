"""The rules of receiver.py: what real servers want of labels and profiles.

Each check raises Refusal, with the code and status that the real server answers with. What real servers
take and then lose or break on is told to `complain` or refused here, since no client may send it.
"""

import gzip
import re
import time
import zlib

MAX_LABELS, MAX_NAME, MAX_VALUE, MAX_SAMPLE_LABELS = 30, 1024, 2048, 100
MAX_SAMPLES, MAX_RAW, BURST, MAX_DEPTH = 16000, 4 << 20, 2 << 20, 1000
OLDEST, NEWEST = 3600, 600  # seconds before and after now
STATUS = {"invalid_argument": 400, "unauthenticated": 401, "resource_exhausted": 429, "unknown": 500, "unimplemented": 501}


class Refusal(Exception):
    def __init__(self, code, message, status=None):
        super().__init__(message)
        self.code = code
        self.status = status or STATUS[code]


def gunzip(data):
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as e:
        raise Refusal("unknown", f"gzip: {e}") from None


# ---- labels ----


def labels_of(pairs):
    labels = {}
    for name, value in pairs:
        if name in labels:
            raise Refusal("invalid_argument", f"duplicate label name: '{name}'")
        labels[name] = value
    return labels


def series(labels):
    if not labels:
        raise Refusal("invalid_argument", "at least one label pair is required per profile")
    if len(labels) > MAX_LABELS:
        raise Refusal("invalid_argument", f"profile series has {len(labels)} label names; limit {MAX_LABELS}")
    if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", labels.get("__name__", "")):
        raise Refusal("invalid_argument", "invalid metric name")
    if not labels.get("service_name"):
        raise Refusal("invalid_argument", "service name is not provided")
    for name, value in labels.items():
        if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) or (name.startswith("__") and name != "__name__"):
            raise Refusal("invalid_argument", f"invalid label name '{name}'")
        if len(name.encode()) > MAX_NAME or len(value.encode()) > MAX_VALUE:
            raise Refusal("invalid_argument", f"label '{name[:40]}' is too long")
        if not value:
            raise Refusal("invalid_argument", f"label '{name}' is empty")


def parca_labels(labels):
    series(labels)


# ---- pprof ----


class Checked:
    """What is worth remembering of a profile."""

    def __init__(self, **what):
        self.__dict__.update(what)


def decode(data):
    import profile_pb2
    from google.protobuf.message import DecodeError

    raw = gunzip(data) if data[:2] == b"\x1f\x8b" else data
    if raw[:2] == b"\x1f\x8b":
        raise Refusal("unknown", "gzipped twice")
    try:
        return profile_pb2.Profile.FromString(raw), len(raw)
    except (DecodeError, UnicodeDecodeError) as e:  # also for text that isn't UTF-8
        raise Refusal("unknown", f"failed to parse profile: {e}") from None


def want(condition, text, code="invalid_argument"):
    if not condition:
        raise Refusal(code, text)


def check_ids(p):
    """1, 2, 3, ... and no reference into nothing."""
    for what, entries in (("mapping", p.mapping), ("location", p.location), ("function", p.function)):
        want([e.id for e in entries] == list(range(1, len(entries) + 1)), f"{what} id is not sequential")
    for location in p.location:
        want(location.mapping_id <= len(p.mapping), "a location's mapping doesn't exist")
        want(all(1 <= line.function_id <= len(p.function) for line in location.line), "a line's function doesn't exist")
    for sample in p.sample:
        want(sample.location_id, "a sample has no frames")
        want(len(sample.location_id) <= MAX_DEPTH, "a stack is cut by the server")
        want(max(sample.location_id) <= len(p.location) and min(sample.location_id) > 0, "dangling location id")


def check_strings(p):
    n = len(p.string_table)
    want(n and p.string_table[0] == "", "string_table[0] isn't empty")
    ids = [i for vt in [*p.sample_type, p.period_type] for i in (vt.type, vt.unit)]
    ids += [i for m in p.mapping for i in (m.filename, m.build_id)]
    ids += [i for f in p.function for i in (f.name, f.system_name, f.filename)]
    ids += [i for s in p.sample for label in s.label for i in (label.key, label.str, label.num_unit)]
    ids += [*p.comment, p.default_sample_type, p.drop_frames, p.keep_frames, p.doc_url]
    want(all(0 <= i < n for i in ids), "a string's index is out of range")


def check_types(p):
    want(p.sample_type, "no sample type", "unknown")
    want(p.HasField("period_type"), "no period type")
    for vt in [*p.sample_type, p.period_type]:
        for text in (p.string_table[vt.type], p.string_table[vt.unit]):
            want(text and not re.search(r"[-: ]", text), f"type '{text}' breaks queries")
    want(p.period > 0 and p.duration_nanos > 0 and p.time_nanos > 0, "no period, duration or time")


def metric_of(types):
    return "process_cpu" if any("cpu" in t for t in types) else types[-1]


def pprof(data, complain):
    want(data, "empty body", "unknown")
    p, size = decode(data)
    check_strings(p)
    check_types(p)
    check_ids(p)
    for sample in p.sample:
        want(len(sample.value) == len(p.sample_type), "wrong count of values")
        want(len(sample.label) <= MAX_SAMPLE_LABELS, "too many labels on a sample")
    if not p.sample or any(min(s.value) < 0 or not any(s.value) for s in p.sample):
        complain("samples without a value: dropped in silence")
    types = [p.string_table[t.type] for t in p.sample_type]
    kind = [p.string_table[i] for i in (p.period_type.type, p.period_type.unit)]
    names = [p.string_table[f.name] for f in p.function]
    return Checked(raw_size=size, nsamples=len(p.sample), mark=sum(s.value[0] for s in p.sample), time_nanos=p.time_nanos,
                   metric=metric_of(types), type_id=":".join([*types, *kind]), names=names)


def push_limits(profile, labels):
    counted = profile.raw_size + sum(len(n.encode()) + len(v.encode()) for n, v in labels.items())
    want(profile.raw_size <= MAX_RAW, f"profile of {profile.raw_size} B exceeds the size limit")
    want(counted <= BURST, f"push rate limit exceeded while adding {counted} B", "resource_exhausted")
    want(profile.nsamples <= MAX_SAMPLES, f"the profile has {profile.nsamples} samples, the limit is {MAX_SAMPLES}")
    age = time.time() - profile.time_nanos / 1e9
    want(-NEWEST <= age <= OLDEST, f"profile is outside of ingestion window ({age:.0f} s old)")


# ---- OTLP ----

TABLES = ("mapping_table", "location_table", "function_table", "link_table", "attribute_table", "stack_table")


def check_dictionary(d):
    want(d.string_table and d.string_table[0] == "", "string_table[0] isn't empty")
    for name in TABLES:
        table = getattr(d, name)
        want(table and not table[0].ByteSize(), f"{name}[0] isn't the zero value")
    def inside(i, table):
        want(0 <= i < len(table), "an index is out of range")

    for m in d.mapping_table:
        inside(m.filename_strindex, d.string_table)
    for location in d.location_table:
        inside(location.mapping_index, d.mapping_table)
        for line in location.lines:
            inside(line.function_index, d.function_table)
    for f in d.function_table:
        for i in (f.name_strindex, f.system_name_strindex, f.filename_strindex):
            inside(i, d.string_table)
    for a in d.attribute_table:
        inside(a.key_strindex, d.string_table)
    for stack in d.stack_table:
        for i in stack.location_indices:
            inside(i, d.location_table)
    for what in (d.attribute_table, d.stack_table):
        entries = [e.SerializeToString() for e in what]
        want(len(set(entries)) == len(entries), "an entry comes twice")


def otlp_samples(profile, otlp, revision, d):
    kind = otlp.Sample10 if revision == "1.10" else otlp.Sample9
    samples = [kind.FromString(raw) for raw in profile.samples]
    for s in samples:
        want(0 < s.stack_index < len(d.stack_table), "a sample without a stack")
        want(len(s.values) == 1 and s.values[0] > 0, f"values are {list(s.values)}")
        want(all(0 < i < len(d.attribute_table) for i in s.attribute_indices), "an attribute doesn't exist")
        want(not s.link_index, "a link that doesn't exist")
    return samples


def otlp(request, messages, revision):
    """(labels, profile, bytes) of each profile."""
    d = request.dictionary
    want(request.HasField("dictionary"), "no dictionary")
    check_dictionary(d)
    for resource in request.resource_profiles:
        attributes = labels_of((a.key, a.value.string_value) for a in resource.resource.attributes)
        want(attributes.get("service.name"), "no service.name")
        for profile in (p for scope in resource.scope_profiles for p in scope.profiles):
            samples = otlp_samples(profile, messages, revision, d)
            want(samples, "no samples")
            want(len(profile.profile_id) == 16 and any(profile.profile_id), "profile_id has not 16 bytes")
            want(profile.HasField("sample_type") and profile.HasField("period_type"), "no type")
            types = [profile.sample_type.type_strindex, profile.sample_type.unit_strindex,
                     profile.period_type.type_strindex, profile.period_type.unit_strindex]
            texts = [d.string_table[i] for i in types]
            want(all(texts) and not re.search(r"[- ]", "".join(texts)), f"types are {texts}")
            want(profile.period and profile.duration_nano and profile.time_unix_nano, "no period, duration or time")
            names = [d.string_table[f.name_strindex] for f in d.function_table[1:]]
            cpu = texts[2] == "cpu"
            found = Checked(raw_size=request.ByteSize(), nsamples=len(samples), mark=sum(s.values[0] for s in samples),
                            time_nanos=profile.time_unix_nano, metric="process_cpu" if cpu else texts[2],
                            type_id=":".join(texts), names=names)
            yield {"__name__": found.metric, **attributes}, found, profile.SerializeToString()
