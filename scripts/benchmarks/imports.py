"""How long `import cutbank` takes, and what it loads."""

import json
import subprocess
import sys
from statistics import median

from .figure import Figure, Found, Options

IMPORTED = (
    "import json, sys, time; before = set(sys.modules); start = time.perf_counter(); import {0};"
    "print(json.dumps([time.perf_counter() - start, sorted(set(sys.modules) - before)]))"
)


def imports(options: Options) -> Found:
    """In fresh processes; then what the first name that is asked for loads."""
    for module, most in (("cutbank", 30), ("cutbank.adapters.runtime.sessions.session_store", 0)):
        command = [sys.executable, "-c", IMPORTED.format(module)]
        runs = [json.loads(subprocess.check_output(command)) for _ in range(options.processes)]
        taken, loaded = median(run[0] for run in runs) * 1e3, runs[0][1]
        target, met = (f"<= {most} ms", taken <= most) if most else ("", None)
        yield Figure(f"import {module}", "ms", taken, target=target, met=met)
        packages = sorted({name.split(".")[0] for name in loaded} - sys.stdlib_module_names)
        yield f"import {module} loads {len(loaded)} modules; packages: {', '.join(packages)}"
