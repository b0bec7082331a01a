# wick: build, test, install. `make V=1` shows the commands, `make help` lists the targets.
PREFIX	?= /usr/local
SAN	?=
V	?= 0
T	?= 20
CC	:= $(if $(filter default,$(origin CC)),gcc,$(CC))
CLANG	?= clang
BPFTOOL	?= $(firstword $(wildcard /usr/sbin/bpftool /sbin/bpftool) bpftool)
BUILD	?= build
VERSION	:= 0.1.0

comma	:= ,
B	:= $(BUILD)$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
Q	:= $(if $(filter 1,$(V)),,@)
say	= $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' '$(1)' '$(2)';)

ARCH	?= $(shell uname -m)
BPFARCH	:= $(if $(filter aarch64 arm64,$(ARCH)),arm64,x86)
PKGS	:= libbpf libelf libdw zlib libzstd liblzma libprotobuf-c libcurl yaml-0.1 jansson libmicrohttpd
CPPFLAGS += -D_GNU_SOURCE -DWICK_VERSION='"$(VERSION)"' -Iinclude -Isrc -Ibpf -I$(B)/gen
WARN	:= -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wformat=2 \
	   -Wno-missing-field-initializers $(if $(CI),-Werror)
CFLAGS	?= -O2 -g
ALL_CFLAGS = -std=gnu17 $(WARN) $(CFLAGS) -fno-omit-frame-pointer -fPIE \
	   $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all,-fstack-protector-strong -D_FORTIFY_SOURCE=2)
LDFLAGS	+= $(if $(SAN),-fsanitize=$(SAN)) -pie -Wl,-z,relro,-z,now -pthread
LDLIBS	= $(shell pkg-config --libs $(PKGS)) -lZydis -liberty -ldl -lm

SRCS	:= $(filter-out src/cli/main.c,$(wildcard src/*/*.c))
PROTOS	:= $(wildcard proto/*.proto)
OBJS	:= $(SRCS:%.c=$(B)/%.o) $(PROTOS:proto/%.proto=$(B)/gen/%.pb-c.o)
GEN	:= $(PROTOS:proto/%.proto=$(B)/gen/%.pb-c.h) $(B)/gen/wick.skel.h
UNITS	:= $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/*_test.c))

.PHONY: all help deps run test unit fuzz e2e test-rows test-code test-truth test-names test-go test-kernels test-deploy test-image test-kernels-arm64 bench soak soak-agent install format clean
.DELETE_ON_ERROR:
.SECONDARY:

all: $(B)/wick

help:
	@echo 'make               build build/wick'
	@echo 'make run           install what is missing, build, profile this host for 10 s (as root)'
	@echo 'make test          everything below up to e2e, with gcc and clang, warnings as errors (as root)'
	@echo 'make unit          unit tests; SAN=address,undefined for sanitizers'
	@echo 'make fuzz          every parser of foreign bytes, T=20 seconds each'
	@echo 'make e2e           end-to-end tests against the running kernel (as root)'
	@echo 'make test-rows     unwind tables of every file in ROWS_DIRS against libdw; a few minutes'
	@echo 'make test-code     unwind rules made from code against .eh_frame; seconds'
	@echo 'make test-truth    stacks against libdwfl, over real programs (as root); a few minutes'
	@echo 'make test-names    names, lines and inlined calls against llvm-symbolizer; a few minutes'
	@echo 'make test-go       the same of Go code against its own tracebacks, for toolchains from 1.15 on; 5 minutes'
	@echo 'make test-kernels  record on Debian kernels 5.10 to 7.x under qemu; about 5 minutes'
	@echo 'make soak          ten minutes of churn with small limits (as root)'
	@echo 'make test-deploy   manifests, chart, unit and dashboard against published schemas'
	@echo 'make test-image    build the image and profile from it (as root); about 5 minutes'
	@echo 'make soak-agent    twenty minutes of it for the agent, with a server that goes away; then 20,000 processes (as root)'
	@echo 'make bench         cost beside perf, as a table (as root)'
	@echo 'make install       DESTDIR= PREFIX=/usr/local'
	@echo 'make format        clang-format; make clean'
	@echo 'Variables: V=1 shows commands, CC= CLANG= BPFTOOL= BUILD=, CI=1 makes warnings errors, JOBS='

deps:
	$(Q)CC="$(CC)" CLANG="$(CLANG)" sh deploy/install-deps

# Builds of the two targets that people start with use all CPUs, whatever make was told.
SUBMAKE	= $(MAKE) --no-print-directory -j$(or $(JOBS),$(shell nproc))

run: deps
	$(Q)$(SUBMAKE) all
	$(Q)$(B)/wick record -d 10

# ---- the program ----

$(B)/wick: $(B)/src/cli/main.o $(B)/libwick.a
	$(call say,LD,$@) $(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/libwick.a: $(OBJS)
	$(call say,AR,$@) rm -f $@; $(AR) rcs $@ $^

$(B)/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# ---- generated: pprof and push messages, the BPF object and its skeleton ----

$(B)/gen/%.pb-c.o: $(B)/gen/%.pb-c.c
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c -o $@ $<

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(@D)
	$(call say,PROTO,$<) protoc-c --proto_path=proto --c_out=$(B)/gen $<

$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h include/*.h vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,BPF,$<) $(CLANG) -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPFARCH) -O2 -g -Wall -Wextra -Wshadow \
		$(if $(CI),-Werror) -Iinclude -Ivmlinux -Ibpf -c -o $@ $<

$(B)/gen/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(call say,SKEL,$@) $(BPFTOOL) gen skeleton $< name $*_bpf > $@

# ---- tests ----

$(B)/unit/%: tests/unit/%.c $(B)/libwick.a
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(B)/libwick.a $(LDLIBS) \
		$$(pkg-config --libs check)

unit: $(UNITS)
	$(Q)for t in $(UNITS); do CK_VERBOSITY=minimal $$t || exit 1; done

# libFuzzer targets: tests/fuzz/NAME_fuzz.c, with seeds in tests/fuzz/corpus/NAME. What they find is kept in
# build/fuzz/found.
FUZZERS	:= $(patsubst tests/fuzz/%_fuzz.c,%,$(wildcard tests/fuzz/*_fuzz.c))
FB	:= $(BUILD)/fuzz
FUZZED	:= $(filter src/base/% src/elf/% src/symbol/% src/unwind/% src/proc/% src/profile/% src/net/% src/http/% src/workload/% src/cli/option% src/cli/config%,$(SRCS))
FUZZ_FLAGS = $(CPPFLAGS) -std=gnu17 -O1 -g -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all

$(FB)/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(call say,FUZZ,$<) $(CLANG) $(FUZZ_FLAGS) -MMD -MP -c -o $@ $<

$(FB)/libfuzzed.a: $(FUZZED:%.c=$(FB)/%.o) $(PROTOS:proto/%.proto=$(B)/gen/%.pb-c.o)
	$(call say,AR,$@) rm -f $@; $(AR) rcs $@ $^

$(FB)/%_fuzz: tests/fuzz/%_fuzz.c $(FB)/libfuzzed.a
	$(call say,FUZZ,$@) $(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer -o $@ $< $(FB)/libfuzzed.a $(LDLIBS) -pthread

fuzz: $(FUZZERS:%=$(FB)/%_fuzz)
	$(Q)for f in $(FUZZERS); do mkdir -p $(FB)/found/$$f; echo "fuzz $$f: $(T) s"; \
		$(FB)/$${f}_fuzz -max_total_time=$(T) -timeout=10 -rss_limit_mb=2048 -verbosity=0 -print_final_stats=1 \
			-artifact_prefix=$(FB)/found/$$f- $(FB)/found/$$f tests/fuzz/corpus/$$f 2>&1 \
			| grep -vE 'WARNING: Failed to find function|^stat::(new_units|slowest|peak)' || true; \
		! ls $(FB)/found/$$f-* 2>/dev/null || exit 1; done

# Parts of the agent on their own, for end-to-end tests of them.
DRIVERS	:= $(patsubst tests/%.c,$(B)/%,$(wildcard tests/net/*.c tests/workload/*.c))
$(DRIVERS): $(B)/%: tests/%.c $(B)/libwick.a
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(B)/libwick.a $(LDLIBS)

e2e: all $(DRIVERS)
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/e2e/run.py $(E2E)

test:
	$(Q)CC="$(CC)" CLANG="$(CLANG)" sh deploy/install-deps test
	$(Q)$(SUBMAKE) CI=1 all
	$(Q)$(SUBMAKE) CI=1 CC=clang BUILD=$(BUILD)/clang all
	$(Q)$(SUBMAKE) $(B)/bpf/arm64.o
	$(Q)tests/layers
	$(Q)$(SUBMAKE) CI=1 SAN=address,undefined unit
	$(Q)$(SUBMAKE) fuzz T=$(if $(filter command environment,$(word 1,$(origin T))),$(T),3)
	$(Q)$(SUBMAKE) CI=1 e2e
	$(Q)$(SUBMAKE) CI=1 test-deploy

# The unwind tables of every ELF file of this machine, row by row against libdw.
ROWS_DIRS ?= /usr/bin /usr/lib
$(B)/compare_rows: tests/unwind/compare_rows.c $(B)/libwick.a
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libwick.a $(LDLIBS)

# And the rules made from code, against the .eh_frame of these: wick itself has symbols, the others don't.
CODE_FILES ?= $(B)/wick /usr/bin/openssl $(firstword $(wildcard /usr/lib/x86_64-linux-gnu/libc.so.6 /usr/lib64/libc.so.6))
$(B)/compare_code: tests/unwind/compare_code.c $(B)/libwick.a
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libwick.a $(LDLIBS)

test-code: $(B)/compare_code $(B)/wick
	$(Q)$(B)/compare_code $(CODE_FILES)

test-rows: $(B)/compare_rows test-code
	$(Q)$(B)/compare_rows $(ROWS_DIRS)

# wick's stacks against libdwfl's for the same ticks, over real programs (as root).
$(B)/ground_truth: tests/unwind/ground_truth.c $(B)/libwick.a
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libwick.a $(LDLIBS)

test-truth: $(B)/ground_truth
	$(Q)GROUND_TRUTH=$(abspath $(B)/ground_truth) python3 tests/unwind/ground_truth.py $(TRUTH)

# Names, lines and inlined calls against llvm-symbolizer, over random addresses of real files.
$(B)/addresses: tests/names/addresses.c $(B)/libwick.a
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libwick.a $(LDLIBS)

test-names: $(B)/addresses
	$(Q)CC="$(CC)" CLANG="$(CLANG)" sh deploy/install-deps test
	$(Q)ADDRESSES=$(abspath $(B)/addresses) LIBRARIES="$(LDLIBS)" python3 tests/names/compare.py $(NAMES)

# The same of Go code against Go itself, for many toolchains: fetched by the machine's own go, 1.21 or later.
test-go: $(B)/addresses
	$(Q)ADDRESSES=$(abspath $(B)/addresses) python3 tests/names/go.py $(GO)

# The BPF object for the other architecture: it must at least compile.
$(B)/bpf/arm64.o: bpf/wick.bpf.c $(wildcard bpf/*.h include/*.h vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,BPF,$@) $(CLANG) -target bpf -mcpu=v3 -D__TARGET_ARCH_arm64 -O2 -g -Wall -Wextra -Wshadow -Werror \
		-Iinclude -Ivmlinux -Ibpf -c -o $@ $<

# wick on Debian's kernels, under emulation; see tests/kernels/run.py.
test-kernels:
	$(Q)CC="$(CC)" CLANG="$(CLANG)" sh deploy/install-deps kernels
	$(Q)$(MAKE) --no-print-directory all $(B)/workload/label_samples
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/kernels/run.py $(KERNELS)

# The same for arm64: cross-built against libraries of the archive, without touching this system's.
# Needs gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-system-arm.
ARM_ROOT = $(abspath $(BUILD)/kernels/sysroot-arm64)
ARM_CC	 = aarch64-linux-gnu-gcc --sysroot=$(ARM_ROOT)
test-kernels-arm64:
	$(Q)python3 tests/kernels/sysroot.py arm64 $(ARM_ROOT)
	$(Q)PKG_CONFIG_SYSROOT_DIR=$(ARM_ROOT) PKG_CONFIG_LIBDIR=$(ARM_ROOT)/usr/lib/aarch64-linux-gnu/pkgconfig \
		$(MAKE) --no-print-directory CC="$(ARM_CC)" AR=aarch64-linux-gnu-ar ARCH=aarch64 BUILD=$(BUILD)/arm64 \
		all $(BUILD)/arm64/workload/label_samples
	$(Q)WICK=$(BUILD)/arm64/wick SYSROOT=$(ARM_ROOT) CC="$(ARM_CC)" python3 tests/kernels/run.py $(or $(KERNELS),6.1 6.12 7)

# Ten minutes (SOAK_SECONDS) of processes, files and mappings that come and go, with small limits (as root).
soak: all
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/soak/soak.py

soak-agent: all
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/soak/agent.py
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/soak/crowd.py

$(B)/bench_rows: tests/bench/rows.c $(B)/libwick.a
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(B)/libwick.a $(LDLIBS)

# Manifests, chart, unit and dashboard against what reads them; needs the network once, for its tools.
test-deploy: all
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/deploy/manifests.py $(BUILD)/deploy

# The image, really built and run (as root).
test-image:
	$(Q)sh deploy/install-deps image
	$(Q)python3 tests/deploy/image.py

bench: all $(B)/bench_rows $(B)/addresses
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/bench/bench.py
	$(Q)WICK=$(abspath $(B)/wick) ADDRESSES=$(abspath $(B)/addresses) LIBRARIES="$(LDLIBS)" python3 tests/bench/names.py
	$(Q)WICK=$(abspath $(B)/wick) python3 tests/bench/agent.py

# ---- the rest ----

install: all
	$(Q)install -D -m 0755 $(B)/wick $(DESTDIR)$(PREFIX)/bin/wick
	$(Q)install -D -m 0644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/wick/LICENSE
	$(Q)install -D -m 0644 README.md $(DESTDIR)$(PREFIX)/share/doc/wick/README.md

format:
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	$(Q)rm -rf $(BUILD)

-include $(wildcard $(B)/src/*/*.d $(B)/unit/*.d $(B)/net/*.d $(FB)/src/*/*.d)
