# hotsku: make without a target prints what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help

RATE     ?= 300000
DURATION ?= 10s
STOCK    ?= 10000
SEED     ?=
BASE     ?= HEAD~1
ROUNDS   ?= 5
COMPARE_RATE ?= 20000
OUT      ?=
SCHEME   ?= redis-mq-token

SEEDED := $(if $(SEED),--seed $(SEED))
TO     := $(if $(OUT),--out $(OUT))

.PHONY: help setup build check requirements test bench-hotsku bench-compare bench-loadgen chaos-smoke mutants nightly clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo '  RATE=$(RATE) DURATION=$(DURATION) STOCK=$(STOCK) SEED=n OUT=dir set what bench-hotsku offers.'

setup: ## install the servers this machine lacks (quick when there is nothing to do)
	@stack/setup.sh

build: ## bin/hotsku, bin/seckill, bin/seckill-chaos, bin/seckill-mutant
	@mkdir -p bin
	@go build -o bin/ ./cmd/hotsku ./cmd/seckill
	@go build -tags chaos -o bin/seckill-chaos ./cmd/seckill
	@go build -tags chaos -o bin/seckill-mutant ./cmd/seckill-mutant

check: ## format, vet, staticcheck, tidy, the table of requirements
	@test -z "$$(gofmt -l .)" || { gofmt -d . | head -50; echo 'run gofmt -w .'; exit 1; }
	@go vet ./... && go vet -tags chaos ./...
	@go tool staticcheck ./... && go tool staticcheck -tags chaos ./system/... ./cmd/seckill/... ./cmd/seckill-mutant
	@go mod tidy -diff >/dev/null || { echo 'run go mod tidy'; exit 1; }
	@go run ./tools/requirements -check

requirements: ## write system/REQUIREMENTS.md: each row of the specification and its tests
	@go run ./tools/requirements

test: setup build ## every test, with the race detector, on real servers that it starts and stops
	@stack/with.sh go test -race -count=1 ./...
	@go test -race -count=1 -tags chaos ./system/faultpoint
	@go test -count=1 -run Million ./loadgen

bench-hotsku: setup build ## the main job: one SKU under open-loop load, judged
	@bin/hotsku bench --rate $(RATE) --duration $(DURATION) --stock $(STOCK) --scheme $(SCHEME) $(SEEDED) $(TO)

bench-compare: setup build ## BASE=COMMIT: runs of that commit and of this tree in turns (ROUNDS=5), and whether this one is worse
	@reports/comparison/commits.sh "$(BASE)" "$(ROUNDS)" --rate $(COMPARE_RATE) --duration 5s --stock $(STOCK)

bench-loadgen: build ## hotsku load beside wrk, vegeta, hey, oha and k6, as far as they install; writes loadgen/README.md
	@go run ./loadgen/peers -bin "$$(loadgen/peers/install.sh)"

chaos-smoke: setup build ## the scenarios tagged smoke, one of each kind of fault; minutes
	@bin/hotsku chaos run --tag smoke $(SEEDED) $(TO)

mutants: setup build ## every wrong design, each of which its scenario must find out; half an hour
	@bin/hotsku mutants $(SEEDED) $(TO)

nightly: setup build ## every scenario with three seeds and every wrong design, in OUT; hours, goes on where it was cut
	@OUT="$(OUT)" SEED="$(SEED)" .ci/nightly

clean: ## binaries and reports
	@rm -rf bin reports/out
