import sys

from demo.show import main

sys.exit(main())
