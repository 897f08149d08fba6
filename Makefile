# Two commands do everything: "make run" and "make test". "make help" lists the rest.
SHELL := /bin/sh
GO    ?= go

K8S      := $(shell sed -n 's,^	k8s.io/kubernetes \(v.*\)$$,\1,p' dev/devcluster/go.mod)
K8S_FLAGS = -s -w $(foreach pkg,k8s.io/component-base/version k8s.io/client-go/pkg/version, \
	-X $(pkg).gitVersion=$(K8S) \
	-X $(pkg).gitMajor=$(word 1,$(subst ., ,$(K8S:v%=%))) \
	-X $(pkg).gitMinor=$(word 2,$(subst ., ,$(K8S:v%=%))) \
	-X $(pkg).gitCommit=devcluster \
	-X $(pkg).gitTreeState=clean)

DEVCLUSTER_SRC := $(shell find dev/devcluster -name '*.go' -not -name '*_test.go') dev/devcluster/go.mod dev/devcluster/go.sum
MODULES        := . dev/devcluster dev/integration dev/bench dev/browsertest dev/rbactest dev/clients dev/deploytest

# The longest stretch is the first build of Kubernetes; everything says when it starts.
comma := ,
say = @printf '\n== %s\n' "$(1)"

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 16

# The daemon's folder is inside that of the first cluster, which devcluster removes however it ends.
CLUSTER ?= --workload
.PHONY: run
run: bin/devcluster bin/mirador ## two real local clusters with a changing workload, and the daemon that mirrors and serves both; Ctrl-C stops all; MIRADOR_LISTEN=127.0.0.1:9090 serves there
	@bin/devcluster up --name eu $(CLUSTER) -- sh -c ' \
		folder="$${KUBECONFIG%/*}/fleet" && mkdir "$$folder" && ln -s "$$KUBECONFIG" "$$folder/eu.yaml" && exec \
		bin/devcluster up --name us $(CLUSTER) -- sh -c '\'' \
			ln -s "$$KUBECONFIG" "$$0/us.yaml" && \
			exec bin/mirador serve --folder "$$0" --data "$${0%/*}/data"'\'' "$$folder"'

.PHONY: quickstart
quickstart: bin/devcluster bin/quickstart ## a real local cluster with a changing workload, and an informer that prints what happens; Ctrl-C stops all
	@bin/devcluster up --name quickstart $(CLUSTER) -- bin/quickstart

# Tests on clusters wait more than they compute, so three jobs keep two cores busy: the race detector's, and two that
# take the next of the others whenever they are done. What takes longest starts first.
JOBS := unit-race chaos-test staticcheck unit-plain e2e-test web-test bench-test conformance integration rbac-test chart-test
.PHONY: test
test: fmt vet needed bin/mirador bin/quickstart bin/staticcheck ## every check for every change; make nightly has the long ones
	@$(MAKE) --no-print-directory --jobs=3 --assume-old=needed $(JOBS)
	@printf '\nAll checks passed.\n'

# Collecting the garbage less often saves a sixth of the processor time of these. What measures memory is not among them.
unit-race unit-plain chaos-test e2e-test web-test conformance integration rbac-test chart-test staticcheck: export GOGC := 400
# make vet has looked at everything.
unit-race unit-plain chaos-test e2e-test web-test conformance integration rbac-test chart-test bench-test: \
	export GOFLAGS := $(GOFLAGS) -vet=off

.PHONY: quick
quick: fmt ## tests that need no cluster, without the longest and the race detector: for the inner loop, at most 90 seconds
	$(call say,tests that need no cluster)
	@all=$$($(GO) list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...) && \
	printf '%s\n' "$$all" | sed -n '/dev\/testcluster/s/ .*//p' | sed 's,^[^/]*/[^/]*/[^/]*/,,' | tr '\n' ' ' | \
		sed 's/^/left to make test, because they need a cluster: /; s/$$/\n/' && \
	$(GO) test -skip '$(LONG)' $$(printf '%s\n' "$$all" | sed '/dev\/testcluster/d; s/ .*//')

# Every part runs, whatever became of those before it. What measures comes last.
.PHONY: nightly
nightly: bin/devcluster bin/mirador needed ## what is too long for every change: full-numbers, e2e, clients, image-test, simulate, simulate-mutants, chaos, soak, overload, fuzz, bench-check (hours)
	@failed=; for part in full-numbers e2e clients image-test 'simulate SEEDS=100000' simulate-mutants 'chaos MINUTES=30' 'soak MINUTES=30' overload \
		'fuzz MINUTES=10' bench-check; do $(MAKE) --no-print-directory $$part || failed="$$failed $${part%% *}"; done; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

.PHONY: full-numbers
full-numbers: bin/devcluster needed ## tests that make test runs with small numbers, with the full ones: MIRADOR_NIGHTLY=1
	$(call say,100$(comma)000 reads$(comma) 20$(comma)000 pods under churn and the like)
	MIRADOR_NIGHTLY=1 $(GO) test -count=1 ./store/internal/pack # the race detector makes packing twenty times slower
	MIRADOR_NIGHTLY=1 $(GO) test -race -count=1 -timeout 2h $$(grep -rl --include='*_test.go' MIRADOR_NIGHTLY . | xargs -n1 dirname | \
		grep -vE '/pack|/dev/(browsertest|rbactest)' | sort -u)
	cd dev/rbactest && MIRADOR_NIGHTLY=1 $(GO) test -count=1 -v -timeout 2h ./...
	MIRADOR_NIGHTLY=1 $(MAKE) --no-print-directory web-test

.PHONY: check
check: fmt vet staticcheck ## gofmt, vet, staticcheck

.PHONY: fmt
fmt:
	$(call say,gofmt)
	@bad=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); \
	if [ -n "$$bad" ]; then printf 'not formatted; run gofmt -w on:\n%s\n' "$$bad"; exit 1; fi

.PHONY: vet
vet: bin/devcluster
	$(call say,go vet: compiles what it looks at the first time)
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./...) || exit 1; done

.PHONY: staticcheck
staticcheck: bin/staticcheck bin/devcluster
	$(call say,staticcheck: reads all of Kubernetes the first time for minutes)
	@for m in $(MODULES); do (cd $$m && "$(CURDIR)/bin/staticcheck" ./...) || exit 1; done

# Tests that the race detector would find nothing in, and takes most of the time of: they measure memory, take one step
# at a time, compare one answer after the other or read the symbols of a program. They run without it. The packages in BOTH have files for each of the two
# and run whole without it, those in SOME run only these tests. LONG ones take seconds even then.
LONG    := ^TestBudget_.*InEachLayout$$|^TestConformance/^(live|shared|packed)$$/^P16_|^TestConformance/^P16_
LONG    := $(LONG)|^TestProgramWithCompat|^TestExpressionsCannot
NO_RACE := $(LONG)|^TestSimulation|^TestThrough|^TestAStalledConsumer|^TestStoreBehavesLikeAMap
NO_RACE := $(NO_RACE)|^TestPaceIsCalled|^TestPageOfACommonLabel|^TestObjectsThatTheLabelIndex
NO_RACE := $(NO_RACE)|^TestAListHasExactlyWhatIsVisible|^TestListsEqualAModel|^TestOnlyNeededObjectsAreRead
NO_RACE := $(NO_RACE)|^TestPagesOverRestarts|^TestWatchesOfTheFleetAreTrue|^TestRightsOfThenAreThose
NO_RACE := $(NO_RACE)|^TestP15_EveryKindComesBack|^TestP16_ListIsNeverHeldWhole|^TestNoMissingPart|^TestEndlessListOrWatch
NO_RACE := $(NO_RACE)|^TestFiftyUsersSee|^TestKubectl(Prints|Finds|Watch|Reads|Follows)|^TestAnswersEqualThoseOfTheRealServer
NO_RACE := $(NO_RACE)|^TestFieldSelectorsMeanTheSame|^TestOpenAPIV2IsTheJSON|^TestATokenOfAnEarlierProcessExpires
NO_RACE := $(NO_RACE)|^TestChanges(Before|Of|At)|^TestWhatIsOnDiskIsNotMixed|^TestAWatchOfARestrictedUser
# The tests of cmd/mirador start the program, and those of the conformance kit are about client-go's informer.
PLAIN   := /cmd/mirador$$|/dev/(conformance|fuzz|gobuild|testcluster|testpods)$$|/informertest/kit$$
BOTH    := /store/internal/pack$$|/internal/share$$|/daemon/disk$$
SOME    := ./informer ./compat/informers ./daemon/query ./daemon/fleet ./daemon/server ./daemon/server/table ./source/kube ./store

# The packages that take longest start first, so that none of them runs alone in the end.
FIRST   := ./daemon/server ./examples ./dev/oncluster ./daemon/fleet

.PHONY: unit
unit: unit-plain unit-race ## tests of the library, the ones on a real cluster and the examples included

.PHONY: unit-race
unit-race: bin/devcluster needed ## the tests of unit that run under the race detector
	$(call say,tests of the library under the race detector and on a real cluster; compiling takes minutes the first time)
	$(GO) test -race -p 4 -timeout 20m -skip '$(NO_RACE)' \
		$$($(GO) list $(FIRST) ./... | grep -vE '$(PLAIN)|/dev/(chaos|docs|rules)$$') # chaos has a target of its own

.PHONY: unit-plain
unit-plain: bin/devcluster needed ## the tests of unit that run without it
	$(call say,tests of the library without the race detector)
	$(GO) test -timeout 30m $$($(GO) list ./cmd/mirador ./... | grep -E '$(BOTH)|$(PLAIN)')
	$(GO) test -timeout 30m -run '$(NO_RACE)' $(SOME)
	$(GO) test -count=1 ./dev/rules ./dev/docs # their verdicts depend on files that the test cache does not see

.PHONY: rbac-test
rbac-test: bin/devcluster ## random decisions about rights, compared with Kubernetes' RBAC authorizer and a real cluster
	$(call say,rights compared with Kubernetes' RBAC authorizer and on a real cluster)
	cd dev/rbactest && $(GO) test -count=1 ./...

# The faults of the short run are the same; everybody's timeouts are shorter.
.PHONY: chaos
chaos: bin/devcluster needed ## break a real cluster and the way to it under informers, ours and client-go's, for MINUTES=5 or more, and count requests
	$(call say,chaos on a real cluster beside client-go)
	$(GO) test -race -count=1 -v -timeout 0 ./dev/chaos -run 'TestChaos$$' -args -minutes $(or $(MINUTES),5)

.PHONY: chaos-test
chaos-test: bin/devcluster needed ## every fault of chaos once, in at most 90 seconds
	$(call say,chaos on a real cluster, every fault once)
	$(GO) test -race -count=1 -timeout 30m ./dev/chaos

.PHONY: simulate
SEEDS ?= 10000
SEED  ?= 1
simulate: ## the informer under random faults, one step at a time, held to the promises; SEEDS=n seeds from SEED=k on
	$(call say,simulating $(SEEDS) seeds from $(SEED) on)
	@cd informer && SIM_ONCE=1 SIM_PROGRESS=1 SIM_SEEDS=$(SEEDS) SIM_SEED=$(SEED) $(GO) test -count=1 -timeout 24h -run 'TestSimulation$$'

.PHONY: simulate-mutants
simulate-mutants: ## plant bugs in the engine and the daemon, one at a time: a simulation must catch each within 1,000 seeds; ONLY=regexp picks some
	$(call say,the simulator on bugs that were planted)
	@$(GO) run ./dev/mutants -only '$(ONLY)'

.PHONY: simulate-peer
simulate-peer: ## the same seeds for client-go's informer: a table of the promises it breaks
	@cd informer && SIM_PEER=1 SIM_SEEDS=$(if $(filter command line,$(origin SEEDS)),$(SEEDS),1000) SIM_SEED=$(SEED) $(GO) test -count=1 -timeout 2h -run 'TestSimulationOfClientGo$$'

.PHONY: web-test
web-test: bin/devcluster needed ## the page in a real Chromium: against the daemon on a real cluster, and against a fake of the API
	$(call say,the page in Chromium)
	@command -v chromium-headless-shell >/dev/null 2>&1 || { echo "Chromium's headless shell is missing: installing it"; \
		apt-get update -q && apt-get install -yq chromium-headless-shell; } || command -v chromium >/dev/null 2>&1 || \
		{ echo "could not install it; install chromium or chromium-headless-shell, and run this again"; exit 1; }
	cd dev/browsertest && $(GO) test -count=1 -parallel 4 -timeout 30m ./... # tabs wait for frames more than for a core

.PHONY: integration
integration: bin/devcluster needed ## compat inside controller-runtime and a stock client-go factory, on a real cluster
	$(call say,compat in other people's machinery)
	cd dev/integration && $(GO) test -race -timeout 30m ./...

.PHONY: conformance
conformance: ## client-go's own black-box tests, taken from the module cache, run on compat
	$(call say,client-go's own tests on compat)
	$(GO) run ./dev/conformance

.PHONY: e2e
e2e: bin/devcluster bin/mirador bin/quickstart needed ## tests of devcluster itself, and of Ctrl-C at make run and make quickstart
	$(call say,tests of devcluster)
	cd dev/devcluster && $(GO) test -timeout 30m ./...

# Chaos and the tests of testcluster use faults and load as well.
.PHONY: e2e-test
e2e-test: bin/devcluster bin/mirador bin/quickstart needed ## e2e without the long tests of faults, load, workload and kept data
	$(call say,tests of devcluster)
	cd dev/devcluster && $(GO) test -timeout 30m -skip '^(TestFaults$$|TestLoad|TestSameSeed|TestWorkload|TestKeptData)' ./...

.PHONY: clients
clients: bin/devcluster bin/mirador bin/k9s bin/kubectl128 ## k9s in a terminal, and an old and a new kubectl, against the daemon and against the clusters that it mirrors
	$(call say,k9s and kubectl on the mirror of two real clusters)
	cd dev/clients && $(GO) test -count=1 -timeout 30m ./...

.PHONY: fuzz
fuzz: ## every fuzz target for MINUTES=10 each; ONLY=regexp picks some, PARALLEL=1 leaves a core to others
	@$(GO) run ./dev/fuzz -minutes $(or $(MINUTES),10) -only '$(ONLY)' $(if $(PARALLEL),-parallel $(PARALLEL))

.PHONY: overload
overload: ## a slow handler under 5,000 events/s, in real time, beside quick ones (2 minutes)
	@$(GO) run ./dev/overload $(if $(SECONDS),-seconds $(SECONDS))

.PHONY: soak
soak: bin/devcluster ## 20,000 changing pods under two informers and handlers that come and go, for MINUTES=30; nothing may grow or get lost
	$(call say,soak on a real cluster)
	@$(GO) build -o bin/soak/soak ./dev/soak
	@bin/devcluster up --name soak --no-controllers -- bin/soak/soak -minutes $(or $(MINUTES),30) $(if $(PODS),-pods $(PODS)) $(if $(CHURN),-churn $(CHURN))

.PHONY: bench
bench: bin/devcluster bin/mirador ## measure everything beside client-go (20 minutes); the results are in dev/bench/results
	$(call say,measuring beside client-go: let the machine do nothing else)
	cd dev/bench && $(GO) run ./cmd/bench

.PHONY: bench-more
bench-more: bin/devcluster bin/mirador ## add rounds to what make bench recorded (45 minutes at most), for bench-check to know how far they lie apart
	$(call say,measuring beside client-go: let the machine do nothing else)
	cd dev/bench && $(GO) run ./cmd/bench -add

.PHONY: bench-check
bench-check: bin/devcluster bin/mirador ## measure again, and fail where a ratio is worse than the recorded one by more than the noise
	cd dev/bench && $(GO) run ./cmd/bench -check

CLUSTERS ?= 10,100
.PHONY: scale
scale: bin/mirador ## the daemon over CLUSTERS=10,100 simulated clusters of 60 resources: time to sync, memory, goroutines, idle CPU, reads (minutes)
	$(call say,measuring the daemon over many clusters: let the machine do nothing else)
	cd dev/bench && $(GO) run ./cmd/scale -clusters '$(CLUSTERS)'

.PHONY: bench-test
bench-test: bin/devcluster bin/mirador ## tests of the measurements themselves, on small numbers
	$(call say,tests of the measurements)
	cd dev/bench && $(GO) test -timeout 30m ./...

.PHONY: devcluster
devcluster: bin/devcluster ## build the local Kubernetes (minutes the first time)

bin/devcluster: $(DEVCLUSTER_SRC)
	$(call say,building a Kubernetes $(K8S) control plane from its modules: minutes the first time and seconds later)
	@$(GO) run ./dev/gobuild -C dev/devcluster -o ../../bin/devcluster -- -ldflags '$(K8S_FLAGS)'

bin/mirador: $(shell find . \( -name '*.go' -o -path './daemon/web/*' -o -path './daemon/server/table/*' \) -not -path './dev/*' -not -name '*_test.go' -type f) go.mod go.sum
	$(call say,building the daemon)
	@$(GO) run ./dev/gobuild -o bin/mirador -pkg ./cmd/mirador

bin/quickstart: $(shell find . -name '*.go' -not -path './dev/*' -not -name '*_test.go') go.mod go.sum
	$(call say,building the informer that prints what happens)
	@$(GO) run ./dev/gobuild -o bin/quickstart -pkg ./examples/quickstart

bin/staticcheck: dev/tools/go.mod dev/tools/go.sum
	$(call say,building staticcheck)
	@$(GO) run ./dev/gobuild -C dev/tools -o ../../bin/staticcheck -pkg honnef.co/go/tools/cmd/staticcheck

# No registry and no Docker: Go builds the programs, and Debian's buildah puts the files together.
ARCHS   ?= amd64 arm64
IMAGE   ?= localhost/mirador
VERSION ?=
BUILDAH := buildah --storage-driver vfs --root "$(CURDIR)/bin/buildah/storage" --runroot "$(CURDIR)/bin/buildah/run"
.PHONY: image
image: buildah ## an image FROM scratch for amd64 and arm64, in bin/image/mirador.tar, without Docker (minutes for each the first time)
	$(call say,the image)
	@for arch in $(ARCHS); do \
		$(GO) run ./dev/release image -platform linux/$$arch -version '$(VERSION)' -o bin/image/$$arch || exit 1; done
	@rm -rf bin/buildah bin/image/mirador.tar; version=$$(cat bin/image/$(firstword $(ARCHS))/version) && \
	time=$$(git log -1 --format=%ct 2>/dev/null || echo 0) && \
	for arch in $(ARCHS); do \
		$(BUILDAH) build --isolation chroot --platform linux/$$arch --target prebuilt --manifest "$(IMAGE):$$version" \
			--build-arg "VERSION=$$version" --build-arg "COMMIT=$$(cat bin/image/$$arch/commit)" --timestamp "$$time" \
			--quiet . >/dev/null || exit 1; done && \
	$(BUILDAH) manifest push --all --quiet "$(IMAGE):$$version" "oci-archive:bin/image/mirador.tar:$(IMAGE):$$version" && \
	echo "$(IMAGE):$$version is in bin/image/mirador.tar: skopeo copy, docker load, ctr image import and kind load take it"

.PHONY: deploy-test
deploy-test: image-test chart-test ## tests of what users install

.PHONY: image-test
image-test: buildah ## the image and an archive of a release are built and run; needs root (30 s; minutes the first time)
	$(call say,the image: its first build takes minutes)
	cd dev/deploytest && $(GO) test -count=1 -timeout 30m ./image

.PHONY: chart-test
chart-test: bin/devcluster bin/mirador ## helm checks the chart, and a real cluster accepts it (30 s; minutes the first time)
	$(call say,the chart; compiling helm takes minutes the first time)
	cd dev/deploytest && $(GO) test -count=1 -timeout 30m ./chart

.PHONY: release
release: ## archives for linux, darwin and windows with checksums and a manifest for krew, in bin/release (minutes for each the first time)
	$(call say,the archives of a release)
	@rm -rf bin/release && $(GO) run ./dev/release archives -version '$(VERSION)' -o bin/release

# k9s is built in its own module, with the versions of its go.mod and go.sum.
K9S := v0.51.0
bin/k9s: Makefile
	$(call say,building k9s $(K9S): minutes the first time)
	@folder=$$(cd dev/tools && $(GO) mod download -json github.com/derailed/k9s@$(K9S) | sed -n 's/^.*"Dir": "\(.*\)".*$$/\1/p') && \
	$(GO) run ./dev/gobuild -C "$$folder" -o "$(CURDIR)/bin/k9s" -- -ldflags '-s -w'

bin/kubectl128: dev/clients/kubectl128/main.go dev/clients/kubectl128/go.mod dev/clients/kubectl128/go.sum
	$(call say,building the kubectl of Kubernetes 1.28)
	@$(GO) run ./dev/gobuild -C dev/clients/kubectl128 -o ../../../bin/kubectl128

# The race detector needs a C compiler, the tests of devcluster ps, those of the docs curl. Where they are
# missing, try to install them.
.PHONY: needed
needed:
	@{ command -v $${CC:-cc} || command -v gcc; } >/dev/null 2>&1 && command -v ps >/dev/null 2>&1 && command -v curl >/dev/null 2>&1 || { \
		echo "a C compiler (for the race detector), ps or curl is missing: installing gcc, procps and curl"; \
		{ apt-get update -q && apt-get install -yq gcc libc6-dev procps curl; } || \
		{ echo "could not install them; install a C compiler, ps and curl, and run this again"; exit 1; }; }

.PHONY: buildah
buildah:
	@command -v buildah >/dev/null 2>&1 || { echo "buildah is missing: installing it"; apt-get update -q && \
		apt-get install -yq buildah; } || { echo "could not install it; install buildah, and run this again"; exit 1; }

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
