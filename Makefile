# Includes the usual install locations of Swift toolchains.
export PATH := $(PATH):$(HOME)/.local/share/swiftly/bin:/usr/local/swift/usr/bin:/opt/swift/usr/bin

SHELL := /bin/bash
SOURCES := Package.swift $(wildcard Sources Tests Examples Benchmarks)

# The duration of `make fuzz` in seconds.
FUZZ_SECONDS ?= 60

# The duration of `make test-soak` in seconds, and its events per second: half the highest rate.
SOAK_SECONDS ?= 600
SOAK_RATE ?= 8000

# The seeds of the random requests of `make test-api`; if it is empty, each run uses a random seed.
SEEDS ?=

# The tests that `make test-browser` (names of unittest), `make test-brokers` (a regular expression), `make test-hostile` (rows of
# `Tests/Hostile/run --list`), `make test-faults`, `make test-scale` (rows of `Tests/Scale/run --list`) or `make test-deploy` (subjects)
# runs; all if it is empty.
TESTS ?=

# `make test-hostile TLS=1` uses TLS.
TLS ?=

# How often `make test-scale` kills a gateway, and its events per second.
SCALE_KILLS ?= 20
SCALE_RATE ?= 5000

# The number of clients of `make test-edge`; each needs six file descriptors.
EDGE_CLIENTS ?= 2000

# The kinds of work that `make bench` measures (`Benchmarks/run --help`), all but `run` if it is empty; its rounds, and the seconds of each measurement.
WORK ?=
BENCH_ROUNDS ?= 5
BENCH_SECONDS ?= 4

# `make bench-check UPDATE=1` writes the numbers.
UPDATE ?=

# Arguments of the gateway for `make run`.
ARGS ?=

# A sanitized build has a separate folder, because the flags change every object file.
SANITIZE ?=
ifeq ($(SANITIZE),)
SCRATCH := .build
else ifneq ($(filter-out thread address,$(SANITIZE)),)
$(error SANITIZE is thread or address, not '$(SANITIZE)')
else
SCRATCH := .build-$(SANITIZE)
SANITIZER_FLAGS := --sanitize=$(SANITIZE)
endif
REPORTS := $(CURDIR)/$(SCRATCH)/reports
SANITIZER_OPTIONS := TSAN_OPTIONS="log_path=$(REPORTS)/thread suppressions=$(CURDIR)/Tests/Sanitizers/races.txt" \
	ASAN_OPTIONS="log_path=$(REPORTS)/address" \
	LSAN_OPTIONS="suppressions=$(CURDIR)/Tests/Sanitizers/leaks.txt:print_suppressions=0"

# visible-mutex.c describes why it is preloaded.
ifeq ($(SANITIZE),thread)
PRELOAD := $(CURDIR)/$(SCRATCH)/visible-mutex.so
endif
BUILD_FLAGS := --scratch-path $(SCRATCH) $(SANITIZER_FLAGS)

.DEFAULT_GOAL := help
.PHONY: help manual run demo-routing docs test test-access test-websocket test-api test-browser test-brokers test-proxies test-hostile test-soak test-edge screenshots fuzz bench bench-check format lint clean deps deps-test deps-websocket deps-api deps-browser deps-brokers deps-proxies deps-hostile deps-edge deps-bench deps-bench-check deps-fuzz

help: ## print this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

run: deps ## build in release and run the gateway with an embedded broker; ARGS="--port 0" passes arguments
	@[ -x .build/release/coaty-gateway ] || echo 'The first build takes four to five minutes on two idle processors. Its longest steps take more than a minute each.'
	swift build -c release --product coaty-gateway
	exec .build/release/coaty-gateway $(ARGS)

demo-routing: deps ## run Examples/io-routing: four processes, and one PATCH that changes the routing; ARGS are passed to the gateway
	for product in coaty-gateway io-routing-sources io-routing-actor; do swift build --product $$product || exit; done
	exec Examples/io-routing/demo "$$(swift build --show-bin-path)" $(ARGS)

DOCUMENTED := Coaty CoatyMQTT CoatySensorThings Coordination

# Extracts the symbols from the built modules, as swift-docc-plugin does, but without a second build and without a dependency.
docs: deps ## build the documentation of the library's modules in .build/docs; a warning is an error
	for module in $(DOCUMENTED); do swift build --target $$module || exit; done
	rm -rf .build/docs
	set -e; target=$$(swiftc -print-target-info | sed -nE 's/.*"unversionedTriple": "(.*)",/\1/p'); \
	for module in $(DOCUMENTED); do \
		mkdir -p .build/docs/symbols/$$module; \
		swift-symbolgraph-extract -module-name $$module -target $$target -minimum-access-level public \
			-emit-extension-block-symbols -skip-synthesized-members -output-dir .build/docs/symbols/$$module \
			-I "$$(swift build --show-bin-path)/Modules" $(patsubst %/module.modulemap,-I %,$(wildcard Sources/*/module.modulemap)); \
		docc convert Sources/$$module/$$module.docc --additional-symbol-graph-dir .build/docs/symbols/$$module \
			--fallback-display-name $$module --fallback-bundle-identifier $$module --warnings-as-errors \
			--output-path .build/docs/$$module.doccarchive; \
	done
	@echo "to read: python3 -m http.server -d .build/docs/Coaty.doccarchive, then http://localhost:8000/documentation/coaty"

# The release program with the Swift libraries in it and without symbols, for machines without Swift. Its build has a separate folder,
# because the flags change every object file.
STATIC := .build/static/coaty-gateway
STATIC_BUILD := swift build -c release --static-swift-stdlib --scratch-path .build-static

.PHONY: $(STATIC)
$(STATIC): deps
	$(STATIC_BUILD) --product coaty-gateway
	install -D --strip "$$($(STATIC_BUILD) --show-bin-path)/coaty-gateway" $@

manual: $(STATIC) ## write the man pages, and the completions of bash, zsh and fish, to .build/share
	$(STATIC_BUILD) --product generate-manual
	deploy/write-manual $(STATIC) "$$($(STATIC_BUILD) --show-bin-path)/generate-manual" .build/share

# The releases of Debian for which `make test-deb` and `make release` build the package. CONTRIBUTING.md says how the next one is added.
DEBIANS ?= bookworm trixie

# The release for which `make deb` builds the package; for another one than this machine's, in a system of its own.
THIS_DEBIAN := $(shell . /etc/os-release 2>/dev/null && echo $$VERSION_CODENAME)
DEBIAN ?= $(THIS_DEBIAN)
DEB := .build/deb/$(DEBIAN)

.PHONY: deb deps-deb deps-in-debian
ifeq ($(DEBIAN),$(THIS_DEBIAN))
deb: deps-deb manual ## build the Debian package in .build/deb; DEBIAN=trixie builds it for another Debian, which it makes itself
	deploy/build-deb $(STATIC) .build/share $(DEB)
else
deb: deps-in-debian
	deploy/in-debian $(DEBIAN) make deb
	rm -rf $(DEB) && mkdir -p $(DEB) && cp .build/debian/$(DEBIAN)/build/deb/$(DEBIAN)/*.deb $(DEB)
endif

# A missing program fails a test, instead of skipping it: `Tests/TestSupport/TestProgram.swift`.
test test-access test-brokers: export COATY_REQUIRE_PROGRAMS := 1

# Within a process, tests run one at a time: many block on sockets and processes, and would starve tests that wait for tasks.
# `Tests/run` runs several processes. XCTest is disabled, because no test needs it and LeakSanitizer reports its leaks. Sanitizers write
# their reports to files, also for gateways that tests start; the run fails if there is such a file.
test: deps-test lint ## lint, build and run all tests; SANITIZE=thread or SANITIZE=address sanitizes
	swift build $(BUILD_FLAGS) --build-tests
	$(if $(SANITIZE),,$(MAKE) --no-print-directory docs)
	$(if $(PRELOAD),clang -O1 -shared -fPIC -o $(PRELOAD) Tests/Sanitizers/visible-mutex.c)
	$(if $(SANITIZE),rm -rf $(REPORTS) && mkdir $(REPORTS))
	COATY_GATEWAY_BINARY="$$(swift build $(BUILD_FLAGS) --show-bin-path)/coaty-gateway" \
	$(if $(SANITIZE),COATY_SANITIZER=$(SANITIZE) $(SANITIZER_OPTIONS)) \
	$(if $(PRELOAD),COATY_TEST_PRELOAD="$(PRELOAD)") \
		Tests/run "$$(swift build $(BUILD_FLAGS) --show-bin-path)/coatyPackageTests.xctest" $(SCRATCH)/tests
	$(if $(SANITIZE),@! cat $(REPORTS)/* 2>/dev/null || { echo "the sanitizer reported the errors above"; exit 1; })

test-access: deps-test ## compare the access policy and the gate with a reference over a million random cases each
	swift build $(BUILD_FLAGS) --build-tests
	COATY_ACCESS_CASES=1000000 swift test $(BUILD_FLAGS) --skip-build --disable-xctest --no-parallel \
		--filter 'RandomAccessTests|RandomGateTests'

test-websocket: deps-websocket ## run the Autobahn cases against the WebSocket server and against bare libwebsockets
	swift build -c release --product websocket-echo
	Tests/Autobahn/run .build/autobahn "$$(swift build -c release --show-bin-path)/websocket-echo"

test-api: deps-api ## run schemathesis against the gateway from openapi.yaml; SEEDS="1 2" repeats runs
	swift build -c release --product coaty-gateway
	Tests/API/run .build/api "$$(swift build -c release --show-bin-path)/coaty-gateway" $(SEEDS)

BROWSER_PRODUCTS := coaty-gateway test-agent io-routing-sources io-routing-actor

test-browser: deps-browser ## test the client module in node and Chromium, and the console in Chromium and Firefox; TESTS="test_feed" runs some
	for product in $(BROWSER_PRODUCTS); do swift build -c release --product $$product || exit; done
	Tests/Browser/client/run "$$(swift build -c release --show-bin-path)/coaty-gateway"
	Tests/Browser/run .build/browser "$$(swift build -c release --show-bin-path)" $(TESTS)

test-brokers: deps-brokers ## test against three RabbitMQ nodes, faulty brokers and TLS failures; TESTS="WillTests" runs some
	swift build --build-tests
	Tests/Brokers/run .build/brokers "$$(swift build --show-bin-path)" $(if $(TESTS),'$(TESTS)')

test-proxies: deps-proxies ## send smuggled requests through haproxy and nginx, and check the addresses of clients behind them, idle connections, and refusals of large bodies
	swift build --product coaty-gateway
	Tests/Proxies/run .build/proxies "$$(swift build --show-bin-path)/coaty-gateway"
	Tests/Proxies/addresses .build/proxies "$$(swift build --show-bin-path)/coaty-gateway"
	Tests/Proxies/idle .build/proxies "$$(swift build --show-bin-path)/coaty-gateway"
	Tests/Proxies/refusals .build/proxies "$$(swift build --show-bin-path)/coaty-gateway"

# Runs for about ten minutes. Nothing else should use the processors during the run.
test-hostile: deps-hostile ## attack the gateway, and measure the service that a well-behaved client gets; TESTS="calm sse-unread" runs some rows, TLS=1 over TLS
	swift build -c release --product coaty-gateway
	Tests/Hostile/run .build/hostile "$$(swift build -c release --show-bin-path)/coaty-gateway" $(if $(TLS),--tls) $(TESTS)

test-soak: deps-hostile ## run under load with clients that connect and disconnect, some hostile; SOAK_SECONDS=60 sets the duration, SOAK_RATE=500 the events per second
	swift build -c release --product coaty-gateway
	Tests/Hostile/soak .build/soak "$$(swift build -c release --show-bin-path)/coaty-gateway" $(SOAK_SECONDS) $(SOAK_RATE)

.PHONY: test-faults deps-faults
# Runs for about fifteen minutes, at best without other load.
test-faults: deps-faults ## run through faults of the broker, the network, the machine and the process; TESTS="sigstop kill9" runs some
	swift build -c release --product coaty-gateway
	Tests/Faults/run .build/faults "$$(swift build -c release --show-bin-path)/coaty-gateway" $(TESTS)

test-edge: deps-edge ## let Prometheus read the metrics, and restart gateways behind haproxy with 2000 clients; EDGE_CLIENTS=200 sets another number
	swift build -c release --product coaty-gateway
	Tests/Edge/prometheus .build/prometheus "$$(swift build -c release --show-bin-path)/coaty-gateway"
	Tests/Edge/rolling .build/edge "$$(swift build -c release --show-bin-path)/coaty-gateway" $(EDGE_CLIENTS)

.PHONY: test-scale deps-scale
# Runs for about ten minutes, at best without other load.
test-scale: deps-scale ## run gateways of a cluster behind haproxy, at one broker and at several; TESTS="kills bridged" runs some, SCALE_KILLS=200 sets the kills, SCALE_RATE=1000 the events per second
	swift build -c release --product coaty-gateway
	SCALE_KILLS=$(SCALE_KILLS) SCALE_RATE=$(SCALE_RATE) \
		Tests/Scale/run .build/scale "$$(swift build -c release --show-bin-path)/coaty-gateway" $(TESTS)

.PHONY: test-deploy deps-deploy
test-deploy: deps-deploy ## check the files in deploy/ with the real programs; TESTS="compose proxies" runs some subjects
	swift build -c release --product coaty-gateway
	Tests/Deploy/run .build/deploy "$$(swift build -c release --show-bin-path)/coaty-gateway" $(TESTS)

# The engine of `make image`: the first one that responds, if it is empty.
ENGINE ?=

.PHONY: image test-image deps-image
# The commit has a suffix if files have changed. BUILDAH_FORMAT is for podman and buildah, whose own format has no health check.
image: ## build the container image with docker, podman or buildah; ENGINE=podman chooses one
	@engine="$(ENGINE)"; for name in docker podman buildah; do \
		[ "$$engine" ] || ! $$name info >/dev/null 2>&1 || engine=$$name; \
	done; \
	[ "$$engine" ] || { $(MAKE) --no-print-directory deps-image && engine=podman; } || exit; \
	version=$$(deploy/version); \
	commit=$$(git describe --always --abbrev=40 --exclude='*' --dirty=' with changes' 2>/dev/null || echo unknown); \
	set -x; BUILDAH_FORMAT=docker $$engine build --build-arg COATY_COMMIT="$$commit" --tag "coaty-gateway:$$version" --tag coaty-gateway .

# Runs for about ten minutes, mostly to compile the gateway.
test-image: deps-image ## build the container image from Debian's packages, without a registry, and run it without privileges; needs root
	Tests/Image/run

.PHONY: test-deb deps-test-deb
test-deb: deps-test-deb ## build the package for each Debian, and install, run, upgrade and purge it in one that systemd boots; DEBIANS=trixie for one
	for debian in $(DEBIANS); do \
		$(MAKE) --no-print-directory deb DEBIAN=$$debian && \
		Tests/Deb/run .build/test-deb/$$debian .build/deb/$$debian/coaty-gateway_*.deb $$debian || exit; \
	done

screenshots: deps-browser ## take the README's screenshots of the console again
	for product in $(BROWSER_PRODUCTS); do swift build -c release --product $$product || exit; done
	Tests/Browser/run .build/browser "$$(swift build -c release --show-bin-path)" --screenshots docs/images

# Nothing else should use the processors during the run.
bench: deps-bench ## compare the gateway with C programs and with bridges in Node and Python; WORK="advertise fanout" runs some, WORK=run measures make run
	for product in coaty-gateway hello-world filter-bench coding-bench routing-bench; do swift build -c release --product $$product || exit; done
	Benchmarks/run --rounds $(BENCH_ROUNDS) --seconds $(BENCH_SECONDS) $(WORK)

# Builds both programs itself, after it has found that the numbers apply to this compiler.
bench-check: deps-bench-check ## compare the instructions of the hot paths with Benchmarks/instructions/expected.json; UPDATE=1 writes them
	Benchmarks/check $(if $(UPDATE),--update)

# Uses the linker of the toolchain, because the system's linker fails on this many sanitizer symbols.
fuzz: deps-fuzz ## fuzz inbound topics and payloads for a minute; FUZZ_SECONDS=600 takes longer
	COATY_FUZZ=1 swift build --scratch-path .build-fuzz --sanitize=address -Xswiftc -sanitize=fuzzer -Xswiftc -gnone \
		-Xswiftc -use-ld=lld --product fuzz-inbound
	Tests/Fuzz/run $(FUZZ_SECONDS)

.PHONY: release
release: ## test and build a release into .build/release-VERSION; VERSION=1.2.3, TARGETS="test test-deb" runs only some tests
	deploy/release "$(VERSION)" $(TARGETS)

format: ## format the Swift sources
	swift format -i -r $(SOURCES)

lint: ## check the format of the Swift sources
	swift format lint --strict -r $(SOURCES)
	@! grep -rn --include='*.swift' '@Suite' Tests | grep -vF '@Suite(.exclusive' || { echo "these suites need the trait .exclusive"; exit 1; }

clean: ## remove everything that was built
	rm -rf .build .build-thread .build-address .build-fuzz .build-static

deps: ## install what is missing to build and run, with apt
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies run)

deps-test:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies test)

deps-websocket:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies websocket)

deps-api:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies api)

deps-browser:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies browser)

deps-brokers:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies brokers)

deps-proxies:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies proxies)

deps-hostile:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies hostile)

deps-faults:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies faults)

deps-scale:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies scale)

deps-edge:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies edge)

deps-deb:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies deb)

deps-in-debian:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies in-debian)

deps-test-deb:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies test-deb)

deps-deploy:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies deploy)

deps-image:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies image)

deps-bench:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies bench)

deps-bench-check:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies bench-check)

deps-fuzz:
	@$(if $(SKIP_DEPENDENCIES),:,deploy/install-dependencies fuzz)
