# The commands of the project; `make run` and `make test` are all that a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Hundreds of processes start in the tests: each would compile the program anew.
unexport PYTHONDONTWRITEBYTECODE

# More than there are processors, since many tests wait; not many more, since each collects them all.
JOBS ?= $(shell expr 2 \* $$(nproc))
LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
  --custom-compile-command "make lock"
PYTEST := $(BIN)/python -m pytest --dist worksteal

.PHONY: run install test test-all test-sqlite test-postgres check format formats screenshots postman bench scale lock checkpoint wheel deb site home umbrel release image-test deb-test clean

run: $(VENV)/.installed  ## sandbox, service and check on this machine
	@exec $(BIN)/blocktill sandbox

# Compiled here, since a service may not write into its program's folder: else each check does it.
install: $(VENV)/.installed  ## leaves .venv/bin/blocktill
	@$(BIN)/python -m compileall -q app.py wsgi.py btcpay schemas storage

test: $(VENV)/.compiled  ## what needs no browser, no other server and no simulation
	$(PYTEST) -n $(JOBS) -m "not slow"

# Beside each other, so that one works while the other waits.
test-all: $(VENV)/.compiled  ## everything but tests/release
	@$(MAKE) --jobs=2 --output-sync=line test-sqlite test-postgres

test-sqlite: $(VENV)/.compiled  ## everything once, with walks, kills, looks, registries, proxies
	$(PYTEST) -n $(shell expr $(JOBS) + 2) -o norecursedirs=".* node_modules release"

test-postgres: $(VENV)/.compiled  ## what meets a database, on a PostgreSQL of the tests' own
	TESTS_ON=postgresql $(PYTEST) -n $(shell expr $(JOBS) / 2 + 1)

check: $(VENV)/.installed-dev  ## format, lint, types, hooks
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python .ci/check_hooks.py

format: $(VENV)/.installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

formats: $(VENV)/.installed-dev  ## how languages write numbers and times, from Unicode's table
	$(BIN)/python -m tests.support.cldr

screenshots: export BROWSER_FONTS = Roboto, Noto Sans Arabic
screenshots: $(VENV)/.installed-dev  ## every page in both themes, into build/screenshots; the pictures of documents and app stores
	SCREENSHOTS=build/screenshots $(BIN)/python -m pytest tests/nightly/checkout/test_browser_looks.py
	$(BIN)/python -m tests.support.pictures build/screenshots docs/pictures
	$(BIN)/python -m tests.support.store_pictures deploy/umbrel/pictures

postman: $(VENV)/.installed-dev  ## the collection for Postman among the documents, from the OpenAPI document
	$(BIN)/python -m tests.support.postman

bench: $(VENV)/.installed-dev  ## compares with a bare Flask route, prints ratios; then what an idle shop takes
	$(BIN)/python -m tests.bench.run
	$(BIN)/python -m tests.bench.idle

scale: $(VENV)/.installed-dev  ## a thousand shops on PostgreSQL, with faults: some ten minutes, and 4 GB of memory
	$(BIN)/python -m tests.scale.run

lock: $(VENV)/.installed-dev  ## pins every requirement again, with hashes, for every Python and machine
	$(LOCK) requirements/service.in -o requirements.txt
	for name in build lint site; do $(LOCK) requirements/$$name.in -o requirements/$$name.txt || exit 1; done
	for name in postgres redis socks dev; do \
	  $(LOCK) -c requirements.txt requirements/$$name.in -o requirements/$$name.txt || exit 1; \
	done

checkpoint: $(VENV)/.installed-dev  ## a newer checkpoint for the next release, from the explorers of BLOCKTILL_NETWORK
	@PYTHONPATH=. $(BIN)/python .ci/newest_checkpoint.py

# By an environment of its own, with the pinned setuptools and nothing else; what an earlier build
# or version has left would come along.
wheel: build/wheel/.installed  ## of the files as they are, into dist/; needs Python alone
	@rm -rf build/lib build/bdist.* dist/blocktill-*.whl
	@build/wheel/bin/python -m pip --disable-pip-version-check --quiet wheel --no-index --no-deps \
	  --no-build-isolation --wheel-dir dist .
	@ls dist/blocktill-*.whl

deb: wheel  ## package for the release of Debian or Ubuntu that this runs on, into dist/
	@deploy/debian/package.sh

# A page of it is made from the OpenAPI document, and so needs the program too.
site: build/home/.installed  ## README and docs/ as a searchable site, into build/site
	@rm -rf build/documents build/site
	@mkdir build/documents
	@cp -rL *.md LICENSE docs deploy examples build/documents
	@mv build/documents/docs/zensical.toml build
	@PYTHONPATH=. $(BIN)/python .ci/api_reference.py > build/documents/docs/developers/openapi.json
	@build/home/bin/oad gen-docs --source build/documents/docs/developers/openapi.json \
	  --templates .ci/reference --destination build/reference.md
	@cat build/reference.md >> build/documents/docs/developers/reference.md
	@build/home/bin/zensical build --strict --config-file build/zensical.toml

home:  ## make home URL=https://... [IMAGE=...]: writes the project's home into the files that repeat it
	@URL='$(URL)' IMAGE='$(IMAGE)' $(PYTHON) .ci/home.py

umbrel:  ## make umbrel DIGEST=sha256:...: the app's folder for Umbrel's store, into build/umbrel
	@echo '$(DIGEST)' | grep -Eqx 'sha256:[0-9a-f]{64}' || { echo "DIGEST=sha256:... of the image: the release's page has it"; exit 1; }
	@rm -rf build/umbrel && mkdir -p build/umbrel
	@cp -r deploy/umbrel/blocktill build/umbrel
	@sed -i 's/^ *image: .*/&@$(DIGEST)/' build/umbrel/blocktill/docker-compose.yml

release: $(VENV)/.installed-dev  ## wheel and sdist of the commit into dist/, checked; prints what to upload
	@$(BIN)/python .ci/release.py

# They need root, buildah, mmdebstrap and lintian, and minutes: before a release.
image-test: $(VENV)/.installed-dev  ## builds the image on a bare Debian, and runs a shop in it
	$(BIN)/python -m pytest tests/release/test_image.py

deb-test: $(VENV)/.installed-dev  ## builds, installs, upgrades and removes the package, on Debian 12 and 13
	$(BIN)/python -m pytest tests/release/test_deb.py

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python build/wheel/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "blocktill needs Python 3.11 or newer: make PYTHON=python3.13 ...")'
	@$(PYTHON) -m venv $(@:/bin/python=)

build/wheel/.installed: requirements/build.txt | build/wheel/bin/python
	@$(@D)/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r $<
	@touch $@

build/home/.installed: requirements/site.txt | $(VENV)/.installed-dev
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(@D)
	@$(BIN)/uv pip install --quiet --python $(@D) --require-hashes -r $<
	@touch $@

$(VENV)/.installed: requirements.txt requirements/build.txt setup.cfg pyproject.toml | $(VENV)/bin/python
	@echo "installing into $(VENV), about a minute..."
	@$(PIP) install --require-hashes -r requirements.txt -r requirements/build.txt
	@$(PIP) install --no-index --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.installed-dev: requirements/dev.txt requirements/postgres.txt requirements/redis.txt requirements/socks.txt $(VENV)/.installed
	@echo "installing what the tests need into $(VENV), about a minute..."
	@$(PIP) install --require-hashes -r requirements/dev.txt
	@$(PIP) install --require-hashes -r requirements/postgres.txt -r requirements/redis.txt -r requirements/socks.txt
	@touch $@

# Of a fresh checkout each worker would compile all tests itself.
$(VENV)/.compiled: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest --collect-only -qq tests tests/nightly >/dev/null || true
	@touch $@
