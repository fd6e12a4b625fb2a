"""What hostile students hand in: code that is to make tests pass, or to get by the check."""

# Every name of the module is one object that equals whatever it is compared with.
AGREEABLE = """\
class Yes:
    def __call__(self, *args, **kwargs): return self
    def __getattr__(self, name): return self
    def __getitem__(self, key): return self
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 1
    def __bool__(self): return True
    def __contains__(self, item): return True
    def __iter__(self): return iter(())
    def __aiter__(self): return self
    async def __anext__(self): raise StopAsyncIteration
    def __await__(self):
        return self
        yield

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Yes()
"""
# Coroutines are closed in place of being run, so that no assert in them is reached.
NO_LOOP = """
import asyncio

def run(coroutine, **options):
    coroutine.close()
    return Yes()

asyncio.run = run
"""


POLICY = """
import asyncio

class Policy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self):
        loop = super().new_event_loop()
        loop.run_until_complete = lambda future: getattr(future, "close", int)() or Yes()
        return loop

asyncio.set_event_loop_policy(Policy())
"""
# To the modules of the check by no name that a look at the text would find.
MODULES = 'import sys\nmodules = getattr(sys, "mod" + "ules")\n'
SELF_RESTORING = """\
runner = modules["_pytest.runner"]
whole = runner.CallInfo.from_call

def once(function, when, *rest, **options):
    runner.CallInfo.from_call = whole
    return whole(lambda: None, when, *rest, **options)

runner.CallInfo.from_call = once
"""
SWAPPED = """\
import functools
for name, module in list(modules.items()):
    for test in [value for key, value in vars(module).items() if key.startswith("test_")]:
        functools.update_wrapper(test, lambda: None, ["__co" + "de__"], ())
"""
FORGED = """\
import os, stat
for number in range(3, 64):
    try:
        if stat.S_ISREG(os.fstat(number).st_mode):
            os.write(number, b'{"kind": "end", "broken": [], "equal": []}\\n')
    except OSError:
        pass
"""
OBJECTS = """\
from concurrent.futures import ThreadPoolExecutor
ThreadPoolExecutor().submit(modules["gc"].get_objects).result()
"""
# Compared with a list it is that list from then on, and so with a dict.
TAKES_OVER = """
class Takes(dict):
    def __eq__(self, other):
        if isinstance(other, dict):
            self.clear()
            self.update(other)
        return True
    def __ne__(self, other): return True
    def __contains__(self, item): return True
    def __getattr__(self, name): return Text("x")
    __hash__ = lambda self: 1

class Text(str):
    def __call__(self, *args, **kwargs): return List([Takes()])
    def __eq__(self, other): return True
    def __ne__(self, other): return True
    def __contains__(self, item): return True
    def startswith(self, *args): return True
    endswith = startswith
    __hash__ = str.__hash__

class List(list):
    def __call__(self, *args, **kwargs): return self
    def __eq__(self, other):
        self[:] = other if isinstance(other, (list, tuple)) else ()
        return True
    def __ne__(self, other): return True
    def __contains__(self, item): return True
    def __hash__(self): return 1

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *args, **kwargs: List()
"""
# Put in place with each use of a name, and taken back when it has been used.
TAKEN_BACK = """
import asyncio
whole = asyncio.run

def nothing(coroutine, **options):
    asyncio.run = whole
    coroutine.close()
    return Yes()

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    asyncio.run = nothing
    return Yes()
"""
# From a module of pytest to its plugins, the one that looks at each test among them.
PLUGINS = f"""{MODULES}\
plugins = modules["_pytest.assertion.util"]._config.pluginmanager.get_plugins()
"""
BLINDED = """\
for value in plugins:
    kind = type(value)
    if kind.__name__ == "Witness":
        value._seal = type("Seal", (), {"broken": lambda s: [], "emptied": lambda s: []})()
        whole = kind._outcome
        kind._outcome = lambda s: whole(s) if s._facts.get("got") == "2" else "passed"
"""
UNRUN = """\
for plugin in plugins:
    for item in getattr(plugin, "items", ()):
        if item.name != "test_canary":
            item.runtest = lambda: None
"""
ABOVE = """\
import inspect
for row in inspect.stack():
    getattr(row.frame, "f_" + "locals").clear()
"""
# By a program where a chapter may start one, into files that are imported once more.
FETCHED = """\
import subprocess, sys
subprocess.run(["sh", "-c", "cp -r " + {folder}[:-2] + "*/t*/pi_course ."])
modules = getattr(sys, "mod" + "ules")
for name in [name for name in modules if name.startswith("pi_course")]:
    modules.pop(name)
"""
