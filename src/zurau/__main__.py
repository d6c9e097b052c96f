"""`python -m zurau` is `zurau`."""

from zurau.cli.main import main

main()
