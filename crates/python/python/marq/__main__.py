import sys

from marq._cli import main

sys.exit(main())
