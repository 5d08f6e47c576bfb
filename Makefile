# What a person types and what CI runs are the same words. `make` alone lists them.

CARGO ?= cargo
BIN := $(CARGO) run --quiet --bin cocoon-operator --
DEMO ?= examples/demo.yaml
PLANE := $(CURDIR)/.cache/control-plane/bin

# `crds` prints one document after another, each begun by a line of three dashes; a file each, named GROUP_PLURAL.yaml.
SPLIT := awk -v dir="$$out" '/^---$$/ { doc = ""; file = "" } { doc = doc $$0 "\n" } \
  file == "" && /^  name: / { name = $$2; gsub(/"/, "", name); dot = index(name, "."); \
    file = dir "/" substr(name, dot + 1) "_" substr(name, 1, dot - 1) ".yaml"; printf "%s", doc > file; next } \
  file != "" { print > file }'

.DEFAULT_GOAL := help
.PHONY: help setup check fmt test test-live control-plane kubectl run golden crds docs generated bench mutants ci

help: ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what the other targets need, where it is missing
	@command -v $(CARGO) >/dev/null || { \
	  echo "No Rust toolchain found. Install one (1.89 or newer) as https://rustup.rs says, then run make again." >&2; exit 1; }
	@$(CARGO) fmt --version >/dev/null 2>&1 || rustup component add rustfmt
	@$(CARGO) clippy --version >/dev/null 2>&1 || rustup component add clippy
	@$(CARGO) fetch --locked --quiet

check: setup ## Format, lints, the core alone, what the image has, documentation
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	$(CARGO) check --locked --no-default-features --lib
	$(CARGO) check --locked --no-default-features --features shell
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --lib --document-private-items --quiet

fmt: setup ## Format the code
	$(CARGO) fmt --all

test: setup ## Run every test that needs no real cluster
	@[ -n "$$KUBECTL$$KUBEBUILDER_ASSETS" ] || $(MAKE) --no-print-directory kubectl || \
	  echo "Without kubectl its tests on the sandbox are not run." >&2
	$(CARGO) test --locked

test-live: setup ## Run the tests against a real control plane (built once, with Go, where KUBEBUILDER_ASSETS names none)
	@[ -n "$$KUBEBUILDER_ASSETS" ] || tests/control-plane/build.sh $(PLANE) || { code=$$?; \
	  [ $$code = 3 ] && [ "$$CI" != true ] || \
	  { echo "The live stage was not run: its control plane could not be built." >&2; exit $$code; }; }
	$(CARGO) test --locked --features live --test live

control-plane: ## Build etcd, API server, controller manager, scheduler and kubectl
	@tests/control-plane/build.sh $(PLANE)

kubectl: ## Build kubectl alone
	@tests/control-plane/build.sh $(PLANE) kubectl

run: setup ## Start the sandbox with the demo set and keep it running until Ctrl-C
	$(CARGO) run --locked --bin cocoon-operator -- sandbox -f $(DEMO)

golden: setup ## Accept changed transcripts (reviewed one by one where cargo-insta is installed)
	@if $(CARGO) insta --version >/dev/null 2>&1; then $(CARGO) insta test --review; \
	else INSTA_UPDATE=always $(CARGO) test --locked && git --no-pager diff --stat; fi

crds: setup ## Write crds/ from the Rust types
	@out=crds && mkdir -p "$$out" && $(BIN) crds > "$$out/.all" && rm -f "$$out"/*_*.yaml && \
	$(SPLIT) "$$out/.all" && rm "$$out/.all" && ls "$$out"

docs: setup ## Write docs/rules.md from the rules, which story shows which, and docs/graph.md
	mkdir -p docs
	$(BIN) rules --index tests/golden > src/cli/stories.txt.new
	mv src/cli/stories.txt.new src/cli/stories.txt
	$(BIN) rules --markdown > docs/rules.md.new
	mv docs/rules.md.new docs/rules.md
	$(BIN) graph --markdown > docs/graph.md.new
	mv docs/graph.md.new docs/graph.md

generated: setup ## Fail where crds/, docs/rules.md or docs/graph.md is not what the code says
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && out="$$dir/crds" && mkdir "$$out" && \
	$(BIN) crds > "$$dir/all" && $(SPLIT) "$$dir/all" && $(BIN) rules --markdown > "$$dir/rules.md" && \
	$(BIN) graph --markdown > "$$dir/graph.md" && \
	{ diff -ru -x kustomization.yaml crds "$$out" && diff -u docs/rules.md "$$dir/rules.md" && \
	diff -u docs/graph.md "$$dir/graph.md" || \
	  { echo "Generated files are stale: run make crds docs." >&2; exit 1; }; }

bench: setup ## Time and count what a decision costs
	$(CARGO) bench --locked

mutants: setup ## Replace code piece by piece and see whether a test notices (slow)
	@$(CARGO) mutants --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-mutants
	$(CARGO) mutants --file 'src/core/**/concerns/*.rs'

ci: check test test-live generated ## All that must hold before a change goes in
