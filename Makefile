# Holdfast: offline hardware attestation for embedded verifiers.

SWIFT ?= swift
# The program is stripped and linked with lld, because the prover hashes every byte of it for each proof.
# ArgumentParser gets the little that it uses of FoundationEssentials from Tools/FoundationEssentials (5.1 MB less). Nobody looks
# up symbols of a program by name, so none is exported (0.6 MB less). The linker keeps one of several equal functions (0.2 MB less),
# and writes relocations in the short form, where this host's C library reads it (0.6 MB less). The runtimes of C++ and of GCC are
# linked statically: 0.1 MB in place of two libraries of 2.3 MB. The names of Unicode scalars are left out (0.55 MB less).
# The code is compiled for size (0.8 MB less): it takes 2 % more time for passwords, and less for a whole proof.
# The C library is compiled with the same flags, so that both are made of the same objects.
# Without debug information, functions that cannot throw exceptions need no tables for unwinding (0.9 MB less).
COMPILE = --configuration release --static-swift-stdlib -Xswiftc -static-stdlib -Xswiftc -use-ld=lld -Xswiftc -Osize -Xswiftc -gnone \
  -Xswiftc -I$(CURDIR)/$(ESSENTIALS)
RELEASE = $(COMPILE) -Xlinker -s -Xlinker --no-export-dynamic -Xlinker --icf=all $(SHORT_RELOCATIONS) \
  -Xlinker --wrap=_swift_stdlib_getScalarName \
  -Xlinker -L$(CURDIR)/$(RUNTIMES) -Xlinker $(CURDIR)/$(ESSENTIALS)/libFoundationEssentials.a
SHORT_RELOCATIONS = $(shell getconf GNU_LIBC_VERSION 2>/dev/null | \
  awk '$$1 == "glibc" && $$2 + 0 >= 2.36 { print "-Xlinker -z -Xlinker pack-relative-relocs" }')
# The command line gets the keys of a key file at the root, as other apps do.
PROOF_KEYS = $(if $(wildcard mpk.key),HOLDFAST_MPK_KEY="$${HOLDFAST_MPK_KEY:-$(CURDIR)/mpk.key}")
LIBRARY_VERSION := $(shell sed -n 's/^.define HOLDFAST_LIBRARY_VERSION "\([0-9.]*\)"$$/\1/p' \
  Sources/CLibraryVersion/include/CLibraryVersion.h)
LIBRARY_NAME = libholdfast.so.1
LIBRARY = .build/library
ESSENTIALS = .build/essentials
RUNTIMES = .build/runtimes
PACKAGES = pkg-config libssl-dev libsqlite3-dev libbluetooth-dev libexpat1-dev libqrencode-dev libcurl4-openssl-dev \
  python3-cryptography
# For HoldfastDatabase, which the command line and the C library do not have.
DATABASE_PACKAGES = libpq-dev
TEST_PACKAGES = swtpm oathtool liboath-dev python3-venv python3-pytest gcc g++ valgrind abigail-tools postgresql sqlite3 qrencode \
  xfsprogs fuse2fs
# For the Linux guests of Tests/Guest, which are skipped where these cannot be had.
GUEST_PACKAGES = qemu-system-x86 cpio kmod e2fsprogs f2fs-tools zstd
# For the firmware and its simulated board, which are skipped in the same way.
FIRMWARE_PACKAGES = qemu-system-arm gcc-arm-none-eabi picolibc-arm-none-eabi
# For the browser in which the operators' console is tested, which is skipped in the same way.
CONSOLE_TEST_PACKAGES = chromium chromium-driver python3-selenium zbar-tools
# For `make model`.
MODEL_PACKAGES = spin maude gcc libc6-dev
# For `make deb` and `make test-packages`.
DEBIAN_PACKAGES = debhelper dpkg-dev
DEBIAN_TEST_PACKAGES = lintian mmdebstrap systemd openssl $(GUEST_PACKAGES)
# Debian has no ruff: pip installs this version below .build.
RUFF_VERSION = 0.17.6
RUFF = .build/ruff-$(RUFF_VERSION)/bin/ruff
# Schemathesis compares the online service with docs/openapi.yaml. It comes in the same way.
SCHEMATHESIS_VERSION = 4.32.5
SCHEMATHESIS = .build/schemathesis-$(SCHEMATHESIS_VERSION)
PYTHON_SOURCES = conftest.py $(wildcard Tests Tools Demo Examples firmware-sim)
SWIFT_SOURCES = Sources Tests Plugins Tools Examples Package.swift firmware-sim/Sources firmware-sim/Package.swift

# The target of `make install`. DESTDIR is the root of a package that is being built, and is empty otherwise.
PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib
DESTDIR =
MANUAL = .build/man
SERVICE_MANUAL = .build/service-man
COMPLETIONS = .build/completions

.PHONY: help openapi build service simulate libraries library install install-library install-service uninstall man service-man completions deb apt-repository test-packages suite-packages constant-time model mutants reader-mutants demo demo-bluetooth demo-firmware demo-online demo-couriers chaos-service bench-service firmware curve firmware-report docs api check test unit-tests bench soak soak-bluetooth fuzz fuzz-coverage vectors format lint packages database-packages clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: packages $(ESSENTIALS)/libFoundationEssentials.a $(RUNTIMES) ## Build the command line at .build/release/holdfast, and holdfast-carrier next to it.
	@$(PROOF_KEYS) $(SWIFT) build --quiet $(RELEASE) --product holdfast
	@$(PROOF_KEYS) $(SWIFT) build --quiet $(RELEASE) --product holdfast-carrier

# The same flags link the tools of the build's plugins, which have none of the symbols: hence --undefined-version.
library: packages $(ESSENTIALS)/libFoundationEssentials.a ## Build the C library in .build/library.
	@$(SWIFT) build --quiet $(COMPILE) -Xlinker -s -Xlinker --gc-sections -Xlinker -soname=$(LIBRARY_NAME) \
	  -Xlinker --version-script=$(CURDIR)/Tools/library/holdfast.map -Xlinker --undefined-version --product holdfast-c
	@Tools/library/archive $(SWIFT)c .build/release/holdfast-c.product/Objects.LinkFileList .build/release/libholdfast.a
	@$(MAKE) --no-print-directory install-library DESTDIR=$(CURDIR)/$(LIBRARY) PREFIX=

# Installs the library that was built, its archive, its header, its pkg-config files and the Python module.
install-library:
	@install -d $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(LIBDIR)/pkgconfig $(DESTDIR)$(PREFIX)/share/holdfast/python
	@install -m 755 .build/release/libholdfast-c.so $(DESTDIR)$(LIBDIR)/libholdfast.so.$(LIBRARY_VERSION)
	@ln -sf libholdfast.so.$(LIBRARY_VERSION) $(DESTDIR)$(LIBDIR)/$(LIBRARY_NAME)
	@ln -sf $(LIBRARY_NAME) $(DESTDIR)$(LIBDIR)/libholdfast.so
	@install -m 644 .build/release/libholdfast.a $(DESTDIR)$(LIBDIR)/libholdfast.a
	@install -m 644 Sources/CHoldfast/holdfast.h $(DESTDIR)$(PREFIX)/include/holdfast.h
	@for name in holdfast holdfast-static; do \
	  sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(LIBRARY_VERSION)|' \
	    Tools/library/$$name.pc.in >$(DESTDIR)$(LIBDIR)/pkgconfig/$$name.pc; \
	done
	@install -m 644 Tools/python/holdfast.py $(DESTDIR)$(PREFIX)/share/holdfast/python/holdfast.py

# The online service has dependencies that nothing else has, and therefore its own build folder.
SERVICE = .build-service
service: packages ## Build the online service at .build/release/holdfast-service.
	@Tests/install-packages $(DATABASE_PACKAGES)
	@$(SWIFT) build --quiet --traits Service --configuration release --scratch-path $(SERVICE) --static-swift-stdlib \
	  -Xswiftc -static-stdlib -Xswiftc -use-ld=lld -Xlinker -s --product holdfast-service
	@install -D -m 755 $(SERVICE)/release/holdfast-service .build/release/holdfast-service

simulate: packages database-packages $(ESSENTIALS)/libFoundationEssentials.a $(RUNTIMES) ## Build holdfast-simulate, which simulates couriers in a fleet, at .build/release/holdfast-simulate.
	@$(SWIFT) build --quiet $(RELEASE) --product holdfast-simulate

# Made anew for another compiler, too.
$(ESSENTIALS)/libFoundationEssentials.a: Tools/FoundationEssentials/JSONEncoder.swift $(realpath $(shell command -v $(SWIFT)c))
	@mkdir -p $(ESSENTIALS)
	@$(SWIFT)c -O -wmo -parse-as-library -swift-version 6 -warnings-as-errors -static -emit-module -emit-library \
	  -module-name FoundationEssentials -emit-module-path $(ESSENTIALS)/FoundationEssentials.swiftmodule -o $@ $<

# The linker looks here first, and finds only static libraries.
CLANG = $(dir $(realpath $(shell command -v $(SWIFT)c)))clang
$(RUNTIMES):
	@mkdir -p $@
	@ln -sf $$($(CLANG) --print-file-name=libstdc++.a) $@/libstdc++.a
	@ln -sf $$($(CLANG) --print-file-name=libgcc_eh.a) $@/libgcc_s.a

completions: build ## Write completions for bash, zsh and fish to .build/completions.
	@mkdir -p $(COMPLETIONS)
	@.build/release/holdfast --generate-completion-script bash >$(COMPLETIONS)/holdfast
	@.build/release/holdfast --generate-completion-script zsh >$(COMPLETIONS)/_holdfast
	@.build/release/holdfast --generate-completion-script fish >$(COMPLETIONS)/holdfast.fish

man: build ## Write manual pages to .build/man: holdfast.1 and one page for each verb.
	@rm -rf $(MANUAL)
	@Tools/manual-pages --holdfast .build/release/holdfast --out $(MANUAL)

# The manual pages and completions of the online service.
service-man: service
	@rm -rf $(SERVICE_MANUAL)
	@Tools/manual-pages --holdfast .build/release/holdfast-service --section 8 --out $(SERVICE_MANUAL)
	@mkdir -p $(COMPLETIONS)
	@.build/release/holdfast-service --generate-completion-script bash >$(COMPLETIONS)/holdfast-service
	@.build/release/holdfast-service --generate-completion-script zsh >$(COMPLETIONS)/_holdfast-service
	@.build/release/holdfast-service --generate-completion-script fish >$(COMPLETIONS)/holdfast-service.fish

install: build library man completions ## Install the command line, the C library, manual pages and completions under PREFIX (/usr/local).
	@$(MAKE) --no-print-directory install-library
	@install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/man/man7
	@install -m 755 .build/release/holdfast $(DESTDIR)$(PREFIX)/bin/holdfast
	@install -D -m 755 .build/release/holdfast-carrier $(DESTDIR)$(PREFIX)/libexec/holdfast/holdfast-carrier
	@install -m 644 $(MANUAL)/*.1 $(DESTDIR)$(PREFIX)/share/man/man1
	@install -m 644 $(MANUAL)/*.7 $(DESTDIR)$(PREFIX)/share/man/man7
	@install -D -m 644 $(COMPLETIONS)/holdfast $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdfast
	@install -D -m 644 $(COMPLETIONS)/_holdfast $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdfast
	@install -D -m 644 $(COMPLETIONS)/holdfast.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdfast.fish

install-service: service service-man ## Install the online service with its manual pages and completions under PREFIX.
	@install -D -m 755 .build/release/holdfast-service $(DESTDIR)$(PREFIX)/bin/holdfast-service
	@install -d $(DESTDIR)$(PREFIX)/share/man/man8
	@install -m 644 $(SERVICE_MANUAL)/*.8 $(DESTDIR)$(PREFIX)/share/man/man8
	@install -D -m 644 $(COMPLETIONS)/holdfast-service $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdfast-service
	@install -D -m 644 $(COMPLETIONS)/_holdfast-service $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdfast-service
	@install -D -m 644 $(COMPLETIONS)/holdfast-service.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdfast-service.fish

uninstall: ## Remove the files that install wrote under PREFIX.
	@rm -f $(DESTDIR)$(LIBDIR)/libholdfast.so $(DESTDIR)$(LIBDIR)/$(LIBRARY_NAME) \
	  $(DESTDIR)$(LIBDIR)/libholdfast.so.$(LIBRARY_VERSION) $(DESTDIR)$(LIBDIR)/pkgconfig/holdfast.pc \
	  $(DESTDIR)$(LIBDIR)/libholdfast.a $(DESTDIR)$(LIBDIR)/pkgconfig/holdfast-static.pc \
	  $(DESTDIR)$(PREFIX)/include/holdfast.h $(DESTDIR)$(PREFIX)/share/holdfast/python/holdfast.py
	@rm -f $(DESTDIR)$(PREFIX)/bin/holdfast $(DESTDIR)$(PREFIX)/libexec/holdfast/holdfast-carrier \
	  $(DESTDIR)$(PREFIX)/share/man/man1/holdfast.1 \
	  $(DESTDIR)$(PREFIX)/share/man/man1/holdfast-*.1 $(DESTDIR)$(PREFIX)/share/man/man7/holdfast-*.7 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdfast \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdfast \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdfast.fish
	@rm -f $(DESTDIR)$(PREFIX)/bin/holdfast-service $(DESTDIR)$(PREFIX)/share/man/man8/holdfast-service*.8 \
	  $(DESTDIR)$(PREFIX)/share/bash-completion/completions/holdfast-service \
	  $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_holdfast-service \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/holdfast-service.fish

deb: build library man completions service service-man ## Build the Debian packages in .build/deb.
	@Tests/install-packages $(DEBIAN_PACKAGES)
	@packaging/build-packages .build/deb

apt-repository: deb ## Make a repository for apt of the Debian packages, in .build/apt.
	@packaging/build-repository .build/deb .build/apt

test-packages: deb ## Check the Debian packages, and install, start, upgrade and purge them in a clean Debian.
	@Tests/install-packages $(DEBIAN_TEST_PACKAGES)
	@/usr/bin/python3 Tests/Packages/run.py --packages .build/deb

demo: build ## Enrol, prove, and try every attack, between two processes on this machine.
	@Demo/holdfast-demo --holdfast .build/release/holdfast

demo-bluetooth: build ## Prove over L2CAP, RFCOMM and LE, between two virtual Linux hosts.
	@Tests/install-packages $(GUEST_PACKAGES) || true
	@/usr/bin/python3 Tests/BluetoothLab/demo.py --holdfast .build/release/holdfast

demo-firmware: build ## Prove to a Cortex-M4 behind a bridge, cut its power, and try every attack on it.
	@Tests/install-packages $(FIRMWARE_PACKAGES) || true
	@Demo/holdfast-demo --target board --holdfast .build/release/holdfast

demo-online: build service ## Enrol at three instances of the online service, and kill one of them and its database.
	@Tests/install-packages postgresql
	@Demo/holdfast-demo --target online --holdfast .build/release/holdfast

demo-couriers: build ## Revoke a stolen phone at two locks without a network: other phones carry the news, and the logs home.
	@Demo/holdfast-demo --target couriers --holdfast .build/release/holdfast

# What both need: provers in Python, and PostgreSQL. SEED repeats the random choices of a run, but not its interleavings.
TIME = 600
SEED = $(shell date +%s)
chaos-service: service ## Kill instances and their database at random for at least TIME seconds while 64 provers enrol, and say what was lost.
	@Tests/install-packages postgresql python3-cryptography
	@/usr/bin/python3 Tests/Interop/chaos_service.py --service .build/release/holdfast-service --seconds $(TIME) --seed $(SEED)

ENROLMENTS = 100000
DEVICES = 1000000
TOKENS = 10000000
bench-service: service ## Measure the online service, and write the figures into docs/performance.md; takes an hour.
	@Tests/install-packages postgresql python3-cryptography gcc
	@/usr/bin/python3 Tests/Interop/bench_service.py --service .build/release/holdfast-service --write \
	  --enrolments $(ENROLMENTS) --devices $(DEVICES) --tokens $(TOKENS)

firmware: ## Build the images for a Cortex-M4 in firmware-sim/.build.
	@Tests/install-packages $(FIRMWARE_PACKAGES)
	@$(MAKE) --no-print-directory -C firmware-sim

CASES = 10000000
curve: packages ## Compare the board's curve with BearSSL's and OpenSSL's in CASES random cases.
	@Tests/install-packages $(FIRMWARE_PACKAGES)
	@$(MAKE) --no-print-directory -C firmware-sim .build/curve/compare
	@firmware-sim/.build/curve/compare $(CASES) $(SEED)

firmware-report: firmware build ## Measure the size and speed of the firmware, and compare them with the limits.
	@Tests/install-packages python3-pytest
	@/usr/bin/python3 -m pytest Tests/Firmware/test_report.py --measure

docs: libraries ## Build the documentation of the libraries in .build/docs.
	@Tools/docs

api: libraries ## Write the lists of public declarations in docs/api anew.
	@Tools/api --renew

libraries: packages database-packages # Compile the libraries for the tools that read them.
	@$(SWIFT) build --quiet

check: packages database-packages ## Check format, unit tests and vectors, for quick feedback.
	@Tests/run check

test: packages database-packages ## Build and check everything; ONLY="text" selects the suites whose names contain the text.
	@ONLY="$(ONLY)" Tests/run

suite-packages: # Install what only suites need; those for which a part cannot be had are skipped.
	@Tests/install-packages $(TEST_PACKAGES)
	@Tests/install-packages $(GUEST_PACKAGES) || true
	@Tests/install-packages $(FIRMWARE_PACKAGES) || true
	@Tests/install-packages $(CONSOLE_TEST_PACKAGES) || true
	@$(MAKE) --no-print-directory $(SCHEMATHESIS) || true

# The works are compiled as the program is. Their support imports Foundation, and they have therefore a separate build folder.
BENCH = .build-bench
BENCH_PACKAGES = gcc libssl-dev liboath-dev libjose-dev oathtool openssl swtpm tpm2-tools python3-cryptography python3-venv
QUICK =
bench: build ## Measure Holdfast next to its peers, write docs/performance.md, and measure proofs; QUICK=1 writes nothing.
	@Tests/install-packages $(BENCH_PACKAGES)
	@Tests/install-packages $(FIRMWARE_PACKAGES) || true
	@$(SWIFT) build --quiet --configuration release --scratch-path $(BENCH) --static-swift-stdlib -Xswiftc -static-stdlib \
	  -Xswiftc -use-ld=lld -Xswiftc -Osize -Xlinker -s --product Benchmark
	@$(SWIFT) build --quiet --configuration release --scratch-path $(BENCH) --static-swift-stdlib -Xswiftc -static-stdlib \
	  -Xswiftc -use-ld=lld -Xswiftc -Osize -Xlinker -s --product bench-charts
	@/usr/bin/python3 Tests/Benchmark/run.py $(if $(QUICK),--quick,--write)
	@.build/release/holdfast bench latency

# Package.swift says which modules are optimised; others, and BoringSSL, are not. The online service shares most modules with the tests.
# `make service` optimises all of it, and links it statically. Without a separate job for each module's interface, each is read once.
unit-tests: packages database-packages ## Build the unit tests, the programs for other tests, and the online service in .build-tests.
	@HOLDFAST_TESTS=1 $(SWIFT) build --quiet --build-tests --traits Service --configuration release --scratch-path .build-tests \
	  -Xswiftc -Onone -Xswiftc -gnone -Xswiftc -no-emit-module-separately-wmo -Xcc -g0 -Xcxx -O0 -Xcxx -g0

soak: unit-tests ## Run a million rounds, and check that memory, threads and descriptors do not grow.
	@HOLDFAST_SOAK_ROUNDS=1000000 .build-tests/release/holdfastPackageTests.xctest --testing-library swift-testing \
	  --no-parallel --filter SoakTests

soak-bluetooth: build ## Prove over Low Energy between hosts that boot twenty times, while all processors are busy.
	@Tests/install-packages $(GUEST_PACKAGES)
	@/usr/bin/python3 Tests/BluetoothLab/low_energy_runs.py --holdfast .build/release/holdfast --runs 20

# TIME is shared by all targets, and TARGETS="cbor json" chooses some.
TARGETS =
fuzz: packages database-packages ## Compare verdicts, then fuzz every reader of outside bytes for the rest of TIME seconds; TARGETS="cbor json" chooses some.
	@Tests/Fuzz/fuzz.py run --seconds $(TIME) $(TARGETS)

fuzz-coverage: packages database-packages ## Replay the fuzzer's corpora, and count the lines of the core and of all readers that they reach.
	@Tests/Fuzz/fuzz.py coverage $(TARGETS)

# The works are compiled and linked as the program is, but keep their names: valgrind recognises revealed values by one of them.
# Their support imports Foundation, as that of the benchmark does. The board takes up to seven minutes for a function.
CONSTANT_TIME = .build-constant-time
SECRETS = 10000
constant-time: packages ## Check that no branch and no address depends on a secret, in a release and on the board, where instructions are also counted over SECRETS random ones.
	@Tests/install-packages valgrind python3-pytest
	@Tests/install-packages $(FIRMWARE_PACKAGES) || true
	@$(SWIFT) build --quiet --configuration release --scratch-path $(CONSTANT_TIME) --static-swift-stdlib -Xswiftc -static-stdlib \
	  -Xswiftc -use-ld=lld -Xswiftc -Osize -Xswiftc -gnone -Xlinker --no-export-dynamic -Xlinker --icf=all \
	  -Xlinker --keep-unique=holdfast_reveal --product ConstantTime
	@/usr/bin/python3 -m pytest -q -p no:cacheprovider Tests/ConstantTime --constant-time=$(CONSTANT_TIME)/release/ConstantTime
	@HOLDFAST_SECRETS=$(SECRETS) nice /usr/bin/python3 -m pytest -q -p no:cacheprovider --durations=0 \
	  Tests/Firmware/test_board_traces.py Tests/Firmware/test_board_round_traces.py

model: ## Check the models of ledger and session, and that each rule which is broken on purpose is found.
	@Tests/install-packages $(MODEL_PACKAGES) || exit 69
	@/usr/bin/python3 Tests/Model/run.py

# ONLY="Sources/HoldfastCore/Token Sources/HoldfastDevice" breaks only what lies there; COUNT mutants are chosen at random with SEED.
COUNT = 0
mutants: packages database-packages ## Break lines one at a time, and list what no unit test notices; ONLY=, COUNT= and SEED= choose a sample.
	@/usr/bin/python3 Tests/Mutants/run.py --only $(ONLY) --count $(COUNT) --seed $(SEED) $(if $(JSON),--json)

reader-mutants: packages database-packages ## Break lines of readers, and list what the fuzzer's verdicts do not notice; TARGETS=, COUNT= and SEED= choose a sample.
	@/usr/bin/python3 Tests/Mutants/readers.py --count $(COUNT) --seed $(SEED) $(TARGETS)

vectors: build ## Replay the test vectors.
	@.build/release/holdfast vectors replay vectors/*.json

format: $(RUFF) ## Format the sources.
	@$(SWIFT) format --in-place --recursive $(SWIFT_SOURCES)
	@$(RUFF) format --quiet $(PYTHON_SOURCES)

lint: $(RUFF) ## Check the format of the sources, and Python for mistakes.
	@$(SWIFT) format lint --strict --recursive $(SWIFT_SOURCES)
	@$(RUFF) check --quiet --no-cache $(PYTHON_SOURCES)
	@$(RUFF) format --check --quiet --no-cache $(PYTHON_SOURCES)

$(RUFF):
	@/usr/bin/python3 -m pip --version >/dev/null 2>&1 || Tests/install-packages python3-pip
	@/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target .build/ruff-$(RUFF_VERSION) ruff==$(RUFF_VERSION) || { \
	  rm -rf .build/ruff-$(RUFF_VERSION); \
	  echo "holdfast: pip cannot install ruff $(RUFF_VERSION), without which Python is not checked" >&2; \
	  echo "hint: connect to the Internet, or put a ruff $(RUFF_VERSION) at $(RUFF)" >&2; exit 69; }

$(SCHEMATHESIS):
	@/usr/bin/python3 -m pip --version >/dev/null 2>&1 || Tests/install-packages python3-pip
	@/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore --target $@ \
	  schemathesis==$(SCHEMATHESIS_VERSION) || { rm -rf $@; exit 69; }

openapi: service ## Write docs/openapi.yaml anew.
	@.build/release/holdfast-service openapi >docs/openapi.yaml

packages: # Install the Debian packages that are missing.
	@Tests/install-packages $(PACKAGES)

database-packages: # Install what only HoldfastDatabase needs.
	@Tests/install-packages $(DATABASE_PACKAGES)

clean: ## Remove the build results.
	@rm -rf .build .build-bench .build-constant-time .build-fuzz .build-fuzz-coverage .build-embedded .build-examples .build-mutants .build-reader-mutants .build-service .build-tests firmware-sim/.build firmware-sim/.bearssl
