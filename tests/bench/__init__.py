"""The numbers of the project, measured: `make bench`, or `python -m tests.bench --rows "decision status"`."""
