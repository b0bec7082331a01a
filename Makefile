# wick - build, test, install. `make V=1` shows the commands; `make help` lists the targets.
PREFIX	?= /usr/local
SAN	?=
V	?= 0
T	?= 20
CC	?= cc
CLANG	?= clang
BPFTOOL	?= bpftool
VERSION	:= 0.1.0

B	:= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
comma	:= ,
Q	:= $(if $(filter 1,$(V)),,@)
say	= $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' '$(1)' '$(2)';)

ARCH	?= $(shell uname -m)
BPFARCH	:= $(if $(filter aarch64 arm64,$(ARCH)),arm64,x86)
PKGS	:= libbpf libelf libdw zlib libprotobuf-c libcurl
CPPFLAGS += -D_GNU_SOURCE -DWICK_VERSION='"$(VERSION)"' -Iinclude -Isrc -I$(B)/gen
WARN	:= -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wformat=2 -Wno-missing-field-initializers \
	   $(if $(CI),-Werror)
CFLAGS	?= -O2 -g
ALL_CFLAGS = -std=gnu17 $(WARN) $(CFLAGS) -fno-omit-frame-pointer \
	   $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all,-fstack-protector-strong -D_FORTIFY_SOURCE=2 -fPIE)
LDFLAGS	+= $(if $(SAN),-fsanitize=$(SAN),-pie -Wl,-z,relro,-z,now) -pthread
LDLIBS	= $(shell pkg-config --libs $(PKGS)) -liberty

SRCS	:= $(filter-out src/cli/main.c,$(wildcard src/*/*.c))
PROTOS	:= $(wildcard proto/*.proto)
OBJS	:= $(SRCS:%.c=$(B)/%.o) $(PROTOS:proto/%.proto=$(B)/gen/%.pb-c.o)
GEN	:= $(PROTOS:proto/%.proto=$(B)/gen/%.pb-c.h) $(if $(wildcard bpf/wick.bpf.c),$(B)/gen/wick.skel.h)
UNITS	:= $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/*_test.c))

.PHONY: all clean
.DELETE_ON_ERROR:
.SECONDARY:
all: $(B)/wick

$(B)/wick: $(B)/src/cli/main.o $(B)/libwick.a
	$(call say,LD,$@) $(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(B)/libwick.a: $(OBJS)
	$(call say,AR,$@) rm -f $@; $(AR) rcs $@ $^

$(B)/%.o: %.c | $(GEN)
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/gen/%.pb-c.o: $(B)/gen/%.pb-c.c
	$(call say,CC,$<) $(CC) $(CPPFLAGS) -std=gnu17 $(CFLAGS) $(if $(SAN),-fsanitize=$(SAN),-fPIE) -c -o $@ $<

$(B)/gen/%.pb-c.c $(B)/gen/%.pb-c.h: proto/%.proto
	@mkdir -p $(@D)
	$(call say,PROTO,$<) protoc-c --proto_path=proto --c_out=$(B)/gen $<

$(B)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h) $(wildcard include/*.h) $(wildcard vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,BPF,$<) $(CLANG) -target bpf -mcpu=v3 -D__TARGET_ARCH_$(BPFARCH) -O2 -g -Wall -Wextra -Wshadow \
		$(if $(CI),-Werror) -Iinclude -Ivmlinux -Ibpf $(BPF_INCLUDES) -c -o $@ $<

$(B)/gen/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(call say,SKEL,$@) $(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(B)/unit/%: tests/unit/%.c $(B)/libwick.a
	@mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(B)/libwick.a $(LDLIBS) \
		$(shell pkg-config --libs check)

unit: $(UNITS)
	$(Q)for t in $(UNITS); do echo "$$t"; CK_VERBOSITY=normal $$t || exit 1; done

# libFuzzer targets: tests/fuzz/NAME_fuzz.c with a corpus in tests/fuzz/corpus/NAME; T seconds each.
FUZZERS	:= $(patsubst tests/fuzz/%_fuzz.c,%,$(wildcard tests/fuzz/*_fuzz.c))
FB	:= build/fuzz
$(FB)/%_fuzz: tests/fuzz/%_fuzz.c $(SRCS) | $(GEN)
	@mkdir -p $(@D)
	$(call say,FUZZ,$@) $(CLANG) $(CPPFLAGS) -std=gnu17 -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-o $@ $< $(filter-out src/kernel/%,$(SRCS)) $(PROTOS:proto/%.proto=$(B)/gen/%.pb-c.c) $(LDLIBS) -pthread

fuzz: $(FUZZERS:%=$(FB)/%_fuzz)
	$(Q)for f in $(FUZZERS); do mkdir -p $(FB)/found/$$f; \
		$(FB)/$${f}_fuzz -max_total_time=$(T) -timeout=5 -rss_limit_mb=1024 -verbosity=0 -print_final_stats=1 \
			-artifact_prefix=$(FB)/found/$$f- $(FB)/found/$$f tests/fuzz/corpus/$$f || exit 1; done

clean:
	$(Q)rm -rf build

-include $(wildcard $(B)/src/*/*.d $(B)/unit/*.d)
