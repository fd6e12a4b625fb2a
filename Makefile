# Each target sets up what it needs: a virtual environment in .venv and the packages in it.
#
#   make lab      install the course and open JupyterLab on chapter 00
#   make test     everything that CI runs: lint, types, tests, snapshots, faults, notebooks
#   make fast     the same without notebooks, wheel and browser, for use while you edit
#   make verify   only the course's claims about its own checkpoints
#   make bench    all benchmarks, one table
#
# Another Python:       make lab PYTHON=/path/to/python3.12
# Options of the tool:  make lab ARGS=--no-browser    make bench ARGS='--against old.json'

PYTHON = $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$python; break; }; done)
UV = uv==0.13.9
ARGS =

.PHONY: lab test fast verify bench clean FORCE

lab: .venv/installed
	.venv/bin/pi-course lab $(ARGS)

test: .venv/installed-dev
	.venv/bin/python tests/run.py $(ARGS)

fast: .venv/installed-dev
	.venv/bin/python tests/run.py --fast $(ARGS)

verify: .venv/installed-dev
	.venv/bin/pi-course verify $(ARGS)

bench: .venv/installed-dev
	.venv/bin/python -m benchmarks $(ARGS)

clean:
	rm -rf .venv

# A learner does not need the tools of `dev`, which are half of the download.
.venv/installed: pyproject.toml constraints.txt .venv/here
	@echo "Installing the course into .venv: a minute or two, and 600 MB of disk, the first time"
	@$(install) -e . || $(failed)
	@touch $@

.venv/installed-dev: pyproject.toml constraints.txt .venv/here
	@echo "Installing the course and its development tools into .venv"
	@$(install) -e '.[dev]' || $(failed)
	@touch $@ .venv/installed

# An environment holds the absolute path of its folder, so a checkout that was moved gets a new one.
ifneq "$(shell test -x .venv/bin/python && cat .venv/here 2>/dev/null)" "$(CURDIR)"
.venv/here: FORCE
endif
# So does a checkout whose environment has another Python than the one asked for.
ifeq "$(origin PYTHON)" "command line"
base = $(shell $(1) -c 'import sys; print(sys.base_prefix)' 2>/dev/null)
ifneq ($(call base,.venv/bin/python),$(call base,"$(PYTHON)"))
.venv/here: FORCE
endif
endif
.venv/here:
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer was found." \
	  "Install one, or say where it is: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is not Python 3.11 or newer." \
	  "Install one, or say where it is: make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
	  version=$$("$(PYTHON)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "$(PYTHON) cannot make virtual environments: its venv or ensurepip module is missing." \
	  "On Debian and Ubuntu: apt install python$$version-venv. Then run make again." >&2; exit 1; }
	@echo "Making .venv with $(PYTHON)"
	@if test -e .venv/here || ! test -x .venv/bin/python; then rm -rf .venv; fi
	@"$(PYTHON)" -m venv .venv
	@.venv/bin/python -m pip install --quiet --disable-pip-version-check '$(UV)' || $(failed)
	@printf '%s\n' "$(CURDIR)" > $@

install = .venv/bin/uv pip install --quiet --compile-bytecode --python .venv/bin/python \
	-c constraints.txt -b constraints.txt

failed = { \
	command -v cc >/dev/null || command -v gcc >/dev/null || command -v clang >/dev/null || \
	echo "Where a package has no ready build for this machine, it is compiled, and no C compiler" \
	  "was found here. On Debian and Ubuntu: apt install build-essential python3-dev;" \
	  "on macOS: xcode-select --install; on Fedora: dnf install gcc python3-devel." >&2; \
	echo "The installation failed; nothing outside .venv was changed. See the messages above," \
	  "check the network, and run make again." >&2; exit 1; }
