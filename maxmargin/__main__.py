"""``python -m maxmargin`` is the ``maxmargin`` command."""

from maxmargin.cli import main

raise SystemExit(main())
