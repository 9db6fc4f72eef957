"""`python -m hyperjax`: the same as the command `hyperjax`."""

import sys

from .cli import main

sys.exit(main())
