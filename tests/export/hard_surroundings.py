"""Sessions of which an export is easily wrong: settings, chance, modules, failures. Cells by session."""

from __future__ import annotations

Cell = str | tuple[str, ...]

SETTINGS: dict[str, list[Cell]] = {
    "warnings module list": [
        "import warnings",
        "warnings.filters.insert(0, ('ignore', None, UserWarning, None, 0))",
        "print(warnings.filters[0][0])",
    ],
    "warnings catch": [
        "import warnings\nw = warnings.catch_warnings(record=True)\nlog = w.__enter__()",
        "warnings.simplefilter('always')\nwarnings.warn('x')",
        "print(len(log))",
    ],
    "rcParams": [
        "import matplotlib as mpl",
        "mpl.rcParams['lines.linewidth'] = 7",
        "print(mpl.rcParams['lines.linewidth'])",
    ],
    "rcParams update alias": [
        "import matplotlib.pyplot as plt\nrc = plt.rcParams",
        "rc.update({'lines.linewidth': 6})",
        "print(plt.rcParams['lines.linewidth'])",
    ],
    "rcdefaults": [
        "import matplotlib.pyplot as plt\nplt.rcParams['lines.linewidth'] = 9",
        "plt.rcdefaults()",
        "print(plt.rcParams['lines.linewidth'])",
    ],
    "pandas option": [
        "import pandas as pd",
        "pd.set_option('display.max_rows', 5)",
        "pd.reset_option('display.max_rows')",
        "print(pd.get_option('display.max_rows'))",
    ],
    "pandas options alias": [
        "import pandas as pd\no = pd.options.display",
        "o.max_rows = 5",
        "print(pd.options.display.max_rows)",
    ],
    "pandas extension accessor": [
        "import pandas as pd",
        (
            "@pd.api.extensions.register_series_accessor('twice')\nclass Twice:\n"
            "    def __init__(self, s): self.s = s\n    def __call__(self): return self.s * 2"
        ),
        "print(pd.Series([1, 2]).twice().sum())",
    ],
    "np.seterr": [
        "import numpy as np",
        "np.seterr(all='raise')",
        "try:\n    np.float64(1) / 0\nexcept FloatingPointError as e:\n    print('raised')",
    ],
    "np.seterr in a function": [
        "import numpy as np\ndef strict():\n    np.seterr(divide='raise')",
        "strict()",
        "try:\n    np.ones(1) / 0\nexcept FloatingPointError:\n    print('raised')",
    ],
    "np errstate entered by hand": [
        "import numpy as np\nes = np.errstate(all='raise')",
        "es.__enter__()",
        "try:\n    np.ones(1) / 0\nexcept FloatingPointError:\n    print('raised')",
    ],
    "logging handler": [
        "import logging, io\nbuf = io.StringIO()",
        "log = logging.getLogger('q')",
        "log.addHandler(logging.StreamHandler(buf))",
        "log.warning('hi')",
        "print(buf.getvalue())",
    ],
    "logging handler other name": [
        "import logging, io\nbuf = io.StringIO()",
        "logging.getLogger('q').addHandler(logging.StreamHandler(buf))",
        "logging.getLogger('q').warning('hi')",
        "print(buf.getvalue())",
    ],
    "logging level": ["import logging", "logging.getLogger('q').setLevel(10)", "print(logging.getLogger('q').level)"],
    "logging disable": ["import logging", "logging.disable(30)", "print(logging.getLogger('z').isEnabledFor(20))"],
    "logging root alias": [
        "import logging\nroot = logging.getLogger()",
        "root.setLevel(35)",
        "print(logging.getLogger('anything').getEffectiveLevel())",
    ],
    "decimal context by another name": [
        "import decimal\nctx = decimal.getcontext()",
        "ctx.prec = 3",
        "print(decimal.Decimal(1) / 3)",
    ],
    "decimal setcontext": [
        "import decimal",
        "decimal.setcontext(decimal.Context(prec=3))",
        "print(decimal.Decimal(1) / 3)",
    ],
    "contextvar": ["from contextvars import ContextVar\nv = ContextVar('v', default=0)", "v.set(5)", "print(v.get())"],
    "contextvar in a function": [
        (
            "from contextvars import ContextVar\nv = ContextVar('v', default=0)\ndef put(n):\n    v.set(n)\n"
            "def take():\n    return v.get()"
        ),
        "put(5)",
        "print(take())",
    ],
    "monkeypatch through importlib": [
        "import importlib\nm = importlib.import_module('math')",
        "m.tau2 = 12",
        "import math\nprint(math.tau2)",
    ],
    "monkeypatch through sys.modules": ["import sys, math", "sys.modules['math'].tau2 = 12", "print(math.tau2)"],
    "fake module": [
        "import sys, types\nmod = types.ModuleType('fakemod')\nmod.v = 3",
        "sys.modules['fakemod'] = mod",
        "import fakemod\nprint(fakemod.v)",
    ],
    "setattr on module": ["import math", "setattr(math, 'tau2', 12)", "print(math.tau2)"],
    "mock patch object": [
        "import math\nfrom unittest import mock",
        "p = mock.patch.object(math, 'tau', 1)\nstarted = p.start()",
        "print(math.tau)",
    ],
    "patch of a class in a library": [
        "import json",
        "json.JSONEncoder.default = lambda self, o: 'Q'",
        "print(json.dumps(object()))",
    ],
    "patch of a class from import": [
        "from json import JSONEncoder, dumps",
        "JSONEncoder.default = lambda self, o: 'Q'",
        "print(dumps(object()))",
    ],
    "builtins patched": [
        "import builtins",
        "builtins.print = (lambda old: lambda *a: old('>', *a))(print)",
        "print(1)",
    ],
    "abc register": ["import abc\nclass Base(abc.ABC): pass", "Base.register(int)", "print(isinstance(3, Base))"],
    "codec register": [
        "import codecs",
        "codecs.register_error('q', lambda e: ('Q', e.end))",
        "print('é'.encode('ascii', 'q'))",
    ],
    "csv dialect": [
        "import csv, io",
        "csv.register_dialect('semi', delimiter=';')",
        "print(list(csv.reader(io.StringIO('a;b'), 'semi')))",
    ],
    "sys.path alias": [
        "import sys, os\nos.makedirs('lib2')\nopen('lib2/qmod2.py', 'w').write('V=3')\npaths = sys.path",
        "paths.insert(0, 'lib2')",
        "import qmod2\nprint(qmod2.V)",
    ],
    "sys.argv": ["import sys", "sys.argv = ['prog', 'x']", "print(sys.argv[1])"],
    "environ through from import": [
        "from os import environ",
        "environ['QQ4'] = 'a'",
        ("import subprocess\nprint(subprocess.run('echo $QQ4', shell=True, capture_output=True, text=True).stdout)"),
    ],
    "chdir from import": [
        "from os import chdir, mkdir\nmkdir('sub')",
        "chdir('sub')",
        "import os\nprint(os.path.basename(os.getcwd()))",
    ],
    "time freeze": ["import time\nreal = time.time", "time.time = lambda: 5", "print(time.time())"],
}
"""Settings, registries and patches of libraries."""

CHANCE: dict[str, list[Cell]] = {
    "np random get_state": [
        "import numpy as np\nnp.random.seed(1)\nst = np.random.get_state()",
        "a = np.random.rand()",
        "np.random.set_state(st)",
        "print(np.random.rand())",
    ],
    "np generator shared": [
        "import numpy as np\nrng = np.random.default_rng(1)",
        "class S:\n    def __init__(self, r): self.r = r\n    def draw(self): return self.r.random()",
        "s = S(rng)",
        "_a = s.draw()",
        "print(rng.random())",
    ],
    "random from import": ["from random import seed, random", "seed(4)", "a = random()", "print(random())"],
    "random setstate": [
        "import random\nrandom.seed(3)",
        "st = random.getstate()",
        "x = random.random()",
        "random.setstate(st)",
        "y = random.random()",
        "print(y)",
    ],
    "random inst methods": [
        "import random\nrandom.seed(5)\nroll = random.randint",
        "a = roll(1, 1000)",
        "print(roll(1, 1000))",
    ],
    "rows are sampled": [
        "import numpy as np\nimport pandas as pd\nnp.random.seed(3)\ndf = pd.DataFrame({'a': range(50)})",
        "a = df.sample(3)",
        "print(df.sample(3).a.tolist())",
    ],
    "seed in a class": [
        "import random\nclass Setup:\n    def __init__(self, n):\n        random.seed(n)",
        "Setup(3)",
        "a = random.random()",
        "print(random.random())",
    ],
    "seed in a helper": [
        ("write_file", "helpers.py", "import random\ndef fix(n):\n    random.seed(n)\n"),
        "import helpers, random",
        "helpers.fix(3)",
        "print(random.random())",
    ],
    "seed in a helper from import": [
        (
            "write_file",
            "helpers.py",
            "import random\ndef fix(n):\n    random.seed(n)\ndef draw():\n    return random.random()\n",
        ),
        "from helpers import fix, draw",
        "fix(3)",
        "a = draw()",
        "print(draw())",
    ],
    "seed here, draws in a helper": [
        ("write_file", "helpers.py", "import random\ndef draw():\n    return random.random()\n"),
        "import helpers, random",
        "random.seed(2)",
        "a = helpers.draw()",
        "print(helpers.draw())",
    ],
    "helper class draws": [
        (
            "write_file",
            "helpers.py",
            "import random\nclass Dice:\n    def roll(self):\n        return random.random()\n",
        ),
        "import random\nfrom helpers import Dice\nrandom.seed(5)\nd = Dice()",
        "a = d.roll()",
        "print(d.roll())",
    ],
    "conditional seed": [
        "import random\nrandom.seed(1)\ndef maybe(s=None):\n    if s: random.seed(s)",
        "maybe()",
        "print(random.random())",
    ],
    "seed in an if": ["import random\nrandom.seed(1)", "if False:\n    random.seed(3)", "print(random.random())"],
    "sklearn without random state": [
        (
            "import numpy as np\nfrom sklearn.ensemble import RandomForestClassifier\nnp.random.seed(0)\n"
            "X = np.arange(40).reshape(20, 2)\ny = np.array([0, 1] * 10)\nclf = RandomForestClassifier(3)"
        ),
        "clf.fit(X, y)",
        "clf2 = RandomForestClassifier(3).fit(X, y)\nprint(np.random.rand())",
    ],
}
"""Random numbers."""

HELPERS: dict[str, list[Cell]] = {
    "star import of a helper": [
        ("write_file", "helpers.py", "items = []\ndef add(v):\n    items.append(v)\n"),
        "from helpers import *",
        "add(1)",
        "print(items)",
    ],
    "star import later shadowed": [
        ("write_file", "helpers.py", "k = 1\n"),
        "k = 9",
        "from helpers import *",
        "print(k)",
    ],
    "helper reads a file": [
        ("write_file", "helpers.py", "def load():\n    return open('n.txt').read()\n"),
        ("bash", "echo 5 > n.txt"),
        "import helpers",
        "print(helpers.load())",
    ],
    "helper writes a file": [
        ("write_file", "helpers.py", "def save(v):\n    open('n.txt', 'w').write(v)\n"),
        "import helpers",
        "helpers.save('7')",
        "print(open('n.txt').read())",
    ],
    "helper class with state": [
        (
            "write_file",
            "helpers.py",
            "class Bag:\n    items = []\n    def put(self, v):\n        self.items.append(v)\n",
        ),
        "from helpers import Bag\nb = Bag()",
        "b.put(3)",
        "print(Bag.items)",
    ],
    "helper package reexport": [
        (
            "bash",
            (
                "mkdir pkg && printf 'from .core import add, items\\n' > pkg/__init__.py && printf 'items = "
                "[]\\ndef add(v):\\n    items.append(v)\\n' > pkg/core.py"
            ),
        ),
        "import pkg",
        "pkg.add(1)",
        "print(pkg.items)",
    ],
    "helper sets a setting": [
        ("write_file", "helpers.py", "import numpy as np\ndef setup():\n    np.set_printoptions(precision=2)\n"),
        "import helpers, numpy as np",
        "helpers.setup()",
        "print(np.array([1/3]))",
    ],
    "helper calls helper": [
        (
            "write_file",
            "helpers.py",
            "log = []\ndef note(v):\n    log.append(v)\ndef work(v):\n    note(v)\n    return v\n",
        ),
        "from helpers import work, log",
        "a = work(3)",
        "print(log)",
    ],
    "helper module attribute set": [
        ("write_file", "helpers.py", "K = 1\ndef f():\n    return K\n"),
        "import helpers",
        "helpers.K = 5",
        "print(helpers.f())",
    ],
    "helper pass list": [
        ("write_file", "helpers.py", "def put(xs):\n    xs.append(1)\n"),
        "from helpers import put\nxs = []",
        "put(xs)",
        "print(xs)",
    ],
}
"""Modules of the workspace."""

FAILED: dict[str, list[Cell]] = {
    "failed store, done again": [
        "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})",
        "df['c'] = df.nope",
        "df['c'] = df.a",
        "print(df.c.sum())",
    ],
    "failed method halfway": [
        (
            "class Bag:\n    def __init__(self): self.xs = []\n    def fill(self, n):\n"
            "        for i in range(n):\n            self.xs.append(i)\n"
            "            if i == 2: raise ValueError\nb = Bag()"
        ),
        "b.fill(5)",
        "print(b.xs)",
    ],
    "failed function global": ["n = 0\ndef up():\n    global n\n    n += 1\n    raise ValueError", "up()", "print(n)"],
    "failed helper state": [
        ("write_file", "helpers.py", "items = []\ndef add(x):\n    items.append(x)\n    raise ValueError\n"),
        "import helpers",
        "helpers.add(1)",
        "print(helpers.items)",
    ],
    "failed with patch": ["import math", "math.tau2 = 5; math.nope()", "print(math.tau2)"],
    "failed generator": ["g = iter([1, 2, 0, 3])", "r = [10 // x for x in g]", "print(list(g))"],
    "failed seed": ["import random", "random.seed(1); nope", "print(random.random())"],
    "failed in function with seed": [
        "import random\ndef go():\n    random.seed(1)\n    nope",
        "go()",
        "print(random.random())",
    ],
    "failed import": ["import math, nope_mod", "print(math.floor(2.5))"],
    "failed try finally": ["xs = []", "try:\n    nope\nfinally:\n    xs.append(1)", "print(xs)"],
    "failed exec": ["xs = []", "exec('xs.append(1)\\nnope')", "print(xs)"],
}
"""Cells that failed when they had begun to change something."""

TORCH: dict[str, list[Cell]] = {
    "torch dropout draws": [
        "import torch\ntorch.manual_seed(0)\nm = torch.nn.Dropout(0.5)\nx = torch.ones(8)",
        "a = m(x)",
        "print(m(x).tolist())",
    ],
    "torch loader draws": [
        (
            "import torch\nfrom torch.utils.data import DataLoader\ntorch.manual_seed(0)\n"
            "l = DataLoader(list(range(8)), shuffle=True)"
        ),
        "for b in l: pass",
        "print([b.item() for b in l])",
    ],
    "torch module in a class": [
        (
            "import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.l = torch.nn.Linear(2, 1)\n        self.d = torch.nn.Dropout(0.5)\n"
            "    def forward(self, x):\n        return self.l(self.d(x))\ntorch.manual_seed(0)\nnet = Net()"
        ),
        "y = net(torch.ones(4, 2))",
        "print(net(torch.ones(4, 2)).detach().tolist())",
    ],
    "torch optimiser": [
        "import torch\nw = torch.ones(2, requires_grad=True)\nopt = torch.optim.SGD([w], lr=0.5)",
        "loss = (w * 3).sum()",
        "loss.backward()",
        "opt.step()",
        "print(w.detach().tolist())",
    ],
    "torch grad": [
        "import torch\nw = torch.ones(2, requires_grad=True)\nloss = (w * 3).sum()",
        "loss.backward()",
        "print(w.grad.tolist())",
    ],
    "torch hook": [
        "import torch\nseen = []\nm = torch.nn.Linear(1, 1)",
        "h = m.register_forward_hook(lambda *a: seen.append(1))",
        "y = m(torch.ones(1))",
        "print(len(seen))",
    ],
    "torch numpy shares": ["import torch\na = torch.zeros(2)\nn = a.numpy()", "n[0] = 5", "print(a.tolist())"],
}
"""PyTorch."""

LEFT_OUT: dict[str, tuple[list[Cell], list[str]]] = {
    "an attribute of an object is read": (
        ["class A:\n    def __init__(self): self.x = 1\na = A()", "n = a.x + 1", "print(a.x)"],
        ["n = a.x + 1"],
    ),
    "a method that changes nothing": (
        [
            (
                "class A:\n    def __init__(self): self.x = 1\n    def double(self): return self.x * 2\n"
                "    def up(self): self.x += 1\na = A()"
            ),
            "n = str(a.x)",
            "print(a.double())",
        ],
        ["n = str(a.x)"],
    ),
    "an object is looked at": (
        ["class Net:\n    def __init__(self): self.w = [1]\nnet = Net()", "size = len(net.w)", "print(net.w)"],
        ["size = len(net.w)"],
    ),
    "pure functions of numpy": (
        [
            "import numpy as np\nx = np.zeros(3)",
            "shape = x.shape\nrows = list(shape)",
            "y = np.sort(x)",
            "print(x.sum())",
        ],
        ["shape = x.shape", "y = np.sort(x)"],
    ),
    "summaries of a table": (
        [
            "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})",
            "about = df.describe()\nwidth = len(df.columns)",
            "print(df.a.sum())",
        ],
        ["about ="],
    ),
    "a copy of a table is changed": (
        [
            "import pandas as pd\ndf = pd.DataFrame({'a': [1, 2]})",
            "other = df.copy()\nother['b'] = 1",
            "more = df * 2\nmore['c'] = 3",
            "print(df.columns.tolist())",
        ],
        ["other =", "more ="],
    ),
    "another model": (
        [
            (
                "import numpy as np\nfrom sklearn.linear_model import LinearRegression, Ridge\n"
                "X = np.arange(4.).reshape(4, 1)\ny = [1, 2, 3, 4]"
            ),
            "first = LinearRegression().fit(X, y)",
            "second = Ridge()\n_ = second.fit(X, y)",
            "third = Ridge(alpha=0.1)\n_ = third.fit(X, y)",
            "print(third.coef_.round(3))",
        ],
        ["first =", "second ="],
    ),
    "a message is logged": (
        ["import logging\nlog = logging.getLogger('q')", "log.warning('started')", "x = 2", "print(f'{x * 3}')"],
        ["log.warning"],
    ),
    "a helper's function without state": (
        [
            (
                "write_file",
                "helpers.py",
                "seen = []\ndef total(xs):\n    return sum(xs)\ndef note(x):\n    seen.append(x)\n",
            ),
            "import helpers",
            "a = helpers.total([1])",
            "print(helpers.total([2]))",
        ],
        ["a = helpers"],
    ),
    "a text is made of a value": (["import json\nd = {'a': [1]}", "s = json.dumps(d)", "print(d)"], ["s = json"]),
    "code from a text binds another name": (["x = 1", "exec('z = 3')", "print(x)"], ["exec("]),
    "a name is deleted": (["tmp = [1]\nx = 2", "w = 5", "del w", "print(x)"], ["w = 5", "del w"]),
    "another iterator": (["a = iter('ab')\nb = iter('cd')", "x = next(a)", "print(next(b))"], ["x = next(a)"]),
    "a decorated function nobody calls": (
        ["from functools import lru_cache\ndef f(x): return x", "@lru_cache\ndef g(x): return x", "print(f(2))"],
        ["def g(x)"],
    ),
    "an own generator": (
        [
            "import numpy as np\nr = np.random.default_rng(1)\nq = np.random.default_rng(2)",
            "a = q.random()",
            "print(r.random())",
        ],
        ["a = q.random()"],
    ),
    "attributes given to pure functions": (
        ["class A: pass\na = A(); a.xs = [1, 2]", "n = len(a.xs)\nm = sorted(a.xs)", "print(a.xs)"],
        ["n = len(a.xs)"],
    ),
    "two names for two lists": (["a, b = [], []", "a.append(1)", "b.append(2)", "print(b)"], ["a.append(1)"]),
}
"""Sessions with cells that nothing else needs, and what such cells begin with."""
