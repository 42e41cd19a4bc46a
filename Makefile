.PHONY: demo test soak bench check setup setup-test clean

# Watch a small service get a feature. YES=1 asks nothing; MODEL=provider/name takes a real model. MOUNT=1 runs what it
# writes without isolation, where there is no bubblewrap.
demo: setup
	@.venv/bin/python examples/demo.py $(if $(YES),--yes) $(if $(MODEL),--model $(MODEL)) $(if $(MOUNT),--sandbox mount)

# All checks and all tests, in three processes, each file in one of them; a few that fail are asked once more, alone, and
# named. ARGS goes to pytest.
test: check
	.venv/bin/pytest -n 3 --dist loadfile --no-loadscope-reorder --cache-clear $(ARGS) \
		|| .venv/bin/python -m tests.again $$?

# The whole kill table; `make test` plays a third of it, drawn by MENDWORK_SEED.
soak: setup-test
	MENDWORK_SOAK=1 .venv/bin/pytest -n 3 --dist loadfile tests/chaos $(ARGS)

# Ratios against a baseline of the same run.
bench: setup-test
	.venv/bin/python -m benchmarks.switching
	.venv/bin/python -m benchmarks.tasks
	.venv/bin/python -m benchmarks.environments
	.venv/bin/python -m benchmarks.context
	.venv/bin/python -m benchmarks.telemetry
	.venv/bin/python -m benchmarks.start
	.venv/bin/python -m benchmarks.gateway
	.venv/bin/python -m benchmarks.engine
	.venv/bin/python -m benchmarks.bodies
	.venv/bin/python -m benchmarks.scale
	.venv/bin/python -m benchmarks.langgraph

check: setup-test
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/lint-imports
	.venv/bin/mypy

setup:
	@setup/run $(if $(MOUNT),mount,demo)

setup-test:
	@setup/run test

clean:
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
